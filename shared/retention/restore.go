package retention

import (
	"context"
	"errors"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Restore brings an archived execution back: one entry at tip+1 with the whole
// state, which names the bundle; versions, fences, holds and generation go on.
// The bundle stays and serves the old versions. InvalidRequest with the status
// when it is not archived.
func (s *Service) Restore(ctx context.Context, r *api.RestoreRequest) (*api.RestoreReply, error) {
	c := &execution.Change{Kind: execution.KindRestored, System: true, Actor: r.Actor.Execution(), Request: execution.RequestID{ID: r.RequestID, Hash: r.Hash, Digest: r.Digest}}
	w, err := s.Journal.Write(ctx, r.Tenant, r.Execution, journal.WriteOptions{Head: true}, func(ctx context.Context, h *journal.Handle) (*journal.Step, error) {
		if err := s.Journal.Readable(h); err != nil {
			return nil, err
		}
		change, env := *c, execution.Environment{Now: s.Journal.Now(h), Epoch: s.Journal.Epoch}
		replay, err := execution.Admit(h.State, &change, env)
		if err != nil || replay != nil {
			return &journal.Step{Proposal: &execution.Proposal{Replay: replay}}, err
		}
		if h.State.Status != execution.StatusArchived || h.State.Bundle == nil {
			return nil, execution.Invalid("execution", "is not archived").At(h.State)
		}
		if err := s.whole(ctx, h.State); err != nil {
			return nil, s.damage(ctx, h, err)
		}
		change.Bundle = h.State.Bundle
		p, err := execution.Propose(h.State, h.State.Ref, &change, env)
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		now := p.Entry.At
		f, err := s.facts(ctx, h.Head)
		if err != nil {
			return nil, err
		}
		f.Status, f.Outcome, f.RestoredAt = p.State.Status, p.State.Status, now
		acts := append([]store.Action{store.Set{Attr: headRestored, Value: store.N(now)}, store.Remove{Attr: headOutcome}}, journal.RetainActions(h.State.Execution, Plan(f, now).Next)...)
		return s.snapshotStep(h, p, &journal.HeadChange{Conditions: []store.Cond{journal.AskedAsRead(h.Head)}, Actions: acts}, nil)
	})
	var out *api.ArchiveReply
	if err == nil {
		out, err = s.archivedReply(ctx, w.Handle, w.Replay != nil)
		err = s.damage(ctx, w.Handle, err)
	}
	if errors.Is(err, errMoved) {
		return nil, busy(execution.Ref{Tenant: r.Tenant, Execution: r.Execution})
	}
	if err != nil {
		return nil, err
	}
	if w.Replay != nil {
		out.Version = w.Replay.Version
	}
	return &api.RestoreReply{Standing: out.Standing, Manifest: out.Manifest}, nil
}

// whole reads everything that a bundle names and holds it against its digests.
func (s *Service) whole(ctx context.Context, st *execution.State) error {
	v := s.vault()
	m, err := v.manifest(ctx, st.Ref, *st.Bundle)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		if _, err := v.read(ctx, st.Ref, f.Key, f.Digest, f.Bytes); err != nil {
			return err
		}
	}
	return nil
}
