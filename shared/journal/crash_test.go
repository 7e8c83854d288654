package journal

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// deed is one call of the journal that a caller repeats until it knows. It says
// the version that it wrote (0: none), and whether the caller was told to go.
type deed struct {
	name    string
	prepare func(w *world, j *Journal)
	do      func(ctx context.Context, w *world, j *Journal) (version int64, going bool, err error)
	// inline and snapshot as in world; cold: the deed's process has nothing in memory.
	inline, snapshot int
	cold             bool
}

// repeated is an apply that declares an effect, repeated as it stands.
func repeated(e execution.ExecutionID, id string, f func(c *execution.Change)) func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
	return func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
		c := execution.Change{Kind: execution.KindCheckpoint, Expected: 3, Fence: 1, HasFence: true, Request: request(id), Merge: value(`{"n":1}`)}
		f(&c)
		got, err := j.step(ctx, e, c)
		if err != nil {
			return 0, false, err
		}
		s, version := got.Handle.State, int64(0)
		if got.Replay != nil {
			version = got.Replay.Version
		} else {
			version = got.Proposal.Entry.Version
		}
		if len(c.Operations) == 0 {
			return version, false, nil
		}
		if got.Replay == nil {
			return version, got.Proposal.Given[0].Disposition == execution.Go, nil
		}
		op := s.Operation(s.OperationID("", &c.Operations[0]))
		unsent := int64(0)
		if got.Unsent {
			unsent = version
		}
		return version, execution.Replayed(op, s.Fence, j.Now(got.Handle), unsent) == execution.Go, nil
	}
}

