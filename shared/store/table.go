package store

import (
	"context"
	"time"
)

// Limits of DynamoDB that callers must keep (Amazon DynamoDB quotas).
const (
	MaxItemBytes     = 400 * 1024 // one item, names and values
	MaxTransactItems = 100
	MaxBatchWrite    = 25
	MaxBatchGet      = 100
	MaxPageBytes     = 1 << 20 // one page of a query
)

// Window is how old the validation of a write may be (architecture,
// "Validation window"): DynamoDB refuses a SigV4 signature older than that.
const Window = 5 * time.Minute

// Meta comes with every answer, failed conditions included.
type Meta struct {
	// Date is the store's clock when it answered: whole seconds on DynamoDB (its
	// Date header). Zero when the answer carried none.
	Date time.Time
	// ReadUnits and WriteUnits are what the call consumed, as DynamoDB counts.
	ReadUnits, WriteUnits float64
}

// Table is the main table or the key table. Implementations are safe for
// concurrent use. Every method returns *Error on failure; writes with a Cond
// may also return *ConditionFailed, Transact *Cancelled.
type Table interface {
	// Get reads one item; a nil Item when there is none.
	Get(ctx context.Context, in Get) (Item, Meta, error)
	// Query reads one page in sort key order.
	Query(ctx context.Context, in Query) (Page, Meta, error)
	// Put writes a whole item.
	Put(ctx context.Context, in Put) (Meta, error)
	// Update changes named attributes; the item is made when absent (guard it
	// with There). Returns the item afterwards.
	Update(ctx context.Context, in Update) (Item, Meta, error)
	// Delete removes an item; an absent one is no error. Returns the old item,
	// nil when there was none.
	Delete(ctx context.Context, in Delete) (Item, Meta, error)
	// Transact makes all the writes or none.
	Transact(ctx context.Context, in Transact) (Meta, error)
	// BatchDelete removes up to MaxBatchWrite items unconditionally and returns
	// those that were not processed.
	BatchDelete(ctx context.Context, keys []Key) (unprocessed []Key, meta Meta, err error)
	// BatchGet reads up to MaxBatchGet items, absent ones left out, in no
	// order, and returns the keys that were not processed.
	BatchGet(ctx context.Context, keys []Key, consistent bool) (items []Item, unprocessed []Key, meta Meta, err error)
}

// Get names an item to read.
type Get struct {
	Key        Key
	Consistent bool
}

// Query selects items of one partition: of the table by sort key, or of an
// index by its own keys.
type Query struct {
	PK string
	// Prefix, or From and To (both inclusive), bound the sort key; empty: no bound.
	Prefix   string
	From, To string
	// Descending reads from the highest sort key down.
	Descending bool
	// Limit bounds the page's items; 0: as many as fit 1 MB.
	Limit int
	// Start continues after the Next of an earlier page; nil: from the beginning.
	Start Item
	// Consistent is not to be had on an index.
	Consistent bool
	// Index names a sparse index (schema.go); empty: the table. PK is then the
	// index's partition key and the bounds apply to its sort key.
	Index string
	// FromN and ToN bound an index's numeric sort key (both inclusive); nil: no bound.
	FromN, ToN *int64
}

// Page is one page of a query.
type Page struct {
	Items []Item
	// Next is where to go on (key attributes only); nil: nothing is left.
	Next Item
}

// Put writes a whole item.
type Put struct {
	Item Item
	Cond Cond
	// ValidatedAt is the store time of the oldest consistent read that justifies
	// the write; the write is refused (and can never land) later than Window
	// after it. Zero: no bound.
	ValidatedAt time.Time
}

// Update changes named attributes of an item.
type Update struct {
	Key         Key
	Cond        Cond
	Actions     []Action
	ValidatedAt time.Time
}

// Delete removes an item.
type Delete struct {
	Key         Key
	Cond        Cond
	ValidatedAt time.Time
}

// Check is a condition on an item that the transaction does not write.
type Check struct {
	Key  Key
	Cond Cond
}

// Write is one part of a transaction: exactly one field is set.
type Write struct {
	Put    *Put
	Update *Update
	Delete *Delete
	Check  *Check
}

// Key is the item that the part is about.
func (w Write) Key() Key {
	switch {
	case w.Put != nil:
		return w.Put.Item.Key()
	case w.Update != nil:
		return w.Update.Key
	case w.Delete != nil:
		return w.Delete.Key
	case w.Check != nil:
		return w.Check.Key
	}
	return Key{}
}

// Transact is an all-or-nothing set of writes on different items. ValidatedAt
// of the parts is ignored; the transaction's own counts.
type Transact struct {
	Writes []Write
	// Token makes a repeat within 10 minutes the same transaction; fresh for
	// each logical attempt, at most 36 characters; empty: the adapter makes one.
	Token       string
	ValidatedAt time.Time
}
