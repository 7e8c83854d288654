package memory

import (
	"cmp"
	"math/big"
	"strings"
)

// number is a decimal in the form 0.digits x 10^exp, digits without leading or
// trailing zeros; zero has no digits.
type number struct {
	neg    bool
	digits string
	exp    int
}

// Bounds of DynamoDB's numbers.
const (
	maxDigits = 38
	maxExp    = 126  // below 1E126
	minExp    = -129 // from 1E-130
)

// parseNumber reads a number's text; false when it is none that DynamoDB takes.
func parseNumber(text string) (number, bool) {
	var n number
	s := text
	if s != "" && (s[0] == '-' || s[0] == '+') {
		n.neg, s = s[0] == '-', s[1:]
	}
	mantissa, exponent, hasExp := cutAny(s, "eE")
	whole, frac, _ := strings.Cut(mantissa, ".")
	if whole == "" && frac == "" || !allDigits(whole) || !allDigits(frac) {
		return number{}, false
	}
	exp := 0
	if hasExp {
		neg := strings.HasPrefix(exponent, "-")
		exponent = strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")
		if neg && strings.HasPrefix(exponent, "+") || exponent == "" || len(exponent) > 6 || !allDigits(exponent) {
			return number{}, false
		}
		for _, c := range exponent {
			exp = exp*10 + int(c-'0')
		}
		if neg {
			exp = -exp
		}
	}
	digits := whole + frac
	trimmed := strings.TrimLeft(digits, "0")
	n.exp = exp + len(whole) - (len(digits) - len(trimmed))
	n.digits = strings.TrimRight(trimmed, "0")
	if n.digits == "" {
		return number{}, true
	}
	if len(n.digits) > maxDigits || n.exp > maxExp || n.exp < minExp {
		return number{}, false
	}
	return n, true
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// canonical gives the text of a number as the store keeps it: plain digits, no
// needless zeros, no exponent. False when it is no number.
func canonical(text string) (string, bool) {
	if plain(text) {
		return text, true
	}
	n, ok := parseNumber(text)
	if !ok {
		return "", false
	}
	return n.text(), true
}

// plain reports whether the text is a whole number in canonical form already.
func plain(s string) bool {
	if s == "0" {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	return s != "" && len(s) <= maxDigits && s[0] != '0' && allDigits(s)
}

func (n number) text() string {
	var s string
	switch d := len(n.digits); {
	case d == 0:
		return "0"
	case n.exp <= 0:
		s = "0." + strings.Repeat("0", -n.exp) + n.digits
	case n.exp >= d:
		s = n.digits + strings.Repeat("0", n.exp-d)
	default:
		s = n.digits[:n.exp] + "." + n.digits[n.exp:]
	}
	if n.neg {
		return "-" + s
	}
	return s
}

// compareNumbers compares two numbers' canonical texts by value.
func compareNumbers(a, b string) int {
	if a == b {
		return 0
	}
	x, _ := parseNumber(a)
	y, _ := parseNumber(b)
	return cmp.Compare(x.sortable(), y.sortable())
}

// sortable gives a text whose byte order is the order of the numbers.
func (n number) sortable() string {
	switch {
	case n.digits == "":
		return "1"
	case n.neg:
		// Larger magnitudes come first: every byte mirrored, and an end that
		// sorts after any digit.
		b := []byte(n.digits)
		for i := range b {
			b[i] = '0' + '9' - b[i]
		}
		return "0" + string([]byte{byte(255 - (n.exp - minExp))}) + string(b) + "~"
	}
	return "2" + string([]byte{byte(n.exp - minExp)}) + n.digits
}

// addNumbers adds a whole number to a canonical text; false when the sum has
// more digits than a number can have.
func addNumbers(text string, add int64) (string, bool) {
	n, _ := parseNumber(text)
	scale := max(0, len(n.digits)-n.exp) // digits after the point
	value, _ := new(big.Int).SetString("0"+n.digits+strings.Repeat("0", n.exp-len(n.digits)+scale), 10)
	if n.neg {
		value.Neg(value)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	value.Add(value, unit.Mul(unit, big.NewInt(add)))
	sum := number{neg: value.Sign() < 0}
	digits := value.Abs(value).String()
	sum.exp = len(digits) - scale
	sum.digits = strings.TrimRight(digits, "0")
	if len(sum.digits) > maxDigits || sum.exp > maxExp {
		return "", false
	}
	return sum.text(), true
}
