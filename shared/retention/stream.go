package retention

import (
	"context"
	"encoding/json"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// record is what retention reads of a stream record.
type record struct {
	EventName string `json:"eventName"`
	Change    struct {
		SequenceNumber string          `json:"SequenceNumber"`
		Keys           map[string]text `json:"Keys"`
	} `json:"dynamodb"`
}

type text struct {
	S *string `json:"S"`
}

func parseRecord(raw []byte) (*record, error) {
	r := &record{}
	return r, json.Unmarshal(raw, r)
}

// Stream handles a batch of the main table's stream records and answers the
// sequence numbers of those that failed; the mapping delivers from the lowest on
// again. A timer's record only rings: what is due is read from the head, so a
// record that is late, repeated, of an earlier generation or of a held execution
// does nothing. It reports every record that it cannot read.
//
// A record without a sequence number cannot be named and is passed over: the
// sweep finds what it rang for.
func (s *Service) Stream(ctx context.Context, records []json.RawMessage) api.BatchReply {
	out := api.BatchReply{Failures: []api.BatchFailure{}}
	blocked := map[string]bool{} // partitions with a failed record: their order is kept
	for _, raw := range records {
		r, err := parseRecord(raw)
		if r.Change.SequenceNumber == "" {
			s.count(telemetry.RetentionFailures, 1)
			continue
		}
		pk, sk, ok := r.key()
		if err != nil || !ok || blocked[pk] {
			out.Failures = append(out.Failures, api.BatchFailure{Item: r.Change.SequenceNumber})
			continue
		}
		if err := s.ring(ctx, r, pk, sk); err != nil {
			blocked[pk] = true
			out.Failures = append(out.Failures, api.BatchFailure{Item: r.Change.SequenceNumber})
			e := execution.AsError(err)
			if s.Log != nil {
				s.Log.WarnContext(ctx, "a stream record failed", "item", sk, "code", string(e.Code), "message", e.Message)
			}
		}
	}
	return out
}

func (r *record) key() (pk, sk string, ok bool) {
	p, s := r.Change.Keys["pk"].S, r.Change.Keys["sk"].S
	if p == nil || s == nil {
		return "", "", false
	}
	return *p, *s, true
}

// ring looks at the execution of a timer that went, by whatever hand: what is due
// is read from the head.
func (s *Service) ring(ctx context.Context, r *record, pk, sk string) error {
	t, e, ok := execution.ParsePartitionKey(pk)
	if !ok || sk != journal.TimerPrefix+"retention" {
		return nil
	}
	if r.EventName != "REMOVE" {
		return nil
	}
	_, err := s.sweepHead(ctx, t, e)
	return err
}
