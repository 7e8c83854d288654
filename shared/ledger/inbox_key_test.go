package ledger

import "testing"

// A signal's key that nobody wrote so is no name, and no panic.
func TestSignalName(t *testing.T) {
	t.Parallel()
	for sk, want := range map[string]string{"sig#1#paid#0a": "paid", "sig#1": "", "sig#1#paid": "", "sig#1#paid#0a#more": "", "": "", "sig#1##0a": ""} {
		if got := signalName(sk); got != want {
			t.Errorf("%q: %q, want %q", sk, got, want)
		}
	}
}
