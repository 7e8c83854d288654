package memory

import (
	"cmp"
	"strconv"
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
	key    store.Key
	packed string
	size   int   // as DynamoDB counts
	heads  bool  // may stand in indexes
	ttl    int64 // epoch second at which it may go; negative: never
	share  bool
	shared store.Item // what readers were given, when they share it
}

// item gives the item itself, the caller's own unless readers share it; nil of
// no row. The engine is locked.
func (r *row) item() store.Item {
	if r == nil {
		return nil
	}
	if !r.share {
		return unpack(r.packed)
	}
	if r.shared == nil {
		r.shared = unpack(r.packed)
	}
	return r.shared
}

// Untouched reports whether nobody changed an item of the main table that
// readers share.
func (e *Engine) Untouched() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	whole := true
	e.table(Main).rows.Scan(func(at entry) bool {
		whole = at.row.shared == nil || pack(at.row.shared) == at.row.packed
		return whole
	})
	return whole
}

// bytes is the item's size; 0 of no row.
func (r *row) bytes() int {
	if r == nil {
		return 0
	}
	return r.size
}

// newRow makes an item ready to be stored.
func (t *Table) newRow(it store.Item) *row {
	r := &row{key: it.Key(), packed: pack(it), size: it.Size(), ttl: -1, share: t.e.opts.ShareItems}
	for _, x := range t.schema {
		r.heads = r.heads || it.Has(x.PK)
	}
	if at, ok := it[store.AttrTTL].Int(); ok {
		r.ttl = at
	}
	return r
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

// earlier is a row as it was before its last write; nil: it did not exist.
type earlier struct {
	row *row
	at  time.Time
}

func tableAt(k store.Key) place { return place{k.PK, k.SK} }

// place is the row's place in an index; false when it is not in it.
func (r *row) place(x store.Index) (place, bool) {
	if r == nil || !r.heads {
		return place{}, false
	}
	if r.shared != nil {
		return indexAt(x, r.shared[x.PK], r.shared[x.SK], r.key)
	}
	return indexAt(x, attribute(r.packed, x.PK), attribute(r.packed, x.SK), r.key)
}

func indexAt(x store.Index, pk, sk store.Value, k store.Key) (place, bool) {
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

// write puts is in the place of was (nil: there was or will be nothing), in the
// table, its indexes and its time to live, and records the change in the
// stream. It returns the write units of the indexes.
func (t *Table) write(was, is *row, now time.Time, byTTL bool) (indexUnits float64) {
	if was == nil && is == nil {
		return 0
	}
	if was != nil && is != nil && was.packed == is.packed {
		is = was // as before; DynamoDB makes no stream record of it
	} else if t.name == Main && !t.e.opts.NoStream {
		t.e.record(was, is, now, byTTL)
	}
	t.remember(was, is, now)
	return t.replace(was, is)
}

// replace is write without its traces in stream and stale reads.
func (t *Table) replace(was, is *row) (indexUnits float64) {
	if is != nil {
		t.rows.Set(entry{tableAt(is.key), is})
	} else {
		t.rows.Delete(entry{at: tableAt(was.key)})
	}
	for i, x := range t.schema {
		from, had := was.place(x)
		to, has := is.place(x)
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
		if at, ok := was.expires(); ok {
			t.ttl.Delete(entry{at: ttlAt(at, was.key)})
		}
		if at, ok := is.expires(); ok {
			t.ttl.Set(entry{ttlAt(at, is.key), is})
		}
	}
	return indexUnits
}

// expires is the epoch second at which the item may go.
func (r *row) expires() (int64, bool) {
	if r == nil || r.ttl < 0 {
		return 0, false
	}
	return r.ttl, true
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
	var due []*row
	from := ttlAt(max(0, t.swept.Unix()-ttlHorizon), store.Key{})
	t.swept = now
	t.ttl.Ascend(entry{at: from}, func(e entry) bool {
		at, _ := e.row.expires()
		if at > now.Unix() {
			return false
		}
		if t.e.opts.TTLLate == nil || now.Sub(time.Unix(at, 0)) >= t.e.opts.TTLLate(e.row.key, at) {
			due = append(due, e.row)
		}
		return true
	})
	for _, r := range due {
		t.write(r, nil, now, true)
	}
}

// remember keeps what was there before a write, for stale reads.
func (t *Table) remember(was, is *row, now time.Time) {
	k := cmp.Or(is, was).key
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
func (t *Table) stale(k store.Key, now time.Time) *row {
	if e, ok := t.before[k]; ok && now.Sub(e.at) < staleness {
		return e.row
	}
	return t.row(k)
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
		if b.row == nil || now.Sub(b.at) >= staleness {
			continue
		}
		at, in := tableAt(k), true
		if x != nil {
			at, in = b.row.place(*x)
		}
		if in && !at.before(lo) && at.before(hi) {
			view.Set(entry{at, b.row})
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
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return ""
	}
	return prefix[:n-1] + string([]byte{prefix[n-1] + 1})
}
