package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// chat is a state of about n bytes: messages as an agent keeps them.
func chat(n int) *jsonx.Value {
	var b strings.Builder
	b.WriteString(`{"messages":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":"message %d about reservation %d of 1,024.50 EUR","seen":true}`, i, i*7919)
	}
	b.WriteString(`]}`)
	return value(b.String())
}

func longLog(t testing.TB, n int) []*Entry {
	x := newScript(t)
	c := created()
	c.State = chat(10 << 10)
	x.do(c)
	x.do(claim("w1"))
	for i := len(x.log); i < n; i++ {
		c := x.step()
		c.Request = request(fmt.Sprint("r", i), "c")
		c.Patch = value(fmt.Sprintf(`[{"op":"add","path":"/messages/-","value":"%0150d"}]`, i))
		if p := x.do(c); p.Entry.Body.Patch == nil {
			t.Fatal("the step was not stored as a patch")
		}
	}
	return x.log
}

func BenchmarkFold10000(b *testing.B) {
	log := longLog(b, 10_000)
	b.ResetTimer()
	for b.Loop() {
		if _, err := Fold(&State{Ref: testRef}, log...); err != nil {
			b.Fatal(err)
		}
	}
}

// stepOf10KB is one apply of a 1 KB patch on a 10 KB state with a full memory of
// requests, as a worker does it all day.
func stepOf10KB(t testing.TB) func() {
	x := newScript(t)
	c := created()
	c.State = chat(10 << 10)
	x.do(c)
	x.do(claim("w1"))
	for i := range MaxRequestMemory {
		x.do(x.stepWith(func(c *Change) { c.Request = request(fmt.Sprint(i), "") }))
	}
	patch := value(`[{"op":"add","path":"/messages/-","value":{"role":"assistant","content":"` + strings.Repeat("x", 960) + `"}}]`)
	n := 0
	return func() {
		n++
		s := x.step()
		s.Patch, s.Request = patch, request(fmt.Sprint("s", n), "")
		p, err := x.propose(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := EncodeBody(&p.Entry.Body); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkApplyWork(b *testing.B) {
	step := stepOf10KB(b)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		step()
	}
}

// The work of a step outside the store is bounded by what it allocates; the
// time is reported, never asserted.
func TestApplyWork(t *testing.T) {
	step := stepOf10KB(t)
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			step()
		}
	})
	t.Logf("propose and encode: %v, %d bytes, %d allocations a step", time.Duration(r.NsPerOp()), r.AllocedBytesPerOp(), r.AllocsPerOp())
	if r.AllocedBytesPerOp() > 100<<10 {
		t.Errorf("%d bytes allocated a step, at most 100 KB (sealing has the rest of 200 KB)", r.AllocedBytesPerOp())
	}
}

func TestFoldWork(t *testing.T) {
	log := longLog(t, 10_000)
	var took time.Duration
	n := testing.AllocsPerRun(3, func() {
		began := time.Now()
		if _, err := Fold(&State{Ref: testRef}, log...); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	})
	t.Logf("fold of 10,000 entries: %v, %.0f allocations", took, n)
	if n > 10_000 {
		t.Errorf("%.0f allocations, at most one an entry", n)
	}
}
