package journal

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// shelf is an archive in memory; lie changes what it gives.
type shelf struct {
	items map[int64]store.Item
	lie   func(items []store.Item) []store.Item
}

func (s *shelf) Entries(_ context.Context, _ execution.Ref, _ execution.Bundle, from, to int64) ([]store.Item, error) {
	var out []store.Item
	for v := from; v <= to; v++ {
		if it := s.items[v]; it != nil {
			out = append(out, it)
		}
	}
	if s.lie != nil {
		out = s.lie(out)
	}
	return out, nil
}

// archived is an execution of 8 versions, of which an archive holds 6; the table
// holds them too unless taken.
func archivedWorld(t *testing.T, snapshot int) (*world, *shelf, []*execution.Entry) {
	ctx := context.Background()
	w := newWorld(t)
	w.snapshot = snapshot
	j := w.process()
	hs := long(w, j, "e", 4)
	c := change(hs[4], "end", `{}`)
	c.Kind, c.Complete = execution.KindCompleted, &execution.Completion{Outcome: execution.StatusCompleted}
	if _, err := j.step(ctx, "e", c); err != nil {
		t.Fatal(err)
	}
	entries := w.history("e")
	s := &shelf{items: map[int64]store.Item{}}
	for v := int64(1); v <= 6; v++ {
		s.items[v] = w.items("acme#e")[EntryKey("", v).SK]
	}
	j.SnapshotBytes = 1 // what follows begins anew
	for _, k := range []execution.Kind{execution.KindArchived, execution.KindRestored} {
		got, err := j.step(ctx, "e", execution.Change{Kind: k, System: true, Bundle: &execution.Bundle{Key: "k", Version: 6}})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, got.Proposal.Entry)
	}
	return w, s, entries
}

// History and versions are the same wherever the entries lie.
func TestArchivedHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, snapshot := range []int{1, 1 << 30} {
		for _, taken := range []bool{false, true} {
			w, s, want := archivedWorld(t, snapshot)
			if taken {
				for v := range s.items {
					w.remove("acme#e", EntryKey("", v).SK)
				}
			}
			j := w.process()
			j.Vault = s
			h := w.open(j, "e")
			for v := int64(1); v <= 8; v++ {
				if got, err := j.At(ctx, tenant, "e", v); err != nil || got.State.Version != v {
					t.Errorf("taken %v: at %d: %v", taken, v, err)
				}
			}
			for _, newest := range []bool{false, true} {
				for _, limit := range []int{1, 2, 3, 5, 6, 8, 100} {
					for start := int64(0); start <= 9; start++ {
						name := fmt.Sprintf("snapshot %d, taken %v, newest first %v, limit %d, from %d", snapshot, taken, newest, limit, start)
						var got []int64
						for from, more := start, true; more; {
							page, err := j.History(ctx, h, from, newest, limit)
							if err != nil || len(page.Entries) > limit {
								t.Fatalf("%s: %d entries, %v", name, len(page.Entries), err)
							}
							for _, e := range page.Entries {
								got = append(got, e.Version)
								if e.Kind != want[e.Version-1].Kind || e.At != want[e.Version-1].At {
									t.Fatalf("%s: version %d is another", name, e.Version)
								}
							}
							from, more = page.Next, page.Next != 0
						}
						n, first, step := 8, int64(1), int64(1)
						switch {
						case newest && (start == 0 || start > 8):
							first, step = 8, -1
						case newest:
							n, first, step = int(start), start, -1
						case start > 8:
							n = 0
						case start > 0:
							n, first = int(9-start), start
						}
						if len(got) != n {
							t.Fatalf("%s: %v", name, got)
						}
						for i, v := range got {
							if v != first+int64(i)*step {
								t.Fatalf("%s: %v", name, got)
							}
						}
					}
				}
			}
		}
	}
}

// An archive that holds something else is damage.
func TestArchiveThatLies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	edit := func(i int, f func(it store.Item)) func([]store.Item) []store.Item {
		return func(items []store.Item) []store.Item {
			if i < len(items) {
				items[i] = maps.Clone(items[i])
				f(items[i])
			}
			return items
		}
	}
	for name, lie := range map[string]func([]store.Item) []store.Item{
		"nothing":      func([]store.Item) []store.Item { return nil },
		"another life": edit(0, func(it store.Item) { it[attrGeneration] = store.N(5) }),
		"no entry":     edit(0, func(it store.Item) { delete(it, attrKind) }),
		"another body": edit(0, func(it store.Item) { it[attrBody] = store.B([]byte("b")) }),
		"not the one asked for": func(items []store.Item) []store.Item {
			if len(items) > 1 {
				return items[:len(items)-1]
			}
			return nil
		},
		"one that it lacks": func(items []store.Item) []store.Item {
			if len(items) > 2 {
				return append(items[:1:1], items[2:]...)
			}
			return items
		},
	} {
		w, s, _ := archivedWorld(t, 1<<30)
		s.lie = lie
		j := w.process()
		j.Vault = s
		if got, err := j.At(ctx, tenant, "e", 6); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s: at 6: %+v %v", name, got, err)
		}
		for _, newestFirst := range []bool{true, false} {
			if got, err := j.History(ctx, w.open(j, "e"), map[bool]int64{true: 6, false: 1}[newestFirst], newestFirst, 10); execution.CodeOf(err) != execution.Integrity {
				t.Errorf("%s: history, newest first %v: %+v %v", name, newestFirst, got, err)
			}
		}
	}
}

// What the table should hold after the archive's last version is not left out in
// silence.
func TestNothingAfterTheArchive(t *testing.T) {
	t.Parallel()
	w, s, _ := archivedWorld(t, 1<<30)
	j := w.process()
	j.Vault = s
	h := w.open(j, "e")
	for v := int64(7); v <= 8; v++ {
		w.remove("acme#e", EntryKey("", v).SK)
	}
	for _, newestFirst := range []bool{true, false} {
		if got, err := j.History(context.Background(), h, 0, newestFirst, 100); execution.CodeOf(err) != execution.Integrity {
			t.Errorf("newest first %v: %+v %v", newestFirst, got, err)
		}
	}
}
