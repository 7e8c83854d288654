package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/dynamo"
)

// wire is a service that answers each request by the next of its steps, the
// last one for ever.
type wire struct {
	t     *testing.T
	date  time.Time // the service's clock; zero: no Date header
	steps []step
	short bool // attempts of 200 ms, for services that hang

	mu   sync.Mutex
	seen []seen
}

type step func(w *wire, rw http.ResponseWriter)

type seen struct {
	op, amzDate, auth string
	body              map[string]any
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	var s seen
	s.amzDate, s.auth = req.Header.Get("X-Amz-Date"), req.Header.Get("Authorization")
	_, s.op, _ = strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if err := json.NewDecoder(req.Body).Decode(&s.body); err != nil {
		return // the caller gave up while it sent
	}
	w.mu.Lock()
	next := w.steps[min(len(w.seen), len(w.steps)-1)]
	w.seen = append(w.seen, s)
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	rw.Header()["Date"] = nil
	if !w.date.IsZero() {
		rw.Header().Set("Date", w.date.UTC().Format(http.TimeFormat))
	}
	next(w, rw)
}

func ok(_ *wire, rw http.ResponseWriter) {
	_, _ = io.WriteString(rw, `{"ConsumedCapacity":{"TableName":"t","CapacityUnits":2.5}}`)
}

// fails answers with a code, and more fields of the error.
func fails(status int, code string, more ...string) step {
	return func(_ *wire, rw http.ResponseWriter) {
		rw.WriteHeader(status)
		_, _ = fmt.Fprintf(rw, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"%s}`, code, strings.Join(more, ""))
	}
}

// breaks closes the connection without an answer: the request was read.
func breaks(w *wire, rw http.ResponseWriter) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		w.t.Error(err)
		return
	}
	_ = conn.Close()
}

// truncates promises more of an answer than it sends.
func truncates(w *wire, rw http.ResponseWriter) {
	rw.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(rw, `{"Consumed`)
	if f, ok := rw.(http.Flusher); ok {
		f.Flush()
	}
	breaks(w, rw)
}

// hangs gives no answer for much longer than anybody waits.
func hangs(w *wire, _ http.ResponseWriter) {
	select {
	case <-w.t.Context().Done():
	case <-time.After(3 * time.Second):
	}
}

func (w *wire) requests() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// start serves w and gives a table on it.
func (w *wire) start(clock *awscall.Clock) *dynamo.Table {
	srv := httptest.NewServer(w)
	w.t.Cleanup(srv.CloseClientConnections) // Close would wait for what hangs
	attempt := 5 * time.Second
	if w.short {
		attempt = 200 * time.Millisecond
	}
	return tableAt(srv.URL, clock, attempt)
}

func tableAt(url string, clock *awscall.Clock, attempt time.Duration) *dynamo.Table {
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return dynamo.New(dynamo.NewClient(cfg, func(o *dynamodb.Options) {
		o.HTTPClient = awscall.HTTPClient(nil, attempt)
	}), "t", clock, nil)
}

func item(sk string) store.Item {
	return store.Item{store.AttrPK: store.S("p"), store.AttrSK: store.S(sk), "n": store.N(1)}
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOutcomes(t *testing.T) {
	internal := fails(500, "InternalServerError")
	throttled := fails(400, "ThrottlingException")
	conflict := fails(400, "TransactionConflictException")
	for name, r := range map[string]struct {
		steps     []step
		kind      store.ErrorKind // "" for success
		ambiguous bool            // of a put; a read never is
		requests  int
	}{
		"success":                          {[]step{ok}, "", false, 1},
		"internal error, then success":     {[]step{internal, ok}, "", false, 2},
		"internal errors":                  {[]step{internal}, store.Unavailable, true, 3},
		"unavailable":                      {[]step{fails(503, "ServiceUnavailable")}, store.Unavailable, true, 3},
		"broken":                           {[]step{breaks}, store.Unavailable, true, 3},
		"broken, then success":             {[]step{breaks, ok}, "", false, 2},
		"answer broke off":                 {[]step{truncates}, store.Unavailable, true, 1},
		"no answer in time":                {[]step{hangs}, store.Unavailable, true, 3},
		"throttled":                        {[]step{throttled}, store.Throttled, false, 3},
		"throttled, then success":          {[]step{throttled, ok}, "", false, 2},
		"internal error, then throttled":   {[]step{internal, throttled}, store.Unavailable, true, 3},
		"broken, then denied":              {[]step{breaks, fails(400, "AccessDeniedException")}, store.Unavailable, true, 2},
		"throttled, then internal error":   {[]step{throttled, internal}, store.Unavailable, true, 3},
		"denied":                           {[]step{fails(400, "AccessDeniedException")}, store.Denied, false, 1},
		"invalid":                          {[]step{fails(400, "ValidationException")}, store.Invalid, false, 1},
		"no table":                         {[]step{fails(400, "ResourceNotFoundException")}, store.Invalid, false, 1},
		"key disabled":                     {[]step{fails(400, "KMSDisabledException")}, store.KeyTrouble, false, 1},
		"a transaction at work, then done": {[]step{conflict, conflict, ok}, "", false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now().UTC().Truncate(time.Second) // else the SDK takes a refusal for a skewed clock
			w := &wire{t: t, date: now, steps: r.steps, short: name == "no answer in time"}
			meta, err := w.start(awscall.NewClock(nil)).Put(t.Context(), store.Put{Item: item("a"), Cond: store.NotThere()})
			if store.KindOf(err) != r.kind || store.Ambiguous(err) != r.ambiguous || (err == nil) != (r.kind == "") {
				t.Errorf("put: %v, want kind %q, ambiguous %v", err, r.kind, r.ambiguous)
			}
			if n := len(w.requests()); n != r.requests {
				t.Errorf("%d requests, want %d", n, r.requests)
			}
			if err == nil && (meta.WriteUnits != 2.5 || !meta.Date.Equal(now)) {
				t.Errorf("meta %+v", meta)
			}
			w = &wire{t: t, date: now, steps: r.steps, short: w.short}
			if _, _, err = w.start(awscall.NewClock(nil)).Get(t.Context(), store.Get{Key: item("a").Key()}); store.Ambiguous(err) {
				t.Errorf("an ambiguous read: %v", err)
			}
		})
	}
}

