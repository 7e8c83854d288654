package memory

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// numbers generates texts that DynamoDB takes, in many spellings.
func numbers() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		digits := rapid.StringMatching(`[0-9]{1,12}`).Draw(t, "digits")
		frac := rapid.StringMatching(`(\.[0-9]{0,12})?`).Draw(t, "frac")
		exp := rapid.StringMatching(`([eE][+-]?[0-9]{1,2})?`).Draw(t, "exp")
		return rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign") + digits + frac + exp
	})
}

func rat(t *rapid.T, text string) *big.Rat {
	text = strings.TrimSuffix(text, ".")
	text = strings.NewReplacer(".e", "e", ".E", "e").Replace(text)
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q", text)
	}
	return r
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "00": "0", "1": "1", "007": "7", "1.0": "1", "1.50": "1.5", "-1.50": "-1.5", "1e3": "1000", "1E-3": "0.001",
		"12.34e1": "123.4", ".5": "0.5", "5.": "5", "+5": "5", "0.00": "0", "100": "100", "9.99e125": "999" + strings.Repeat("0", 123), "1e-130": "0." + strings.Repeat("0", 129) + "1",
		strings.Repeat("9", 38): strings.Repeat("9", 38), "1" + strings.Repeat("0", 50): "1" + strings.Repeat("0", 50),
	} {
		if got, ok := canonical(in); !ok || got != want {
			t.Errorf("canonical(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "-", "+", ".", "e5", "1e", "1e+", "1e+-5", "1e1.5", "--1", "1 ", " 1", "0x10", "NaN", "Infinity", "1e126", "1e-131", "1,000", "1_000", strings.Repeat("9", 39), "1e9999999", "١"} {
		if got, ok := canonical(in); ok {
			t.Errorf("canonical(%q) = %q", in, got)
		}
	}
}

func TestNumbersAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		x, ok := canonical(a)
		y, ok2 := canonical(b)
		if !ok || !ok2 {
			t.Skip("out of bounds")
		}
		if rat(t, a).Cmp(rat(t, x)) != 0 {
			t.Fatalf("canonical(%q) = %q", a, x)
		}
		if again, _ := canonical(x); again != x {
			t.Fatalf("canonical(%q) = %q", x, again)
		}
		if got, want := compareNumbers(x, y), rat(t, a).Cmp(rat(t, b)); got != want {
			t.Fatalf("compare %q with %q: %d, want %d", x, y, got, want)
		}
		n := rapid.Int64().Draw(t, "n")
		want := new(big.Rat).Add(rat(t, a), new(big.Rat).SetInt64(n))
		if sum, ok := addNumbers(x, n); ok && rat(t, sum).Cmp(want) != 0 {
			t.Fatalf("%q + %d = %q, want %v", x, n, sum, want)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"0", "-1.5e3", "1e-130", "..", "9e125", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := canonical(s)
		if !ok {
			return
		}
		if again, ok := canonical(c); !ok || again != c {
			t.Errorf("canonical(%q) = %q, again %q, %v", s, c, again, ok)
		}
	})
}
