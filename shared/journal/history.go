package journal

import (
	"context"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// At opens the journal as of a version. Errors besides Open's: HistoryPruned
// {floor} below the oldest kept version, Integrity beyond the tip. What goes to
// the archive in the meantime is read there.
func (j *Journal) At(ctx context.Context, t execution.TenantID, e execution.ExecutionID, version int64) (*Handle, error) {
	now, err := j.Open(ctx, t, e, OpenOptions{Head: true})
	if execution.CodeOf(err) == execution.Integrity {
		return j.beneath(ctx, execution.Ref{Tenant: t, Execution: e}, version, err)
	}
	if err != nil {
		return nil, err
	}
	h, err := j.at(ctx, now, version)
	if execution.CodeOf(err) == execution.Integrity {
		if again := j.sinceArchived(ctx, now); again != nil {
			h, err = j.at(ctx, again, version)
		}
	}
	return h, err
}

func (j *Journal) at(ctx context.Context, now *Handle, version int64) (h *Handle, err error) {
	ref := now.State.Ref
	if version == now.State.Version {
		return now, nil
	}
	if version > now.State.Version {
		return nil, integrity(ref, now.State.Version, "the journal ends before that version")
	}
	if floor := max(now.Head.Floor, now.Head.FirstVersion); version < floor {
		return nil, pruned(ref, floor, now.State.Version)
	}
	if j.archived(now.State, version) {
		h, err = j.fromVault(ctx, now, version)
	} else {
		h, err = j.cold(ctx, execution.Ref{Tenant: ref.Tenant, Execution: ref.Execution}, &version)
	}
	if code := execution.CodeOf(err); code == execution.NotFound || code == execution.Deleted || err == nil && (h.State.Version != version || h.State.Generation != ref.Generation) {
		err = integrity(ref, version, "that version is missing")
	}
	if execution.CodeOf(err) == execution.Integrity {
		return nil, j.missing(ctx, now, version, err)
	}
	if err != nil {
		return nil, err
	}
	h.Head = now.Head
	return h, nil
}

// sinceArchived opens an execution again whose entries went to the archive since
// h was opened; nil: they did not.
func (j *Journal) sinceArchived(ctx context.Context, h *Handle) *Handle {
	now, err := j.Open(ctx, h.State.Tenant, h.State.Execution, OpenOptions{Head: true})
	if err != nil || now.State.Generation != h.State.Generation || now.State.Bundle == nil || h.State.Bundle != nil && now.State.Bundle.Version <= h.State.Bundle.Version {
		return nil
	}
	return now
}

func pruned(ref execution.Ref, floor, tip int64) error {
	return execution.Errorf(execution.HistoryPruned, "that version is no longer kept").With("execution", string(ref.Execution)).With("floor", floor).With("version", tip)
}

// missing says why a version of an opened journal is not there: it was pruned
// since, or what Missing says.
func (j *Journal) missing(ctx context.Context, h *Handle, version int64, damage error) error {
	head, err := j.still(ctx, h.State.Ref)
	switch {
	case err != nil:
		return err
	case version < head.Floor:
		return pruned(h.State.Ref, head.Floor, h.State.Version)
	}
	return damage
}

// Missing says why something that an opened execution names is not there: by now
// that generation is deleted, else damage is the answer.
func (j *Journal) Missing(ctx context.Context, ref execution.Ref, damage error) error {
	if _, err := j.still(ctx, ref); err != nil {
		return err
	}
	return damage
}

// still reads the head of a generation that was there before. Deleted: it is gone,
// whatever has its id now; NotFound: so long ago that no receipt tells of it.
func (j *Journal) still(ctx context.Context, ref execution.Ref) (*Head, error) {
	head, _, err := j.ReadHead(ctx, ref.Tenant, ref.Execution)
	switch {
	case err != nil:
		return nil, err
	case head == nil:
		return nil, j.gone(ctx, ref)
	case head.Generation != ref.Generation:
		return nil, deleted(ref.Execution, ref.Generation)
	case head.Status == execution.StatusDeleting:
		return nil, deleting(head)
	}
	return head, nil
}

// beneath opens a version of a journal whose end is damaged: what lies before
// the damage is whole and stays readable. damage is the answer for the rest.
func (j *Journal) beneath(ctx context.Context, ref execution.Ref, version int64, damage error) (*Handle, error) {
	head, _, err := j.ReadHead(ctx, ref.Tenant, ref.Execution)
	if err != nil {
		return nil, err
	}
	if head == nil || head.Status == execution.StatusDeleting || head.Status == execution.StatusArchived || version < max(head.Floor, head.FirstVersion) {
		return nil, damage
	}
	h, err := j.cold(ctx, ref, &version)
	if code := execution.CodeOf(err); code == execution.NotFound || code == execution.Deleted {
		return nil, damage
	}
	if err != nil {
		return nil, err
	}
	if h.State.Version != version || h.State.Generation != head.Generation {
		return nil, damage
	}
	h.Head = head
	return h, nil
}

// EntryPage is a page of a journal.
type EntryPage struct {
	Entries []*execution.Entry
	// Next is the version to go on from; 0: nothing is left.
	Next int64
}

// Entries reads up to limit entries of a generation from a version on, upwards,
// or downwards to floor when newestFirst. A stub or an entry of another
// generation ends the page; a gap, or an entry that is not the one that its
// successor names, is Integrity.
func (j *Journal) Entries(ctx context.Context, ref execution.Ref, floor, from int64, newestFirst bool, limit int) (*EntryPage, error) {
	q := store.Query{PK: ref.PK(), From: EntryKey(ref.PK(), floor).SK, To: EntryPrefix + "99999999999999999999", Consistent: true, Descending: newestFirst, Limit: limit + 1}
	if from > 0 && newestFirst {
		q.To = EntryKey(ref.PK(), from).SK
	} else if from > 0 {
		q.From = EntryKey(ref.PK(), from).SK
	}
	out := &EntryPage{}
	var last *stored
	for {
		page, _, err := j.Table.Query(ctx, q)
		if err != nil {
			return nil, Fail(err, ref)
		}
		for _, it := range page.Items {
			s, ok := fromItem(it)
			if !ok && isStub(it) {
				return out, nil
			}
			if !ok {
				return nil, integrity(ref, 0, "an item is no entry: "+it.Key().SK)
			}
			if s.entry.Generation != ref.Generation {
				return out, nil
			}
			if last == nil && from > 0 && s.entry.Version != from || last != nil && !adjacent(ref, last, s, newestFirst) {
				return nil, integrity(ref, s.entry.Version, "the journal has a gap")
			}
			if len(out.Entries) == limit {
				out.Next = s.entry.Version
				return out, nil
			}
			if err := j.body(ctx, ref, s); err != nil {
				return nil, err
			}
			out.Entries = append(out.Entries, &s.entry)
			last = s
		}
		if page.Next == nil {
			return out, nil
		}
		q.Start, q.Limit = page.Next, limit-len(out.Entries)+1
	}
}

// adjacent reports whether two entries follow each other, the later one naming
// the earlier.
func adjacent(ref execution.Ref, a, b *stored, descending bool) bool {
	if descending {
		a, b = b, a
	}
	return b.entry.Version == a.entry.Version+1 && b.prev == a.digest(ref)
}
