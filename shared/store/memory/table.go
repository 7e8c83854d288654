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
		it = t.item(in.Key)
		if c.shaped("stale") {
			it = t.stale(in.Key, now)
		}
		c.bytes = it.Size()
		c.readUnits = readUnits(c.bytes, in.Consistent)
		it = copyItem(it)
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
		_, _, err := t.one(c, store.Write{Put: &in}, in.ValidatedAt, now)
		return err
	})
	return c.meta(), err
}

// Update implements store.Table.
func (t *Table) Update(ctx context.Context, in store.Update) (it store.Item, _ store.Meta, err error) {
	c := t.call("update", in.Key)
	c.write, c.conds = true, []store.Cond{in.Cond}
	err = t.e.do(ctx, c, func(now time.Time) error {
		_, is, err := t.one(c, store.Write{Update: &in}, in.ValidatedAt, now)
		it = copyItem(is)
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
		was, _, err := t.one(c, store.Write{Delete: &in}, in.ValidatedAt, now)
		old = copyItem(was)
		return err
	})
	if err != nil {
		return nil, c.meta(), err
	}
	return old, c.meta(), nil
}

// one makes a single write.
func (t *Table) one(c *call, w store.Write, validatedAt, now time.Time) (was, is store.Item, err error) {
	if err := c.late(now, validatedAt); err != nil {
		return nil, nil, err
	}
	p, err := t.prepare(c, w)
	if err != nil {
		return nil, nil, err
	}
	if !p.holds {
		c.writeUnits = writeUnits(p.was.Size())
		return nil, nil, &store.ConditionFailed{Key: p.key, Old: copyItem(p.was)}
	}
	p.is, err = t.result(c, w, p)
	if err != nil {
		return nil, nil, err
	}
	c.bytes = p.is.Size()
	c.writeUnits = writeUnits(max(c.bytes, p.was.Size()))
	c.count(t, t.write(p.key, p.is, now, false))
	return p.was, p.is, nil
}

// part is a write on its way: what was there, whether its condition holds and
// what will be there.
type part struct {
	key     store.Key
	was, is store.Item
	holds   bool
	put     store.Item // checked and in the store's form
}

// prepare checks a write's form and evaluates its condition.
func (t *Table) prepare(c *call, w store.Write) (part, error) {
	p := part{key: w.Key()}
	var cond store.Cond
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
		p.put, cond = kept, w.Put.Cond
	case w.Update != nil:
		cond = w.Update.Cond
	case w.Delete != nil:
		cond = w.Delete.Cond
	case w.Check != nil:
		cond = w.Check.Cond
		if cond == nil {
			return p, c.invalid("check without a condition")
		}
	default:
		return p, c.invalid("empty write")
	}
	if problem := keyProblem(p.key); problem != "" {
		return p, c.invalid(problem)
	}
	if !checkCond(cond) {
		return p, c.invalid("condition")
	}
	p.was = t.item(p.key)
	p.holds = holds(cond, p.was)
	return p, nil
}

// result is the item that a write whose condition holds leaves.
func (t *Table) result(c *call, w store.Write, p part) (store.Item, error) {
	switch {
	case w.Put != nil:
		return p.put, nil
	case w.Update != nil:
		is, problem := update(p.key, p.was, w.Update.Actions)
		if problem == "" {
			problem = t.indexProblem(is)
		}
		if problem != "" {
			return nil, c.invalid(problem)
		}
		if is.Size() > store.MaxItemBytes {
			return nil, c.fail(store.TooLarge, "ItemSize")
		}
		return is, nil
	case w.Check != nil:
		return p.was, nil
	}
	return nil, nil
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
			it := t.item(k)
			if c.shaped("stale") {
				it = t.stale(k, now)
			}
			if c.bytes+it.Size() > maxBatchBytes {
				unprocessed = append(unprocessed, keys[i:]...)
				break
			}
			c.bytes += it.Size()
			c.readUnits += readUnits(it.Size(), consistent)
			if it != nil {
				items = append(items, copyItem(it))
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
			c.writeUnits += writeUnits(t.item(k).Size())
			c.count(t, t.write(k, nil, now, false))
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
