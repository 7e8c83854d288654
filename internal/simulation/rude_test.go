package simulation

import (
	"context"
	"fmt"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/wiring"
)

// What a worker must not get through with, whatever it tries.

// zombie holds: who lost the execution writes nothing more, even at the version
// where it stands now.
func (s *shift) zombie() {
	v := s.actor.view(s.e)
	if v == nil || v.Generation != s.gen || v.Fence == s.fence {
		return
	}
	req := &api.ApplyRequest{Common: s.common(s.fresh()), Changes: api.Changes{Execution: s.e, ExpectedVersion: v.Version, Fence: s.fence, Note: "zombie"}}
	api.Identify(req)
	if _, err := retry(s.actor, "apply "+short(s.e), func(ctx context.Context, w *wiring.Services) (*api.ApplyReply, error) {
		return w.Checkpoint.Apply(ctx, req)
	}); err == nil {
		s.w.fail("%s wrote to %s under fence %d after %d", s.name, s.e, s.fence, v.Fence)
	}
}

// again sends an earlier request of this shift once more, moved to where the
// execution stands now. It must find itself; settle looks for requests that stand
// in the journal twice.
func (s *shift) again() {
	req := *s.sent
	req.FirstVersion, req.ExpectedVersion = s.sent.ExpectedVersion, s.version
	api.Identify(&req)
	r, err := retry(s.actor, "apply "+short(s.e), func(ctx context.Context, w *wiring.Services) (*api.ApplyReply, error) {
		return w.Checkpoint.Apply(ctx, &req)
	})
	if err == nil && !r.Replayed {
		s.w.fail("request %s of %s was applied again at %d", req.RequestID, s.e, r.Version)
	}
}

// greedy takes in a signal that is taken in already.
func (s *shift) greedy() {
	for _, text := range s.taken {
		var of, name, key string
		if _, err := fmt.Sscanf(text, "%s %4s/%s", &of, &name, &key); err != nil || of != string(s.e) {
			continue
		}
		req := &api.ApplyRequest{Common: s.common(s.fresh()), Changes: api.Changes{Execution: s.e, ExpectedVersion: s.version, Fence: s.fence, Absorb: []api.SignalRef{{Name: name, Key: key}}}}
		api.Identify(req)
		_, err := retry(s.actor, "apply "+short(s.e), func(ctx context.Context, w *wiring.Services) (*api.ApplyReply, error) {
			return w.Checkpoint.Apply(ctx, req)
		})
		if err == nil {
			s.w.fail("%s took the signal %s/%s in again", s.e, name, key)
		}
		if c := execution.CodeOf(err); c != execution.InvalidRequest {
			s.refused = c
		}
		return
	}
}
