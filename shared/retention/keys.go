package retention

import (
	"context"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// RotateKey makes a new generation of the tenant's key for what is written from
// now on; older ones go on opening what they sealed.
func (s *Service) RotateKey(ctx context.Context, r *api.RotateKeyRequest) (*api.RotateKeyReply, error) {
	if _, err := s.Sealer.Rotate(ctx, string(r.Tenant)); err != nil {
		return nil, err
	}
	return s.Keys(ctx, &api.KeysRequest{Common: r.Common})
}

// Keys lists the generations of the tenant's key, oldest first, each with the
// number of items in the executions' partitions that are sealed under it. It
// reads the whole registry and every journal: an operator's question, not a
// worker's. It makes no call to the KMS.
func (s *Service) Keys(ctx context.Context, r *api.KeysRequest) (*api.KeysReply, error) {
	infos, err := s.Sealer.Generations(ctx, string(r.Tenant))
	if err != nil {
		return nil, err
	}
	out := &api.KeysReply{Keys: []api.KeyView{}}
	if len(infos) == 0 {
		return out, nil
	}
	uses := map[int64]int64{}
	reg := &registry{s: s, tenant: r.Tenant}
	for !reg.done {
		rows, err := reg.next(ctx, 100)
		if err != nil {
			return nil, err
		}
		for _, ref := range rows {
			if err := s.uses(ctx, ref, uses); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range infos {
		created := api.Time(k.Created.UnixMilli())
		out.Keys = append(out.Keys, api.KeyView{Generation: k.Generation, Current: k.Current, Created: &created, Items: uses[k.Generation]})
	}
	return out, nil
}

// uses counts the sealed items of one execution by the generation of their key.
// Bodies in the bucket are under the generation of the same time and are not
// read.
func (s *Service) uses(ctx context.Context, ref execution.Ref, uses map[int64]int64) error {
	q := store.Query{PK: ref.PK()}
	for {
		page, _, err := s.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, ref)
		}
		for _, it := range page.Items {
			if g, ok := seal.GenerationOf(it.Bytes(journal.SlotBody)); ok {
				uses[g]++
			}
		}
		if page.Next == nil {
			return nil
		}
		q.Start = page.Next
	}
}
