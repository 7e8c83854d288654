package secrets

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// A pattern with a head finds exactly what its expression finds anywhere.
func TestHeadsFindTheSame(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "abcdef0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-."
	run := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	heads, found := 0, 0
	for i := range patterns {
		p := &patterns[i]
		if p.head == "" {
			continue
		}
		heads++
		plain := regexp.MustCompile(`\b` + strings.TrimPrefix(p.expr.String(), `\A`))
		for range 3000 {
			s := ""
			for range 1 + random.IntN(4) {
				tail := []string{run(random.IntN(40)), strings.Repeat("0a", 16), "AgEI" + run(60), run(20) + ".eyJ" + run(20) + "." + run(20)}[random.IntN(4)]
				s += []string{"", " ", "x", "_", "é", "-", p.head}[random.IntN(7)] + p.head[:random.IntN(len(p.head)+1)] + []string{"", p.head}[random.IntN(2)] + tail
			}
			m := plain.FindStringIndex(s)
			if m != nil && insideData(s, m[0], m[1]) {
				continue
			}
			also := p.also
			p := *p
			p.also = nil
			lo, hi, ok := p.find(s, 0)
			if ok != (m != nil) || ok && (lo != m[0] || hi != m[1]) {
				t.Fatalf("%s in %q: %v %d %d, want %v", p.kind, s, ok, lo, hi, m)
			}
			if ok && (also == nil || also(s[lo:hi])) {
				found++
			}
		}
	}
	if heads < 8 || found < 1000 {
		t.Fatalf("%d patterns with a head, %d finds: this proves nothing", heads, found)
	}
}
