package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
)

// cancelled checks that err is a refused transaction with these reasons and
// old items, in the order of its parts.
func cancelled(t *testing.T, err error, reasons []store.Reason, old []store.Item) {
	t.Helper()
	var c *store.Cancelled
	if !errors.As(err, &c) {
		t.Fatalf("got error %v, want a refused transaction", err)
	}
	if !slices.Equal(c.Reasons, reasons) {
		t.Errorf("reasons %q, want %q", c.Reasons, reasons)
	}
	if !slices.EqualFunc(c.Old, old, same) {
		t.Errorf("old items %v, want %v", c.Old, old)
	}
}

func (s *tableSuite) transact(t *testing.T, token string, writes ...store.Write) error {
	t.Helper()
	_, err := s.Table.Transact(t.Context(), store.Transact{Writes: writes, Token: token})
	return err
}

func putPart(it store.Item, cond store.Cond) store.Write {
	return store.Write{Put: &store.Put{Item: it, Cond: cond}}
}

func updatePart(k store.Key, cond store.Cond, actions ...store.Action) store.Write {
	return store.Write{Update: &store.Update{Key: k, Cond: cond, Actions: actions}}
}

func deletePart(k store.Key, cond store.Cond) store.Write {
	return store.Write{Delete: &store.Delete{Key: k, Cond: cond}}
}

func checkPart(k store.Key, cond store.Cond) store.Write {
	return store.Write{Check: &store.Check{Key: k, Cond: cond}}
}

func (s *tableSuite) transaction(t *testing.T) {
	pk, other := s.Partition(), s.Partition()
	head := row(pk, "head", "n", store.N(1), "holds", store.SS("h"))
	gone := row(pk, "gone", "x", store.S("y"))
	guard := row(other, "guard", "open", store.Bool(true))
	s.put(t, head, gone, guard)
	entry := row(pk, "j#1", "body", store.B([]byte{1, 2}))
	must(t, s.transact(t, "",
		putPart(entry, store.NotThere()),
		updatePart(head.Key(), store.Eq("n", store.N(1)), store.Add{Attr: "n", N: 1}, store.AddToSet{Attr: "holds", Values: []string{"i"}}),
		deletePart(gone.Key(), store.There()),
		checkPart(guard.Key(), store.Eq("open", store.Bool(true))),
		checkPart(store.Key{PK: other, SK: "nothing"}, store.NotThere()),
		deletePart(store.Key{PK: other, SK: "nothing either"}, nil)))
	s.expect(t, entry.Key(), entry)
	s.expect(t, head.Key(), row(pk, "head", "n", store.N(2), "holds", store.SS("h", "i")))
	s.expect(t, gone.Key(), nil)
	s.expect(t, guard.Key(), guard)
	s.expect(t, store.Key{PK: other, SK: "nothing"}, nil)
}

func (s *tableSuite) transactionRefused(t *testing.T) {
	pk := s.Partition()
	a, b := row(pk, "a", "n", store.N(1)), row(pk, "b", "n", store.N(2))
	d, e := row(pk, "d", "n", store.N(4)), row(pk, "e", "n", store.N(5))
	s.put(t, a, b, d, e)
	n := func(v int64) store.Cond { return store.Eq("n", store.N(v)) }
	set := store.Set{Attr: "n", Value: store.N(99)}
	none := store.Reason("")
	for name, r := range map[string]struct {
		writes  []store.Write
		reasons []store.Reason
		old     []store.Item
	}{
		"put":               {[]store.Write{putPart(row(pk, "c"), nil), putPart(a, store.NotThere())}, []store.Reason{none, store.ReasonCondition}, []store.Item{nil, a}},
		"update":            {[]store.Write{updatePart(a.Key(), n(7), set), putPart(row(pk, "c"), nil)}, []store.Reason{store.ReasonCondition, none}, []store.Item{a, nil}},
		"delete":            {[]store.Write{deletePart(b.Key(), n(7)), updatePart(a.Key(), n(1), set)}, []store.Reason{store.ReasonCondition, none}, []store.Item{b, nil}},
		"check":             {[]store.Write{deletePart(b.Key(), n(2)), checkPart(a.Key(), n(7))}, []store.Reason{none, store.ReasonCondition}, []store.Item{nil, a}},
		"nothing there":     {[]store.Write{updatePart(store.Key{PK: pk, SK: "c"}, store.There(), set), deletePart(a.Key(), nil)}, []store.Reason{store.ReasonCondition, none}, []store.Item{nil, nil}},
		"several, in order": {[]store.Write{deletePart(d.Key(), n(0)), putPart(row(pk, "c"), nil), checkPart(b.Key(), n(0)), updatePart(a.Key(), n(1), set), putPart(e, n(0))}, []store.Reason{store.ReasonCondition, none, store.ReasonCondition, none, store.ReasonCondition}, []store.Item{d, nil, b, nil, e}},
	} {
		t.Run(name, func(t *testing.T) {
			cancelled(t, s.transact(t, "", r.writes...), r.reasons, r.old)
			for _, it := range []store.Item{a, b, d, e} {
				s.expect(t, it.Key(), it)
			}
			s.expect(t, store.Key{PK: pk, SK: "c"}, nil)
		})
	}
}

