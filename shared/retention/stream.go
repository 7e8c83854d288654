package retention

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Removal says what took an item out of the table, as its stream record tells.
type Removal string

// The kinds of removal. Records of a global table's replica and records with
// keys only do not say it all.
const (
	NoRemoval  Removal = ""         // an insertion or a change
	ByTTL      Removal = "ttl"      // the store, because its time was over
	ByReplica  Removal = "replica"  // a replicated removal by TTL: no identity, the time was over
	Explicitly Removal = "explicit" // somebody deleted it
	Unclear    Removal = "unclear"  // keys only, no identity: it may have been TTL
)

// record is what retention reads of a stream record.
type record struct {
	EventName    string `json:"eventName"`
	UserIdentity *struct {
		Type        string `json:"type"`
		PrincipalID string `json:"principalId"`
	} `json:"userIdentity"`
	Change struct {
		SequenceNumber string                     `json:"SequenceNumber"`
		Created        json.Number                `json:"ApproximateCreationDateTime"`
		Keys           map[string]text            `json:"Keys"`
		OldImage       map[string]json.RawMessage `json:"OldImage"`
	} `json:"dynamodb"`
}

type text struct {
	S *string `json:"S"`
}

func parseRecord(raw []byte) (*record, error) {
	r := &record{}
	return r, json.Unmarshal(raw, r)
}

// removal tells what happened. TTL removals carry the service's identity; their
// replicated copies carry none, so the time on the item is held against the
// time of the record (aws-lambda-stream PR 426).
func (r *record) removal() Removal {
	if r.EventName != "REMOVE" {
		return NoRemoval
	}
	if u := r.UserIdentity; u != nil && u.Type == "Service" && u.PrincipalID == "dynamodb.amazonaws.com" {
		return ByTTL
	}
	if r.UserIdentity != nil {
		return Explicitly
	}
	if r.Change.OldImage == nil {
		return Unclear
	}
	var ttl struct {
		N string `json:"N"`
	}
	if json.Unmarshal(r.Change.OldImage["ttl"], &ttl) != nil {
		return Explicitly
	}
	at, err := strconv.ParseFloat(ttl.N, 64)
	created, err2 := r.Change.Created.Float64()
	if err != nil || err2 != nil || at > created {
		return Explicitly
	}
	return ByReplica
}

// Event answers payloads that are no requests: batches of the main table's
// stream and the schedule's event. handled false: it is neither.
func (s *Service) Event(ctx context.Context, payload []byte) (reply []byte, handled bool, err error) {
	var e struct {
		Records *[]json.RawMessage
		Action  *json.RawMessage `json:"action"`
		Source  string           `json:"source"`
	}
	if json.Unmarshal(payload, &e) != nil || e.Action != nil {
		return nil, false, nil
	}
	switch {
	case e.Records != nil:
		reply, err = json.Marshal(s.Stream(ctx, *e.Records))
		return reply, true, err
	case e.Source == "cairn.schedule" || e.Source == "aws.events" || e.Source == "aws.scheduler":
		out, err := s.Sweep(ctx, &api.SweepRequest{Limit: execution.MaxListLimit})
		if err != nil {
			return nil, true, err
		}
		reply, err = api.EncodeReply(out)
		return reply, true, err
	}
	return nil, false, nil
}

// BatchReply names the records that are to be delivered again.
type BatchReply struct {
	Failures []BatchFailure `json:"batchItemFailures"`
}

// BatchFailure is one record by its exact sequence number.
type BatchFailure struct {
	Item string `json:"itemIdentifier"`
}

// Stream handles a batch of the main table's stream records and answers the
// sequence numbers of those that failed; the mapping delivers from the lowest on
// again. A timer's record only rings: what is due is read from the head, so a
// record that is late, repeated, of an earlier generation or of a held execution
// does nothing. It reports every record that it cannot read.
//
// A record without a sequence number cannot be named and is passed over: the
// sweep finds what it rang for.
func (s *Service) Stream(ctx context.Context, records []json.RawMessage) BatchReply {
	out := BatchReply{Failures: []BatchFailure{}}
	blocked := map[string]bool{} // partitions with a failed record: their order is kept
	for _, raw := range records {
		r, err := parseRecord(raw)
		if r.Change.SequenceNumber == "" {
			s.count(telemetry.RetentionFailures, 1)
			continue
		}
		pk, sk, ok := r.key()
		if err != nil || !ok || blocked[pk] {
			out.Failures = append(out.Failures, BatchFailure{r.Change.SequenceNumber})
			continue
		}
		if err := s.ring(ctx, r, pk, sk); err != nil {
			blocked[pk] = true
			out.Failures = append(out.Failures, BatchFailure{r.Change.SequenceNumber})
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

// ring looks at the execution of a timer that went. An explicit removal is our
// own deletion's or an operator's: it means nothing.
func (s *Service) ring(ctx context.Context, r *record, pk, sk string) error {
	t, e, ok := execution.ParsePartitionKey(pk)
	if !ok || sk != journal.TimerPrefix+"retention" {
		return nil
	}
	switch r.removal() {
	case ByTTL, ByReplica, Unclear:
		_, err := s.sweepHead(ctx, t, e)
		return err
	}
	return nil
}
