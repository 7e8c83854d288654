package door

import (
	"context"
	"encoding/json"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// event answers payloads that are no requests: batches of the main table's
// stream and the schedule's event. handled false: it is neither, or nobody
// takes it here.
func (d *door) event(ctx context.Context, payload []byte) (reply []byte, handled bool, err error) {
	if d.Stream == nil && d.Sweep == nil {
		return nil, false, nil
	}
	var e struct {
		Records *[]json.RawMessage
		Action  *json.RawMessage `json:"action"`
		Source  string           `json:"source"`
	}
	if json.Unmarshal(payload, &e) != nil || e.Action != nil {
		return nil, false, nil
	}
	switch {
	case e.Records != nil && d.Stream != nil:
		reply, err = json.Marshal(d.Stream(ctx, *e.Records))
		return reply, true, err
	case d.Sweep != nil && (e.Source == "cairn.schedule" || e.Source == "aws.events" || e.Source == "aws.scheduler"):
		out, err := d.Sweep(ctx, &api.SweepRequest{Limit: execution.MaxListLimit})
		if err != nil {
			return nil, true, err
		}
		reply, err = api.EncodeReply(out)
		return reply, true, err
	}
	return nil, false, nil
}