// A request that never got a connection was never sent.
func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.StartTLS() // with a certificate that nobody trusts
	defer secret.Close()
	for name, url := range map[string]string{"connection refused": refused, "TLS refused": secret.URL} {
		_, err := tableAt(url, awscall.NewClock(nil), time.Second).Put(t.Context(), store.Put{Item: item("a")})
		if store.KindOf(err) != store.Unavailable || store.Ambiguous(err) {
			t.Errorf("%s: %v, want unavailable, not ambiguous", name, err)
		}
	}
	// Nobody to sign for.
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &refused, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none")
	})}
	_, err = dynamo.New(dynamo.NewClient(cfg), "t", awscall.NewClock(nil), nil).Put(t.Context(), store.Put{Item: item("a")})
	if store.KindOf(err) != store.Unavailable || store.Ambiguous(err) {
		t.Errorf("no credentials: %v", err)
	}
}

// No call outlives its context, and an ended context says whether anything
// was sent.
func TestContextEnds(t *testing.T) {
	const late = 2 * time.Second // far beyond any deadline below, far below what a hanging service takes
	w := &wire{t: t, steps: []step{hangs}}
	table := w.start(awscall.NewClock(nil))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := table.Put(ctx, store.Put{Item: item("a")})
	if store.KindOf(err) != store.Stopped || !store.Ambiguous(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline while waiting for the answer: %v", err)
	}
	_, _, err = table.Get(ctx, store.Get{Key: item("a").Key()})
	if store.KindOf(err) != store.Stopped || store.Ambiguous(err) {
		t.Errorf("a read after the deadline: %v", err)
	}
	_, err = table.Put(ctx, store.Put{Item: item("a")})
	if store.KindOf(err) != store.Stopped || store.Ambiguous(err) || len(w.requests()) != 1 {
		t.Errorf("a put after the deadline: %v, %d requests", err, len(w.requests()))
	}
	if d := time.Since(start); d > late {
		t.Errorf("took %v", d)
	}
	// Retries end with the context too, between attempts or in one.
	for _, again := range []step{fails(400, "TransactionConflictException"), fails(500, "InternalServerError"), fails(400, "ThrottlingException")} {
		w = &wire{t: t, steps: []step{again}}
		table = w.start(awscall.NewClock(nil))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = table.Put(ctx, store.Put{Item: item("a")})
		if err == nil || time.Since(start) > late {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	}
}

// A put that landed and whose answer was lost is repeated by the SDK and finds
// itself.
func TestLandedPutFindsItself(t *testing.T) {
	own := `,"Item":{"pk":{"S":"p"},"sk":{"S":"a"},"n":{"N":"1"}}`
	w := &wire{t: t, date: now, steps: []step{breaks, fails(400, "ConditionalCheckFailedException", own)}}
	meta, err := w.start(awscall.NewClock(nil)).Put(t.Context(), store.Put{Item: item("a"), Cond: store.NotThere()})
	var cf *store.ConditionFailed
	if !errors.As(err, &cf) || len(cf.Old) != 3 || !cf.Old["n"].Equal(store.N(1)) || cf.Key != item("a").Key() {
		t.Fatalf("got %v", err)
	}
	if !meta.Date.Equal(now) {
		t.Errorf("a failed condition carries the service's clock: %v", meta.Date)
	}
	if got := w.requests()[0].body["ReturnValuesOnConditionCheckFailure"]; got != "ALL_OLD" {
		t.Errorf("asked for %v", got)
	}
}

// An update that adds is not repeated after an attempt that may have landed;
// one that sets is.
func TestAddIsNotRepeated(t *testing.T) {
	for _, r := range []struct {
		action   store.Action
		requests int
	}{{store.Add{Attr: "n", N: 1}, 1}, {store.Set{Attr: "n", Value: store.N(1)}, 3}} {
		w := &wire{t: t, steps: []step{fails(500, "InternalServerError")}}
		_, _, err := w.start(awscall.NewClock(nil)).Update(t.Context(), store.Update{Key: item("a").Key(), Actions: []store.Action{r.action}})
		if n := len(w.requests()); n != r.requests || !store.Ambiguous(err) {
			t.Errorf("%T: %d requests, %v", r.action, n, err)
		}
	}
}

// Every attempt of a validated write is signed with the time of its
// validation, in store time, whatever this host's clock and the SDK's idea of
// its skew say.
func TestSigningTimeIsPinned(t *testing.T) {
	at := time.Now().Add(-200 * time.Second).UTC().Truncate(time.Second)
	pin := at.Format("20060102T150405Z")
	writes := map[string]func(*dynamo.Table) error{
		"put": func(tb *dynamo.Table) error {
			_, err := tb.Put(t.Context(), store.Put{Item: item("a"), ValidatedAt: at})
			return err
		},
		"update": func(tb *dynamo.Table) error {
			_, _, err := tb.Update(t.Context(), store.Update{Key: item("a").Key(), Actions: []store.Action{store.Remove{Attr: "n"}}, ValidatedAt: at})
			return err
		},
		"delete": func(tb *dynamo.Table) error {
			_, _, err := tb.Delete(t.Context(), store.Delete{Key: item("a").Key(), ValidatedAt: at})
			return err
		},
		"transact": func(tb *dynamo.Table) error {
			_, err := tb.Transact(t.Context(), store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item("a")}}}, ValidatedAt: at})
			return err
		},
	}
	empty := func(_ *wire, rw http.ResponseWriter) { _, _ = io.WriteString(rw, `{}`) }
	for name, write := range writes {
		w := &wire{t: t, date: time.Now().Add(time.Hour), steps: []step{fails(500, "InternalServerError"), empty}}
		if err := write(w.start(awscall.NewClock(nil))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		reqs := w.requests()
		if len(reqs) != 2 {
			t.Fatalf("%s: %d requests", name, len(reqs))
		}
		for _, r := range reqs {
			if r.amzDate != pin || !strings.Contains(r.auth, at.Format("20060102")) {
				t.Errorf("%s: signed at %s, want %s", name, r.amzDate, pin)
			}
		}
	}
	// Without a validation nothing is pinned.
	w := &wire{t: t, steps: []step{fails(500, "InternalServerError"), empty}}
	if _, err := w.start(awscall.NewClock(nil)).Put(t.Context(), store.Put{Item: item("a")}); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.requests() {
		signed, err := time.Parse("20060102T150405Z", r.amzDate)
		if err != nil || time.Since(signed).Abs() > time.Minute {
			t.Errorf("signed at %s", r.amzDate)
		}
	}
}

