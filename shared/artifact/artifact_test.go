package artifact_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

func TestPutAcceptGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var versions []int64
	for i := range 3 {
		a := w.put("report.txt", fmt.Append(nil, "bytes ", i))
		if a.Digest != sum(fmt.Append(nil, "bytes ", i)) || a.Name != "report.txt" || a.MediaType != "text/plain" {
			t.Fatalf("%+v", a)
		}
		// Only staged: it is not there yet.
		_, err := w.get(func(r *api.GetArtifactRequest) { r.Digest = a.Digest })
		refused(t, err, execution.NotFound, "")
		versions = append(versions, w.accept(api.ArtifactRef{Digest: a.Digest}))
	}
	for i, v := range versions {
		if got, err := w.named("report.txt", v); err != nil || got != fmt.Sprint("bytes ", i) {
			t.Errorf("version %d: %q, %v", v, got, err)
		}
	}
	if got, err := w.named("report.txt", 0); err != nil || got != "bytes 2" {
		t.Errorf("newest: %q, %v", got, err)
	}
	r, err := w.get(func(r *api.GetArtifactRequest) { r.Digest = sum([]byte("bytes 0")) })
	if err != nil || string(r.Body) != "bytes 0" || r.Artifact.Version != versions[0] || r.Artifact.Name != "report.txt" || r.Artifact.MediaType != "text/plain" {
		t.Errorf("by digest: %+v, %v", r, err)
	}
	_, err = w.named("none", 0)
	refused(t, err, execution.NotFound, "")
	for _, o := range w.objects() {
		if strings.Contains(fmt.Sprint(o.Metadata), "report") || o.Encryption != "aws:kms" {
			t.Errorf("object %+v", o)
		}
	}
	// Another execution's digest is not there.
	w.create("f")
	_, err = w.get(func(r *api.GetArtifactRequest) { r.Execution, r.Digest = "f", sum([]byte("bytes 0")) })
	refused(t, err, execution.NotFound, "")
	_, err = w.get(func(r *api.GetArtifactRequest) { r.Tenant, r.Digest = "other", sum([]byte("bytes 0")) })
	refused(t, err, execution.NotFound, "")
}

