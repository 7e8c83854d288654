package storetest

import (
	"context"

	"github.com/cairnstate/cairn/shared/store"
)

// BeforeTransact is a table that runs What once, right before its next
// transaction: what another process does between a read and the write that
// follows. What may be set again; nil: nothing.
type BeforeTransact struct {
	store.Table
	What func()
}

// Transact is in the port.
func (b *BeforeTransact) Transact(ctx context.Context, in store.Transact) (store.Meta, error) {
	once(&b.What)
	return b.Table.Transact(ctx, in)
}

// BeforeUpdate is BeforeTransact for the table's next update.
type BeforeUpdate struct {
	store.Table
	What func()
}

// Update is in the port.
func (b *BeforeUpdate) Update(ctx context.Context, in store.Update) (store.Item, store.Meta, error) {
	once(&b.What)
	return b.Table.Update(ctx, in)
}

func once(what *func()) {
	if do := *what; do != nil {
		*what = nil
		do()
	}
}
