package memory

import (
	"strconv"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/tidwall/btree"
)

// place is where an item stands in an ordered tree: {pk, sk} in the table,
// {index pk, index sk, pk, sk} in an index, a numeric index sk in sortable form.
type place [4]string

func (p place) before(q place) bool {
	for i := range p {
		if p[i] != q[i] {
			return p[i] < q[i]
		}
	}
	return false
}

// after is the next possible place.
func (p place) after() place {
	p[3] += "\x00"
	return p
}

// row is a stored item. It is never changed: a write stores another row.
type row struct {
	key  store.Key
	item store.Item
	size int
}

type entry struct {
	at  place
	row *row
}

type tree = btree.BTreeG[entry]

func newTree() *tree {
	return btree.NewBTreeGOptions(func(a, b entry) bool { return a.at.before(b.at) }, btree.Options{NoLocks: true})
}

// recentWrites is how many of the last writes stale reads know of, and
// staleness how long ago a write may be for a stale read not to see it.
const (
	recentWrites = 2000
	staleness    = time.Minute
)

// earlier is an item as it was before its last write; nil: it did not exist.
type earlier struct {
	item store.Item
	at   time.Time
}

func tableAt(k store.Key) place { return place{k.PK, k.SK} }

// indexAt is the item's place in an index; false when it is not in it.
func indexAt(x store.Index, it store.Item, k store.Key) (place, bool) {
	pk, sk := it[x.PK], it[x.SK]
	if pk.Kind != store.KindS || pk.S == "" || sk.S == "" {
		return place{}, false
	}
	at := place{pk.S, sk.S, k.PK, k.SK}
	switch {
	case !x.NumberSK && sk.Kind == store.KindS:
		return at, true
	case x.NumberSK && sk.Kind == store.KindN:
		n, _ := parseNumber(sk.S)
		at[1] = n.sortable()
		return at, true
	}
	return place{}, false
}

// indexProblem names an index key attribute that has a type or length DynamoDB
// would refuse; "" when all are well.
func (t *Table) indexProblem(it store.Item) string {
	for _, x := range t.schema {
		sk := store.KindS
		if x.NumberSK {
			sk = store.KindN
		}
		if v, ok := it[x.PK]; ok && (v.Kind != store.KindS || v.S == "" || len(v.S) > maxPKBytes) {
			return "index key " + x.PK
		}
		if v, ok := it[x.SK]; ok && (v.Kind != sk || v.S == "" || len(v.S) > maxSKBytes) {
			return "index key " + x.SK
		}
	}
	return ""
}

func (t *Table) row(k store.Key) *row {
	e, _ := t.rows.Get(entry{at: tableAt(k)})
	return e.row
}

// item is the stored item, nil when there is none. Not to be changed.
func (t *Table) item(k store.Key) store.Item {
	if r := t.row(k); r != nil {
		return r.item
	}
	return nil
}

// write replaces the item at k (nil: takes it away), in the table, its indexes
// and its time to live, and records the change in the stream. It returns the
// write units of the indexes.
func (t *Table) write(k store.Key, it store.Item, now time.Time, byTTL bool) (indexUnits float64) {
	was := t.item(k)
	if was == nil && it == nil {
		return 0
	}
	t.remember(k, was, now)
	indexUnits = t.replace(k, it)
	if t.name == Main && !t.e.opts.NoStream && !sameItem(was, it) {
		t.e.record(k, was, it, now, byTTL)
	}
	return indexUnits
}

