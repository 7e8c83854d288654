package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/s3"
)

// wire is a service that answers each kind of request by the next of its
// steps, the last one for ever.
type wire struct {
	t     *testing.T
	date  time.Time
	steps map[string][]step // by call, see callOf

	mu   sync.Mutex
	seen []seen
}

type seen struct {
	call   string
	header http.Header
	bytes  int64
}

type step func(http.ResponseWriter)

func callOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "begin"
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "part"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "complete"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "abort"
	case r.Method == http.MethodPost && q.Has("delete"):
		return "delete"
	}
	return strings.ToLower(r.Method)
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	sent, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return // the caller gave up while it sent
	}
	call := callOf(r)
	w.mu.Lock()
	n := len(w.of(call))
	w.seen = append(w.seen, seen{call, r.Header, sent})
	steps := w.steps[call]
	w.mu.Unlock()
	rw.Header()["Date"] = nil
	if !w.date.IsZero() {
		rw.Header().Set("Date", w.date.UTC().Format(http.TimeFormat))
	}
	if len(steps) == 0 {
		w.t.Errorf("unexpected %s %s", r.Method, r.URL)
		return
	}
	steps[min(n, len(steps)-1)](rw)
}

// of gives the requests of a call; w.mu is held.
func (w *wire) of(call string) (out []seen) {
	for _, s := range w.seen {
		if s.call == call {
			out = append(out, s)
		}
	}
	return out
}

func (w *wire) requests(call string) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(call)
}

func answer(body string) step {
	return func(rw http.ResponseWriter) { _, _ = io.WriteString(rw, body) }
}

func fails(status int, code string) step {
	return func(rw http.ResponseWriter) {
		rw.WriteHeader(status)
		_, _ = fmt.Fprintf(rw, `<Error><Code>%s</Code><Message>m</Message></Error>`, code)
	}
}

func breaks(rw http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func (w *wire) start() *s3.Bucket {
	srv := httptest.NewServer(w)
	w.t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	b := s3.New(s3.NewClient(cfg, func(o *awss3.Options) { o.UsePathStyle = true }), "bucket", awscall.NewClock(nil), nil)
	b.PartsAbove(16 << 20)
	return b
}

func object(body []byte, at time.Time) store.PutObject {
	return store.PutObject{Key: "t/e/x", Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body), ValidatedAt: at}
}

func TestPutOutcomes(t *testing.T) {
	internal := fails(500, "InternalError")
	for name, r := range map[string]struct {
		steps     []step
		kind      store.ErrorKind
		ambiguous bool
		requests  int
	}{
		"success":                        {[]step{answer("")}, "", false, 1},
		"there already":                  {[]step{fails(412, "PreconditionFailed")}, store.Exists, false, 1},
		"another at work, then there":    {[]step{fails(409, "ConditionalRequestConflict"), fails(412, "PreconditionFailed")}, store.Exists, false, 2},
		"another at work, then done":     {[]step{fails(409, "ConditionalRequestConflict"), answer("")}, "", false, 2},
		"another at work for ever":       {[]step{fails(409, "ConditionalRequestConflict")}, store.Conflict, false, 5},
		"slow down":                      {[]step{fails(503, "SlowDown")}, store.Throttled, false, 3},
		"internal errors":                {[]step{internal}, store.Unavailable, true, 3},
		"broken":                         {[]step{breaks}, store.Unavailable, true, 3},
		"landed, answer lost: it exists": {[]step{breaks, fails(412, "PreconditionFailed")}, store.Exists, false, 2},
		"broken, then denied":            {[]step{breaks, fails(403, "AccessDenied")}, store.Unavailable, true, 2},
		"denied":                         {[]step{fails(403, "AccessDenied")}, store.Denied, false, 1},
		"key disabled":                   {[]step{fails(400, "KMS.DisabledException")}, store.KeyTrouble, false, 1},
		"signature too old":              {[]step{fails(403, "RequestTimeTooSkewed")}, store.TooLate, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now().UTC().Truncate(time.Second)
			w := &wire{t: t, date: now, steps: map[string][]step{"put": r.steps}}
			at := now.Add(-time.Minute)
			m, err := w.start().Put(t.Context(), object([]byte("body"), at))
			if store.KindOf(err) != r.kind || store.Ambiguous(err) != r.ambiguous || (err == nil) != (r.kind == "") {
				t.Errorf("got %v, want kind %q, ambiguous %v", err, r.kind, r.ambiguous)
			}
			reqs := w.requests("put")
			if len(reqs) != r.requests || m.Requests != r.requests {
				t.Errorf("%d requests, counted %d, want %d", len(reqs), m.Requests, r.requests)
			}
			for _, q := range reqs {
				h := q.header
				if h.Get("If-None-Match") != "*" || h.Get("X-Amz-Checksum-Sha256") == "" || h.Get("X-Amz-Date") != at.Format("20060102T150405Z") {
					t.Errorf("headers %v, want pinned to %v", h, at)
				}
			}
		})
	}
}

