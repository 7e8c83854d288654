package memory

import (
	"context"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Table is one named table; it implements store.Table.
type Table struct {
	e      *Engine
	name   string
	schema []store.Index

	rows    *tree
	indexes []*tree // one per schema index
	ttl     *tree
	swept   time.Time // when expire last ran
	before  map[store.Key]earlier
	order   []store.Key // of before, oldest first
	tokens  tokens
}

var _ store.Table = (*Table)(nil)

func (t *Table) clear() {
	t.rows, t.ttl = newTree(), newTree()
	t.indexes = make([]*tree, len(t.schema))
	for i := range t.indexes {
		t.indexes[i] = newTree()
	}
	t.before, t.order = map[store.Key]earlier{}, nil
	t.tokens, t.swept = tokens{}, t.e.clock()
}

func (t *Table) call(name string, keys ...store.Key) *call {
	return &call{name: name, table: t.name, keys: keys}
}

// Len is the number of items.
func (t *Table) Len() int {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return t.rows.Len()
}

// Get implements store.Table.
func (t *Table) Get(ctx context.Context, in store.Get) (it store.Item, _ store.Meta, err error) {
	c := t.call("get", in.Key)
	c.consistent = in.Consistent
	err = t.e.do(ctx, c, func(now time.Time) error {
		if p := keyProblem(in.Key); p != "" {
			return c.invalid(p)
		}
		r := t.row(in.Key)
		if c.shaped("stale") {
			r = t.stale(in.Key, now)
		}
		c.bytes = r.bytes()
		c.readUnits = readUnits(c.bytes, in.Consistent)
		it = r.item()
		return nil
	})
	if err != nil {
		return nil, c.meta(), err
	}
	return it, c.meta(), nil
}

// Put implements store.Table.
func (t *Table) Put(ctx context.Context, in store.Put) (store.Meta, error) {
	c := t.call("put", in.Item.Key())
	c.write, c.conds = true, []store.Cond{in.Cond}
	err := t.e.do(ctx, c, func(now time.Time) error {
		_, err := t.one(c, store.Write{Put: &in}, in.ValidatedAt, now)
		return err
	})
	return c.meta(), err
}

// Update implements store.Table.
func (t *Table) Update(ctx context.Context, in store.Update) (it store.Item, _ store.Meta, err error) {
	c := t.call("update", in.Key)
	c.write, c.conds = true, []store.Cond{in.Cond}
	err = t.e.do(ctx, c, func(now time.Time) error {
		p, err := t.one(c, store.Write{Update: &in}, in.ValidatedAt, now)
		it = p.is.item()
		return err
	})
	if err != nil {
		return nil, c.meta(), err
	}
	return it, c.meta(), nil
}

// Delete implements store.Table.
func (t *Table) Delete(ctx context.Context, in store.Delete) (old store.Item, _ store.Meta, err error) {
	c := t.call("delete", in.Key)
	c.write, c.conds = true, []store.Cond{in.Cond}
	err = t.e.do(ctx, c, func(now time.Time) error {
		p, err := t.one(c, store.Write{Delete: &in}, in.ValidatedAt, now)
		old = p.old
		return err
	})
	if err != nil {
		return nil, c.meta(), err
	}
	return old, c.meta(), nil
}

// one makes a single write.
func (t *Table) one(c *call, w store.Write, validatedAt, now time.Time) (part, error) {
	if err := c.late(now, validatedAt); err != nil {
		return part{}, err
	}
	p, err := t.prepare(c, w)
	if err != nil {
		return part{}, err
	}
	if !p.holds {
		c.writeUnits = writeUnits(p.was.bytes())
		return part{}, &store.ConditionFailed{Key: p.key, Old: p.old}
	}
	if err := t.result(c, w, &p); err != nil {
		return part{}, err
	}
	c.bytes = p.is.bytes()
	c.writeUnits = writeUnits(max(c.bytes, p.was.bytes()))
	c.count(t, t.write(p.was, p.is, now, false))
	return p, nil
}

// part is a write on its way: what was there, whether its condition holds and
// what will be there.
type part struct {
	key     store.Key
	was, is *row       // nil: nothing
	old     store.Item // was, unpacked
	put     store.Item // checked and in the store's form
	holds   bool
}

// prepare checks a write's form and evaluates its condition.
func (t *Table) prepare(c *call, w store.Write) (part, error) {
	p := part{key: w.Key()}
	cond := condOf(w)
	switch {
	case w.Put != nil:
		kept, problem := keep(w.Put.Item)
		if problem == "" {
			problem = t.indexProblem(kept)
		}
		if problem != "" {
			return p, c.invalid(problem)
		}
		if kept.Size() > store.MaxItemBytes {
			return p, c.fail(store.TooLarge, "ItemSize")
		}
		p.put = kept
	case w.Check != nil && cond == nil:
		return p, c.invalid("check without a condition")
	}
	if problem := keyProblem(p.key); problem != "" {
		return p, c.invalid(problem)
	}
	if !checkCond(cond) {
		return p, c.invalid("condition")
	}
	p.was = t.row(p.key)
	p.old = p.was.item()
	p.holds = holds(cond, p.old)
	return p, nil
}

// result works out what a write whose condition holds leaves.
func (t *Table) result(c *call, w store.Write, p *part) error {
	switch {
	case w.Put != nil:
		p.is = t.newRow(p.put)
	case w.Update != nil:
		is, problem := update(p.key, p.old, w.Update.Actions)
		if problem == "" {
			problem = t.indexProblem(is)
		}
		if problem != "" {
			return c.invalid(problem)
		}
		if is.Size() > store.MaxItemBytes {
			return c.fail(store.TooLarge, "ItemSize")
		}
		p.is = t.newRow(is)
		if p.is.share { // nobody else has it
			p.is.shared = is
		}
	case w.Check != nil:
		p.is = p.was
	}
	return nil
}

// count adds what the indexes cost, where the engine counts that.
func (c *call) count(t *Table, indexUnits float64) {
	if t.e.opts.CountIndexWrites {
		c.writeUnits += indexUnits
	}
}

// maxBatchBytes bounds the answer of a batch of reads.
const maxBatchBytes = 16 << 20

// BatchGet implements store.Table.
func (t *Table) BatchGet(ctx context.Context, keys []store.Key, consistent bool) (items []store.Item, unprocessed []store.Key, _ store.Meta, err error) {
	c := t.call("batch", keys...)
	c.batched, c.consistent = true, consistent
	err = t.e.do(ctx, c, func(now time.Time) error {
		if err := c.checkBatch(store.MaxBatchGet); err != nil {
			return err
		}
		if c.shaped("unprocessed") {
			unprocessed = append(unprocessed, keys...)
			return nil
		}
		for i, k := range keys {
			r := t.row(k)
			if c.shaped("stale") {
				r = t.stale(k, now)
			}
			if c.bytes+r.bytes() > maxBatchBytes {
				unprocessed = append(unprocessed, keys[i:]...)
				break
			}
			c.bytes += r.bytes()
			c.readUnits += readUnits(r.bytes(), consistent)
			if r != nil {
				items = append(items, r.item())
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, c.meta(), err
	}
	return items, unprocessed, c.meta(), nil
}

// BatchDelete implements store.Table.
func (t *Table) BatchDelete(ctx context.Context, keys []store.Key) (unprocessed []store.Key, _ store.Meta, err error) {
	c := t.call("batch", keys...)
	c.batched, c.write = true, true
	err = t.e.do(ctx, c, func(now time.Time) error {
		if err := c.checkBatch(store.MaxBatchWrite); err != nil {
			return err
		}
		if c.shaped("unprocessed") {
			unprocessed = append(unprocessed, keys...)
			return nil
		}
		for _, k := range keys {
			was := t.row(k)
			c.writeUnits += writeUnits(was.bytes())
			c.count(t, t.write(was, nil, now, false))
		}
		return nil
	})
	if err != nil {
		return nil, c.meta(), err
	}
	return unprocessed, c.meta(), nil
}

func (c *call) checkBatch(limit int) error {
	if len(c.keys) == 0 || len(c.keys) > limit {
		return c.invalid("number of keys")
	}
	seen := make(map[store.Key]bool, len(c.keys))
	for _, k := range c.keys {
		if p := keyProblem(k); p != "" {
			return c.invalid(p)
		}
		if seen[k] {
			return c.invalid("a key twice")
		}
		seen[k] = true
	}
	return nil
}
