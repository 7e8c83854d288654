package execution

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// Propose checks a change against the state that it would extend and gives the
// entry to write. s nil: the change must be a creation. It changes nothing; the entry
// shares c's values, which must not be changed afterwards.
//
// Errors: InvalidRequest (field, path), VersionConflict, LeaseLost, LeaseHeld,
// Halted, ExecutionClosed, RequestMismatch, RequestForgotten,
// OperationMismatch, OperationsOpen, BudgetExceeded, TooLarge, Integrity.
// Every error about an existing execution carries version, status, fence and
// owner.
func Propose(s *State, ref Ref, c *Change, env Environment) (*Proposal, error) {
	p := &proposer{s: s, c: c, env: env, out: &Proposal{}}
	if s == nil {
		p.s = &State{Ref: ref}
	} else {
		if m, done, err := p.replay(); err != nil || done {
			p.out.Replay = m
			return p.out, stand(s, err)
		}
		if err := p.standing(); err != nil {
			return nil, stand(s, err)
		}
	}
	p.entry = &Entry{Version: p.s.Version + 1, Kind: c.Kind, Generation: ref.Generation, Fence: p.s.Fence, Request: c.Request.Hash, Content: c.Request.Digest, At: env.Now,
		Body: Body{Actor: c.Actor, RequestID: c.Request.ID, Note: c.Note, Task: c.Task, Created: c.Created, Wait: c.Wait, Complete: c.Complete, Continue: c.Continue,
			Parked: c.Parked, Reason: c.Reason, Schema: c.Schema, Renamed: c.Renamed, MovedTo: c.MovedTo, Bundle: c.Bundle, Absorbed: c.Absorb, Emptied: c.Emptied,
			Artifacts: c.Artifacts, Labels: c.Labels, Subjects: c.Subjects, Permissions: c.Permissions, Redacted: c.Redacted, Checked: c.Checks}}
	if s != nil {
		p.entry.At = max(env.Now, s.TipAt)
	} else {
		p.entry.Version = max(1, c.FirstVersion)
	}
	for _, step := range []func() error{p.claim, p.outcomes, p.judge, p.state, p.spend, p.bounds, p.declare, p.fold, p.ending} {
		if err := step(); err != nil {
			return nil, stand(s, err)
		}
	}
	return p.out, nil
}

// Admit is the first part of Propose, for callers that have to read before they
// can propose: it says whether the request was done before, and refuses a
// caller that may not write at all. Errors as Propose.
func Admit(s *State, c *Change, env Environment) (replay *RequestMemory, err error) {
	p := &proposer{s: s, c: c, env: env}
	if m, done, err := p.replay(); err != nil || done {
		return m, stand(s, err)
	}
	return nil, stand(s, p.standing())
}

// stand adds where the execution stands to an error.
func stand(s *State, err error) error {
	if err == nil || s == nil {
		return err
	}
	return AsError(err).At(s)
}

// At adds where the execution stands: version, status, fence, owner. Facts
// that are there already stay.
func (e *Error) At(s *State) *Error {
	c := *e
	c.Facts = map[string]any{"execution": string(s.Execution), "version": s.Version, "status": string(s.Status)}
	if s.Fence > 0 {
		c.Facts["fence"] = s.Fence
	}
	if s.Owner != "" {
		c.Facts["owner"] = s.Owner
	}
	for k, v := range e.Facts {
		c.Facts[k] = v
	}
	return &c
}

type proposer struct {
	s     *State
	c     *Change
	env   Environment
	entry *Entry
	out   *Proposal
	// ops are the operations changed so far by this proposal.
	ops map[OperationID]*Operation
	// given are ids of declarations, in order.
	given []OperationID
	disp  []Disposition
}

// replay finds the request among those already done.
func (p *proposer) replay() (*RequestMemory, bool, error) {
	s, r := p.s, p.c.Request
	if p.c.Kind == KindClaimed && r.Hash != (RequestHash{}) && r.Hash == s.ClaimNonce && !s.remembers(r.Hash) {
		// The owner wrote so much since that the claim itself left the memory.
		return &RequestMemory{Hash: r.Hash, Digest: r.Digest, Version: s.ClaimVersion}, true, nil
	}
	if m, ok := s.Remembered(r.Hash); ok {
		if m.Digest != r.Digest {
			return nil, false, Errorf(RequestMismatch, "this request_id was used with other content").With("done_at", m.Version)
		}
		return &m, true, nil
	}
	if p.c.Expected == 0 {
		return nil, false, p.forgotten()
	}
	for i := range s.Requests {
		if m := s.Requests[i]; m.Version == p.c.Expected+1 && m.Hash == r.Hash && m.Digest == r.Digest {
			return &m, true, nil
		}
	}
	return nil, false, p.forgotten()
}

