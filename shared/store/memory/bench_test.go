package memory_test

import (
	"fmt"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func BenchmarkPut(b *testing.B) {
	e := memory.New(memory.Options{NoStream: true})
	tb := e.Table(memory.Main)
	body := store.B(make([]byte, 200))
	for i := 0; b.Loop(); i++ {
		it := store.Item{"pk": store.S(fmt.Sprintf("t#e%d", i/20)), "sk": store.S(fmt.Sprintf("j#%020d", i%20)), "v": store.N(int64(i)), "body": body}
		if _, err := tb.Put(b.Context(), store.Put{Item: it, Cond: store.NotThere()}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHeads writes heads that stand in four indexes, among a million.
func BenchmarkHeads(b *testing.B) {
	e := memory.New(memory.Options{NoStream: true})
	tb := e.Table(memory.Main)
	for i := range 1_000_000 {
		if _, err := tb.Put(b.Context(), store.Put{Item: benchHead(i, "running")}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if _, err := tb.Put(b.Context(), store.Put{Item: benchHead(i%1_000_000, "waiting")}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchHead(i int, status string) store.Item {
	return store.Item{"pk": store.S(fmt.Sprintf("t#e%07d", i)), "sk": store.S("head"), "xs": store.S(fmt.Sprintf("t#%s#%d", status, i%8)), "xu": store.S(fmt.Sprint(i)),
		"xc": store.S(fmt.Sprint(i)), "xw": store.S("t#wf#1"), "xd": store.S("~due#1"), "due": store.N(int64(i))}
}

func BenchmarkGet(b *testing.B) {
	e := memory.New(memory.Options{})
	tb := e.Table(memory.Main)
	for i := range 100_000 {
		if _, err := tb.Put(b.Context(), store.Put{Item: benchHead(i, "running")}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if _, _, err := tb.Get(b.Context(), store.Get{Key: store.Key{PK: fmt.Sprintf("t#e%07d", i%100_000), SK: "head"}, Consistent: true}); err != nil {
			b.Fatal(err)
		}
	}
}
