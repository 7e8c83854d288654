package s3_test

import (
	"crypto/sha256"
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

// recorder answers everything with one answer and keeps what it was asked.
type recorder struct {
	answer http.HandlerFunc
	mu     sync.Mutex
	asked  []string // method, path and query, body
	header []http.Header
}

func (r *recorder) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	q, _ := url.QueryUnescape(req.URL.RawQuery)
	r.mu.Lock()
	r.asked, r.header = append(r.asked, req.Method+" "+req.URL.EscapedPath()+"?"+q+" "+string(body)), append(r.header, req.Header)
	r.mu.Unlock()
	r.answer(rw, req)
}

func (r *recorder) bucket(t *testing.T) *s3.Bucket {
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	return s3.New(s3.NewClient(cfg, func(o *awss3.Options) { o.UsePathStyle = true }), "bucket", awscall.NewClock(nil), nil)
}

func xml(body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, body) }
}

// Listings are pages of at most a thousand, and go on where the last one ended.
func TestPages(t *testing.T) {
	t.Parallel()
	versions := `<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k2</NextKeyMarker><NextVersionIdMarker>v9</NextVersionIdMarker>
		<Version><Key>k1</Key><VersionId>v1</VersionId><LastModified>2026-01-01T00:00:00Z</LastModified><Size>3</Size></Version>
		<Version><Key>k1</Key><VersionId>v2</VersionId><LastModified>2026-01-02T00:00:00Z</LastModified></Version>
		<DeleteMarker><Key>k1</Key><VersionId>v3</VersionId><LastModified>2026-01-03T00:00:00Z</LastModified></DeleteMarker></ListVersionsResult>`
	for _, tt := range []struct {
		in   store.ListObjects
		want []string // in the query
		not  string
	}{
		{store.ListObjects{Prefix: "t/"}, []string{"prefix=t/", "max-keys=1000"}, "marker"},
		{store.ListObjects{Prefix: "t/", Limit: 1000}, []string{"max-keys=1000"}, "marker"},
		{store.ListObjects{Prefix: "t/", Limit: 1001}, []string{"max-keys=1000"}, "marker"},
		{store.ListObjects{Prefix: "t/", Limit: 7, Cursor: "k2\x00v9"}, []string{"max-keys=7", "key-marker=k2", "version-id-marker=v9"}, "none"},
		{store.ListObjects{Prefix: "t/", Cursor: "k2\x00"}, []string{"key-marker=k2"}, "version-id-marker"},
	} {
		r := &recorder{answer: xml(versions)}
		page, _, err := r.bucket(t).Versions(t.Context(), tt.in)
		if err != nil || page.Cursor != "k2\x00v9" || len(page.Objects) != 3 {
			t.Fatalf("%+v: %+v %v", tt.in, page, err)
		}
		var order []string
		for _, o := range page.Objects {
			order = append(order, o.VersionID)
		}
		if !slices.Equal(order, []string{"v3", "v2", "v1"}) || !page.Objects[0].DeleteMarker || page.Objects[1].DeleteMarker {
			t.Errorf("%v", page.Objects)
		}
		for _, w := range tt.want {
			if !strings.Contains(r.asked[0], w) || strings.Contains(r.asked[0], tt.not) {
				t.Errorf("%+v: %s", tt.in, r.asked[0])
			}
		}
	}
	last := &recorder{answer: xml(`<ListVersionsResult><IsTruncated>false</IsTruncated><NextKeyMarker>k2</NextKeyMarker></ListVersionsResult>`)}
	if page, _, err := last.bucket(t).Versions(t.Context(), store.ListObjects{Prefix: "t/"}); err != nil || page.Cursor != "" {
		t.Errorf("%+v %v", page, err)
	}
	for more, want := range map[string]string{"true": "next", "false": ""} {
		r := &recorder{answer: xml(`<ListBucketResult><IsTruncated>` + more + `</IsTruncated><NextContinuationToken>next</NextContinuationToken><Contents><Key>k</Key></Contents></ListBucketResult>`)}
		page, _, err := r.bucket(t).List(t.Context(), store.ListObjects{Prefix: "t/", Limit: 2, Cursor: "c"})
		if err != nil || page.Cursor != want || len(page.Objects) != 1 || !strings.Contains(r.asked[0], "continuation-token=c") || !strings.Contains(r.asked[0], "max-keys=2") {
			t.Errorf("%s: %+v %v: %s", more, page, err, r.asked)
		}
	}
	r := &recorder{}
	r.answer = func(rw http.ResponseWriter, _ *http.Request) {
		more := len(r.asked) == 1
		fmt.Fprintf(rw, `<ListMultipartUploadsResult><IsTruncated>%v</IsTruncated><NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u%d</NextUploadIdMarker><Upload><Key>k</Key><UploadId>u%d</UploadId></Upload></ListMultipartUploadsResult>`, more, len(r.asked), len(r.asked))
	}
	if all, _, err := r.bucket(t).Uploads(t.Context(), "t/"); err != nil || len(all) != 2 || !strings.Contains(r.asked[1], "upload-id-marker=u1") {
		t.Errorf("%+v %v: %s", all, err, r.asked)
	}
}

