package memory_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"pgregory.net/rapid"
)

// TestQueriesAgainstModel: whatever was written, updated, deleted, and dumped
// and loaded again, every query gives, over all its pages, what filtering and
// sorting all items gives.
func TestQueriesAgainstModel(t *testing.T) {
	text, number := store.Indexes[0], store.Indexes[3]
	rapid.Check(t, func(t *rapid.T) {
		e := memory.New(memory.Options{})
		tb := e.Table(memory.Main)
		model := map[store.Key]store.Item{}
		short := func(name string) string { return rapid.StringMatching(`[ab#]{1,3}`).Draw(t, name) }
		for range rapid.IntRange(0, 40).Draw(t, "writes") {
			k := store.Key{PK: rapid.SampledFrom([]string{"a", "a#", "b"}).Draw(t, "pk"), SK: short("sk")}
			it := store.Item{"pk": store.S(k.PK), "sk": store.S(k.SK)}
			if rapid.Bool().Draw(t, "in text index") {
				it[text.PK], it[text.SK] = store.S(short("ipk")), store.S(short("isk"))
			}
			if rapid.Bool().Draw(t, "in number index") {
				it[number.PK], it[number.SK] = store.S("due"), store.N(rapid.Int64Range(-20, 120).Draw(t, "due"))
			}
			switch rapid.IntRange(0, 3).Draw(t, "call") {
			case 0:
				_, _, err := tb.Delete(t.Context(), store.Delete{Key: k})
				check(t, err)
				delete(model, k)
			case 1:
				was := model[k]
				var actions []store.Action
				for _, name := range []string{text.PK, text.SK, number.PK, number.SK} {
					if v, ok := it[name]; ok {
						actions = append(actions, store.Set{Attr: name, Value: v})
					} else {
						actions = append(actions, store.Remove{Attr: name})
					}
				}
				got, _, err := tb.Update(t.Context(), store.Update{Key: k, Actions: actions})
				check(t, err)
				if len(got) != len(it) {
					t.Fatalf("update of %v: %v, want %v", was, got, it)
				}
				model[k] = it
			default:
				_, err := tb.Put(t.Context(), store.Put{Item: it})
				check(t, err)
				model[k] = it
			}
		}
		if rapid.Bool().Draw(t, "dump and load") {
			d := e.Dump()
			e.Reset()
			check(t, e.Load(d))
		}
		for range 10 {
			q := store.Query{PK: rapid.SampledFrom([]string{"a", "a#", "b", "due"}).Draw(t, "pk"), Limit: rapid.IntRange(0, 4).Draw(t, "limit"), Descending: rapid.Bool().Draw(t, "descending")}
			q.Index = rapid.SampledFrom([]string{"", text.Name, number.Name}).Draw(t, "index")
			drawBounds(t, &q, q.Index == number.Name)
			want := filtered(model, q, text, number)
			var got []store.Key
			for pages := 0; ; pages++ {
				page, _, err := tb.Query(t.Context(), q)
				check(t, err)
				for _, it := range page.Items {
					got = append(got, it.Key())
				}
				if q.Start = page.Next; page.Next == nil {
					break
				}
				if pages > len(model)+1 {
					t.Fatal("a query that never ends")
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: got %v, want %v", q, got, want)
			}
		}
	})
}

func check(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func drawBounds(t *rapid.T, q *store.Query, numeric bool) {
	if numeric {
		from, to := rapid.Int64Range(-30, 130).Draw(t, "from"), rapid.Int64Range(-30, 130).Draw(t, "to")
		if rapid.Bool().Draw(t, "has from") {
			q.FromN = &from
		}
		if rapid.Bool().Draw(t, "has to") && (q.FromN == nil || from <= to) {
			q.ToN = &to
		}
		return
	}
	bound := rapid.StringMatching(`[ab#]{0,2}`)
	if rapid.Bool().Draw(t, "by prefix") {
		q.Prefix = bound.Draw(t, "prefix")
		return
	}
	q.From, q.To = bound.Draw(t, "from"), bound.Draw(t, "to")
	if q.To != "" && q.From > q.To {
		q.From, q.To = q.To, q.From
	}
}

// filtered is the model's answer.
func filtered(model map[store.Key]store.Item, q store.Query, text, number store.Index) []store.Key {
	pk, sk := "pk", "sk"
	for _, x := range []store.Index{text, number} {
		if x.Name == q.Index {
			pk, sk = x.PK, x.SK
		}
	}
	var in []store.Item
	for _, it := range model {
		s := it.Str(sk)
		if it.Str(pk) != q.PK || !it.Has(sk) || !strings.HasPrefix(s, q.Prefix) || s < q.From || q.To != "" && s > q.To ||
			q.FromN != nil && it.Int(sk) < *q.FromN || q.ToN != nil && it.Int(sk) > *q.ToN {
			continue
		}
		in = append(in, it)
	}
	slices.SortFunc(in, func(a, b store.Item) int {
		return cmp.Or(cmp.Compare(a.Str(sk), b.Str(sk)), cmp.Compare(a.Int(sk), b.Int(sk)), cmp.Compare(a.Key().PK, b.Key().PK), cmp.Compare(a.Key().SK, b.Key().SK))
	})
	if q.Descending {
		slices.Reverse(in)
	}
	var keys []store.Key
	for _, it := range in {
		keys = append(keys, it.Key())
	}
	return keys
}

// A stale query and stale gets show the same world, one write back.
func TestStaleQueriesAgainstGets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := memory.New(memory.Options{})
		tb := e.Table(memory.Main)
		written := map[string]bool{}
		for i := range rapid.Int64Range(0, 30).Draw(t, "writes") {
			sk := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "sk"))
			if rapid.Bool().Draw(t, "delete") {
				_, _, err := tb.Delete(t.Context(), store.Delete{Key: key("p", sk)})
				check(t, err)
				continue
			}
			_, err := tb.Put(t.Context(), store.Put{Item: item("p", sk, i+1)})
			check(t, err)
			written[sk] = true
		}
		check(t, e.SetFaults([]memory.Fault{{On: "*", Effect: "stale", Count: 1000}}))
		page, _, err := tb.Query(t.Context(), store.Query{PK: "p"})
		check(t, err)
		got := map[string]int64{}
		for _, it := range page.Items {
			got[it.Key().SK] = it.Int("n")
		}
		for sk := range written {
			it, _, err := tb.Get(t.Context(), store.Get{Key: key("p", sk)})
			check(t, err)
			if it.Int("n") != got[sk] {
				t.Fatalf("%s: get %d, query %d", sk, it.Int("n"), got[sk])
			}
		}
	})
}