// forgotten refuses a request that may have been done at a version which the
// memory no longer covers (M).
func (p *proposer) forgotten() error {
	first := p.c.First
	if first == 0 {
		first = p.c.Expected
	}
	if p.c.Request.Hash == (RequestHash{}) && p.c.Request.Digest == (ContentDigest{}) || first == 0 || first+1 >= p.s.RequestFloor {
		return nil
	}
	return Errorf(RequestForgotten, "the request may have been done before; its version is no longer remembered: read the history").With("remembered_from", p.s.RequestFloor)
}

// standing decides whether the caller may write at all.
func (p *proposer) standing() error {
	s, c := p.s, p.c
	if !s.Status.Known() {
		return Errorf(Integrity, "a status that this version does not know; nothing may be done with it")
	}
	if c.System {
		return p.system()
	}
	if c.Kind == KindClaimed {
		return p.claimable()
	}
	if s.Status == StatusDeleting {
		return Errorf(Deleted, "the execution is being deleted").With("in_progress", true)
	}
	if s.Status.Ended() {
		return closed(s)
	}
	if s.Status == StatusHalted {
		return Errorf(Halted, "the execution is halted")
	}
	if s.Fence > 0 && !c.HasFence {
		return Invalid("fence", "is required once the execution was claimed")
	}
	if c.HasFence && (c.Fence != s.Fence || s.Owner == "") {
		return Errorf(LeaseLost, "the fence is not the current one: another owner has taken over, or the execution was given up")
	}
	return p.version()
}

// system decides what recovery and retention may write. They need no fence, but
// what has ended stays as it is, except for its archive.
func (p *proposer) system() error {
	switch s := p.s; {
	case s.Status == StatusDeleting:
		return Errorf(Deleted, "the execution is being deleted").With("in_progress", true)
	case s.Status.Ended() && p.c.Kind != KindArchived && p.c.Kind != KindRestored && p.c.Kind != KindDeleted:
		return closed(s)
	}
	return p.version()
}

func closed(s *State) *Error {
	e := Errorf(ExecutionClosed, "the execution has ended")
	if s.Status == StatusMoved {
		e = e.With("moved_to", string(s.MovedTo))
	}
	return e
}

func (p *proposer) version() error {
	switch {
	case p.c.Expected == 0 || p.c.Expected == p.s.Version:
		return nil
	case p.c.Expected > p.s.Version:
		return Errorf(Integrity, "the expected version is beyond the journal's end")
	}
	return Errorf(VersionConflict, "the execution has moved on: reload").With("expected_version", p.c.Expected)
}

// claimable decides who may take ownership (architecture, "Claim").
func (p *proposer) claimable() error {
	s, r := p.s, p.c.Claim
	switch {
	case s.Status == StatusDeleting:
		return Errorf(Deleted, "the execution is being deleted").With("in_progress", true)
	case s.Status.Ended():
		return closed(s)
	case s.Status == StatusHalted:
		return Errorf(Halted, "the execution is halted")
	}
	if err := p.version(); err != nil {
		return err
	}
	end := s.LeaseEnd(r.HeadExpiry)
	if s.Owner == "" || p.env.Now >= end || r.Force != "" || r.Supersede && r.Owner == s.Owner {
		return nil
	}
	return Errorf(LeaseHeld, "another worker owns the execution").With("retry_after_ms", end-p.env.Now)
}

func (p *proposer) claim() error {
	r := p.c.Claim
	if r == nil {
		return nil
	}
	p.entry.Fence = p.env.Epoch<<40 + p.entry.Version
	if p.entry.Fence <= p.s.Fence {
		return Errorf(Integrity, "the fence would not grow: the configured epoch is older than the stored one")
	}
	p.entry.Body.Claim = &Claim{Owner: r.Owner, LeaseSeconds: r.LeaseSeconds, NonceHash: r.Nonce, Resume: r.Resume, Force: r.Force,
		Superseded: r.Supersede && p.s.Owner == r.Owner}
	p.entry.Body.Handovers = p.c.Handovers
	return nil
}

// state computes the agent's state after the change and the smaller way to
// write it down.
func (p *proposer) state() error {
	from := p.s.Data
	if from == nil {
		from = emptyObject
	}
	to, patch, err := p.newState(from)
	if err != nil || to == nil {
		return err
	}
	if to.Kind() != jsonx.Object {
		return Invalid("state", "must stay a JSON object")
	}
	if n := to.Size(); n > MaxStateBytes {
		return Errorf(TooLarge, "the state would have %d bytes", n).With("limit", MaxStateBytes).With("field", "state")
	}
	if to.Depth() > jsonx.DefaultLimits.Depth {
		return InvalidPath("state", "", "nested deeper than 500")
	}
	if patch == nil {
		patch = jsonx.Diff(from, to)
	}
	p.entry.Body.StateChanged = true
	switch {
	case p.s.Version == 0 || patch.Size() >= to.Size():
		p.entry.Body.State = to
	case patch.Len() > 0:
		p.entry.Body.Patch = patch
	default:
		p.entry.Body.StateChanged = false
	}
	return nil
}