func TestPutRefusesWrongBodies(t *testing.T) {
	w := &wire{t: t}
	b := w.start()
	for name, change := range map[string]func(*store.PutObject){
		"short":    func(p *store.PutObject) { p.Bytes++ },
		"long":     func(p *store.PutObject) { p.Bytes-- },
		"no key":   func(p *store.PutObject) { p.Key = "" },
		"negative": func(p *store.PutObject) { p.Bytes = -1 },
		"no body":  func(p *store.PutObject) { p.Body = nil },
		"no seek":  func(p *store.PutObject) { p.Body = &brittle{Reader: bytes.NewReader([]byte("body")), stuck: true} },
	} {
		in := object([]byte("body"), time.Time{})
		change(&in)
		if _, err := b.Put(t.Context(), in); store.KindOf(err) != store.Invalid || store.Ambiguous(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := object(nil, time.Time{})
	in.Bytes = 5<<30 + 1
	if _, err := b.Put(t.Context(), in); store.KindOf(err) != store.TooLarge {
		t.Errorf("too large: %v", err)
	}
	if len(w.seen) > 0 {
		t.Errorf("sent %v", w.seen)
	}
}

// brittle is a file that cannot be read beyond a place, or not be moved in.
type brittle struct {
	*bytes.Reader
	upTo  int64
	stuck bool
}

func (b *brittle) Read(p []byte) (int, error) {
	at := b.Size() - int64(b.Len())
	if at >= b.upTo && at < b.Size() {
		return 0, errors.New("broken")
	}
	return b.Reader.Read(p[:min(int64(len(p)), b.upTo-at)])
}

func (b *brittle) Seek(offset int64, whence int) (int64, error) {
	if b.stuck {
		return 0, errors.New("broken")
	}
	return b.Reader.Seek(offset, whence)
}

// A body that cannot be read to its end was not sent, whatever the service has
// seen of it; one that could be sent once may have landed.
func TestPutOfABrittleBody(t *testing.T) {
	data := make([]byte, 3<<20)
	for name, r := range map[string]struct {
		upTo      int64
		steps     []step
		kind      store.ErrorKind
		ambiguous bool
	}{
		"breaks":             {1 << 20, []step{breaks}, store.Invalid, false},
		"breaks, throttled":  {1 << 20, []step{fails(503, "SlowDown")}, store.Invalid, false},
		"breaks at the end":  {int64(len(data)) - 1, []step{breaks}, store.Invalid, false},
		"whole, answer lost": {int64(len(data)), []step{breaks}, store.Unavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := object(data, time.Time{})
			in.Body = &brittle{Reader: bytes.NewReader(data), upTo: r.upTo}
			_, err := (&wire{t: t, steps: map[string][]step{"put": r.steps}}).start().Put(t.Context(), in)
			if store.KindOf(err) != r.kind || store.Ambiguous(err) != r.ambiguous {
				t.Errorf("got %v, want %s, ambiguous %v", err, r.kind, r.ambiguous)
			}
		})
	}
}

// The digest is what is signed, and the service is told to check it: other
// bytes are refused there.
func TestDigestIsSigned(t *testing.T) {
	w := &wire{t: t, steps: map[string][]step{"put": {fails(400, "BadDigest")}}}
	in := object([]byte("body"), time.Time{})
	in.Body = strings.NewReader("b0dy")
	if _, err := w.start().Put(t.Context(), in); store.KindOf(err) != store.Invalid || store.Ambiguous(err) {
		t.Errorf("got %v", err)
	}
	h := w.requests("put")[0].header
	if h.Get("X-Amz-Content-Sha256") != hex.EncodeToString(in.SHA256[:]) || h.Get("X-Amz-Checksum-Sha256") != base64.StdEncoding.EncodeToString(in.SHA256[:]) {
		t.Errorf("headers %v", h)
	}
}

// Repeats begin where the body stood.
func TestPutFromWhereItStands(t *testing.T) {
	w := &wire{t: t, steps: map[string][]step{"put": {fails(503, "SlowDown"), fails(409, "ConditionalRequestConflict"), answer("")}}}
	in := object([]byte("body"), time.Time{})
	body := strings.NewReader("some body")
	_, _ = body.Seek(5, io.SeekStart)
	in.Body = body
	if _, err := w.start().Put(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.requests("put") {
		if r.bytes != 4 {
			t.Errorf("%d bytes sent", r.bytes)
		}
	}
}

const (
	begun    = `<InitiateMultipartUploadResult><UploadId>up</UploadId></InitiateMultipartUploadResult>`
	finished = `<CompleteMultipartUploadResult><ETag>"e-2"</ETag></CompleteMultipartUploadResult>`
)

func TestPutParts(t *testing.T) {
	part := func(rw http.ResponseWriter) { rw.Header().Set("ETag", `"p"`) }
	for name, r := range map[string]struct {
		complete  []step
		part      []step
		spoil     func(*store.PutObject)
		kind      store.ErrorKind
		ambiguous bool
		aborted   bool
		completes int
	}{
		"success":                    {complete: []step{answer(finished)}, completes: 1},
		"there already":              {complete: []step{fails(412, "PreconditionFailed")}, kind: store.Exists, aborted: true, completes: 1},
		"another at work, then done": {complete: []step{fails(409, "ConditionalRequestConflict"), answer(finished)}, completes: 2},
		"an error inside a 200": {complete: []step{answer(`<Error><Code>InternalError</Code><Message>m</Message></Error>`)},
			kind: store.Unavailable, ambiguous: true, completes: 3},
		"answer lost, upload gone": {complete: []step{breaks, fails(404, "NoSuchUpload")}, kind: store.Unavailable, ambiguous: true, completes: 2},
		"a part breaks":            {part: []step{fails(500, "InternalError")}, kind: store.Unavailable, aborted: true},
		"a part breaks once":       {part: []step{breaks, part}, complete: []step{answer(finished)}, completes: 1},
		"wrong digest":             {spoil: func(p *store.PutObject) { p.SHA256[0]++ }, kind: store.Invalid, aborted: true},
		"a body that breaks": {spoil: func(p *store.PutObject) {
			p.Body = &brittle{Reader: p.Body.(*bytes.Reader), upTo: 9 << 20}
		}, kind: store.Invalid, aborted: true},
	} {
		t.Run(name, func(t *testing.T) {
			if r.part == nil {
				r.part = []step{part}
			}
			now := time.Now().UTC().Truncate(time.Second)
			w := &wire{t: t, date: now, steps: map[string][]step{
				"begin": {answer(begun)}, "part": r.part, "complete": r.complete,
				"abort": {func(rw http.ResponseWriter) { rw.WriteHeader(204) }},
			}}
			at := now.Add(-time.Minute)
			in := object(make([]byte, 17<<20), at)
			if r.spoil != nil {
				r.spoil(&in)
			}
			_, err := w.start().Put(t.Context(), in)
			if store.KindOf(err) != r.kind || store.Ambiguous(err) != r.ambiguous || (err == nil) != (r.kind == "") {
				t.Errorf("got %v, want kind %q, ambiguous %v", err, r.kind, r.ambiguous)
			}
			if n := len(w.requests("abort")); (n > 0) != r.aborted {
				t.Errorf("%d aborts", n)
			}
			completes := w.requests("complete")
			if len(completes) != r.completes {
				t.Errorf("%d completions, want %d", len(completes), r.completes)
			}
			for _, c := range completes {
				if c.header.Get("If-None-Match") != "*" || c.header.Get("X-Amz-Date") != at.Format("20060102T150405Z") {
					t.Errorf("completed with %v", c.header)
				}
			}
		})
	}
}

// The upload is ended even though the caller has given up.
func TestAbandonOutlivesContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &wire{t: t, steps: map[string][]step{
		"begin": {answer(begun)}, "part": {func(http.ResponseWriter) { cancel(); time.Sleep(50 * time.Millisecond) }},
		"abort": {func(rw http.ResponseWriter) { rw.WriteHeader(204) }},
	}}
	_, err := w.start().Put(ctx, object(make([]byte, 17<<20), time.Time{}))
	if store.KindOf(err) != store.Stopped || store.Ambiguous(err) || len(w.requests("abort")) != 1 {
		t.Errorf("%v, %d aborts", err, len(w.requests("abort")))
	}
}

// Errors of single keys come inside a successful answer.
func TestDeleteShowsWhatFailed(t *testing.T) {
	w := &wire{t: t, steps: map[string][]step{"delete": {answer(`<DeleteResult>` +
		`<Error><Key>a</Key><VersionId>1</VersionId><Code>AccessDenied</Code></Error>` +
		`<Error><Key>b</Key><VersionId>2</VersionId><Code>NoSuchVersion</Code></Error>` +
		`<Error><Key>c</Key><VersionId>3</VersionId><Code>InternalError</Code></Error></DeleteResult>`)}}}
	failed, _, err := w.start().Delete(t.Context(), []store.ObjectVersion{{Key: "a", VersionID: "1"}, {Key: "b", VersionID: "2"}, {Key: "c", VersionID: "3"}, {Key: "d", VersionID: "4"}})
	if err != nil || !slices.Equal(failed, []store.ObjectVersion{{Key: "a", VersionID: "1"}, {Key: "c", VersionID: "3"}}) {
		t.Errorf("%v, %v", failed, err)
	}
}

// A body that breaks off is an error of the store, not the end of the object.
func TestGetBreaksOff(t *testing.T) {
	w := &wire{t: t, steps: map[string][]step{"get": {func(rw http.ResponseWriter) {
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, "half")
		_ = http.NewResponseController(rw).Flush()
		breaks(rw)
	}}}}
	r, _, _, err := w.start().Get(t.Context(), store.GetObject{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got, err := io.ReadAll(r); store.KindOf(err) != store.Unavailable || store.Ambiguous(err) {
		t.Errorf("%q, %v", got, err)
	}
}

// Whatever makes the object is signed, and none of it can be left out.
func TestPresignPutSignsEverything(t *testing.T) {
	b := (&wire{t: t}).start()
	p, err := b.PresignPut(t.Context(), store.PresignPut{Key: "t/a b", Bytes: 5, SHA256: sha256.Sum256([]byte("hello")), MediaType: "text/plain", KMSKey: "key", Metadata: map[string]string{"about": "it"}, Expires: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.Split(u.Query().Get("X-Amz-SignedHeaders"), ";")
	for name, value := range map[string]string{
		"Content-Length": "5", "Content-Type": "text/plain", "If-None-Match": "*",
		"X-Amz-Checksum-Sha256":                       "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
		"X-Amz-Server-Side-Encryption":                "aws:kms",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key",
		"X-Amz-Meta-About":                            "it",
	} {
		if p.Headers[name] != value {
			t.Errorf("header %s: %q, want %q", name, p.Headers[name], value)
		}
		if !slices.Contains(signed, strings.ToLower(name)) {
			t.Errorf("%s is not signed: %v", name, signed)
		}
	}
	if u.Query().Get("X-Amz-Expires") != "60" || u.Query().Has("X-Amz-Checksum-Sha256") {
		t.Errorf("query %s", u.RawQuery)
	}
}