// Every removal names its version, and an upload's removal its upload.
func TestDeleteNamesVersions(t *testing.T) {
	t.Parallel()
	r := &recorder{answer: xml(`<DeleteResult><Error><Key>a</Key><VersionId>1</VersionId><Code>NoSuchKey</Code></Error></DeleteResult>`)}
	failed, _, err := r.bucket(t).Delete(t.Context(), []store.ObjectVersion{{Key: "a", VersionID: "1"}, {Key: "b", VersionID: "2"}})
	if err != nil || len(failed) != 0 {
		t.Errorf("%v %v", failed, err)
	}
	for _, want := range []string{"<Key>a</Key><VersionId>1</VersionId>", "<Key>b</Key><VersionId>2</VersionId>", "<Quiet>true</Quiet>"} {
		if !strings.Contains(r.asked[0], want) {
			t.Errorf("%s lacks %s", r.asked[0], want)
		}
	}
	r = &recorder{answer: func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }}
	if _, err := r.bucket(t).Abort(t.Context(), store.Upload{Key: "k", UploadID: "u"}); err != nil || !strings.HasPrefix(r.asked[0], "DELETE /bucket/k?") || !strings.Contains(r.asked[0], "uploadId=u") {
		t.Errorf("%v: %s", err, r.asked)
	}
}