// Names are what they are, to the byte; objects know nothing of them.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"../x", "a/../../b", "/abs", `a\..\b`, "%2e%2e%2fx", ".", "..", "a//b", "project", "project/versions/readme.txt", "报告.pdf", "\U0001f600.png",
		"\u00e9.txt", "e\u0301.txt", "trailing ", strings.Repeat("n", 255), strings.Repeat("\U0001f600", 255), strings.Repeat(`"`, 255), strings.Repeat("\u2028", 255)}
	for i, name := range names {
		w.accept(api.ArtifactRef{Digest: w.put(name, fmt.Append(nil, i)).Digest})
	}
	for i, name := range names {
		if got, err := w.named(name, 0); err != nil || got != fmt.Sprint(i) {
			t.Errorf("%.40q: %q, %v", name, got, err)
		}
	}
	for _, o := range w.objects() {
		if !strings.HasPrefix(o.Key, journal.ObjectPrefix(w.ref)+"artifacts/") || strings.Contains(o.Key, "..") {
			t.Errorf("key %s", o.Key)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, good := range []string{"a/b", "text/plain; charset=utf-8", `multipart/mixed; boundary="a b:c"`, "application/vnd.x+json;v=1;w=2", "image/svg+xml"} {
		r := request("n", []byte(good))
		r.MediaType = good
		if _, err := w.Artifacts.Put(t.Context(), r); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"text", "a/b/c", "a/", "/b", "a b/c", "a/b;", "a/b; x", "a/b; x=", "a/b\r\nX: y", "a/b; x=\"\r\n\"", "a/b; x=\"a\"b\"", "a/\u00e9", "a/b;x=y;", `a/b; x="\"`} {
		r := request("n", []byte(bad))
		r.MediaType = bad
		_, err := w.Artifacts.Put(t.Context(), r)
		refused(t, err, execution.InvalidRequest, "media_type")
		if _, err := w.Artifacts.Verify(t.Context(), w.ref, []api.ArtifactRef{{Digest: sum(nil), MediaType: bad}}); execution.AsError(err).Facts["field"] != "artifacts[0].media_type" {
			t.Errorf("accept %q: %v", bad, err)
		}
	}
	if len(w.objects()) != 5 {
		t.Errorf("%d objects", len(w.objects()))
	}
}

// The same bytes again: no second object, the last name stands until accepted,
// and an old object's age starts anew.
func TestSameBytesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := []byte("same")
	for range 3 {
		w.put("a", body)
	}
	if n := len(w.objects()); n != 1 {
		t.Fatalf("%d versions after the same put", n)
	}
	v := w.accept(api.ArtifactRef{Digest: w.put("a", body).Digest})
	w.put("b", body)
	w.accept(api.ArtifactRef{Digest: sum(body)})
	w.accept(api.ArtifactRef{Digest: sum(body), Name: "c", MediaType: "x/y"})
	for _, name := range []string{"a", "b", "c"} {
		if got, err := w.named(name, 0); err != nil || got != "same" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := w.named("b", v); execution.CodeOf(err) != execution.NotFound {
		t.Errorf("b before it was accepted: %v", err)
	}
	w.put("old", []byte("old"))
	w.advance(11 * time.Hour)
	before := len(w.objects())
	w.put("old", []byte("old"))
	if len(w.objects()) != before {
		t.Error("a young object was refreshed")
	}
	w.advance(2 * time.Hour)
	w.put("old", []byte("old"))
	info, meta, err := w.engine.Bucket().Head(t.Context(), journal.ArtifactObjectKey(w.ref, sum([]byte("old"))))
	if err != nil || meta.Date.Sub(info.LastModified) > time.Minute || len(w.objects()) != before+1 {
		t.Errorf("age %v, %d versions, %v", meta.Date.Sub(info.LastModified), len(w.objects()), err)
	}
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.put("n", []byte("x"))
	verify := func(d string) ([]execution.Artifact, error) {
		return w.Artifacts.Verify(t.Context(), w.ref, []api.ArtifactRef{{Digest: a.Digest}, {Digest: d}})
	}
	_, err := verify(sum([]byte("never put")))
	refused(t, err, execution.InvalidRequest, "artifacts[1]")
	for _, bad := range []string{"", "zz", strings.Repeat("A", 64)} {
		_, err = verify(bad)
		refused(t, err, execution.InvalidRequest, "artifacts[1].digest")
	}
	// Near the end of the grace time acceptance makes it young first.
	w.advance(22 * time.Hour)
	if got, err := verify(a.Digest); err != nil || got[0] != (execution.Artifact{Digest: a.Digest, Bytes: 1, Name: "n", MediaType: "text/plain"}) || len(w.objects()) != 1 {
		t.Fatalf("%+v, %v, %d versions", got, err, len(w.objects()))
	}
	w.advance(time.Hour)
	if got, err := verify(a.Digest); err != nil || got[0].Name != "n" || len(w.objects()) < 2 {
		t.Fatalf("%+v, %v, %d versions", got, err, len(w.objects()))
	}
	// Another generation's object is none of this one's.
	other := w.ref
	other.Generation++
	_, err = w.Artifacts.Verify(t.Context(), other, []api.ArtifactRef{{Digest: a.Digest}})
	refused(t, err, execution.InvalidRequest, "artifacts[0]")
	// Sixteen at once, all in order.
	var refs []api.ArtifactRef
	for i := range 40 {
		refs = append(refs, api.ArtifactRef{Digest: w.put(fmt.Sprint(i), fmt.Append(nil, "n", i)).Digest})
	}
	got, err := w.Artifacts.Verify(t.Context(), w.ref, refs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].Name != fmt.Sprint(i) {
			t.Errorf("%d is %s", i, got[i].Name)
		}
	}
}

func TestRefusedBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Journal.Claim(t.Context(), "bank", "e", execution.Change{Kind: execution.KindClaimed, Claim: &execution.ClaimRequest{Owner: "b", LeaseSeconds: 60, Force: "test"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*api.PutArtifactRequest)
		code   execution.Code
	}{
		"stale fence":       {func(r *api.PutArtifactRequest) { r.Fence = 1 }, execution.LeaseLost},
		"unknown execution": {func(r *api.PutArtifactRequest) { r.Execution = "none" }, execution.NotFound},
		"foreign tenant":    {func(r *api.PutArtifactRequest) { r.Tenant = "other" }, execution.NotFound},
		"stale, by upload": {func(r *api.PutArtifactRequest) {
			r.Fence, r.Body, r.Upload = 1, nil, &api.Upload{Bytes: 1, SHA256: sum([]byte("z"))}
		}, execution.LeaseLost},
	} {
		r := request("z", []byte("z"))
		c.change(r)
		if _, err := w.Artifacts.Put(t.Context(), r); execution.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.objects()) != 0 {
			t.Errorf("%s: an object was written", name)
		}
	}
	r := request("z", []byte("z"))
	r.Fence = 2
	if _, err := w.Artifacts.Put(t.Context(), r); err != nil {
		t.Errorf("the current owner: %v", err)
	}
	s, _, err := w.Journal.ReadHead(t.Context(), "bank", "e")
	if err != nil {
		t.Fatal(err)
	}
	// Given up: the fence is what it was, and nobody's.
	if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: journal.HeadKey(s.PK()), Actions: []store.Action{store.Remove{Attr: journal.HeadOwner}}}); err != nil {
		t.Fatal(err)
	}
	r = request("x", []byte("x"))
	r.Fence = 2
	_, err = w.Artifacts.Put(t.Context(), r)
	refused(t, err, execution.LeaseLost, "")
	for status, code := range map[string]execution.Code{"completed": execution.ExecutionClosed, "deleting": execution.Deleted, "strange": execution.Integrity} {
		if _, _, err := w.engine.Table(memory.Main).Update(t.Context(), store.Update{Key: journal.HeadKey(s.PK()), Actions: []store.Action{store.Set{Attr: journal.HeadStatus, Value: store.S(status)}}}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Artifacts.Put(t.Context(), request("y", []byte("y")))
		refused(t, err, code, "")
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := "%PDF uploaded"
	r := &api.PutArtifactRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Name: "报告.pdf", MediaType: "application/pdf", Upload: &api.Upload{Bytes: int64(len(body)), SHA256: sum([]byte(body))}}
	out, err := w.Artifacts.Put(t.Context(), r)
	if err != nil || out.URL == "" || out.ExpiresAt == nil || out.Artifact.Name != r.Name || int64(*out.ExpiresAt) != w.engine.Now().Add(15*time.Minute).UnixMilli() {
		t.Fatalf("%+v, %v", out, err)
	}
	done := &api.PutArtifactRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Uploaded: r.Upload.SHA256}
	_, err = w.Artifacts.Put(t.Context(), done)
	refused(t, err, execution.NotFound, "uploaded")
	if status, _, _ := fetch(t, "PUT", out.URL, out.Headers, "other bytes!!"); status < 400 {
		t.Error("other bytes were taken")
	}
	for k := range out.Headers {
		h := map[string]string{}
		for name, v := range out.Headers {
			if name != k {
				h[name] = v
			}
		}
		if status, _, _ := fetch(t, "PUT", out.URL, h, body); status < 400 {
			t.Errorf("taken without %s", k)
		}
	}
	if status, reply, _ := fetch(t, "PUT", out.URL, out.Headers, body); status != 200 {
		t.Fatalf("upload: %d %s", status, reply)
	}
	if status, _, _ := fetch(t, "PUT", out.URL, out.Headers, body); status != 412 {
		t.Errorf("upload again: %d", status)
	}
	got, err := w.Artifacts.Put(t.Context(), done)
	if err != nil || got.Artifact != out.Artifact {
		t.Fatalf("%+v, want %+v, %v", got, out.Artifact, err)
	}
	w.accept(api.ArtifactRef{Digest: done.Uploaded})
	if text, err := w.named("报告.pdf", 0); err != nil || text != body {
		t.Errorf("%q, %v", text, err)
	}
	// Renamed when it is verified.
	done.Name = "second"
	if got, err := w.Artifacts.Put(t.Context(), done); err != nil || got.Artifact.Name != "second" || got.Artifact.MediaType != "application/pdf" {
		t.Errorf("%+v, %v", got, err)
	}
	w.advance(16 * time.Minute)
	if status, _, _ := fetch(t, "PUT", out.URL, out.Headers, body); status != 403 {
		t.Errorf("after its time: %d", status)
	}
}

