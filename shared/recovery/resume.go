package recovery

import (
	"context"
	"slices"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/view"
)

// Resume is claim, migrate and reconcile in one: the plan of what to do next, or
// `parked` with reasons, nobody owning it. Errors as Claim's.
//
// A crash after any of its entries leaves an owner whose lease runs out (or
// nobody, when it was parked): the next resume does what is left. The same nonce
// does so too, as long as its fence is current.
func (s *Service) Resume(ctx context.Context, r *api.ResumeRequest) (*api.ResumeReply, error) {
	asked, reasons, err := s.stillParked(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(reasons) > 0 {
		return s.parkedReply(ctx, asked, reasons, r)
	}
	claiming := r.Claiming
	if asked != nil && claiming.ExpectedVersion != 0 {
		claiming.ExpectedVersion = asked.Handle.State.Version // what was expected, and this call's own entry after it
	}
	w, err := s.claim(ctx, &r.Common, &claiming)
	if err != nil {
		return nil, err
	}
	claimed := w
	if w, err = s.migrateOwned(ctx, w, &r.Claiming); err != nil {
		if execution.CodeOf(err) == execution.MigrationFailed && r.Supports == nil {
			return s.reload(ctx, claimed, r)
		}
		return nil, err
	}
	rd := &round{tenant: r.Tenant, execution: r.Execution, actor: system, fence: w.Handle.State.Fence, hasFence: true, owned: w.Handle}
	g, err := s.gather(ctx, w.Handle, true)
	if err != nil {
		return nil, err
	}
	rd.evidence, rd.checks = g.evidence, g.checks
	settled, err := s.absorb(ctx, rd)
	if err != nil {
		return nil, err
	}
	settled.Replay = claimed.Replay
	if reasons := s.stuck(settled.Handle, rd.checks); len(reasons) > 0 {
		s.tellStuck(settled.Handle)
		parked, err := s.park(ctx, settled.Handle, rd.fence, reasons, nextLook(settled.Handle.State))
		if err != nil {
			return nil, err
		}
		s.count(telemetry.Parked, 1)
		s.emit(ctx, "parked", parked.Handle.State.Ref, map[string]any{"reasons": codes(reasons)})
		return s.parkedReply(ctx, parked, reasons, r)
	}
	reply := &api.ResumeReply{Standing: s.standing(settled)}
	return reply, s.show(ctx, settled.Handle, view.Options{}, reply, &reply.View, r.MaxInlineBytes)
}

// stillParked asks for evidence about a parked execution before it is claimed
// (M). asked is the execution after that; nil: it is not parked. No reasons:
// nothing keeps it parked any more.
func (s *Service) stillParked(ctx context.Context, r *api.ResumeRequest) (asked *journal.Written, reasons []execution.Reason, err error) {
	h, err := s.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{Head: true})
	if err != nil {
		return nil, nil, err
	}
	st := h.State
	if err := s.usable(h); err != nil {
		return nil, nil, err
	}
	// A workflow whose record cannot be read is told before the fence moves; what
	// cannot be migrated is parked under it.
	if _, _, err := s.plan(ctx, st, nil, 0); err != nil && execution.CodeOf(err) != execution.MigrationFailed {
		return nil, nil, execution.AsError(err).At(st)
	}
	if st.Status != execution.StatusParked {
		return nil, nil, nil // the claim decides
	}
	if r.ExpectedVersion != 0 && r.ExpectedVersion != st.Version {
		return nil, nil, nil // VersionConflict, by the claim
	}
	if err := s.supported(ctx, h, r.Supports); err != nil {
		return nil, nil, err
	}
	asked, checks, err := s.lookAgain(ctx, h, true, r.ExpectedVersion)
	if err != nil {
		return nil, nil, err
	}
	return asked, s.stuck(asked.Handle, checks), nil
}

