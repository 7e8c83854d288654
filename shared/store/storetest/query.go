package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
)

// walk reads all pages of a query; at most bound pages.
func (s *tableSuite) walk(t *testing.T, q store.Query, bound int) (items []store.Item, pages int) {
	t.Helper()
	for {
		p, _, err := s.Table.Query(t.Context(), q)
		must(t, err)
		items = append(items, p.Items...)
		pages++
		if q.Limit > 0 && len(p.Items) > q.Limit {
			t.Fatalf("a page of %d items under limit %d", len(p.Items), q.Limit)
		}
		if p.Next == nil {
			return items, pages
		}
		if pages > bound {
			t.Fatalf("more than %d pages", bound)
		}
		q.Start = p.Next
	}
}

func sks(items []store.Item) []string {
	out := []string{}
	for _, it := range items {
		out = append(out, it.Str(store.AttrSK))
	}
	return out
}

func (s *tableSuite) queryBounds(t *testing.T) {
	pk := s.Partition()
	for _, p := range []string{pk, pk + "x", pk[:len(pk)-1]} { // neighbours must not show
		s.put(t, row(p, "j#0000"))
	}
	want := []string{"head", "j#0000", "j#0001", "j#0002", "j#0010", "j#\U0001F600", "j$", "é", "\uFFFD", "\U0001F600"}
	for _, sk := range want {
		s.put(t, row(pk, sk, "sk2", store.S(sk)))
	}
	slices.Sort(want) // by UTF-8 bytes
	for name, r := range map[string]struct {
		q    store.Query
		want []string
	}{
		"all":               {store.Query{}, want},
		"prefix":            {store.Query{Prefix: "j#"}, []string{"j#0000", "j#0001", "j#0002", "j#0010", "j#\U0001F600"}},
		"whole prefix":      {store.Query{Prefix: "head"}, []string{"head"}},
		"prefix of none":    {store.Query{Prefix: "k"}, nil},
		"prefix U+FFFD":     {store.Query{Prefix: "\uFFFD"}, []string{"\uFFFD"}},
		"last prefix":       {store.Query{Prefix: "\U0001F600"}, []string{"\U0001F600"}},
		"from and to":       {store.Query{From: "j#0001", To: "j#0010"}, []string{"j#0001", "j#0002", "j#0010"}},
		"between":           {store.Query{From: "j#00005", To: "j#0009"}, []string{"j#0001", "j#0002"}},
		"one":               {store.Query{From: "j#0001", To: "j#0001"}, []string{"j#0001"}},
		"from":              {store.Query{From: "j$"}, []string{"j$", "é", "\uFFFD", "\U0001F600"}},
		"to":                {store.Query{To: "j#0000"}, []string{"head", "j#0000"}},
		"another partition": {store.Query{PK: pk + "y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 2, 100} {
				for _, consistent := range []bool{true, false} {
					q := r.q
					if q.PK == "" {
						q.PK = pk
					}
					q.Limit, q.Consistent = limit, consistent
					up, _ := s.walk(t, q, len(want)+1)
					q.Descending = true
					down, _ := s.walk(t, q, len(want)+1)
					slices.Reverse(down)
					if !slices.Equal(sks(up), r.want) && len(up)+len(r.want) > 0 {
						t.Errorf("limit %d: got %q, want %q", limit, sks(up), r.want)
					}
					if !slices.Equal(sks(down), r.want) && len(down)+len(r.want) > 0 {
						t.Errorf("limit %d, descending: got %q, want %q reversed", limit, sks(down), r.want)
					}
				}
			}
		})
	}
	items, _ := s.walk(t, store.Query{PK: pk, Prefix: "head", Consistent: true}, 1)
	if len(items) != 1 || !same(items[0], row(pk, "head", "sk2", store.S("head"))) {
		t.Errorf("a query returns whole items: %v", items)
	}
}

