package memory

import (
	"context"
	"strconv"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// span is what a query reads: the places from lo up to but without hi of one
// tree.
type span struct {
	tree   *tree
	index  *store.Index // nil: the table
	lo, hi place
}

// Query implements store.Table.
func (t *Table) Query(ctx context.Context, in store.Query) (page store.Page, _ store.Meta, err error) {
	c := t.call("query", store.Key{PK: in.PK, SK: in.Prefix + in.From})
	c.consistent = in.Consistent
	err = t.e.do(ctx, c, func(now time.Time) error {
		s, problem := t.span(in)
		if problem != "" {
			return c.invalid(problem)
		}
		if c.shaped("stale") {
			s.tree = t.staleView(s.tree, s.index, s.lo, s.hi, now)
		}
		limit := in.Limit
		if c.shaped("page_1") {
			limit = 1
		}
		page = s.read(c, limit, in.Descending)
		c.readUnits = readUnits(c.bytes, in.Consistent)
		return nil
	})
	if err != nil {
		return store.Page{}, c.meta(), err
	}
	return page, c.meta(), nil
}

// read makes one page. As in DynamoDB, a page that reached its limit says where
// to go on even when nothing is left there.
func (s span) read(c *call, limit int, descending bool) (page store.Page) {
	var last *row
	more := false
	take := func(e entry) bool {
		if limit > 0 && len(page.Items) == limit || last != nil && c.bytes+e.row.size > store.MaxPageBytes {
			more = true
			return false
		}
		last = e.row
		c.bytes += e.row.size
		page.Items = append(page.Items, e.row.item())
		return true
	}
	if descending {
		s.tree.Descend(entry{at: s.hi}, func(e entry) bool {
			if e.at == s.hi {
				return true
			}
			return !e.at.before(s.lo) && take(e)
		})
	} else {
		s.tree.Ascend(entry{at: s.lo}, func(e entry) bool { return e.at.before(s.hi) && take(e) })
	}
	if last != nil && (more || limit > 0 && len(page.Items) == limit) {
		page.Next = s.keysOf(last)
	}
	return page
}

// keysOf are the attributes that say where an item stands.
func (s span) keysOf(r *row) store.Item {
	names := []string{store.AttrPK, store.AttrSK}
	if s.index != nil {
		names = append(names, s.index.PK, s.index.SK)
	}
	out := store.Item{}
	for _, n := range names {
		out[n] = attribute(r.packed, n)
	}
	return out
}

// span turns a query into places; problem says what DynamoDB would refuse.
func (t *Table) span(in store.Query) (s span, problem string) {
	s.tree = t.rows
	if in.Index != "" {
		for i := range t.schema {
			if t.schema[i].Name == in.Index {
				s.tree, s.index = t.indexes[i], &t.schema[i]
			}
		}
		if s.index == nil {
			return s, "no such index"
		}
	}
	from, to, problem := bounds(in, s.index != nil && s.index.NumberSK)
	switch {
	case problem != "":
		return s, problem
	case in.PK == "":
		return s, "partition key"
	case in.Limit < 0:
		return s, "limit"
	case in.Consistent && s.index != nil:
		return s, "consistent read of an index"
	}
	s.lo = place{in.PK, from}
	s.hi = place{in.PK + "\x00"} // the first place of the next partition
	if to != "" {
		s.hi = place{in.PK, to}
	}
	if in.Start == nil {
		return s, ""
	}
	at, ok := s.startAt(in)
	if !ok {
		return s, "start"
	}
	switch {
	case in.Descending && at.before(s.hi):
		s.hi = at
	case !in.Descending && !at.before(s.lo):
		s.lo = at.after()
	}
	return s, ""
}

// startAt is the place that a query's Start names.
func (s span) startAt(in store.Query) (place, bool) {
	k := in.Start.Key()
	if keyProblem(k) != "" {
		return place{}, false
	}
	at := tableAt(k)
	if s.index != nil {
		var ok bool
		if at, ok = indexAt(*s.index, in.Start[s.index.PK], in.Start[s.index.SK], k); !ok {
			return place{}, false
		}
	}
	return at, at[0] == in.PK
}

// bounds gives the sort keys from (inclusive) and to (exclusive, "" for none)
// in the form of places.
func bounds(in store.Query, numeric bool) (from, to, problem string) {
	if in.Prefix != "" && (in.From != "" || in.To != "") {
		return "", "", "prefix and bounds"
	}
	if numeric {
		if in.Prefix != "" || in.From != "" || in.To != "" {
			return "", "", "text bounds on a numeric sort key"
		}
		if in.FromN != nil && in.ToN != nil && *in.FromN > *in.ToN {
			return "", "", "bounds in the wrong order"
		}
		if in.FromN != nil {
			from = sortableInt(*in.FromN)
		}
		if in.ToN != nil {
			to = sortableInt(*in.ToN) + "\x00"
		}
		return from, to, ""
	}
	switch {
	case in.FromN != nil || in.ToN != nil:
		return "", "", "numeric bounds on a text sort key"
	case in.Prefix != "":
		return in.Prefix, successor(in.Prefix), ""
	case in.To == "":
		return in.From, "", ""
	case in.From > in.To:
		return "", "", "bounds in the wrong order"
	}
	return in.From, in.To + "\x00", ""
}

func sortableInt(n int64) string {
	d, _ := parseNumber(strconv.FormatInt(n, 10))
	return d.sortable()
}
