package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Attributes of a receipt's item besides those that the journal reads
// (generation, state, last, expires_at, create_request). They are plain: a receipt
// outlives the tenant's keys.
const (
	receiptDeleting = "deleting"

	receiptReason  = "reason"
	receiptRule    = "rule"
	receiptActor   = "actor"
	receiptRequest = "request_id"
	receiptHash    = "request_hash"
	receiptClosed  = "closed_at"
	receiptGoneAt  = "deleted_at"
	receiptBackups = "recoverable_until"
	receiptDays    = "days"
	receiptSwept   = "swept_at"
	receiptCounts  = "counts"  // map of numbers
	receiptDigests = "digests" // map of texts
)

// receiptOf shows a receipt's item.
func receiptOf(it store.Item) *api.Receipt {
	_, e, _ := execution.ParsePartitionKey(it.Key().PK)
	r := &api.Receipt{Execution: e, Generation: it.Int(journal.HeadGeneration), State: it.Str(journal.ReceiptState), Last: it.Int(journal.ReceiptLast), Reason: it.Str(receiptReason),
		Rule: it.Str(receiptRule), Actor: decodeActor(it.Str(receiptActor)), RequestID: it.Str(receiptRequest), ClosedAt: api.TimeOrNil(it.Int(receiptClosed)),
		DeletedAt: api.TimeOrNil(it.Int(receiptGoneAt)), RecoverableUntil: api.TimeOrNil(it.Int(receiptBackups)), ExpiresAt: api.TimeOrNil(it.Int(journal.HeadExpires))}
	for name, v := range it[receiptCounts].M {
		if n, ok := v.Int(); ok {
			if r.Counts == nil {
				r.Counts = map[string]int64{}
			}
			r.Counts[name] = n
		}
	}
	for name, v := range it[receiptDigests].M {
		if r.Digests == nil {
			r.Digests = map[string]string{}
		}
		r.Digests[name] = v.S
	}
	return r
}

// receiptObject is the key under which a finished receipt lies in the bucket,
// where it outlives its item.
func receiptObject(ref execution.Ref) string {
	return receiptsOf(ref.Tenant, ref.Execution) + strconv.FormatInt(ref.Generation, 10) + ".json"
}

func receiptsOf(t execution.TenantID, e execution.ExecutionID) string {
	return journal.ReceiptsPrefix(t) + string(e) + "/"
}

// keepReceipt writes a finished receipt as an object. The bytes follow from the
// item, so whoever comes second finds the same object.
//
// Lost or crashed before: the final sweep writes it.
func (s *Service) keepReceipt(ctx context.Context, ref execution.Ref, it store.Item) error {
	body, err := json.Marshal(receiptOf(it))
	if err != nil {
		return execution.Errorf(execution.Internal, "a receipt cannot be encoded").Because(err)
	}
	for try := 0; ; try++ {
		_, err = s.Bucket.Put(ctx, store.PutObject{Key: receiptObject(ref), Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body), MediaType: "application/json"})
		if err == nil || store.KindOf(err) == store.Exists {
			return nil
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return journal.Fail(err, ref)
		}
	}
}

// readReceipt reads a receipt's object.
func (s *Service) readReceipt(ctx context.Context, key string) (*api.Receipt, error) {
	body, info, _, err := s.Bucket.Get(ctx, store.GetObject{Key: key})
	if err != nil {
		return nil, journal.Fail(err, execution.Ref{})
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, min(info.Bytes, 1<<20)))
	if err != nil {
		return nil, execution.Errorf(execution.Unavailable, "an object could not be read to its end").Because(err)
	}
	var r api.Receipt
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, execution.Errorf(execution.Integrity, "a receipt cannot be read").With("key", key)
	}
	return &r, nil
}

// GetReceipt shows the receipts of an id, the newest first: those that live in
// the table, and those kept in the bucket. NotFound when there are none.
func (s *Service) GetReceipt(ctx context.Context, r *api.GetReceiptRequest) (*api.GetReceiptReply, error) {
	ref := execution.Ref{Tenant: r.Tenant, Execution: r.Execution}
	var all []api.Receipt
	q := store.Query{PK: ref.PK(), Prefix: journal.ReceiptPrefix, Descending: true, Consistent: true}
	page, _, err := s.Table.Query(ctx, q)
	if err != nil {
		return nil, journal.Fail(err, ref)
	}
	for _, it := range page.Items {
		all = append(all, *receiptOf(it))
	}
	objects, _, err := s.Bucket.List(ctx, store.ListObjects{Prefix: receiptsOf(r.Tenant, r.Execution)})
	if err != nil {
		return nil, journal.Fail(err, ref)
	}
	for _, o := range objects.Objects {
		g, _ := strconv.ParseInt(strings.TrimSuffix(o.Key[strings.LastIndexByte(o.Key, '/')+1:], ".json"), 10, 64)
		if slices.ContainsFunc(all, func(x api.Receipt) bool { return x.Generation == g }) {
			continue
		}
		kept, err := s.readReceipt(ctx, o.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, *kept)
	}
	if len(all) == 0 {
		return nil, journal.NotFound(r.Execution)
	}
	slices.SortFunc(all, func(a, b api.Receipt) int { return int(b.Generation - a.Generation) })
	out := &api.GetReceiptReply{Receipt: &all[0]}
	out.Execution = r.Execution
	if len(all) > 1 {
		out.Receipts = all[1:]
	}
	return out, nil
}

// Receipts lists the tenant's finished deletions since a time, in the order of
// their ids. It costs one request per receipt shown and one per 1,000 kept.
func (s *Service) Receipts(ctx context.Context, r *api.ReceiptsRequest) (*api.ReceiptsReply, error) {
	after := ""
	kind := api.Listing("receipts", r.Tenant)
	if r.Cursor != "" {
		p, err := api.ParseCursor("cursor", kind, r.Cursor, 1)
		if err != nil {
			return nil, err
		}
		after = p[0]
	}
	out := &api.ReceiptsReply{Receipts: []api.Receipt{}}
	limit := api.ListLimit(r.Limit)
	in := store.ListObjects{Prefix: journal.ReceiptsPrefix(r.Tenant)}
	last := ""
	for {
		page, _, err := s.Bucket.List(ctx, in)
		if err != nil {
			return nil, journal.Fail(err, execution.Ref{Tenant: r.Tenant})
		}
		for _, o := range page.Objects {
			if o.Key <= after || r.Since != nil && o.LastModified.UnixMilli() < r.Since.Millis() {
				continue
			}
			if len(out.Receipts) == limit {
				out.Cursor = api.Cursor(kind, last)
				return out, nil
			}
			rec, err := s.readReceipt(ctx, o.Key)
			if err != nil {
				return nil, err
			}
			out.Receipts, last = append(out.Receipts, *rec), o.Key
		}
		if page.Cursor == "" {
			return out, nil
		}
		in.Cursor = page.Cursor
	}
}
