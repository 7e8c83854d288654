package journal

import (
	"context"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// HoldsetPrefix begins the sort keys of a tenant's holds on threads and
// subjects. A holdset is in force while its attribute HeadHolds is there.
const HoldsetPrefix = "holdset#"

// ThreadHoldset is the item with the holds on a thread.
func ThreadHoldset(t execution.TenantID, th execution.ThreadID) store.Key {
	return store.Key{PK: string(t), SK: HoldsetPrefix + "thread#" + string(th)}
}

// SubjectHoldset is the item with the holds on a subject, by its token.
func SubjectHoldset(t execution.TenantID, token string) store.Key {
	return store.Key{PK: string(t), SK: HoldsetPrefix + "subject#" + token}
}

// Holdsets are the items whose holds bind the execution besides its own: those
// of its thread and of its subjects, as the head has them.
func (h *Head) Holdsets() []store.Key {
	var keys []store.Key
	if h.Thread != "" {
		keys = append(keys, ThreadHoldset(h.Tenant, h.Thread))
	}
	for _, token := range h.SubjectTokens {
		keys = append(keys, SubjectHoldset(h.Tenant, token))
	}
	return keys
}

// HoldChecks are the condition checks that no hold on the thread or a subject
// is in force, for the transaction that removes content. They cover the subjects
// as the head was read; the transaction must also fail when a subject came
// since: by an entry at the next version, or by SubjectsAsRead.
func HoldChecks(h *Head) []store.Write {
	var out []store.Write
	for _, k := range h.Holdsets() {
		out = append(out, store.Write{Check: &store.Check{Key: k, Cond: store.Absent{Attr: HeadHolds}}})
	}
	return out
}

// SubjectsAsRead is the condition that the head's subjects did not change since
// it was read.
func SubjectsAsRead(h *Head) store.Cond {
	if len(h.SubjectTokens) == 0 {
		return store.Absent{Attr: HeadSubjects}
	}
	return store.Eq(HeadSubjects, store.SS(h.SubjectTokens...))
}

// Asked reports whether a deletion waits for holds on the execution; of a head that
// was not read (nil), not as far as is known.
func (h *Head) Asked() bool { return h != nil && h.Item.Has(HeadAsked) }

// AskedAsRead is the condition that no deletion that waits for holds was asked for
// since the head was read; nil: that none was. Whoever moves the date at which
// retention looks makes it, or the deletion's own would be lost.
func AskedAsRead(h *Head) store.Cond {
	if h.Asked() {
		return store.Present{Attr: HeadAsked}
	}
	return store.Absent{Attr: HeadAsked}
}

// HoldsOn lists the ids of all holds that bind an execution: its own, its
// thread's and its subjects', each once, sorted.
func (j *Journal) HoldsOn(ctx context.Context, h *Head) ([]string, error) {
	out := slices.Clone(h.Holds)
	keys := h.Holdsets()
	for try := 0; len(keys) > 0; try++ {
		items, left, _, err := j.Table.BatchGet(ctx, keys, true)
		if err != nil {
			return nil, Fail(err, h.Ref)
		}
		for _, it := range items {
			out = append(out, it[HeadHolds].SS...)
		}
		if keys = left; len(keys) > 0 {
			if try == 8 {
				return nil, execution.Errorf(execution.Throttled, "the holds could not be read").With("execution", string(h.Execution))
			}
			if err := j.Sleep(ctx, time.Duration(try+1)*20*time.Millisecond); err != nil {
				return nil, Fail(err, h.Ref)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Gone refuses what is past its expiry and that no hold keeps, be it on the
// execution, its thread or a subject: Deleted {expired}. It reads holds only for
// an execution whose time is over.
func (j *Journal) Gone(ctx context.Context, h *Head, now int64) error {
	if !h.Expired(now) {
		return nil
	}
	holds, err := j.HoldsOn(ctx, h)
	if err != nil || len(holds) > 0 {
		return err
	}
	return expired(h)
}
