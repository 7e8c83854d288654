package checkpoint

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/view"
)

// Service answers the verbs. All fields but the functions are required. Safe
// for concurrent use.
type Service struct {
	Table     store.Table
	Journal   *journal.Journal
	Catalog   *catalog.Catalog
	Ledger    *ledger.Ledger
	Artifacts *artifact.Store
	Views     *view.Builder
	// Lifetime says when an execution's time is over and when retention looks at
	// it, in milliseconds; 0: never. nil: everything is kept.
	Lifetime func(ctx context.Context, s *execution.State) (expires, retain int64, err error)
	// ChildEnded brings the end of a child to its parent's operation; nil where
	// there are no children.
	ChildEnded func(ctx context.Context, s *execution.State) error
	// Carry forks an execution with the right to act; nil: refused.
	Carry func(ctx context.Context, r *api.ForkRequest) (*api.ForkReply, error)
	// Guard refuses or redacts values that look like live credentials; nil: none.
	Guard func(ctx context.Context, req any) error
	// Count is told what the four figures are made of; nil: nobody.
	Count func(name string, value float64)
}

func (s *Service) lifetime(ctx context.Context, st *execution.State) (expires, retain int64, err error) {
	if s.Lifetime == nil {
		return 0, 0, nil
	}
	return s.Lifetime(ctx, st)
}

func (s *Service) count(name string, value float64) {
	if s.Count != nil {
		s.Count(name, value)
	}
}

// request gives a request's identity.
func request(c *api.Common) execution.RequestID {
	return execution.RequestID{ID: c.RequestID, Hash: c.Hash, Digest: c.Digest}
}

// tokens computes the stand-ins of labels and subjects.
func (s *Service) tokens(ctx context.Context, t execution.TenantID, labels map[string]string, subjects []string) (lt, st []string, err error) {
	for name, value := range labels {
		tok, err := s.Journal.Sealer.Token(ctx, string(t), "label", name+"\x00"+value)
		if err != nil {
			return nil, nil, err
		}
		lt = append(lt, tok)
	}
	for _, x := range subjects {
		tok, err := s.Journal.Sealer.Token(ctx, string(t), "subject", x)
		if err != nil {
			return nil, nil, err
		}
		st = append(st, tok)
	}
	return lt, st, nil
}
