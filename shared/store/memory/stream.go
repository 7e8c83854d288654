package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Record is one change of the main table, as its stream tells it (new and old
// images).
type Record struct {
	Sequence uint64 // grows by one with every record
	At       time.Time
	Key      store.Key
	Old, New store.Item // nil: not there before, respectively after
	ByTTL    bool       // the store's own removal of an expired item
}

// Name is INSERT, MODIFY or REMOVE.
func (r Record) Name() string {
	switch {
	case r.Old == nil:
		return "INSERT"
	case r.New == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

// change is a record on its way.
type change struct {
	sequence uint64
	at       time.Time
	was, is  *row
	byTTL    bool
}

func (e *Engine) record(was, is *row, now time.Time, byTTL bool) {
	e.lastSeq++
	e.stream = append(e.stream, change{e.lastSeq, now, was, is, byTTL})
}

// TakeRecords takes up to n pending records (0: all) off the stream, oldest
// first.
func (e *Engine) TakeRecords(n int) []Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n <= 0 || n > len(e.stream) {
		n = len(e.stream)
	}
	out := make([]Record, n)
	for i, c := range e.stream[:n] {
		out[i] = Record{Sequence: c.sequence, At: c.at, Key: cmp.Or(c.is, c.was).key, Old: c.was.item(), New: c.is.item(), ByTTL: c.byTTL}
	}
	clear(e.stream[:n])
	e.stream = e.stream[n:]
	return out
}

// PendingRecords is the number of records that nobody took yet.
func (e *Engine) PendingRecords() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.stream)
}

// StreamEvent is the event, in DynamoDB's JSON, with which a stream mapping
// invokes a function for the records.
func StreamEvent(records []Record) []byte {
	b := []byte(`{"Records":[`)
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.append(b)
	}
	return append(b, "]}"...)
}

// Event is the record as it stands in a stream event.
func (r Record) Event() json.RawMessage { return r.append(nil) }

// append writes the record by hand: a test kit writes millions of them.
func (r Record) append(b []byte) []byte {
	keys := store.Item{store.AttrPK: store.S(r.Key.PK), store.AttrSK: store.S(r.Key.SK)}
	b = slices.Grow(b, 1024)
	b = append(b, `{"eventName":"`...)
	b = append(b, r.Name()...)
	b = fmt.Appendf(b, `","eventID":"%032x"`, r.Sequence)
	b = append(b, `,"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"local","eventSourceARN":"arn:aws:dynamodb:local:000000000000:table/`+Main+`/stream/1","dynamodb":{`...)
	b = fmt.Appendf(b, `"ApproximateCreationDateTime":%d,"SequenceNumber":"%021d","SizeBytes":%d`, r.At.Unix(), r.Sequence, keys.Size()+r.Old.Size()+r.New.Size())
	b = append(b, `,"StreamViewType":"NEW_AND_OLD_IMAGES","Keys":`...)
	b = appendItem(b, keys)
	if r.Old != nil {
		b = appendItem(append(b, `,"OldImage":`...), r.Old)
	}
	if r.New != nil {
		b = appendItem(append(b, `,"NewImage":`...), r.New)
	}
	b = append(b, '}')
	if r.ByTTL {
		b = append(b, `,"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`...)
	}
	return append(b, '}')
}