// What is refused before anything is sent; the limits themselves are not.
func TestRefusedUnsent(t *testing.T) {
	t.Parallel()
	r := &recorder{answer: xml("")}
	b := r.bucket(t)
	versions := func(n int) []store.ObjectVersion {
		out := make([]store.ObjectVersion, n)
		for i := range out {
			out[i] = store.ObjectVersion{Key: fmt.Sprint(i), VersionID: "v"}
		}
		return out
	}
	put := store.PresignPut{Key: "k", Bytes: 1, SHA256: sha256.Sum256(nil), Expires: time.Minute}
	get := store.PresignGet{Key: "k", Expires: time.Minute}
	presignPut := func(f func(in *store.PresignPut)) func() error {
		in := put
		f(&in)
		return func() error { _, err := b.PresignPut(t.Context(), in); return err }
	}
	presignGet := func(f func(in *store.PresignGet)) func() error {
		in := get
		f(&in)
		return func() error { _, err := b.PresignGet(t.Context(), in); return err }
	}
	read := func(in store.GetObject) func() error {
		return func() error { _, _, _, err := b.Get(t.Context(), in); return err }
	}
	const week = 7 * 24 * time.Hour
	for name, tt := range map[string]struct {
		call func() error
		kind store.ErrorKind
	}{
		"put":              {presignPut(func(*store.PresignPut) {}), ""},
		"put, a second":    {presignPut(func(in *store.PresignPut) { in.Expires = time.Second }), ""},
		"put, a week":      {presignPut(func(in *store.PresignPut) { in.Expires = week }), ""},
		"put, nothing":     {presignPut(func(in *store.PresignPut) { in.Bytes = 0 }), ""},
		"put, no key":      {presignPut(func(in *store.PresignPut) { in.Key = "" }), store.Invalid},
		"put, below 0":     {presignPut(func(in *store.PresignPut) { in.Bytes = -1 }), store.Invalid},
		"put, too short":   {presignPut(func(in *store.PresignPut) { in.Expires = time.Second - 1 }), store.Invalid},
		"put, too long":    {presignPut(func(in *store.PresignPut) { in.Expires = week + 1 }), store.Invalid},
		"put, too large":   {presignPut(func(in *store.PresignPut) { in.Bytes = 1 << 50 }), store.TooLarge},
		"get":              {presignGet(func(*store.PresignGet) {}), ""},
		"get, no key":      {presignGet(func(in *store.PresignGet) { in.Key = "" }), store.Invalid},
		"get, too short":   {presignGet(func(in *store.PresignGet) { in.Expires = time.Second - 1 }), store.Invalid},
		"get, too long":    {presignGet(func(in *store.PresignGet) { in.Expires = week + 1 }), store.Invalid},
		"read, no key":     {read(store.GetObject{}), store.Invalid},
		"read, before":     {read(store.GetObject{Key: "k", Offset: -1}), store.Invalid},
		"read, less":       {read(store.GetObject{Key: "k", Length: -1}), store.Invalid},
		"head, no key":     {func() error { _, _, err := b.Head(t.Context(), ""); return err }, store.Invalid},
		"list, below 0":    {func() error { _, _, err := b.List(t.Context(), store.ListObjects{Limit: -1}); return err }, store.Invalid},
		"versions, below":  {func() error { _, _, err := b.Versions(t.Context(), store.ListObjects{Limit: -1}); return err }, store.Invalid},
		"versions, cursor": {func() error { _, _, err := b.Versions(t.Context(), store.ListObjects{Cursor: "k"}); return err }, store.Invalid},
		"delete nothing":   {func() error { _, _, err := b.Delete(t.Context(), nil); return err }, store.Invalid},
		"delete too many":  {func() error { _, _, err := b.Delete(t.Context(), versions(1001)); return err }, store.Invalid},
		"delete no key":    {func() error { _, _, err := b.Delete(t.Context(), []store.ObjectVersion{{VersionID: "v"}}); return err }, store.Invalid},
		"delete no version": {func() error {
			_, _, err := b.Delete(t.Context(), []store.ObjectVersion{{Key: "k", VersionID: "v"}, {Key: "k"}})
			return err
		},
			store.Invalid},
	} {
		if err := tt.call(); store.KindOf(err) != tt.kind || len(r.asked) != 0 {
			t.Errorf("%s: %v after %d requests", name, err, len(r.asked))
		}
	}
	r.answer = xml(`<DeleteResult></DeleteResult>`)
	if failed, _, err := b.Delete(t.Context(), versions(1000)); err != nil || len(failed) != 0 {
		t.Errorf("a thousand: %v %v", failed, err)
	}
}

// A URL to read by: one version, saved rather than shown.
func TestPresignGet(t *testing.T) {
	t.Parallel()
	b := (&recorder{answer: xml("")}).bucket(t)
	for _, tt := range []struct {
		in                    store.PresignGet
		disposition, versions string
	}{{store.PresignGet{Key: "k", Expires: time.Minute, MediaType: "text/plain"}, "attachment", ""}, {store.PresignGet{Key: "k", Expires: time.Minute, VersionID: "v", Disposition: "attachment; filename=x"}, "attachment; filename=x", "v"}} {
		p, err := b.PresignGet(t.Context(), tt.in)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(p.URL)
		if q := u.Query(); err != nil || q.Get("response-content-disposition") != tt.disposition || q.Get("versionId") != tt.versions || q.Get("X-Amz-Expires") != "60" {
			t.Errorf("%s %v", p.URL, err)
		}
		if _, host := p.Headers["Host"]; host {
			t.Errorf("%v", p.Headers)
		}
	}
}