func deeds() []deed {
	pay := []execution.Declaration{{Name: "pay", Args: value(`1`)}}
	// Version 3, owned by w1 under fence 1.
	owned := func(w *world, j *Journal) {
		h := w.create(j, "e", `{"text":"`+strings.Repeat("y", 4000)+`"}`, "w1")
		h = w.apply(j, h, "p1", `{"n":-1}`)
		w.apply(j, h, "p2", `{"n":0}`)
	}
	slot := func(o execution.Outcome) *Slot {
		return &Slot{Operation: "0123456789abcdef0123456789abcdef", Attempt: 1, Generation: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), Outcome: o, At: 5, Reason: "r", Result: value(`null`)}
	}
	fill := func(o execution.Outcome, opt FillOptions) func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
		return func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			opt.ValidatedAt = w.engine.Now()
			now, filled, err := j.FillSlot(ctx, execution.Ref{Tenant: tenant, Execution: "e", Generation: slot(o).Generation}, slot(o), opt)
			if err == nil && (!filled && o.Final() || now.Outcome != o || now.Result == nil) {
				err = fmt.Errorf("slot %+v filled %v", now, filled)
			}
			return 0, false, err
		}
	}
	return []deed{
		{name: "create", do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			h, _, err := j.Create(ctx, creation("e", `{"a":1}`, ""))
			if err != nil {
				return 0, false, err
			}
			return h.State.Version, false, nil
		}},
		{name: "create and claim, body in the bucket", inline: 200, do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			h, _, err := j.Create(ctx, creation("e", `{"a":"`+strings.Repeat("z", 300)+`","b":[1,2,3,4,5,6,7,8,9]}`, "w1"))
			if err != nil {
				return 0, false, err
			}
			return h.State.Version, false, nil
		}},
		{name: "apply", prepare: owned, do: repeated("e", "r", func(c *execution.Change) { c.Operations = pay })},
		{name: "apply, cold", prepare: owned, cold: true, do: repeated("e", "r", func(c *execution.Change) { c.Operations = pay })},
		{name: "apply by content alone", prepare: owned, do: repeated("e", "r", func(c *execution.Change) { c.Request.ID, c.Request.Hash = "", execution.RequestHash{} })},
		{name: "apply, body in the bucket", prepare: owned, inline: 200, do: repeated("e", "r", func(c *execution.Change) { c.Operations, c.Note = pay, strings.Repeat("note 123 ", 40) })},
		{name: "apply with a snapshot", prepare: owned, snapshot: 1, do: repeated("e", "r", func(c *execution.Change) { c.Operations = pay })},
		{name: "apply with a snapshot that forgets", snapshot: 1, prepare: func(w *world, j *Journal) {
			// Large enough that nothing before the deed makes a snapshot.
			limit := j.SnapshotBytes
			j.SnapshotBytes = 1 << 30
			h := w.create(j, "e", `{"text":"`+noise(rand.New(rand.NewPCG(1, 1)), 250<<10)+`"}`, "w1")
			c := change(h, "many", `{"n":-1}`)
			for i := range execution.MaxSettledMemory + 2 {
				c.Operations = append(c.Operations, execution.Declaration{Name: "op", Key: fmt.Sprint(i)})
			}
			got, err := j.step(context.Background(), "e", c)
			if err != nil {
				w.t.Fatal(err)
			}
			c = change(got.Handle, "settled", `{"n":0}`)
			for _, op := range got.Handle.State.OperationsInOrder() {
				c.Outcomes = append(c.Outcomes, execution.Settlement{Operation: op.ID, Outcome: execution.OutcomeSucceeded})
			}
			if _, err = j.step(context.Background(), "e", c); err != nil {
				w.t.Fatal(err)
			}
			j.SnapshotBytes = limit
		}, do: repeated("e", "r", func(c *execution.Change) {})},
		{name: "suspend", prepare: owned, do: repeated("e", "r", func(c *execution.Change) { c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{} })},
		{name: "suspend, cold, body in the bucket", prepare: owned, cold: true, inline: 200, do: repeated("e", "r", func(c *execution.Change) {
			c.Kind, c.Wait, c.Note = execution.KindSuspended, &execution.Wait{}, strings.Repeat("note 123 ", 40)
		})},
		{name: "claim", prepare: func(w *world, j *Journal) { owned(w, j); w.advance(61 * time.Second) }, do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			got, err := j.Claim(ctx, tenant, "e", claiming("w2", "nonce"), nil)
			if err != nil {
				return 0, false, err
			}
			return got.Handle.State.ClaimVersion, false, nil
		}},
		{name: "renew", prepare: func(w *world, j *Journal) { owned(w, j); w.advance(10 * time.Second) }, do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			got, err := j.Renew(ctx, tenant, "e", "w1", 1, 60)
			if err == nil && got.RemainingMS != 60_000 {
				err = fmt.Errorf("%d ms remain", got.RemainingMS)
			}
			return 0, false, err
		}},
		{name: "fill a slot", prepare: owned, do: fill(execution.OutcomeSucceeded, FillOptions{Callback: []byte("mac")})},
		{name: "close an empty slot", prepare: owned, do: fill(execution.OutcomeNotExecuted, FillOptions{OnlyEmpty: true})},
		{name: "fill many slots", prepare: func(w *world, j *Journal) {
			owned(w, j) // one of them is taken
			if _, _, err := fill(execution.OutcomeSucceeded, FillOptions{})(context.Background(), w, j); err != nil {
				w.t.Fatal(err)
			}
		}, do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			ref := execution.Ref{Tenant: tenant, Execution: "e", Generation: slot("").Generation}
			var many []*Slot
			for n := range 3 {
				s := slot(execution.OutcomeNotExecuted)
				s.Attempt = n + 1
				many = append(many, s)
			}
			got, err := j.FillSlots(ctx, ref, many, FillOptions{ValidatedAt: w.engine.Now()})
			for n := range got {
				if taken := n == 0; got[n].Filled == taken || (got[n].Now.Outcome == execution.OutcomeSucceeded) != taken {
					err = fmt.Errorf("slot %d: %+v filled %v", n, got[n].Now, got[n].Filled)
				}
			}
			return 0, false, err
		}},
		{name: "contradict", prepare: func(w *world, j *Journal) {
			owned(w, j)
			if _, _, err := fill(execution.OutcomeSucceeded, FillOptions{})(context.Background(), w, j); err != nil {
				w.t.Fatal(err)
			}
		}, do: func(ctx context.Context, w *world, j *Journal) (int64, bool, error) {
			s := slot(execution.OutcomeFailed)
			_, err := j.Contradict(ctx, execution.Ref{Tenant: tenant, Execution: "e", Generation: s.Generation}, s, []byte{1, 2}, FillOptions{ValidatedAt: w.engine.Now()})
			return 0, false, err
		}},
	}
}

