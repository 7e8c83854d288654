package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

const (
	maxTransactBytes = 4 << 20
	maxTokenLength   = 36
	// transactAttempts bounds the repeats of a transaction that meets conflicts
	// or throttling.
	transactAttempts = 4
	tokenLifetime    = 10 * time.Minute
	// rememberedTokens bounds the memory of tokens where the clock stands; the
	// oldest are forgotten first.
	rememberedTokens = 100_000
)

// tokens remembers what transactions with a token contained.
type tokens struct {
	known map[string]usedToken
	order []string
}

type usedToken struct {
	content uint64 // digest
	at      time.Time
}

func (k *tokens) find(token string, now time.Time) (usedToken, bool) {
	u, ok := k.known[token]
	return u, ok && now.Sub(u.at) < tokenLifetime
}

func (k *tokens) add(token string, u usedToken) {
	if k.known == nil {
		k.known = map[string]usedToken{}
	}
	if _, again := k.known[token]; !again {
		k.order = append(k.order, token)
	}
	k.known[token] = u
	for len(k.order) > rememberedTokens {
		delete(k.known, k.order[0])
		k.order = k.order[1:]
	}
}

// refusal is a scripted refusal of one attempt.
type refusal struct {
	reasons []store.Reason
	old     []store.Item
}

func (*refusal) Error() string { return "scripted refusal" }

// Transact implements store.Table. A scripted refusal that consists of
// conflicts and throttling alone is repeated a few times, each a call of its
// own.
func (t *Table) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	var meta store.Meta
	for attempt := 1; ; attempt++ {
		c := t.call("transact")
		c.write = true
		for _, w := range in.Writes {
			c.keys = append(c.keys, w.Key())
			c.conds = append(c.conds, condOf(w))
		}
		err := t.e.do(ctx, c, func(now time.Time) error { return t.transact(c, in, now) })
		meta.Date = c.date
		meta.ReadUnits += c.readUnits
		meta.WriteUnits += c.writeUnits
		refused, scripted := err.(*refusal)
		if !scripted {
			return meta, err
		}
		if final := refused.verdict(c, attempt); final != nil {
			return meta, final
		}
	}
}

func condOf(w store.Write) store.Cond {
	switch {
	case w.Put != nil:
		return w.Put.Cond
	case w.Update != nil:
		return w.Update.Cond
	case w.Delete != nil:
		return w.Delete.Cond
	case w.Check != nil:
		return w.Check.Cond
	}
	return nil
}

// verdict is the error that a refusal ends with; nil: try again.
func (r *refusal) verdict(c *call, attempt int) error {
	has := func(reason store.Reason) bool { return slices.Contains(r.reasons, reason) }
	switch {
	case has(store.ReasonCondition):
		return &store.Cancelled{Reasons: r.reasons, Old: r.old}
	case has(store.ReasonOther):
		return c.invalid("TransactionCanceledException")
	case attempt < transactAttempts:
		return nil
	case has(store.ReasonConflict):
		return c.fail(store.Conflict, "TransactionConflict")
	}
	return c.fail(store.Throttled, "ThrottlingError")
}

// transact makes one attempt, under the engine's lock.
func (t *Table) transact(c *call, in store.Transact, now time.Time) error {
	if err := c.late(now, in.ValidatedAt); err != nil {
		return err
	}
	if err := c.checkWrites(in); err != nil {
		return err
	}
	if c.shaped("cancelled") {
		return t.scriptedRefusal(c.struck.Reasons, in.Writes)
	}
	var content uint64
	if in.Token != "" {
		content = digest(in.Writes)
		if used, ok := t.tokens.find(in.Token, now); ok {
			if used.content != content {
				return c.invalid("IdempotentParameterMismatch")
			}
			return nil
		}
	}
	parts, err := t.prepareAll(c, in.Writes)
	if err != nil {
		return err
	}
	for i, p := range parts {
		if in.Writes[i].Check == nil {
			c.count(t, 2*t.write(p.was, p.is, now, false))
		}
	}
	if in.Token != "" {
		t.tokens.add(in.Token, usedToken{content, now})
	}
	return nil
}

// prepareAll works out every part, or says why the transaction is refused.
func (t *Table) prepareAll(c *call, writes []store.Write) ([]part, error) {
	parts := make([]part, len(writes))
	refused := &store.Cancelled{Reasons: make([]store.Reason, len(writes)), Old: make([]store.Item, len(writes))}
	fails := false
	for i, w := range writes {
		p, err := t.prepare(c, w)
		if err != nil {
			return nil, err
		}
		parts[i] = p
		if !p.holds {
			fails = true
			refused.Reasons[i], refused.Old[i] = store.ReasonCondition, p.old
		}
	}
	size := 0
	var other error
	for i, w := range writes {
		p := &parts[i]
		if p.holds {
			if err := t.result(c, w, p); err != nil {
				if store.KindOf(err) == store.Invalid {
					refused.Reasons[i] = store.ReasonOther
				}
				other = cmp.Or(other, err)
			}
		}
		c.consume(w, *p)
		if w.Check == nil {
			size += p.is.bytes()
		}
	}
	switch {
	case fails:
		return nil, refused
	case other != nil:
		return nil, other
	case size > maxTransactBytes:
		return nil, c.fail(store.TooLarge, "TransactionSize")
	}
	c.bytes = size
	return parts, nil
}

