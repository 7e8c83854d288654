// Package bench measures times as ratios to a raw SDK call of the same bytes in
// the same run, on the local engine. It runs only when asked (make bench): no
// time is a test's condition in the ordinary suite.
package bench
