package execution

import (
	"github.com/cockroachdb/apd/v3"
)

// Budgets are exact decimals. The exponent is bounded before any arithmetic,
// so that 1e9999 + 1 cannot make a number of ten thousand digits.
const maxDecimalExponent = 100

var decimals = apd.Context{Precision: 1000, MaxExponent: 10 * maxDecimalExponent, MinExponent: -10 * maxDecimalExponent, Traps: apd.DefaultTraps | apd.Inexact | apd.Rounded}

// ParseDecimal checks a budget number: finite, exponent within ±100, at most
// 200 digits. negative says whether it may be below zero. It returns the
// number's plain text form.
func ParseDecimal(field, token string, negative bool) (string, error) {
	d, err := parseDecimal(token)
	if err != nil {
		return "", Invalid(field, "must be a decimal number with an exponent within ±%d", maxDecimalExponent)
	}
	if d.Negative && !d.IsZero() && !negative {
		return "", Invalid(field, "must not be negative")
	}
	return d.Text('f'), nil
}

func parseDecimal(token string) (*apd.Decimal, error) {
	d, _, err := apd.NewFromString(token)
	if err != nil {
		return nil, err
	}
	if d.Form != apd.Finite || d.Exponent > maxDecimalExponent || d.Exponent < -maxDecimalExponent || d.NumDigits() > 200 {
		return nil, Errorf(InvalidRequest, "number out of range")
	}
	return d, nil
}

// addDecimals adds two plain texts; an unreadable one counts as 0 (they were
// checked when they were written).
func addDecimals(a, b string) string {
	x, _, err := apd.NewFromString(a)
	if err != nil {
		x = apd.New(0, 0)
	}
	y, _, err := apd.NewFromString(b)
	if err != nil {
		return x.Text('f')
	}
	var sum apd.Decimal
	if _, err := decimals.Add(&sum, x, y); err != nil {
		return x.Text('f')
	}
	return sum.Text('f')
}

// exceeds reports whether spent+n is beyond limit (the limit itself may be
// reached).
func exceeds(limit, spent, n string) bool {
	l, _, err := apd.NewFromString(limit)
	if err != nil {
		return true
	}
	sum, _, err := apd.NewFromString(addDecimals(spent, n))
	if err != nil {
		return true
	}
	return sum.Cmp(l) > 0
}
