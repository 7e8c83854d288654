// Package view shows an execution as it was folded: the standing that every
// reply carries and the view of get, claim and resume. It reads the inbox where
// a view asks for it and writes nothing but objects that references point to
// (state_ref), which expire by themselves.
package view