// consume counts a part's units: twice what it would cost by itself.
func (c *call) consume(w store.Write, p part) {
	if w.Check != nil {
		c.readUnits += 2 * readUnits(p.was.bytes(), true)
		return
	}
	c.writeUnits += 2 * writeUnits(max(p.was.bytes(), p.is.bytes()))
}

// checkWrites checks what DynamoDB refuses before it looks at any item.
func (c *call) checkWrites(in store.Transact) error {
	if len(in.Writes) == 0 || len(in.Writes) > store.MaxTransactItems {
		return c.invalid("number of writes")
	}
	if len(in.Token) > maxTokenLength {
		return c.invalid("token")
	}
	seen := map[store.Key]bool{}
	for _, w := range in.Writes {
		set := 0
		for _, is := range []bool{w.Put != nil, w.Update != nil, w.Delete != nil, w.Check != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			return c.invalid("a write is not exactly one")
		}
		if seen[w.Key()] {
			return c.invalid("a key twice")
		}
		seen[w.Key()] = true
	}
	return nil
}

// scriptedRefusal refuses with the script's reasons; a failed condition shows
// the item that is there.
func (t *Table) scriptedRefusal(codes []*string, writes []store.Write) error {
	r := &refusal{make([]store.Reason, len(writes)), make([]store.Item, len(writes))}
	for i := range writes {
		if i >= len(codes) || codes[i] == nil {
			continue
		}
		switch *codes[i] {
		case "", "None":
		case "ConditionalCheckFailed":
			r.reasons[i], r.old[i] = store.ReasonCondition, t.row(writes[i].Key()).item()
		case "TransactionConflict":
			r.reasons[i] = store.ReasonConflict
		case "ThrottlingError", "ProvisionedThroughputExceeded":
			r.reasons[i] = store.ReasonThrottled
		default:
			r.reasons[i] = store.ReasonOther
		}
	}
	return r
}

// digest identifies what a transaction contains.
func digest(writes []store.Write) uint64 {
	h := new(maphash.Hash)
	h.SetSeed(digestSeed)
	for _, w := range writes {
		switch {
		case w.Put != nil:
			text(h, "put")
			hashCond(h, w.Put.Cond)
			hashItem(h, w.Put.Item)
		case w.Update != nil:
			text(h, "update", w.Update.Key.PK, w.Update.Key.SK)
			hashCond(h, w.Update.Cond)
			for _, a := range w.Update.Actions {
				hashAction(h, a)
			}
		case w.Delete != nil:
			text(h, "delete", w.Delete.Key.PK, w.Delete.Key.SK)
			hashCond(h, w.Delete.Cond)
		case w.Check != nil:
			text(h, "check", w.Check.Key.PK, w.Check.Key.SK)
			hashCond(h, w.Check.Cond)
		}
	}
	return h.Sum64()
}

func hashAction(h *maphash.Hash, a store.Action) {
	switch a := a.(type) {
	case store.Set:
		text(h, "set", a.Attr)
		hashValue(h, a.Value)
	case store.Remove:
		text(h, "remove", a.Attr)
	case store.Add:
		text(h, "add", a.Attr)
		count(h, int(a.N))
	case store.AddToSet:
		text(h, "add to set", a.Attr)
		hashValue(h, store.SS(a.Values...))
	case store.RemoveFromSet:
		text(h, "remove from set", a.Attr)
		hashValue(h, store.SS(a.Values...))
	}
}

func hashCond(h *maphash.Hash, c store.Cond) {
	switch c := c.(type) {
	case store.Compare:
		text(h, c.Attr, string(c.Op))
		hashValue(h, c.Value)
	case store.Present:
		text(h, "present", c.Attr)
	case store.Absent:
		text(h, "absent", c.Attr)
	case store.Contains:
		text(h, "contains", c.Attr, c.Value)
	case store.Not:
		text(h, "not")
		hashCond(h, c.Cond)
	case store.All:
		text(h, "all")
		hashConds(h, c)
	case store.Any:
		text(h, "any")
		hashConds(h, c)
	}
}

func hashConds(h *maphash.Hash, parts []store.Cond) {
	count(h, len(parts))
	for _, p := range parts {
		hashCond(h, p)
	}
}

var digestSeed = maphash.MakeSeed()

// text hashes strings so that their boundaries count.
func text(h *maphash.Hash, parts ...string) {
	for _, p := range parts {
		count(h, len(p))
		h.WriteString(p)
	}
}

func count(h *maphash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func hashItem(h *maphash.Hash, it map[string]store.Value) {
	count(h, len(it))
	for _, name := range slices.Sorted(maps.Keys(it)) {
		text(h, name)
		hashValue(h, it[name])
	}
}

func hashValue(h *maphash.Hash, v store.Value) {
	h.WriteByte(byte(v.Kind))
	if v.Bool {
		h.WriteByte(1)
	}
	count(h, len(v.SS))
	count(h, len(v.L))
	text(h, v.S)
	count(h, len(v.B))
	h.Write(v.B)
	text(h, slices.Sorted(slices.Values(v.SS))...)
	for _, e := range v.L {
		hashValue(h, e)
	}
	hashItem(h, v.M)
}