// Long artifacts come as a URL that saves a file and gives exactly one version.
func TestReadByURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := bytes.Repeat([]byte("<script>"), 20_000)
	a := w.put("ev\"il\r.html", body)
	w.accept(api.ArtifactRef{Digest: a.Digest})
	r, err := w.get(func(r *api.GetArtifactRequest) { r.Digest = a.Digest })
	if err != nil || r.Body != nil || r.URL == "" || r.ExpiresAt == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	status, text, h := fetch(t, "GET", r.URL, nil, "")
	if status != 200 || text != string(body) {
		t.Errorf("%d, %d bytes", status, len(text))
	}
	if d := h.Get("Content-Disposition"); d != "attachment; filename*=UTF-8''ev%22il%0D.html" {
		t.Errorf("disposition %q", d)
	}
	if r, err = w.get(func(r *api.GetArtifactRequest) { r.Digest, r.MaxInlineBytes = a.Digest, 1_000_000 }); err != nil || !bytes.Equal(r.Body, body) {
		t.Errorf("inline: %d bytes, %v", len(r.Body), err)
	}
}

// What lies in the bucket is not what was accepted: Integrity that names it, by
// every way of reading, never other bytes.
func TestDamaged(t *testing.T) {
	t.Parallel()
	bodies := map[bool][]byte{false: []byte("small"), true: bytes.Repeat([]byte("large"), 40_000)}
	for large, body := range bodies {
		for how, change := range map[string]func(b []byte) []byte{"missing": nil, "cut": func(b []byte) []byte { return b[:len(b)-1] }, "longer": func(b []byte) []byte { return append(b, 'x') },
			"other": func(b []byte) []byte { return append(bytes.Repeat([]byte("x"), len(b)-1), 'y') }} {
			t.Run(fmt.Sprint(how, large), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				a := w.put("n", body)
				v := w.accept(api.ArtifactRef{Digest: a.Digest})
				key := journal.ArtifactObjectKey(w.ref, a.Digest)
				info, _, _ := w.engine.Bucket().Head(t.Context(), key)
				if _, _, err := w.engine.Bucket().Delete(t.Context(), []store.ObjectVersion{{Key: key, VersionID: info.VersionID}}); err != nil {
					t.Fatal(err)
				}
				if change != nil {
					b := change(bytes.Clone(body))
					if _, err := w.engine.Bucket().Put(t.Context(), store.PutObject{Key: key, Body: bytes.NewReader(b), Bytes: int64(len(b)), SHA256: sha256.Sum256(b)}); err != nil {
						t.Fatal(err)
					}
				}
				_, err := w.get(func(r *api.GetArtifactRequest) { r.Digest = a.Digest })
				refused(t, err, execution.Integrity, "")
				if f := execution.AsError(err).Facts; f["execution"] != "e" || f["version"] != v || f["key"] != key {
					t.Errorf("facts %v", f)
				}
				_, err = w.Artifacts.Read(t.Context(), w.ref, a.Digest)
				refused(t, err, execution.Integrity, "")
				_, err = w.Artifacts.RefTo(t.Context(), w.ref, &execution.Artifact{Digest: a.Digest, Bytes: a.Bytes})
				refused(t, err, execution.Integrity, "")
				r, err := w.Artifacts.Open(t.Context(), w.ref, execution.Artifact{Digest: a.Digest, Bytes: a.Bytes})
				if err == nil {
					_, err = io.ReadAll(r)
				}
				refused(t, err, execution.Integrity, "")
				if change == nil {
					return
				}
				// Staging the right bytes over it, accepting, copying: refused too.
				_, err = w.Artifacts.Put(t.Context(), request("n", body))
				refused(t, err, execution.Integrity, "")
				_, err = w.Artifacts.Verify(t.Context(), w.ref, []api.ArtifactRef{{Digest: a.Digest}})
				refused(t, err, execution.Integrity, "")
				_, err = w.Artifacts.CopyAll(t.Context(), w.ref, w.create("f"), []execution.Artifact{{Digest: a.Digest, Bytes: a.Bytes}})
				refused(t, err, execution.Integrity, "")
			})
		}
	}
}

