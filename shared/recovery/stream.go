package recovery

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
)

// Stream handles a batch of stream records in order. It stops at the first one
// that fails and names it, so that nothing after it is done twice; Lambda
// delivers the batch from there again, and gives up on a record that keeps
// failing (dead-letter queue). Records of executions that merely cannot be
// recovered now do not fail: their alarm is set.
//
// An execution is looked at once per batch: the first look sees what all of the
// batch's records tell of.
func (s *Service) Stream(ctx context.Context, records []json.RawMessage) api.BatchReply {
	out := api.BatchReply{Failures: []api.BatchFailure{}}
	looked := map[string]bool{}
	for _, raw := range records {
		r, ok := parseRecord(raw)
		if !ok {
			s.count(telemetry.RecoveryFailure, 1)
			if r.sequence == "" {
				continue // nothing to name it by, and the sweep finds what it rang for
			}
			out.Failures = append(out.Failures, api.BatchFailure{Item: r.sequence})
			return out
		}
		t, e, rings := r.rings()
		if !rings || looked[execution.PartitionKey(t, e)] {
			continue
		}
		looked[execution.PartitionKey(t, e)] = true
		if _, err := s.look(ctx, t, e); err != nil && s.stillDue(ctx, t, e) {
			out.Failures = append(out.Failures, api.BatchFailure{Item: r.sequence})
			return out
		}
	}
	return out
}

// stillDue reports whether an execution whose look failed has no later alarm: one
// whose target could not be reached has.
func (s *Service) stillDue(ctx context.Context, t execution.TenantID, e execution.ExecutionID) bool {
	head, clock, err := s.Journal.ReadHead(ctx, t, e)
	return err != nil || head != nil && head.DueAt > 0 && head.DueAt <= s.Journal.NowOf(clock)+clockGrain
}

// record is what recovery needs of a stream record.
type record struct {
	sequence, name string
	key            store.Key
	at             int64 // ApproximateCreationDateTime in ms; 0: not said
	due            int64 // of the new image; 0: none or not said
	image          bool
}

// parseRecord reads a record of whatever shape; ok false: it is malformed, and
// its sequence number is there if it could be read. The images, most of a
// record, are passed over once.
func parseRecord(raw json.RawMessage) (r record, ok bool) {
	outer, err := jsonx.Parse(raw)
	if err != nil {
		return r, false
	}
	d := outer.Get("dynamodb")
	if r.sequence, ok = d.Get("SequenceNumber").Text(); !ok {
		return r, false
	}
	keys := d.Get("Keys")
	if r.name, ok = outer.Get("eventName").Text(); !ok {
		return r, false
	}
	if r.key.PK, ok = keys.Get(store.AttrPK).Get("S").Text(); !ok {
		return r, false
	}
	if r.key.SK, ok = keys.Get(store.AttrSK).Get("S").Text(); !ok {
		return r, false
	}
	if at := d.Get("ApproximateCreationDateTime"); at.Kind() == jsonx.Number {
		if f, err := strconv.ParseFloat(at.Raw(), 64); err == nil && f > 0 {
			if f < 1e11 { // seconds; some sources say milliseconds
				f *= 1000
			}
			r.at = int64(f)
		}
	}
	if image := d.Get("NewImage"); image.Kind() == jsonx.Object {
		r.image = true
		if n, is := image.Get(journal.HeadDue).Get("N").Text(); is {
			r.due, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	return r, true
}

// rings reports whether a record may tell that an execution is due: one of its
// timers went, or its head changed and is due by then. Whether it is due now is
// decided by a read.
func (r record) rings() (t execution.TenantID, e execution.ExecutionID, yes bool) {
	t, e, ok := execution.ParsePartitionKey(r.key.PK)
	if !ok {
		return t, e, false // none of ours
	}
	switch kind, timer := strings.CutPrefix(r.key.SK, journal.TimerPrefix); {
	case timer:
		return t, e, r.name == "REMOVE" && (kind == "lease" || kind == "wake" || kind == "reconcile")
	case r.key.SK == journal.SKHead && r.name != "REMOVE":
		if r.image && (r.due == 0 || r.at > 0 && r.due > r.at+headSlack) {
			return t, e, false
		}
		return t, e, true
	}
	return t, e, false
}

// headSlack is how much later than its record a head may be due and still be
// looked at for it: stream times are whole seconds.
const headSlack = 2000