// A part of an object is asked for by its bytes, one version by its name; the
// size told is the whole object's.
func TestGetAsks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in            store.GetObject
		ranges, query string
		contentRange  string
		bytes         int64
	}{
		{store.GetObject{Key: "k"}, "", "", "", 4},
		{store.GetObject{Key: "k", VersionID: "v"}, "", "versionId=v", "", 4},
		{store.GetObject{Key: "k", Offset: 5}, "bytes=5-", "", "bytes 5-8/9", 9},
		{store.GetObject{Key: "k", Offset: 5, Length: 2}, "bytes=5-6", "", "bytes 5-6/9", 9},
		{store.GetObject{Key: "k", Length: 2}, "bytes=0-1", "", "bytes 0-1/*", 4},
	} {
		r := &recorder{answer: func(rw http.ResponseWriter, _ *http.Request) {
			if tt.contentRange != "" {
				rw.Header().Set("Content-Range", tt.contentRange)
				rw.WriteHeader(http.StatusPartialContent)
			}
			_, _ = io.WriteString(rw, "body")
		}}
		body, info, _, err := r.bucket(t).Get(t.Context(), tt.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		body.Close()
		if err != nil || string(got) != "body" || info.Bytes != tt.bytes || r.header[0].Get("Range") != tt.ranges || !strings.Contains(r.asked[0], tt.query) || tt.query == "" && strings.Contains(r.asked[0], "versionId") {
			t.Errorf("%+v: %q, %d bytes, range %q, %s: %v", tt.in, got, info.Bytes, r.header[0].Get("Range"), r.asked[0], err)
		}
	}
}

// A Head asks for the digest, and takes none of a multipart upload for one.
func TestHeadDigest(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	whole := "LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="
	for checksum, want := range map[string]bool{whole: true, whole + "-3": false, "": false, "AAAA": false} {
		r := &recorder{answer: func(rw http.ResponseWriter, _ *http.Request) {
			if checksum != "" {
				rw.Header().Set("X-Amz-Checksum-Sha256", checksum)
			}
		}}
		info, _, err := r.bucket(t).Head(t.Context(), "k")
		if err != nil || (info.SHA256 != nil) != want || want && string(info.SHA256) != string(sum[:]) {
			t.Errorf("%q: %x %v", checksum, info.SHA256, err)
		}
		if r.header[0].Get("X-Amz-Checksum-Mode") != "ENABLED" {
			t.Errorf("%v", r.header[0])
		}
	}
}

// Making an object young copies it onto itself, only as it was seen, and keeps
// what it is.
func TestRefresh(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		etag, kms string
		metadata  map[string]string
		kind      store.ErrorKind
		about     string
	}{
		{`"e1"`, "", nil, "", "old"}, {`"e1"`, "key", map[string]string{"about": "new"}, "", "new"}, {`"e0"`, "", nil, store.Exists, ""},
	} {
		r := &recorder{answer: func(rw http.ResponseWriter, req *http.Request) {
			rw.Header().Set("ETag", `"e1"`)
			rw.Header().Set("Content-Type", "text/plain")
			rw.Header().Set("X-Amz-Meta-About", "old")
			if tt.kms != "" {
				rw.Header().Set("X-Amz-Server-Side-Encryption", "aws:kms")
				rw.Header().Set("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", tt.kms)
			}
			if req.Method == http.MethodPut {
				_, _ = io.WriteString(rw, `<CopyObjectResult><ETag>"e2"</ETag><LastModified>2026-01-02T00:00:00Z</LastModified></CopyObjectResult>`)
			}
		}}
		info, _, err := r.bucket(t).Refresh(t.Context(), "t/a b", tt.etag, tt.metadata)
		if store.KindOf(err) != tt.kind {
			t.Errorf("%+v: %v", tt, err)
		}
		if tt.kind != "" {
			if len(r.asked) != 1 {
				t.Errorf("%s: %v", tt.etag, r.asked)
			}
			continue
		}
		h := r.header[1]
		for name, want := range map[string]string{"X-Amz-Copy-Source": "bucket/t/a%20b", "X-Amz-Copy-Source-If-Match": `"e1"`, "X-Amz-Metadata-Directive": "REPLACE", "X-Amz-Meta-About": tt.about, "Content-Type": "text/plain",
			"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": tt.kms} {
			if h.Get(name) != want {
				t.Errorf("%+v: %s is %q, want %q", tt, name, h.Get(name), want)
			}
		}
		if info.ETag != `"e2"` || info.LastModified.Year() != 2026 || info.Metadata["about"] != tt.about {
			t.Errorf("%+v: %+v", tt, info)
		}
	}
}