func (s *tableSuite) transactionBounds(t *testing.T) {
	pk := s.Partition()
	var writes []store.Write
	for i := range store.MaxTransactItems {
		writes = append(writes, putPart(row(pk, fmt.Sprintf("%03d", i)), store.NotThere()))
	}
	must(t, s.transact(t, "", writes...))
	s.expect(t, store.Key{PK: pk, SK: "099"}, row(pk, "099"))
	over := row(pk, "100")
	kind(t, s.transact(t, "", append(writes[:0:0], append(writes, putPart(over, nil))...)...), store.Invalid)
	kind(t, s.transact(t, ""), store.Invalid)
	kind(t, s.transact(t, "", store.Write{}), store.Invalid)
	kind(t, s.transact(t, "", putPart(over, nil), checkPart(over.Key(), store.NotThere())), store.Invalid)
	kind(t, s.transact(t, "", putPart(over, nil), putPart(row(pk, ""), nil)), store.Invalid)
	kind(t, s.transact(t, "", store.Write{Put: &store.Put{Item: over}, Delete: &store.Delete{Key: over.Key()}}), store.Invalid)
	kind(t, s.transact(t, "1234567890123456789012345678901234567", putPart(over, nil)), store.Invalid)
	s.expect(t, over.Key(), nil)
}

func (s *tableSuite) transactionToken(t *testing.T) {
	s.need(t, Tokens)
	pk := s.Partition()
	k := store.Key{PK: pk, SK: "n"}
	token := pk[max(0, len(pk)-30):] + "#t"
	add := func(n int64) store.Write { return updatePart(k, nil, store.Add{Attr: "n", N: n}) }
	must(t, s.transact(t, token, add(1)))
	must(t, s.transact(t, token, add(1))) // the same again: no effect
	s.expect(t, k, row(pk, "n", "n", store.N(1)))
	kind(t, s.transact(t, token, add(2)), store.Invalid)
	must(t, s.transact(t, token+"2", add(1)))
	must(t, s.transact(t, "", add(1)))
	must(t, s.transact(t, "", add(1)))
	s.expect(t, k, row(pk, "n", "n", store.N(4)))
	// A replay succeeds although its condition would not hold any more.
	created := putPart(row(pk, "once"), store.NotThere())
	must(t, s.transact(t, token+"3", created))
	must(t, s.transact(t, token+"3", created))
	// A refused transaction leaves its token free.
	late := checkPart(store.Key{PK: pk, SK: "later"}, store.There())
	cancelled(t, s.transact(t, token+"4", late), []store.Reason{store.ReasonCondition}, []store.Item{nil})
	s.put(t, row(pk, "later"))
	must(t, s.transact(t, token+"4", late))
}

// transactionRace: of 16 transactions that each create an entry and move the
// head, exactly one wins, whole.
func (s *tableSuite) transactionRace(t *testing.T) {
	pk := s.Partition()
	head := store.Key{PK: pk, SK: "head"}
	s.put(t, row(pk, "head", "n", store.N(0)))
	for round := range int64(5) {
		won := racers(t, func(i int) error {
			_, err := s.Table.Transact(t.Context(), store.Transact{Writes: []store.Write{
				updatePart(head, store.Eq("n", store.N(round)), store.Add{Attr: "n", N: 1}, store.Set{Attr: "by", Value: store.N(int64(i))}),
				putPart(row(pk, fmt.Sprintf("j#%d", round), "by", store.N(int64(i))), store.NotThere()),
			}})
			return err
		})
		if len(won) != 1 {
			t.Fatalf("round %d: winners %v", round, won)
		}
		by := store.N(int64(won[0]))
		s.expect(t, head, row(pk, "head", "n", store.N(round+1), "by", by))
		s.expect(t, store.Key{PK: pk, SK: fmt.Sprintf("j#%d", round)}, row(pk, fmt.Sprintf("j#%d", round), "by", by))
	}
}

func (s *tableSuite) transactionConflicts(t *testing.T) {
	if s.Cancel == nil {
		s.skip(t, "transactions cannot be made to conflict")
	}
	pk := s.Partition()
	it := row(pk, "it")
	// One conflict or throttling is repeated inside.
	for _, code := range []string{"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"} {
		s.Cancel(pk, 1, code)
		must(t, s.transact(t, "", putPart(it, nil)))
	}
	s.expect(t, it.Key(), it)
	// Conflicts that never end do end.
	s.Cancel(pk, 1000, "TransactionConflict")
	kind(t, s.transact(t, "", putPart(row(pk, "never"), nil)), store.Conflict)
	s.Cancel(pk, 1000, "ThrottlingError")
	kind(t, s.transact(t, "", putPart(row(pk, "never"), nil)), store.Throttled)
	s.Cancel(pk, 0)
	s.expect(t, store.Key{PK: pk, SK: "never"}, nil)
}

func (s *tableSuite) transactionOtherReasons(t *testing.T) {
	if s.Cancel == nil {
		s.skip(t, "transactions cannot be made to fail")
	}
	pk := s.Partition()
	two := []store.Write{putPart(row(pk, "a"), nil), putPart(row(pk, "b"), nil)}
	s.Cancel(pk, 1, "", "ValidationError")
	kind(t, s.transact(t, "", two...), store.Invalid)
	s.Cancel(pk, 1, "TransactionConflict", "ItemCollectionSizeLimitExceeded")
	kind(t, s.transact(t, "", two...), store.Invalid)
	// A failed condition decides, whatever else there is.
	for code, reason := range map[string]store.Reason{"": store.ReasonNone, "TransactionConflict": store.ReasonConflict, "ThrottlingError": store.ReasonThrottled, "ValidationError": store.ReasonOther, "SomethingNew": store.ReasonOther} {
		s.Cancel(pk, 1, code, "ConditionalCheckFailed")
		var c *store.Cancelled
		if err := s.transact(t, "", two...); !errors.As(err, &c) || !slices.Equal(c.Reasons, []store.Reason{reason, store.ReasonCondition}) {
			t.Errorf("%q beside a failed condition: %v", code, err)
		}
	}
	s.Cancel(pk, 0)
	s.expect(t, store.Key{PK: pk, SK: "a"}, nil)
}