// Each storage call of a put and of an acceptance fails in each way; the repeat
// ends with one artifact that can be read under its name.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"get", "query", "put_object", "head_object", "get_object", "list_objects"} {
		for _, effect := range []string{"lost", "landed", "throttle", "unavailable", "crash_before", "crash_after"} {
			for nth := 1; nth <= 3; nth++ {
				for _, renamed := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/%v", on, effect, nth, renamed), func(t *testing.T) {
						w := newWorld(t)
						if renamed {
							w.put("before", []byte("x"))
							w.advance(13 * time.Hour)
						}
						w.restart()
						w.faults(memory.Fault{On: on, Effect: effect, Nth: nth})
						ctx, inv := memory.WithInvocation(t.Context())
						_, err := w.Artifacts.Put(ctx, request("n", []byte("x")))
						inv.End()
						if err != nil && !execution.CodeOf(err).Retryable() {
							t.Fatalf("not retryable: %v", err)
						}
						w.restart()
						w.faults()
						a := w.put("n", []byte("x"))
						w.faults(memory.Fault{On: on, Effect: effect, Nth: nth})
						if _, err := w.Artifacts.Verify(t.Context(), w.ref, []api.ArtifactRef{{Digest: a.Digest}}); err != nil && !execution.CodeOf(err).Retryable() {
							t.Fatalf("not retryable: %v", err)
						}
						w.faults()
						w.accept(api.ArtifactRef{Digest: a.Digest})
						if got, err := w.named("n", 0); err != nil || got != "x" {
							t.Errorf("%q, %v", got, err)
						}
					})
				}
			}
		}
	}
}

func TestRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := w.Artifacts.Put(context.Background(), request(fmt.Sprint("n", i%4), []byte("x"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.accept(api.ArtifactRef{Digest: sum([]byte("x"))})
	n := 0
	for i := range 4 {
		if got, err := w.named(fmt.Sprint("n", i), 0); err == nil && got == "x" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d names", n)
	}
}

// A warm process: one read of the head, one object request, nothing written.
func TestCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("warm", []byte("warm"))
	meter := &store.Meter{}
	if _, err := w.Artifacts.Put(store.WithMeter(t.Context(), meter), request("n", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	if c := meter.Cost(); c.Reads != 1 || c.Writes != 0 || c.ObjectRequests != 1 {
		t.Errorf("cost %+v", c)
	}
}

// The tenant's own key is used for all of its objects.
func TestTenantKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Catalog.SetSettings(t.Context(), "bank", api.Settings{KMSKey: "own"}); err != nil {
		t.Fatal(err)
	}
	w.put("n", []byte("x"))
	if _, err := w.Artifacts.PutView(t.Context(), w.ref, 1, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, o := range w.engine.Dump().Objects {
		if o.KMSKey != "own" {
			t.Errorf("%s under %q", o.Key, o.KMSKey)
		}
	}
}

// zeros is a large file that needs no memory.
type zeros struct{ n, at int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.at >= z.n {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n-z.at)
	clear(p[:n])
	z.at += n
	return int(n), nil
}

func (z *zeros) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += z.at
	case io.SeekEnd:
		off += z.n
	}
	z.at = off
	return off, nil
}

func TestStageOpenCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 20 << 20
	a, err := w.Artifacts.Stage(t.Context(), artifact.Upload{Tenant: "bank", Execution: "e", Fence: 1, Name: "big", MediaType: "a/b", Body: &zeros{n: n + 7, at: 7}})
	if err != nil || a.Bytes != n {
		t.Fatalf("%+v, %v", a, err)
	}
	w.accept(api.ArtifactRef{Digest: a.Digest})
	r, err := w.Artifacts.Open(t.Context(), w.ref, a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.Copy(io.Discard, r); got != n || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	r.Close()
	f := w.create("f")
	small := w.put("small", []byte("s"))
	got, err := w.Artifacts.CopyAll(t.Context(), w.ref, f, []execution.Artifact{{Digest: a.Digest, Bytes: n, Name: "big", Version: 3}, {Digest: small.Digest, Bytes: 1, Name: "one"}, {Digest: small.Digest, Bytes: 1, Name: "two"}})
	if err != nil || len(got) != 3 || got[0].Version != 0 || got[2].Name != "two" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, d := range []string{a.Digest, small.Digest} {
		if _, err := w.Artifacts.Read(t.Context(), f, d); err != nil {
			t.Error(err)
		}
	}
	// A source that cannot be read just now is no damaged one.
	for _, effect := range []string{"unavailable", "throttle", "lost"} {
		g := w.create("g-" + effect)
		w.faults(memory.Fault{On: "get_object", Effect: effect, Nth: 1})
		if _, err := w.Artifacts.CopyAll(t.Context(), w.ref, g, []execution.Artifact{{Digest: a.Digest, Bytes: n}}); !execution.CodeOf(err).Retryable() {
			t.Errorf("%s: %v, want it retryable", effect, err)
		}
		w.faults()
		if _, err := w.Artifacts.CopyAll(t.Context(), w.ref, g, []execution.Artifact{{Digest: a.Digest, Bytes: n}}); err != nil {
			t.Errorf("%s, again: %v", effect, err)
		}
	}
	for field, change := range map[string]func(*artifact.Upload){"name": func(u *artifact.Upload) { u.Name = "a\x00b" }, "media_type": func(u *artifact.Upload) { u.MediaType = "x" },
		"body": func(u *artifact.Upload) { u.Body = broken{} }} {
		u := artifact.Upload{Tenant: "bank", Execution: "e", Name: "n", MediaType: "a/b", Body: &zeros{n: 1}}
		change(&u)
		_, err := w.Artifacts.Stage(t.Context(), u)
		refused(t, err, execution.InvalidRequest, field)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error)       { return 0, errors.New("broken") }
func (broken) Seek(int64, int) (int64, error) { return 0, nil }

func TestPutView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := `{"n":1.0}`
	var first *api.Ref
	for i := range 3 {
		ref, err := w.Artifacts.PutView(t.Context(), w.ref, 7, []byte(text))
		if err != nil || ref.Digest != sum([]byte(text)) || ref.Bytes != int64(len(text)) || ref.Version != 7 {
			t.Fatalf("%+v, %v", ref, err)
		}
		if i == 0 {
			first = ref
		}
		if status, got, _ := fetch(t, "GET", ref.URL, nil, ""); status != 200 || got != text {
			t.Errorf("round %d: %d %s", i, status, got)
		}
		w.advance(13 * time.Hour) // the second time it would vanish before its URL
	}
	if status, _, _ := fetch(t, "GET", first.URL, nil, ""); status != 403 {
		t.Errorf("the first URL after an hour: %d", status)
	}
	for _, effect := range []string{"lost", "landed", "unavailable"} {
		w.faults(memory.Fault{On: "put_object", Effect: effect})
		if _, err := w.Artifacts.PutView(t.Context(), w.ref, 8, []byte(effect)); err != nil {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

func TestAcceptedDigests(t *testing.T) {
	t.Parallel()
	got := artifact.AcceptedDigests(&execution.State{Artifacts: []execution.Artifact{{Digest: "a"}}, Operations: map[execution.OperationID]*execution.Operation{"x": {ResultRef: &execution.Artifact{Digest: "b"}}, "y": {}}})
	if len(got) != 2 {
		t.Errorf("%v", got)
	}
}
