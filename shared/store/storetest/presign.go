package storetest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// request sends a request as any HTTP client would.
func (s *bucketSuite) request(t *testing.T, method, url string, headers map[string]string, body []byte) (int, http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	must(t, err)
	for name, value := range headers {
		if strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Host") {
			continue // set by the client itself
		}
		r.Header.Set(name, value)
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	must(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header, got
}

// tamper changes one character near the end of a URL's last parameter or
// segment, where the signature is.
func tamper(url string) string {
	i := len(url) - 10
	c := byte('a')
	if url[i] == 'a' {
		c = 'b'
	}
	return url[:i] + string([]byte{c}) + url[i+1:]
}

func (s *bucketSuite) presignedGet(t *testing.T) {
	s.need(t, Presigning)
	p := s.Prefix()
	body := []byte("<script>alert(1)</script>")
	in := object(p+"page", body)
	in.MediaType = "text/html"
	_, err := s.Bucket.Put(t.Context(), in)
	must(t, err)
	info, _, err := s.Bucket.Head(t.Context(), p+"page")
	must(t, err)
	for name, in := range map[string]store.PresignGet{"newest": {Key: p + "page"}, "version": {Key: p + "page", VersionID: info.VersionID},
		"typed": {Key: p + "page", MediaType: "text/plain", Disposition: `attachment; filename="a b.txt"`}} {
		t.Run(name, func(t *testing.T) {
			if in.VersionID != "" {
				s.need(t, PresignedVersions)
			}
			in.Expires = time.Minute
			u, err := s.Bucket.PresignGet(t.Context(), in)
			must(t, err)
			status, h, got := s.request(t, http.MethodGet, u.URL, u.Headers, nil)
			if status != http.StatusOK || !bytes.Equal(got, body) {
				t.Fatalf("status %d, %d bytes", status, len(got))
			}
			wantType, wantDisposition := in.MediaType, in.Disposition
			if wantType == "" {
				wantType, wantDisposition = "application/octet-stream", "attachment"
			}
			if h.Get("Content-Type") != wantType || h.Get("Content-Disposition") != wantDisposition {
				t.Errorf("type %q, disposition %q, want %q, %q", h.Get("Content-Type"), h.Get("Content-Disposition"), wantType, wantDisposition)
			}
			if left := u.Expires.Sub(info.LastModified); left < 50*time.Second || left > 3*time.Minute {
				t.Errorf("expires %v, written %v", u.Expires, info.LastModified)
			}
			s.forbidden(t, http.MethodGet, tamper(u.URL), u.Headers, nil)
			s.forbidden(t, http.MethodPut, u.URL, u.Headers, []byte("x"))
		})
	}
	u, err := s.Bucket.PresignGet(t.Context(), store.PresignGet{Key: p + "none", Expires: time.Minute})
	must(t, err)
	if status, _, _ := s.request(t, http.MethodGet, u.URL, u.Headers, nil); status != http.StatusNotFound {
		t.Errorf("nothing there: status %d", status)
	}
	_, err = s.Bucket.PresignGet(t.Context(), store.PresignGet{Key: p + "page"})
	kind(t, err, store.Invalid) // without a time it is good for
	s.expect(t, p+"page", body)
}

func (s *bucketSuite) forbidden(t *testing.T, method, url string, headers map[string]string, body []byte) {
	t.Helper()
	if status, _, _ := s.request(t, method, url, headers, body); status != http.StatusForbidden {
		t.Errorf("%s: status %d, want 403", method, status)
	}
}

func (s *bucketSuite) presignedPut(t *testing.T) {
	s.need(t, Presigning)
	p := s.Prefix()
	body := []byte("%PDF-1.7 uploaded")
	presign := func(key string) store.Presigned {
		u, err := s.Bucket.PresignPut(t.Context(), store.PresignPut{Key: key, Bytes: int64(len(body)), SHA256: sha256.Sum256(body), MediaType: "application/pdf", Metadata: map[string]string{"about": "it"}, Expires: time.Minute})
		must(t, err)
		return u
	}
	u := presign(p + "doc")
	if status, _, reply := s.request(t, http.MethodPut, u.URL, u.Headers, body); status != http.StatusOK {
		t.Fatalf("status %d: %.200s", status, reply)
	}
	s.expect(t, p+"doc", body)
	if info, _, err := s.Bucket.Head(t.Context(), p+"doc"); err != nil || info.MediaType != "application/pdf" || info.Bytes != int64(len(body)) || info.Metadata["about"] != "it" {
		t.Errorf("uploaded: %+v, %v", info, err)
	}
	// Once there it stays as it is.
	if status, _, _ := s.request(t, http.MethodPut, u.URL, u.Headers, body); status != http.StatusPreconditionFailed {
		t.Errorf("again: status %d, want 412", status)
	}
	t.Run("checks", func(t *testing.T) {
		s.need(t, PresignedChecks)
		other := bytes.Repeat([]byte("x"), len(body))
		u := presign(p + "refused")
		refusedPut := func(what, url string, headers map[string]string, body []byte) {
			if status, _, _ := s.request(t, http.MethodPut, url, headers, body); status < 400 || status >= 500 {
				t.Errorf("%s: status %d", what, status)
			}
			s.gone(t, p+"refused")
		}
		without := func(name, value string) map[string]string {
			h := map[string]string{}
			for k, v := range u.Headers {
				if strings.EqualFold(k, name) {
					if v = value; v == "" {
						continue
					}
				}
				h[k] = v
			}
			return h
		}
		refusedPut("tampered", tamper(u.URL), u.Headers, body)
		refusedPut("other bytes", u.URL, u.Headers, other)
		refusedPut("longer", u.URL, u.Headers, append(other, 'x'))
		refusedPut("shorter", u.URL, u.Headers, body[:len(body)-1])
		refusedPut("other type", u.URL, without("Content-Type", "text/html"), body)
		refusedPut("other metadata", u.URL, without("X-Amz-Meta-About", "other"), body)
		refusedPut("overwriting", u.URL, without("If-None-Match", ""), body)
	})
}

func (s *bucketSuite) presignExpiry(t *testing.T) {
	s.need(t, Presigning)
	p := s.Prefix()
	s.put(t, p+"x", []byte("x"))
	get, err := s.Bucket.PresignGet(t.Context(), store.PresignGet{Key: p + "x", Expires: time.Second})
	must(t, err)
	put, err := s.Bucket.PresignPut(t.Context(), store.PresignPut{Key: p + "y", Bytes: 1, SHA256: sha256.Sum256([]byte("y")), Expires: time.Second})
	must(t, err)
	if s.Later != nil {
		s.Later(2500 * time.Millisecond)
	} else {
		time.Sleep(2500 * time.Millisecond)
	}
	s.forbidden(t, http.MethodGet, get.URL, get.Headers, nil)
	s.forbidden(t, http.MethodPut, put.URL, put.Headers, []byte("y"))
	s.gone(t, p+"y")
}
