package secrets

import (
	"strings"
	"testing"
)

// What stands where a credential would, and is none; and what looks like that,
// and is one.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"": true, "  ": true, "aaaa": true, "<your key>": true, "[masked]": true, "%PASSWORD%": true, "ab***cd": true, "xxxx1234": true, "....1234": true, "ab\u2022\u2022cd": true,
		"Change-Me": true, "NOT_SET": true, "not set": true, "your api key": true,
		"<not closed": false, "not opened>": false, "[not closed": false, "not opened]": false, "%not closed": false, "not opened%": false, "xxx1": false, "...1": false, "a**b": false, "hunter2!": false, "mypassword1": false,
	} {
		if placeholder(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// Strings that name a place in a secret store.
func TestReferences(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"arn:aws:secretsmanager:eu:1:secret:x": true, "ARN:AWS:SSM:x": true, "vault:x": true, "op://a/b": true, "${DB}": true, "{{x}}": true, "projects/p/secrets/s": true, "https://v.vault.azure.net/secrets/s": true,
		"projects/p/keys/s": false, "p/secrets/s": false, "https://example.com/secrets/s": false, "http://v.vault.azure.net/secrets/s": false, "see vault:x": false, "": false,
	} {
		if reference(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// base64 of user:password, of printable text, with both.
func TestUserPassword(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"dXNlcjpwYXNz": true, "dXNlcjpwdw==": false, "OnBhc3M=": false, "dXNlcnBhc3M=": false, "dXNlcgE6cGFzcw==": false, "dXNlcn86cGFzcw==": false, "dXNlcjpw*": false, "dX46cGFz": true, "dSA6cGFz": true} {
		if userPassword(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// Digits and letters in one long run.
func TestMixed(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"abcdefghijklmno1": true, "ABCDEFGHIJKLMNO1": true, "abcdefghijklmn1": false, "abcdefghijklmnop": false, "1234567890123456": false, "abcdefgh-12345678": false, "zzzzzzzzzzzzzzz0": true, "ZZZZZZZZZZZZZZZ9": true, "abc{efghijklmno1": false} {
		if mixed(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// Names are compared without case, hyphens and the like; endless ones are none.
func TestPlainName(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"API_Key": "apikey", "client-secret": "clientsecret", "db.password": "dbpassword", "a B": "ab", "AZ[": "az[", strings.Repeat("a", 64): strings.Repeat("a", 64), strings.Repeat("a", 65): ""} {
		if got := plainName(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// What a tenant excepted: a path and all below it, no other that begins like it.
func TestAllows(t *testing.T) {
	t.Parallel()
	r := &Rules{allowed: []string{"/state/public", "/note"}}
	for path, want := range map[string]bool{"/state/public": true, "/state/public/a/b": true, "/note": true, "/state/publicity": false, "/state": false, "/state/pub": false, "": false, "/notes": false} {
		if r.allows(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestSecretText(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"hunter2": true, "hunte2": true, "hunt2": false, "two words": false, "tab\there": false, "vault:abc": false, "changeme": false} {
		if secretText(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
	for s, want := range map[string]bool{"s3cret": true, "/etc/passwd": false, `\\host\x`: false, "none": false} {
		if connection(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// A name that is too long to be compared is nobody's field.
func TestLongNamesAreNoFields(t *testing.T) {
	t.Parallel()
	s := &scanner{rules: NewRules([]string{strings.Repeat("a", 65), "Pin-Code"}, nil)}
	if got := s.under(strings.Repeat("b", 70), none); got != none {
		t.Errorf("%v", got)
	}
	if s.under("pin_code", none) != field || s.under("other", field) != field || s.under("secret_ref", none) != none || s.under("API-key", none) != credential {
		t.Error("what a name makes of its value")
	}
}
