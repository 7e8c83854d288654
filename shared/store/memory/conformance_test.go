package memory_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/storetest"
)

func TestTable(t *testing.T) {
	storetest.Table(t, func(t *testing.T) storetest.TableHarness {
		return tableHarness(t, memory.New(memory.Options{}), memory.Main)
	})
}

// The key table has no indexes, everything else alike.
func TestKeyTable(t *testing.T) {
	storetest.Table(t, func(t *testing.T) storetest.TableHarness {
		h := tableHarness(t, memory.New(memory.Options{}), memory.Keys)
		h.Lacks = map[storetest.Feature]string{storetest.Indexes: "the key table has none"}
		return h
	})
}

// Metered wrappers change nothing but the meter.
func TestMeteredTable(t *testing.T) {
	storetest.Table(t, func(t *testing.T) storetest.TableHarness {
		h := tableHarness(t, memory.New(memory.Options{}), memory.Main)
		h.Table = store.Metered(h.Table)
		return h
	})
}

func tableHarness(t *testing.T, e *memory.Engine, name string) storetest.TableHarness {
	var n atomic.Int64
	return storetest.TableHarness{
		Table:     e.Table(name),
		Partition: func() string { return fmt.Sprintf("tenant#partition%d|", n.Add(1)) },
		Later: func(d time.Duration) {
			if err := e.Advance(d); err != nil {
				t.Error(err)
			}
		},
		Unprocessed: func(pk string) { setFaults(t, e, memory.Fault{On: "batch", Match: pk, Effect: "unprocessed"}) },
		Cancel: func(pk string, attempts int, codes ...string) {
			if attempts == 0 {
				setFaults(t, e)
				return
			}
			setFaults(t, e, memory.Fault{On: "transact", Match: pk, Count: attempts, Effect: "cancelled", Reasons: reasons(codes...)})
		},
	}
}

func setFaults(t *testing.T, e *memory.Engine, faults ...memory.Fault) {
	t.Helper()
	if err := e.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
}

// reasons are DynamoDB's codes, "" for none.
func reasons(codes ...string) []*string {
	var out []*string
	for _, c := range codes {
		if c == "" {
			out = append(out, nil)
		} else {
			out = append(out, &c)
		}
	}
	return out
}

func TestBucket(t *testing.T) {
	storetest.Bucket(t, func(t *testing.T) storetest.BucketHarness { return bucketHarness(t, memory.New(memory.Options{})) })
}

func TestMeteredBucket(t *testing.T) {
	storetest.Bucket(t, func(t *testing.T) storetest.BucketHarness {
		h := bucketHarness(t, memory.New(memory.Options{}))
		h.Bucket = store.MeteredBucket(h.Bucket)
		return h
	})
}

func bucketHarness(t *testing.T, e *memory.Engine) storetest.BucketHarness {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(e.ServePresigned))
	t.Cleanup(server.Close)
	e.SetBaseURL(server.URL + "/objects/")
	return storetest.BucketHarness{
		Bucket:      e.Bucket(),
		Prefix:      func() string { return fmt.Sprintf("tenant/e/%d/", n.Add(1)) },
		Client:      server.Client(),
		StartUpload: func(_ *testing.T, key string) store.Upload { return e.Bucket().StartUpload(key) },
		Hide:        func(_ *testing.T, key string) { e.Bucket().Hide(key) },
		Later: func(d time.Duration) {
			if err := e.Advance(d); err != nil {
				t.Error(err)
			}
		},
	}
}
