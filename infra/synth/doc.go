// Package synth makes CloudFormation templates from constructs in this process
// and reads them: for the app, for the description of the stack in words, and
// for the tests, which assert on the template itself rather than on the code
// that made it.
package synth