// lying is everything in the main table, without what is random in it.
func (w *world) lying() string {
	var lines []string
	for _, pk := range []string{"acme#e", "acme#~slt1", "acme#~sst1", "acme#~sst2", "acme#~0", "acme#~1", "acme#~2", "acme#~3", "acme#~4", "acme#~5", "acme#~6", "acme#~7", "acme"} {
		for sk, it := range w.items(pk) {
			names := slices.Sorted(maps.Keys(it))
			line := pk + " " + sk
			for _, n := range names {
				switch v := it[n]; {
				case n == store.AttrPK, n == store.AttrSK:
				case strings.HasPrefix(sk, EntryPrefix) && (n == attrBody || n == attrObject || n == attrPrev), n == SlotBody:
					line += fmt.Sprintf(" %s[%d]", n, len(v.B))
				default:
					line += fmt.Sprintf(" %s=%v%x%v%v", n, v.S, v.B, v.SS, v.Bool)
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// standing is what a fresh process finds.
func (w *world) standing() string {
	h, err := w.process().Open(context.Background(), tenant, "e", OpenOptions{Head: true})
	if err != nil {
		return err.Error()
	}
	b, err := marshal(h.State)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b) + h.State.Data.String()
}

// Every call of the store of every deed x everything that can become of it, once
// and for good: the caller repeats the same request, in the same process if it
// lives and in another, and there is exactly one entry, the right answer and
// nothing else changed. The rows come from the log of a run without faults, so
// none can be forgotten.
func TestCrashTables(t *testing.T) {
	t.Parallel()
	effects := []string{"lost", "landed", "unavailable", "throttle", "crash_before", "crash_after"}
	total := 0
	for _, d := range deeds() {
		begin := func() (*world, *Journal) {
			w := newWorld(t)
			w.inline, w.snapshot = d.inline, d.snapshot
			j := w.process()
			w.create(j, "other", `{}`, "") // the tenant's key
			if d.prepare != nil {
				d.prepare(w, j)
			}
			if d.cold {
				j = w.process()
			}
			w.calls()
			return w, j
		}
		w, j := begin()
		wantVersion, went, err := d.do(context.Background(), w, j)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		calls := w.calls()
		want, wantStanding := w.lying(), w.standing()
		if v, going, err := d.do(context.Background(), w, j); err != nil || v != wantVersion || going && went || w.lying() != want {
			t.Fatalf("%s: repeated: version %d, go %v, %v", d.name, v, going, err)
		}
		rows := 0
		for i := range calls {
			for _, effect := range effects {
				for _, count := range []int{1, 9} {
					if count > 1 && strings.HasPrefix(effect, "crash") {
						continue
					}
					rows++
					row := fmt.Sprintf("%s, call %d (%s %s), %s x %d", d.name, i+1, calls[i].Call, calls[i].Key, effect, count)
					w, j := begin()
					w.faults(memory.Fault{On: "*", Nth: i + 1, Count: count, Effect: effect})
					ctx, inv := memory.WithInvocation(context.Background())
					v, going, err := d.do(ctx, w, j)
					inv.End()
					w.faults()
					gone := 0
					switch {
					case inv.Crashed(): // nobody hears its answer
					case err == nil:
						if v != wantVersion {
							t.Errorf("%s: version %d, want %d", row, v, wantVersion)
						}
						if going {
							gone++
						}
					case !execution.CodeOf(err).Retryable() || execution.CodeOf(err) == execution.Internal:
						t.Errorf("%s: answered %v", row, err)
					case execution.CodeOf(err) == execution.Throttled && count == 1 && w.lying() == want && d.name != "renew":
						t.Errorf("%s: Throttled says that nothing was written", row)
					}
					repeats := []*Journal{j, w.process(), w.process()}
					if inv.Crashed() {
						repeats = repeats[1:]
					}
					for k, j := range repeats {
						v, going, err := d.do(context.Background(), w, j)
						if err != nil || v != wantVersion {
							t.Errorf("%s: repeat %d: version %d, want %d: %v", row, k+1, v, wantVersion, err)
						}
						if going {
							gone++
						}
					}
					if gone > 1 {
						t.Errorf("%s: %d times go for one effect", row, gone)
					}
					if went && effect == "lost" && gone != 1 {
						t.Errorf("%s: nobody was told to go for an effect whose first write was lost", row)
					}
					if got := w.lying(); got != want {
						t.Errorf("%s: other items lie there:\n%s\nwant\n%s", row, got, want)
					}
					if got := w.standing(); got != wantStanding {
						t.Errorf("%s: stands as\n%s\nwant\n%s", row, got, wantStanding)
					}
				}
			}
		}
		t.Logf("%-40s %d calls (%s), %d rows", d.name, len(calls), names(calls), rows)
		total += rows
	}
	t.Logf("crash table: %d rows", total)
}