func (s *tableSuite) queryPages(t *testing.T) {
	pk := s.Partition()
	for i := range 6 {
		s.put(t, row(pk, fmt.Sprintf("%d", i), "x", store.N(int64(i))))
	}
	// Next holds the key attributes and nothing else.
	p, _, err := s.Table.Query(t.Context(), store.Query{PK: pk, Limit: 2, Consistent: true})
	must(t, err)
	if !slices.Equal(sks(p.Items), []string{"0", "1"}) || !same(p.Next, row(pk, "1")) {
		t.Fatalf("first page %v, next %v", p.Items, p.Next)
	}
	// A page ends where it ended even if that item goes and others come.
	_, _, err = s.Table.Delete(t.Context(), store.Delete{Key: store.Key{PK: pk, SK: "1"}})
	must(t, err)
	s.put(t, row(pk, "1a"))
	rest, _ := s.walk(t, store.Query{PK: pk, Start: p.Next, Consistent: true}, 2)
	if !slices.Equal(sks(rest), []string{"1a", "2", "3", "4", "5"}) {
		t.Errorf("after the first page: %v", sks(rest))
	}
	down, _ := s.walk(t, store.Query{PK: pk, Start: p.Next, Descending: true, Consistent: true}, 2)
	if !slices.Equal(sks(down), []string{"0"}) {
		t.Errorf("down from the first page: %v", sks(down))
	}
	// Fewer items than the limit: nothing is left.
	p, _, err = s.Table.Query(t.Context(), store.Query{PK: pk, Limit: 7, Consistent: true})
	must(t, err)
	if len(p.Items) != 6 || p.Next != nil {
		t.Errorf("a short page: %d items, next %v", len(p.Items), p.Next)
	}
}

func (s *tableSuite) queryBigPages(t *testing.T) {
	pk := s.Partition()
	body := store.B(make([]byte, 300_000))
	for i := range 10 {
		s.put(t, row(pk, fmt.Sprintf("%d", i), "body", body))
	}
	for _, down := range []bool{false, true} {
		items, pages := s.walk(t, store.Query{PK: pk, Descending: down, Consistent: true}, 10)
		want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
		if down {
			slices.Reverse(want)
		}
		if !slices.Equal(sks(items), want) {
			t.Errorf("descending %v: %v", down, sks(items))
		}
		if pages < 3 {
			t.Errorf("3 MB came in %d pages", pages)
		}
		for _, it := range items {
			if len(it.Bytes("body")) != 300_000 {
				t.Errorf("item %s: %d bytes", it.Key().SK, len(it.Bytes("body")))
			}
		}
	}
}

