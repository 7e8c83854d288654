package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/dynamo"
	"github.com/cairnstate/cairn/shared/store/enginetest"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

// TestConformance runs the port's suite on the local engine; what the engine
// cannot do by itself (conflicts, unprocessed batches) is put into the answers
// on the way.
func TestConformance(t *testing.T) {
	e := enginetest.Open(t)
	storetest.Table(t, func(t *testing.T) storetest.TableHarness {
		inject := &injector{}
		cfg := e.AWS
		cfg.HTTPClient = inject
		return storetest.TableHarness{
			Table:       dynamo.New(dynamo.NewClient(cfg), e.Config.Table, awscall.NewClock(nil), nil),
			Partition:   func() string { return enginetest.Tenant(t) + "#x" },
			Unprocessed: inject.unprocessed,
			Cancel:      inject.cancel,
			Lacks:       map[storetest.Feature]string{storetest.Units: "MiniStack counts every read as one unit, whatever its size"},
		}
	})
}

// injector answers chosen requests itself, in DynamoDB's form.
type injector struct {
	mu      sync.Mutex
	batch   map[string]bool
	cancels map[string]*refusal
}

type refusal struct {
	left  int
	codes []string
}

func (i *injector) unprocessed(partition string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.batch == nil {
		i.batch = map[string]bool{}
	}
	i.batch[partition] = true
}

func (i *injector) cancel(partition string, attempts int, codes ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancels == nil {
		i.cancels = map[string]*refusal{}
	}
	i.cancels[partition] = &refusal{attempts, codes}
}

func (i *injector) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if status, answer := i.answer(op, body); answer != nil {
		text, err := json.Marshal(answer)
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
			Body:   io.NopCloser(bytes.NewReader(text)),
		}, err
	}
	return http.DefaultClient.Do(req)
}

func (i *injector) answer(op string, body []byte) (int, any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var in struct{ RequestItems json.RawMessage }
	switch op {
	case "BatchWriteItem", "BatchGetItem":
		for partition := range i.batch {
			if bytes.Contains(body, []byte(`"`+partition+`"`)) && json.Unmarshal(body, &in) == nil {
				delete(i.batch, partition)
				if op == "BatchGetItem" {
					return 200, map[string]any{"Responses": map[string]any{}, "UnprocessedKeys": in.RequestItems}
				}
				return 200, map[string]any{"UnprocessedItems": in.RequestItems}
			}
		}
	case "TransactWriteItems":
		for partition, r := range i.cancels {
			if r.left > 0 && bytes.Contains(body, []byte(`"`+partition+`"`)) {
				r.left--
				reasons := []any{}
				for _, code := range r.codes {
					if code == "" {
						code = "None"
					}
					reasons = append(reasons, map[string]any{"Code": code})
				}
				return 400, map[string]any{
					"__type":  "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
					"Message": "Transaction cancelled", "CancellationReasons": reasons,
				}
			}
		}
	}
	return 0, nil
}