// replace is write without its traces in stream and stale reads.
func (t *Table) replace(k store.Key, it store.Item) (indexUnits float64) {
	was := t.row(k)
	var is *row
	if it != nil {
		is = &row{key: k, item: it, size: it.Size()}
		t.rows.Set(entry{tableAt(k), is})
	} else {
		t.rows.Delete(entry{at: tableAt(k)})
	}
	for i, x := range t.schema {
		var from, to place
		var had, has bool
		if was != nil {
			from, had = indexAt(x, was.item, k)
		}
		if is != nil {
			to, has = indexAt(x, it, k)
		}
		if had && (!has || from != to) {
			t.indexes[i].Delete(entry{at: from})
			indexUnits += writeUnits(was.size)
		}
		if has {
			t.indexes[i].Set(entry{to, is})
			indexUnits += writeUnits(is.size)
		}
	}
	if t.name == Main {
		if was != nil {
			if at, ok := ttlOf(was.item); ok {
				t.ttl.Delete(entry{at: ttlAt(at, k)})
			}
		}
		if at, ok := ttlOf(it); ok {
			t.ttl.Set(entry{ttlAt(at, k), is})
		}
	}
	return indexUnits
}

// ttlOf is the epoch second at which the item may go.
func ttlOf(it store.Item) (int64, bool) {
	n, ok := it[store.AttrTTL].Int()
	return n, ok && n >= 0
}

func ttlAt(at int64, k store.Key) place {
	n, _ := parseNumber(strconv.FormatInt(at, 10))
	return place{n.sortable(), k.PK, k.SK}
}

// ttlHorizon: DynamoDB leaves items alone whose time lies further back.
const ttlHorizon = 5 * 365 * 24 * 60 * 60

// expire takes away the items whose time to live has passed, earliest first.
// The horizon counts from the last time, so that a leap of the clock leaves
// nothing behind.
func (t *Table) expire(now time.Time) {
	var due []store.Key
	from := ttlAt(max(0, t.swept.Unix()-ttlHorizon), store.Key{})
	t.swept = now
	t.ttl.Ascend(entry{at: from}, func(e entry) bool {
		at, _ := ttlOf(e.row.item)
		if at > now.Unix() {
			return false
		}
		due = append(due, e.row.key)
		return true
	})
	for _, k := range due {
		t.write(k, nil, now, true)
	}
}

// remember keeps what was there before a write, for stale reads.
func (t *Table) remember(k store.Key, was store.Item, now time.Time) {
	if _, known := t.before[k]; !known {
		t.order = append(t.order, k)
		if len(t.order) > recentWrites {
			delete(t.before, t.order[0])
			t.order = t.order[1:]
		}
	}
	t.before[k] = earlier{was, now}
}

// stale is the item as a read that lags behind sees it: without its last write
// when that is recent.
func (t *Table) stale(k store.Key, now time.Time) store.Item {
	if e, ok := t.before[k]; ok && now.Sub(e.at) < staleness {
		return e.item
	}
	return t.item(k)
}

// staleView is the part of a tree between lo and hi (exclusive) as a read that
// lags behind sees it.
func (t *Table) staleView(tr *tree, x *store.Index, lo, hi place, now time.Time) *tree {
	view := newTree()
	tr.Ascend(entry{at: lo}, func(e entry) bool {
		if !e.at.before(hi) {
			return false
		}
		if b, ok := t.before[e.row.key]; !ok || now.Sub(b.at) >= staleness {
			view.Set(e)
		}
		return true
	})
	for k, b := range t.before {
		if b.item == nil || now.Sub(b.at) >= staleness {
			continue
		}
		at, in := tableAt(k), true
		if x != nil {
			at, in = indexAt(*x, b.item, k)
		}
		if in && !at.before(lo) && at.before(hi) {
			view.Set(entry{at, &row{key: k, item: b.item, size: b.item.Size()}})
		}
	}
	return view
}

func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

func readUnits(size int, consistent bool) float64 {
	n := float64(max(1, (size+4095)/4096))
	if !consistent {
		n /= 2
	}
	return n
}

// successor is the smallest string above every string with the prefix; "" when
// there is none.
func successor(prefix string) string {
	s := strings.TrimRight(prefix, "\xff")
	if s == "" {
		return ""
	}
	return s[:len(s)-1] + string([]byte{s[len(s)-1] + 1})
}
