package execution

import (
	"bytes"
	"maps"
	"slices"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// Fold adds entries to a state: base is not changed; nil starts from nothing,
// the first entry being created or one with a snapshot. Errors: Integrity for
// what cannot be this execution's journal, SchemaTooNew for a kind of a newer
// version.
func Fold(base *State, entries ...*Entry) (*State, error) {
	f := NewFolder(base)
	if err := f.Apply(entries...); err != nil {
		return nil, err
	}
	return f.State(), nil
}

// Folder folds many entries with few copies. What it has handed out by State
// never changes.
type Folder struct {
	s State
	// own says which parts of s may be changed in place: they belong to this
	// folder and were not handed out.
	own owned
	// patches were taken in but not yet applied to s.Data: all at once costs what
	// one costs, one by one each copies the containers on its way.
	patches []*Entry
}

type owned struct{ ops, settled, absorbed, labels, budgets, requests bool }

// NewFolder starts from a state; nil: from nothing.
func NewFolder(base *State) *Folder {
	f := &Folder{}
	if base != nil {
		f.s = *base
		f.clip()
	}
	return f
}

// State is the fold so far; nil when nothing was applied.
func (f *Folder) State() *State {
	if f.s.Version == 0 {
		return nil
	}
	f.own = owned{}
	f.clip()
	s := f.s
	return &s
}

// clip makes every append to what may be shared copy it.
func (f *Folder) clip() {
	f.s.Requests = slices.Clip(f.s.Requests)
	f.s.Artifacts = slices.Clip(f.s.Artifacts)
}

// Apply adds the next entries. After an error the folder is of no use.
func (f *Folder) Apply(entries ...*Entry) error {
	for _, e := range entries {
		if err := f.add(e); err != nil {
			return err
		}
	}
	return f.patch()
}

func (f *Folder) add(e *Entry) error {
	if !e.Kind.Known() {
		return Errorf(SchemaTooNew, "an entry of a kind that this version does not know").With("version", e.Version)
	}
	if err := sound(e); err != nil {
		return err
	}
	if f.s.Version == 0 && e.Body.Snapshot != nil && e.Kind != KindCreated {
		f.start(e)
		return nil
	}
	if f.s.Version == 0 {
		if e.Body.Created == nil { // sound: nothing else has one
			return Errorf(Integrity, "the journal does not begin with its creation").With("version", e.Version)
		}
	} else if e.Kind == KindCreated || e.Version != f.s.Version+1 || e.Generation != f.s.Generation {
		return Errorf(Integrity, "the journal has a gap or an entry of another generation").With("version", e.Version)
	}
	f.apply(e)
	if e.Body.Snapshot != nil && e.Body.Snapshot.Forgotten != nil {
		f.forget(e.Body.Snapshot)
	}
	return nil
}

// sound refuses an entry that lacks what its kind must have: sealed bytes that
// Propose did not make.
func sound(e *Entry) error {
	b := &e.Body
	bad := e.Version < 1 || e.Kind == KindCompleted && b.Complete == nil || b.Created != nil && e.Kind != KindCreated ||
		b.Claim != nil && e.Kind != KindCreated && e.Kind != KindClaimed
	if b.Created != nil {
		for _, op := range b.Created.Operations {
			bad = bad || op == nil
		}
	}
	if s := b.Snapshot; s != nil {
		bad = bad || s.Version != e.Version || s.Generation != e.Generation || len(s.Forgotten)%8 != 0
		for id, op := range s.Operations {
			bad = bad || op == nil || op.ID != id
		}
		for _, id := range s.Settled {
			bad = bad || s.Operations[id] == nil
		}
	}
	if bad {
		return Errorf(Integrity, "an entry is not what its kind must be").With("version", e.Version)
	}
	return nil
}

// start takes the state from an entry's snapshot.
func (f *Folder) start(e *Entry) {
	ref := f.s.Ref
	f.s = *e.Body.Snapshot
	f.s.Data = e.Body.State
	if ref.Tenant != "" {
		f.s.Tenant, f.s.Execution = ref.Tenant, ref.Execution
	}
	if f.s.Data == nil {
		f.s.Data = emptyObject
	}
	f.clip()
}

var emptyObject = jsonx.MustParse("{}")

func (f *Folder) apply(e *Entry) {
	s, b := &f.s, &e.Body
	if b.Created != nil {
		f.create(e)
	}
	f.data(e)
	for i := range b.Outcomes {
		f.settle(&b.Outcomes[i], e)
	}
	for i := range b.Evidence {
		f.evidence(&b.Evidence[i])
	}
	for i := range b.Checked {
		f.checked(&b.Checked[i])
	}
	f.signals(b)
	for _, a := range b.Artifacts {
		a.Version = e.Version
		s.Artifacts = append(s.Artifacts, a)
	}
	f.marks(b)
	for i := range b.Declared {
		f.declare(&b.Declared[i], e)
	}
	f.migrate(b)
	f.standing(e)
	f.remember(e)
	s.Version, s.TipAt = e.Version, e.At
	s.TipByOwner = s.Owner != "" && e.Fence == s.Fence && e.Kind != KindVerdict
}

func (f *Folder) create(e *Entry) {
	c := e.Body.Created
	s := &f.s
	s.Generation, s.CreatedAt, s.Status = e.Generation, e.At, StatusCreated
	s.Thread, s.Workflow, s.Schema, s.Input, s.Policy, s.Parent = c.Thread, c.Workflow, c.Schema, c.Input, c.Policy, c.Parent
	s.ForkedFrom = c.ForkedFrom
	s.IdentityRoot = s.Ref
	s.RequestFloor = e.Version
	if c.IdentityRoot != nil {
		s.IdentityRoot = *c.IdentityRoot
	}
	if len(c.Budgets) > 0 {
		s.Budgets = make(map[string]Budget, len(c.Budgets))
		for name, limit := range c.Budgets {
			s.Budgets[name] = Budget{Limit: limit, Spent: "0"}
		}
	}
	s.Data = emptyObject
	s.Operations = make(map[OperationID]*Operation, len(c.Operations))
	f.own.ops = true
	for _, op := range c.Operations {
		s.Operations[op.ID] = op
		s.OpSeq = max(s.OpSeq, op.Seq)
		if op.Final() {
			s.Settled = append(s.Settled, op.ID)
		} else {
			s.Open++
		}
	}
	s.Forgotten = c.Forgotten
}

// data takes in a change of the agent's state.
func (f *Folder) data(e *Entry) {
	switch {
	case e.Body.State != nil:
		f.s.Data, f.patches = e.Body.State, f.patches[:0]
	case e.Body.Patch != nil:
		f.patches = append(f.patches, e)
	}
}

// patch applies the patches taken in, as one.
func (f *Folder) patch() error {
	if len(f.patches) == 0 {
		return nil
	}
	defer func() { f.patches = f.patches[:0] }()
	if f.s.Data == nil {
		f.s.Data = emptyObject
	}
	whole := f.patches[0].Body.Patch
	if len(f.patches) > 1 {
		var ops []*jsonx.Value
		for _, e := range f.patches {
			if e.Body.Patch.Kind() != jsonx.Array {
				return unfit(e)
			}
			ops = append(ops, e.Body.Patch.Elems()...)
		}
		whole = jsonx.NewArray(ops...)
	}
	d, err := jsonx.ApplyPatch(f.s.Data, whole)
	if err == nil {
		f.s.Data = d
		return nil
	}
	for _, e := range f.patches { // which one?
		if f.s.Data, err = jsonx.ApplyPatch(f.s.Data, e.Body.Patch); err != nil {
			return unfit(e)
		}
	}
	return nil
}

func unfit(e *Entry) error {
	return Errorf(Integrity, "a stored patch does not fit the state before it").With("version", e.Version)
}

func (f *Folder) signals(b *Body) {
	if len(b.Absorbed)+len(b.Emptied) == 0 {
		return
	}
	if !f.own.absorbed {
		f.s.Absorbed = maps.Clone(f.s.Absorbed)
		f.own.absorbed = true
	}
	if f.s.Absorbed == nil {
		f.s.Absorbed = map[string]struct{}{}
	}
	for _, a := range b.Absorbed {
		f.s.Absorbed[SignalKey(a.Name, a.Key)] = struct{}{}
	}
	for _, a := range b.Emptied {
		delete(f.s.Absorbed, SignalKey(a.Name, a.Key))
	}
}

// SignalKey is the name under which State.Absorbed knows a signal; neither a
// name nor a key can hold the separator.
func SignalKey(name, key string) string { return name + "\x00" + key }

// marks takes in labels, subjects, permissions, budgets and the task.
func (f *Folder) marks(b *Body) {
	s := &f.s
	if b.Task != "" {
		s.Task = b.Task
	}
	if b.Permissions != nil {
		s.Permissions = b.Permissions
	}
	if len(b.Labels) > 0 {
		if !f.own.labels {
			s.Labels = maps.Clone(s.Labels)
			f.own.labels = true
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		maps.Copy(s.Labels, b.Labels)
	}
	for _, x := range b.Subjects {
		if !slices.Contains(s.Subjects, x) {
			s.Subjects = append(slices.Clip(s.Subjects), x)
		}
	}
	if len(b.Spent) > 0 {
		if !f.own.budgets {
			s.Budgets = maps.Clone(s.Budgets)
			f.own.budgets = true
		}
		if s.Budgets == nil {
			s.Budgets = map[string]Budget{}
		}
		for name, n := range b.Spent {
			bu := s.Budgets[name]
			bu.Spent = addDecimals(bu.Spent, n)
			s.Budgets[name] = bu
		}
	}
}

// standing changes status, owner and what goes with them.
func (f *Folder) standing(e *Entry) {
	s, b := &f.s, &e.Body
	if b.Claim != nil {
		s.Status, s.Owner, s.Fence, s.LeaseSeconds = StatusRunning, b.Claim.Owner, e.Fence, b.Claim.LeaseSeconds
		s.ClaimNonce, s.ClaimVersion, s.ClaimedAt, s.Resume = b.Claim.NonceHash, e.Version, e.At, b.Claim.Resume
		s.Wait, s.Parked, s.Continue = nil, nil, nil
		s.Handovers += b.Handovers
		return
	}
	switch e.Kind {
	case KindCheckpoint:
		s.Handovers = 0
	case KindSuspended:
		f.disown()
		s.Status, s.Wait, s.Handovers = StatusWaiting, b.Wait, 0
	case KindContinued:
		f.disown()
		s.Continue, s.Handovers = b.Continue, 0
	case KindCompleted:
		f.disown()
		s.Status, s.Completion, s.EndedAt = b.Complete.Outcome, b.Complete, e.At
	case KindParked:
		f.disown()
		s.Status, s.Parked, s.Wait, s.Continue = StatusParked, b.Parked, nil, nil
	case KindHalted:
		f.disown()
		if s.Status != StatusHalted {
			s.HaltedFrom = s.Status
		}
		s.Status, s.HaltReason = StatusHalted, b.Reason
	case KindUnhalted:
		s.Status, s.HaltedFrom, s.HaltReason = s.HaltedFrom, "", ""
	case KindMoved:
		f.disown()
		s.Status, s.MovedTo, s.EndedAt = StatusMoved, b.MovedTo, e.At
	case KindArchived:
		s.Before, s.Status, s.Bundle = s.Status, StatusArchived, b.Bundle
	case KindRestored:
		s.Status, s.Before, s.Bundle = s.Before, "", b.Bundle
	case KindDeleted:
		f.disown()
		s.Status = StatusDeleting
	}
}

// disown ends the ownership: whoever holds the fence can never write again.
func (f *Folder) disown() { f.s.Owner, f.s.Resume = "", nil }

// remember keeps the request of an entry, so that a repeat finds itself at any
// version.
func (f *Folder) remember(e *Entry) {
	if e.Request == (RequestHash{}) && e.Content == (ContentDigest{}) {
		return
	}
	if !f.own.requests {
		f.s.Requests = append(make([]RequestMemory, 0, len(f.s.Requests)+1), f.s.Requests...)
		f.own.requests = true
	}
	r := append(f.s.Requests, RequestMemory{Hash: e.Request, Digest: e.Content, Version: e.Version})
	if n := len(r) - MaxRequestMemory; n > 0 {
		f.s.RequestFloor = r[n-1].Version + 1
		r = r[n:]
	}
	f.s.Requests = r
}

// forget drops the settled operations that a snapshot no longer keeps in full:
// their slots were written before it.
func (f *Folder) forget(snap *State) {
	for id := range f.s.Operations {
		if snap.Operations[id] == nil {
			if !f.own.ops {
				f.s.Operations = maps.Clone(f.s.Operations)
				f.own.ops = true
			}
			delete(f.s.Operations, id)
		}
	}
	f.s.Settled, f.own.settled = snap.Settled, false
	f.s.Forgotten = snap.Forgotten
}

// MayBeForgotten reports whether a settled operation with this id may have
// left the fold; its slot tells.
func (s *State) MayBeForgotten(id OperationID) bool {
	p := forgottenPrefix(id)
	lo, hi := 0, len(s.Forgotten)/8
	for lo < hi {
		m := (lo + hi) / 2
		switch c := bytes.Compare(s.Forgotten[m*8:m*8+8], p); {
		case c == 0:
			return true
		case c < 0:
			lo = m + 1
		default:
			hi = m
		}
	}
	return false
}
