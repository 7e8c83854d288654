package journal

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Vault reads entries that were moved into an archive. The fold names the
// bundle (State.Bundle): versions up to Bundle.Version are read from it, later
// ones from the table, so an entry that lies in both is read once.
type Vault interface {
	// Entries gives the items of the versions from..to, ascending; those below
	// the oldest that the bundle holds are left out. Errors: Integrity for a bundle that is not what was archived, Unavailable
	// {retry_after_ms} while it must be brought back from a cold storage class.
	Entries(ctx context.Context, ref execution.Ref, b execution.Bundle, from, to int64) ([]store.Item, error)
}

// archived reports whether a version of the state's journal lies in a bundle.
func (j *Journal) archived(s *execution.State, version int64) bool {
	return j.Vault != nil && s.Bundle != nil && version <= s.Bundle.Version
}

// vaultChunk is how many archived entries are asked for at a time.
const vaultChunk = 64

// fromVault folds an archived journal up to a version.
func (j *Journal) fromVault(ctx context.Context, now *Handle, version int64) (*Handle, error) {
	ref := now.State.Ref
	var found []*stored // descending
	for to := version; ; to = found[len(found)-1].entry.Version - 1 {
		items, err := j.Vault.Entries(ctx, ref, *now.State.Bundle, max(1, to-vaultChunk+1), to)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, integrity(ref, to, "the archive does not hold that version")
		}
		for _, it := range slices.Backward(items) {
			s, ok := fromItem(it)
			if !ok || s.entry.Generation != ref.Generation || s.entry.Version != version-int64(len(found)) {
				return nil, integrity(ref, to, "the archive holds something else than the journal's entries")
			}
			found = append(found, s)
			if s.chain == 0 {
				slices.Reverse(found)
				return j.foldFrom(ctx, ref, found, now.clock)
			}
		}
	}
}

// History reads up to limit entries of an opened execution from a version on,
// upwards, or downwards when newestFirst, wherever they lie. Entries that went to
// the archive since it was opened are read there.
func (j *Journal) History(ctx context.Context, h *Handle, from int64, newestFirst bool, limit int) (*EntryPage, error) {
	page, err := j.history(ctx, h, from, newestFirst, limit)
	if execution.CodeOf(err) != execution.Integrity {
		return page, err
	}
	now := j.sinceArchived(ctx, h)
	if now == nil {
		return nil, err
	}
	return j.history(ctx, now, from, newestFirst, limit)
}

func (j *Journal) history(ctx context.Context, h *Handle, from int64, newestFirst bool, limit int) (*EntryPage, error) {
	s := h.State
	floor := int64(1)
	if h.Head != nil {
		floor = h.Head.Oldest()
	}
	if newestFirst {
		if from <= 0 || from > s.Version {
			from = s.Version
		}
	} else {
		from = max(from, floor)
	}
	if !j.archived(s, floor) {
		return j.unarchived(ctx, h, floor, from, newestFirst, limit)
	}
	out := &EntryPage{}
	for version := from; version >= floor && version <= s.Version; {
		if len(out.Entries) == limit {
			out.Next = version
			return out, nil
		}
		entries, err := j.stretch(ctx, h, version, floor, newestFirst, limit-len(out.Entries))
		if err == nil && len(entries) == 0 {
			err = integrity(s.Ref, version, "the journal has a gap")
		}
		if execution.CodeOf(err) == execution.Integrity {
			return nil, j.missing(ctx, h, version, err)
		}
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, entries...)
		version += int64(len(entries))
		if newestFirst {
			version -= 2 * int64(len(entries))
		}
	}
	return out, nil
}

// unarchived is History of a journal that lies in the table as a whole.
func (j *Journal) unarchived(ctx context.Context, h *Handle, floor, from int64, newestFirst bool, limit int) (*EntryPage, error) {
	s := h.State
	if from < floor || from > s.Version {
		return &EntryPage{}, nil
	}
	page, err := j.Entries(ctx, s.Ref, floor, from, newestFirst, limit)
	if err != nil {
		if execution.CodeOf(err) == execution.Integrity {
			return nil, j.missing(ctx, h, from, err)
		}
		return nil, err
	}
	if page.Next == 0 { // down to the floor, or up to the tip
		end := s.Version
		if newestFirst {
			end = floor
		}
		if n := len(page.Entries); n == 0 || newestFirst && page.Entries[n-1].Version > end || !newestFirst && page.Entries[n-1].Version < end {
			return nil, j.missing(ctx, h, from, integrity(s.Ref, from, "the journal has a gap"))
		}
	}
	return page, nil
}

// stretch reads entries that lie together: in the archive or in the table.
func (j *Journal) stretch(ctx context.Context, h *Handle, version, floor int64, newestFirst bool, limit int) ([]*execution.Entry, error) {
	s := h.State
	if !j.archived(s, version) {
		if newestFirst {
			limit = int(min(int64(limit), version-s.Bundle.Version))
		}
		page, err := j.Entries(ctx, s.Ref, floor, version, newestFirst, limit)
		if err != nil {
			return nil, err
		}
		return page.Entries, nil
	}
	lo, hi := version, min(version+int64(min(limit, vaultChunk))-1, s.Bundle.Version)
	if newestFirst {
		lo, hi = max(floor, version-int64(min(limit, vaultChunk))+1), version
	}
	items, err := j.Vault.Entries(ctx, s.Ref, *s.Bundle, lo, hi)
	if err != nil {
		return nil, err
	}
	out := make([]*execution.Entry, 0, len(items))
	var last *stored
	for _, it := range items {
		e, ok := fromItem(it)
		if !ok || e.entry.Generation != s.Generation || last != nil && !adjacent(s.Ref, last, e, false) {
			return nil, integrity(s.Ref, version, "the archive holds something else than the journal's entries")
		}
		last = e
		if err := j.body(ctx, s.Ref, e); err != nil {
			return nil, err
		}
		out = append(out, &e.entry)
	}
	if newestFirst {
		slices.Reverse(out)
	}
	if len(out) == 0 || out[0].Version != version {
		return nil, integrity(s.Ref, version, "the archive does not hold that version")
	}
	return out, nil
}