func (s *tableSuite) queryRefused(t *testing.T) {
	pk := s.Partition()
	one := int64(1)
	for name, q := range map[string]store.Query{
		"no partition": {}, "prefix and bound": {PK: pk, Prefix: "a", From: "b"}, "from after to": {PK: pk, From: "b", To: "a"},
		"numbers on a string key": {PK: pk, FromN: &one}, "negative limit": {PK: pk, Limit: -1}, "no such index": {PK: pk, Index: "none"},
		"start elsewhere": {PK: pk, Start: row(pk+"x", "a")}, "start without keys": {PK: pk, Start: store.Item{"x": store.N(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Table.Query(t.Context(), q)
			kind(t, err, store.Invalid)
		})
	}
	t.Run("consistent index", func(t *testing.T) {
		s.need(t, Indexes)
		_, _, err := s.Table.Query(t.Context(), store.Query{PK: pk, Index: store.Indexes[0].Name, Consistent: true})
		kind(t, err, store.Invalid)
	})
}

// onIndex waits until a query of an index shows exactly the wanted items, with
// every page size.
func (s *tableSuite) onIndex(t *testing.T, what string, q store.Query, want ...string) {
	t.Helper()
	for _, limit := range []int{0, 1, 3} {
		q.Limit = limit
		var got []string
		eventually(t, what, func() bool {
			items, _ := s.walk(t, q, 100)
			got = sks(items)
			return slices.Equal(got, want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s, limit %d: got %v, want %v", what, limit, got, want)
		}
	}
}

func index(numeric bool) store.Index {
	for _, x := range store.Indexes {
		if x.NumberSK == numeric {
			return x
		}
	}
	panic("no such index in the schema")
}

func (s *tableSuite) indexStrings(t *testing.T) {
	s.need(t, Indexes)
	pk, x := s.Partition(), index(false)
	head := func(sk, ipk, isk string) store.Item {
		return row(pk, sk, x.PK, store.S(ipk), x.SK, store.S(isk), "more", store.N(1))
	}
	ipk := pk + "#running#3"
	s.put(t, head("a", ipk, "2026-01-03"), head("b", ipk, "2026-01-01"), head("c", ipk, "2026-01-02"), head("d", pk+"#waiting#3", "2026-01-01"),
		row(pk, "no index keys"), row(pk, "half", x.PK, store.S(ipk)), row(pk, "other half", x.SK, store.S("2026-01-01")))
	// A second one at the same place, in the same order every time.
	s.put(t, head("b2", ipk, "2026-01-01"))
	q := store.Query{PK: ipk, Index: x.Name}
	s.onIndex(t, "ascending", store.Query{PK: ipk, Index: x.Name, From: "2026-01-02"}, "c", "a")
	s.onIndex(t, "to", store.Query{PK: ipk, Index: x.Name, From: "2026-01-02", To: "2026-01-02"}, "c")
	s.onIndex(t, "prefix", store.Query{PK: ipk, Index: x.Name, Prefix: "2026-01-03"}, "a")
	var items []store.Item
	eventually(t, "all four", func() bool { items, _ = s.walk(t, q, 100); return len(items) == 4 })
	if got := sks(items); !slices.Contains(got[:2], "b") || !slices.Contains(got[:2], "b2") || got[2] != "c" || got[3] != "a" {
		t.Fatalf("got %v", got)
	}
	if i := slices.IndexFunc(items, func(it store.Item) bool { return it.Str("sk") == "a" }); !same(items[i], head("a", ipk, "2026-01-03")) {
		t.Errorf("an index gives whole items: %v", items[i])
	}
	// Items move, leave and return with their key attributes.
	_, _, err := s.Table.Update(t.Context(), store.Update{Key: store.Key{PK: pk, SK: "a"}, Actions: []store.Action{store.Set{Attr: x.PK, Value: store.S(pk + "#waiting#3")}}})
	must(t, err)
	_, _, err = s.Table.Update(t.Context(), store.Update{Key: store.Key{PK: pk, SK: "b"}, Actions: []store.Action{store.Remove{Attr: x.SK}}})
	must(t, err)
	_, _, err = s.Table.Delete(t.Context(), store.Delete{Key: store.Key{PK: pk, SK: "b2"}})
	must(t, err)
	s.onIndex(t, "after changes", q, "c")
	q.PK, q.Descending = pk+"#waiting#3", true
	s.onIndex(t, "moved", q, "a", "d")
	// Index keys are strings that are not empty.
	for _, v := range []store.Value{store.N(1), store.S("")} {
		_, err = s.Table.Put(t.Context(), store.Put{Item: row(pk, "bad", x.PK, v, x.SK, store.S("2026"))})
		kind(t, err, store.Invalid)
	}
}

func (s *tableSuite) indexNumbers(t *testing.T) {
	s.need(t, Indexes)
	pk, x := s.Partition(), index(true)
	ipk := "~due#" + pk
	for sk, at := range map[string]int64{"neg": -5, "nine": 9, "ten": 10, "hundred": 100, "ms": 1_700_000_000_000, "later": 1_700_000_000_001} {
		s.put(t, row(pk, sk, x.PK, store.S(ipk), x.SK, store.N(at)))
	}
	ten, ms := int64(10), int64(1_700_000_000_000)
	q := store.Query{PK: ipk, Index: x.Name}
	s.onIndex(t, "by number", q, "neg", "nine", "ten", "hundred", "ms", "later")
	q.ToN = &ms
	s.onIndex(t, "up to", q, "neg", "nine", "ten", "hundred", "ms")
	q.FromN = &ten
	s.onIndex(t, "between", q, "ten", "hundred", "ms")
	q.ToN, q.Descending = nil, true
	s.onIndex(t, "from, descending", q, "later", "ms", "hundred", "ten")
	_, _, err := s.Table.Query(t.Context(), store.Query{PK: ipk, Index: x.Name, Prefix: "1"})
	kind(t, err, store.Invalid)
	_, err = s.Table.Put(t.Context(), store.Put{Item: row(pk, "bad", x.PK, store.S(ipk), x.SK, store.S("10"))})
	kind(t, err, store.Invalid)
}

func (s *tableSuite) batch(t *testing.T) {
	pk := s.Partition()
	var keys []store.Key
	for i := range 100 {
		it := row(pk, fmt.Sprintf("%03d", i), "x", store.N(int64(i)))
		keys = append(keys, it.Key())
		if i%2 == 0 {
			s.put(t, it)
		}
	}
	items, left, _, err := s.Table.BatchGet(t.Context(), keys, true)
	must(t, err)
	if len(items) != 50 || len(left) != 0 {
		t.Fatalf("%d items, %d unprocessed", len(items), len(left))
	}
	for _, it := range items {
		if it.Int("x")%2 != 0 || it.Key().SK != fmt.Sprintf("%03d", it.Int("x")) {
			t.Errorf("item %v", it)
		}
	}
	left, _, err = s.Table.BatchDelete(t.Context(), keys[:store.MaxBatchWrite])
	must(t, err)
	if len(left) != 0 {
		t.Fatalf("%d unprocessed", len(left))
	}
	if rest, _ := s.walk(t, store.Query{PK: pk, Consistent: true}, 2); len(rest) != 37 {
		t.Errorf("%d items left, want 37", len(rest))
	}
	_, _, err = s.Table.BatchDelete(t.Context(), keys[:store.MaxBatchWrite+1])
	kind(t, err, store.Invalid)
	_, _, _, err = s.Table.BatchGet(t.Context(), append(keys, store.Key{PK: pk, SK: "101"}), true)
	kind(t, err, store.Invalid)
	_, _, err = s.Table.BatchDelete(t.Context(), []store.Key{keys[0], keys[0]})
	kind(t, err, store.Invalid)
	_, _, _, err = s.Table.BatchGet(t.Context(), nil, true)
	kind(t, err, store.Invalid)
	// What does not fit one answer (16 MB) comes back as unprocessed.
	for i := range 45 {
		s.put(t, row(pk, fmt.Sprintf("big%d", i), "body", store.B(make([]byte, 390_000))))
	}
	keys = nil
	for i := range 45 {
		keys = append(keys, store.Key{PK: pk, SK: fmt.Sprintf("big%d", i)})
	}
	got := 0
	for rounds := 0; len(keys) > 0; rounds++ {
		if rounds > 10 {
			t.Fatal("a batch that never ends")
		}
		items, left, _, err := s.Table.BatchGet(t.Context(), keys, true)
		must(t, err)
		got, keys = got+len(items), left
	}
	if got != 45 {
		t.Errorf("%d big items of 45", got)
	}
}

func (s *tableSuite) batchUnprocessed(t *testing.T) {
	if s.Unprocessed == nil {
		s.skip(t, "batches cannot be left unprocessed")
	}
	pk := s.Partition()
	a, b := row(pk, "a"), row(pk, "b")
	keys := []store.Key{a.Key(), b.Key()}
	s.put(t, a, b)
	s.Unprocessed(pk)
	left, _, err := s.Table.BatchDelete(t.Context(), keys)
	must(t, err)
	if !slices.Equal(left, keys) {
		t.Errorf("unprocessed: %v", left)
	}
	s.expect(t, a.Key(), a)
	s.Unprocessed(pk)
	items, left, _, err := s.Table.BatchGet(t.Context(), keys, true)
	must(t, err)
	if len(items) != 0 || !slices.Equal(left, keys) {
		t.Errorf("unprocessed: %v, items %v", left, items)
	}
	left, _, err = s.Table.BatchDelete(t.Context(), keys)
	must(t, err)
	if len(left) != 0 {
		t.Errorf("unprocessed at last: %v", left)
	}
	s.expect(t, a.Key(), nil)
}