// A validated write that wakes up late is refused by the service for its
// signature, or here once the service's clock is known.
func TestTooLate(t *testing.T) {
	expired := fails(400, "InvalidSignatureException")
	put := func(tb *dynamo.Table, at time.Time) error {
		_, err := tb.Put(t.Context(), store.Put{Item: item("a"), ValidatedAt: at})
		return err
	}
	w := &wire{t: t, date: now, steps: []step{expired}}
	table := w.start(awscall.NewClock(nil))
	if err := put(table, now.Add(-store.Window-time.Second)); store.KindOf(err) != store.TooLate || store.Ambiguous(err) {
		t.Errorf("refused by the service: %v", err)
	}
	n := len(w.requests())
	if err := put(table, now.Add(-store.Window-time.Second)); store.KindOf(err) != store.TooLate || len(w.requests()) != n {
		t.Errorf("now that the clock is known, refused here: %v", err)
	}
	if err := put(table, now.Add(-time.Minute)); store.KindOf(err) != store.Denied {
		t.Errorf("a young signature is refused for something else: %v", err)
	}
	// An earlier attempt may have landed.
	w = &wire{t: t, date: now, steps: []step{fails(500, "InternalServerError"), expired}}
	if err := put(w.start(awscall.NewClock(nil)), now.Add(-store.Window-time.Second)); !store.Ambiguous(err) {
		t.Errorf("an attempt that may have landed is forgotten: %v", err)
	}
}
