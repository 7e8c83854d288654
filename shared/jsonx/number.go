package jsonx

import (
	"strconv"
	"strings"
)

// decimal is the exact value of a number token: digits times ten to the power
// of exp. digits has no zeros at either end; it is "" for zero, whose sign does
// not count.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal takes a valid number token apart. It never expands an exponent.
func parseDecimal(token string) decimal {
	var d decimal
	if d.negative = token[0] == '-'; d.negative {
		token = token[1:]
	}
	if i := strings.IndexAny(token, "eE"); i >= 0 {
		exp := token[i+1:]
		switch exp[0] {
		case '-':
			d.exp = -exponentValue(exp[1:])
		case '+':
			d.exp = exponentValue(exp[1:])
		default:
			d.exp = exponentValue(exp)
		}
		token = token[:i]
	}
	whole, frac, _ := strings.Cut(token, ".")
	d.exp -= len(frac)
	digits := strings.TrimLeft(whole+frac, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exp += len(digits) - len(d.digits)
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// appendDecimal appends the only spelling of d: -, the digits, and e with the
// exponent unless that is 0.
func appendDecimal(dst []byte, d decimal) []byte {
	if d.digits == "" {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	dst = append(dst, d.digits...)
	if d.exp != 0 {
		dst = append(dst, 'e')
		dst = strconv.AppendInt(dst, int64(d.exp), 10)
	}
	return dst
}

// sameNumber compares two number tokens by exact value.
func sameNumber(a, b string) bool { return a == b || parseDecimal(a) == parseDecimal(b) }
