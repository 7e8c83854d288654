package jsonx

import (
	"strings"
	"unicode/utf8"
)

// This file reads single tokens. Each scanner gets the text and the position
// of the token's first byte; on failure reason is not "" and end is where
// reading stopped.

// plain holds the bytes that stand for themselves in a string and need no look
// at their neighbours.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// scanString reads a string token; s[start] is its opening quote.
func scanString(s string, start int) (end int, escaped bool, reason string) {
	i := start + 1
	for {
		for i < len(s) && plain[s[i]] {
			i++
		}
		if i == len(s) {
			return i, escaped, ReasonUnexpectedEnd
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1, escaped, ""
		case c == '\\':
			escaped = true
			n, reason := scanEscape(s[i:])
			if reason != "" {
				return i, escaped, reason
			}
			i += n
		case c < 0x20:
			return i, escaped, ReasonControl
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				return i, escaped, ReasonUTF8
			}
			i += n
		}
	}
}

// scanEscape returns the length of the escape at the start of s.
func scanEscape(s string) (n int, reason string) {
	if len(s) < 2 {
		return 0, ReasonUnexpectedEnd
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, ReasonEscape
	}
	for i := 2; i < 6; i++ {
		if i == len(s) {
			return 0, ReasonUnexpectedEnd
		}
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0, ReasonEscape
		}
	}
	return 6, ""
}

// scanNumber reads a number token; s[start] is a digit or the minus sign.
func scanNumber(s string, start, maxExponent int) (end int, reason string) {
	i := start
	if s[i] == '-' {
		i++
	}
	digits := scanDigits(s, i)
	switch {
	case digits == i && (strings.HasPrefix(s[i:], "Infinity") || strings.HasPrefix(s[i:], "NaN")):
		return i, ReasonNotNumber
	case digits == i:
		return i, ReasonNumber
	case digits > i+1 && s[i] == '0':
		return i + 1, ReasonNumber
	}
	i = digits
	if i < len(s) && s[i] == '.' {
		i++
		if digits = scanDigits(s, i); digits == i {
			return i, ReasonNumber
		}
		i = digits
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if digits = scanDigits(s, i); digits == i {
			return i, ReasonNumber
		}
		if exponentValue(s[i:digits]) > maxExponent {
			return i, ReasonExponent
		}
		i = digits
	}
	return i, ""
}

func scanDigits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// maxExponentLimit is the largest exponent any Limits allow, so that sums of
// exponents and digit counts stay far from overflow.
const maxExponentLimit = 999_999_999

// exponentValue reads an unsigned exponent; beyond maxExponentLimit it returns
// some larger number.
func exponentValue(digits string) int {
	n := 0
	for i := 0; i < len(digits) && n <= maxExponentLimit; i++ {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}