func (p *proposer) newState(from *jsonx.Value) (to, patch *jsonx.Value, err error) {
	switch c := p.c; {
	case c.State != nil:
		return c.State, nil, nil
	case c.Merge != nil:
		to, err = jsonx.MergePatch(from, c.Merge)
		if err != nil {
			return nil, nil, InvalidPath("merge", "", "cannot be merged: "+reasonOf(err))
		}
		return to, nil, nil
	case c.Patch != nil:
		to, err = jsonx.ApplyPatchLimit(from, c.Patch, MaxStateBytes)
		if err != nil {
			return nil, nil, patchError(err)
		}
		return to, c.Patch, nil
	}
	return nil, nil, nil
}

func (p *proposer) spend() error {
	if len(p.c.Spend) == 0 {
		return nil
	}
	p.entry.Body.Spent = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.c.Spend)) {
		n := p.c.Spend[name]
		b, ok := p.s.Budgets[name]
		if !ok {
			return Invalid("spend."+name, "no such budget")
		}
		if exceeds(b.Limit, b.Spent, n) {
			return Errorf(BudgetExceeded, "the budget does not cover it").With("budget", name).With("limit", b.Limit).With("spent", b.Spent)
		}
		p.entry.Body.Spent[name] = n
	}
	return nil
}

// bounds refuses what would outgrow a limit.
func (p *proposer) bounds() error {
	subjects := slices.Clone(p.s.Subjects)
	for _, x := range p.c.Subjects {
		if !slices.Contains(subjects, x) {
			subjects = append(subjects, x)
		}
	}
	n := len(subjects) + len(p.s.Labels)
	for k := range p.c.Labels {
		if _, ok := p.s.Labels[k]; !ok {
			n++
		}
	}
	if n > MaxLabels {
		return Invalid("labels", "labels and subjects together are at most %d", MaxLabels).With("limit", MaxLabels)
	}
	seen := make(map[string]bool, len(p.c.Absorb))
	for i, a := range p.c.Absorb {
		k := SignalKey(a.Name, a.Key)
		if _, before := p.s.Absorbed[k]; before || seen[k] {
			return Invalid(fmt.Sprintf("absorb[%d]", i), "the signal was absorbed before")
		}
		seen[k] = true
	}
	if len(p.s.Absorbed)+len(p.c.Absorb) > 2*MaxUnabsorbedSignals {
		return Errorf(TooLarge, "too many absorbed signals whose items are still full").With("limit", 2*MaxUnabsorbedSignals)
	}
	return nil
}

// fold applies the entry to the state: what Fold will do with it later.
func (p *proposer) fold() error {
	f := NewFolder(p.s)
	if err := f.Apply(p.entry); err != nil {
		return err
	}
	p.out.Entry, p.out.State = p.entry, f.State()
	for i, id := range p.given {
		p.out.Given = append(p.out.Given, Given{Operation: p.out.State.Operations[id], Disposition: p.disp[i]})
	}
	return nil
}

// ending checks what must hold at the end of the step.
func (p *proposer) ending() error {
	s := p.out.State
	if p.c.Complete != nil && s.Open > 0 {
		return openError(s, "operations are open: settle them first")
	}
	if p.c.Wait != nil {
		for _, id := range p.c.Wait.Operations {
			if s.Operations[id] == nil && !s.MayBeForgotten(id) {
				return Invalid("wait.operations", "no such operation").With("operation", string(id))
			}
		}
	}
	if s.Open > MaxOpenOperations {
		return Errorf(TooLarge, "too many open operations").With("limit", MaxOpenOperations).With("field", "operations")
	}
	return nil
}

// openError is OperationsOpen naming the open operations (at most 50).
func openError(s *State, text string) *Error {
	ids := []string{}
	for _, op := range s.OpenOperations() {
		if len(ids) == 50 {
			break
		}
		ids = append(ids, string(op.ID))
	}
	e := Errorf(OperationsOpen, "%s", text).With("operations", ids).With("open", s.Open)
	if len(ids) < s.Open {
		e = e.With("truncated", true)
	}
	return e
}

// patchError turns a refused patch into InvalidRequest naming the operation
// and its path.
func patchError(err error) error {
	if errors.Is(err, jsonx.ErrTooLarge) {
		return Errorf(TooLarge, "the state would be too large").With("limit", MaxStateBytes).With("field", "patch")
	}
	var pe *jsonx.PatchError
	if errors.As(err, &pe) {
		return InvalidPath(fmt.Sprintf("patch[%d]", pe.Index), pe.Path, pe.Reason).With("op", pe.Op)
	}
	return Invalid("patch", "cannot be applied")
}

// reasonOf is the constant reason of a jsonx error, never its document.
func reasonOf(err error) string {
	var se *jsonx.SyntaxError
	if errors.As(err, &se) {
		return se.Reason
	}
	var pe *jsonx.PatchError
	if errors.As(err, &pe) {
		return pe.Reason
	}
	return "not possible"
}