// lookAgain is a round of asking about an execution that nobody owns; its entry
// is written at the expected version, 0: at whatever version.
func (s *Service) lookAgain(ctx context.Context, h *journal.Handle, early bool, expected int64) (*journal.Written, []execution.Check, error) {
	g, err := s.gather(ctx, h, early)
	if err != nil {
		return nil, nil, err
	}
	if len(g.evidence)+len(g.checks) == 0 {
		return &journal.Written{Handle: h}, nil, nil
	}
	rd := &round{tenant: h.State.Tenant, execution: h.State.Execution, actor: system, evidence: g.evidence, checks: g.checks, quiet: !early, expected: expected}
	w, err := s.absorb(ctx, rd)
	return w, g.checks, err
}

// stuck are the reasons why nobody can go on with an execution: operations that
// are uncertain and that nothing protects when they go again. At most
// maxReasons; empty: it can go on.
func (s *Service) stuck(h *journal.Handle, checks []execution.Check) []execution.Reason {
	st, now := h.State, s.Journal.Now(h)
	var out []execution.Reason
	for _, op := range st.OpenOperations() {
		if !uncertain(st, op, now) || st.Owner != "" && op.Fence == st.Fence {
			continue // an owner's own operations are its own to settle
		}
		code := "uncertain"
		if op.NeedsReview {
			code = "needs_review"
		} else if goesAgain(op, now) {
			continue
		}
		r := execution.Reason{Code: code, Operation: op.ID, Name: op.Name, Detail: string(op.LastFinding)}
		if i := slices.IndexFunc(checks, func(c execution.Check) bool { return c.Operation == op.ID && c.Detail != "" }); i >= 0 {
			r.Detail += ": " + checks[i].Detail
		}
		if r.Detail == "" {
			r.Detail = "nobody can be asked"
		}
		if out = append(out, r); len(out) == maxReasons {
			break
		}
	}
	return out
}

const maxReasons = 50

// goesAgain reports whether an operation's own protection makes it harmless to
// send it again.
func goesAgain(op *execution.Operation, now int64) bool {
	return op.OnUncertain == execution.Always || op.OnUncertain == execution.SameKey && now < op.RepeatBy()
}

// nextLook is when a parked execution is looked at again; 0: the usual time.
func nextLook(st *execution.State) int64 {
	var at int64
	for _, op := range st.Operations {
		if n := op.NextCheck; !op.Final() && !op.NeedsReview && n > 0 && (at == 0 || n < at) {
			at = n
		}
	}
	return at
}

// tellStuck measures how long the oldest uncertain operation has been so.
func (s *Service) tellStuck(h *journal.Handle) {
	now, oldest := s.Journal.Now(h), int64(-1)
	for _, op := range h.State.OpenOperations() {
		if uncertain(h.State, op, now) {
			oldest = max(oldest, now-op.Intent)
		}
	}
	if oldest >= 0 {
		s.count(telemetry.UncertainAge, float64(oldest)/1000)
	}
}

func codes(rs []execution.Reason) []string {
	var out []string
	for _, r := range rs {
		if !slices.Contains(out, r.Code) {
			out = append(out, r.Code)
		}
	}
	return out
}

// reload answers a resume whose migration failed: it was parked.
func (s *Service) reload(ctx context.Context, claimed *journal.Written, r *api.ResumeRequest) (*api.ResumeReply, error) {
	h, err := s.Journal.Open(ctx, r.Tenant, r.Execution, journal.OpenOptions{Head: true, AtLeast: claimed.Handle.State.Version})
	if err != nil {
		return nil, err
	}
	return s.parkedReply(ctx, &journal.Written{Handle: h, Replay: claimed.Replay}, h.State.Parked, r)
}

// parkedReply is a resume's answer when nobody owns the execution.
func (s *Service) parkedReply(ctx context.Context, w *journal.Written, reasons []execution.Reason, r *api.ResumeRequest) (*api.ResumeReply, error) {
	reply := &api.ResumeReply{Standing: s.standing(w), Parked: true, Reasons: []api.Reason{}}
	for _, x := range reasons {
		reply.Reasons = append(reply.Reasons, api.Reason(x))
	}
	return reply, s.show(ctx, w.Handle, view.Options{}, reply, &reply.View, r.MaxInlineBytes)
}
