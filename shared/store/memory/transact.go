package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
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
	buf := packing.Get().(*[]byte)
	defer packing.Put(buf)
	b := (*buf)[:0]
	for _, w := range writes {
		switch {
		case w.Put != nil:
			b = packMap(packCond(packText(b, "put"), w.Put.Cond), w.Put.Item)
		case w.Update != nil:
			b = packCond(packKey(packText(b, "update"), w.Update.Key), w.Update.Cond)
			for _, a := range w.Update.Actions {
				b = packAction(b, a)
			}
		case w.Delete != nil:
			b = packCond(packKey(packText(b, "delete"), w.Delete.Key), w.Delete.Cond)
		case w.Check != nil:
			b = packCond(packKey(packText(b, "check"), w.Check.Key), w.Check.Cond)
		}
	}
	*buf = b
	return maphash.Bytes(digestSeed, b)
}

var digestSeed = maphash.MakeSeed()

func packKey(b []byte, k store.Key) []byte { return packText(packText(b, k.PK), k.SK) }

func packAction(b []byte, a store.Action) []byte {
	switch a := a.(type) {
	case store.Set:
		return packValue(packText(packText(b, "set"), a.Attr), a.Value)
	case store.Remove:
		return packText(packText(b, "remove"), a.Attr)
	case store.Add:
		return binary.AppendVarint(packText(packText(b, "add"), a.Attr), a.N)
	case store.AddToSet:
		return packValue(packText(packText(b, "add to set"), a.Attr), store.SS(a.Values...))
	case store.RemoveFromSet:
		return packValue(packText(packText(b, "remove from set"), a.Attr), store.SS(a.Values...))
	}
	return b
}

func packCond(b []byte, c store.Cond) []byte {
	switch c := c.(type) {
	case store.Compare:
		return packValue(packText(packText(packText(b, "compare"), c.Attr), string(c.Op)), c.Value)
	case store.Present:
		return packText(packText(b, "present"), c.Attr)
	case store.Absent:
		return packText(packText(b, "absent"), c.Attr)
	case store.Contains:
		return packText(packText(packText(b, "contains"), c.Attr), c.Value)
	case store.Not:
		return packCond(packText(b, "not"), c.Cond)
	case store.All:
		return packConds(packText(b, "all"), c)
	case store.Any:
		return packConds(packText(b, "any"), c)
	}
	return b
}

func packConds(b []byte, parts []store.Cond) []byte {
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for _, p := range parts {
		b = packCond(b, p)
	}
	return b
}
