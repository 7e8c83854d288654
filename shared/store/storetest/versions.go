package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cairnstate/cairn/shared/store"
)

func (s *bucketSuite) allVersions(t *testing.T, prefix string, limit int) (out []store.ObjectInfo) {
	t.Helper()
	cursor := ""
	for range 2000 {
		page, _, err := s.Bucket.Versions(t.Context(), store.ListObjects{Prefix: prefix, Limit: limit, Cursor: cursor})
		must(t, err)
		out = append(out, page.Objects...)
		if cursor = page.Cursor; cursor == "" {
			return out
		}
	}
	t.Fatal("a listing that never ends")
	return nil
}

func (s *bucketSuite) versions(t *testing.T) {
	s.need(t, Versions)
	if s.Hide == nil {
		s.skip(t, "objects cannot be hidden")
	}
	p := s.Prefix()
	first := s.put(t, p+"x", []byte("first"))
	if first.VersionID == "" || first.VersionID == "null" {
		t.Fatalf("no version id: %+v", first)
	}
	s.Hide(t, p+"x")
	s.gone(t, p+"x")
	// A delete marker does not keep the key: it may be created again.
	second := s.put(t, p+"x", []byte("second"))
	s.put(t, p+"x2", []byte("other"))
	s.expect(t, p+"x", []byte("second"))
	if got, info := s.read(t, store.GetObject{Key: p + "x", VersionID: first.VersionID}); string(got) != "first" || info.VersionID != first.VersionID {
		t.Errorf("first version: %q, %+v", got, info)
	}
	s.Hide(t, p+"x")
	for _, limit := range []int{0, 1, 2} {
		all := s.allVersions(t, p+"x", limit)
		if len(all) != 5 || !all[0].DeleteMarker || all[1].VersionID != second.VersionID || !all[2].DeleteMarker || all[3].VersionID != first.VersionID || all[4].Key != p+"x2" {
			t.Fatalf("limit %d: versions %+v", limit, all)
		}
	}
	page, _, err := s.Bucket.List(t.Context(), store.ListObjects{Prefix: p})
	must(t, err)
	if len(page.Objects) != 1 || page.Objects[0].Key != p+"x2" {
		t.Errorf("a list shows no hidden objects: %+v", page.Objects)
	}
	// The versions are removed for good, one by one; markers too.
	all := s.allVersions(t, p, 0)
	s.remove(t, all[0])
	s.expect(t, p+"x", []byte("second"))
	for _, v := range all[1:] {
		s.remove(t, v)
	}
	if left := s.allVersions(t, p, 0); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func (s *bucketSuite) remove(t *testing.T, objects ...store.ObjectInfo) {
	t.Helper()
	var versions []store.ObjectVersion
	for _, o := range objects {
		versions = append(versions, store.ObjectVersion{Key: o.Key, VersionID: o.VersionID})
	}
	failed, _, err := s.Bucket.Delete(t.Context(), versions)
	must(t, err)
	if len(failed) > 0 {
		t.Errorf("not removed: %v", failed)
	}
}

func (s *bucketSuite) listPages(t *testing.T) {
	p := s.Prefix()
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("%sd%d/o%02d", p, i%3, i)
		s.put(t, key, []byte("x"))
		want = append(want, key)
	}
	slices.Sort(want)
	for _, limit := range []int{0, 1, 7, 25, 26} {
		var got []string
		cursor, pages := "", 0
		for {
			page, _, err := s.Bucket.List(t.Context(), store.ListObjects{Prefix: p, Limit: limit, Cursor: cursor})
			must(t, err)
			for _, o := range page.Objects {
				got = append(got, o.Key)
				if o.Bytes != 1 || o.ETag == "" || o.LastModified.IsZero() {
					t.Errorf("listed: %+v", o)
				}
			}
			if limit > 0 && len(page.Objects) > limit {
				t.Errorf("%d objects under limit %d", len(page.Objects), limit)
			}
			if pages++; pages > 30 {
				t.Fatal("a listing that never ends")
			}
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	page, _, err := s.Bucket.List(t.Context(), store.ListObjects{Prefix: p + "d1/"})
	must(t, err)
	if len(page.Objects) != 8 {
		t.Errorf("%d objects below a prefix, want 8", len(page.Objects))
	}
	page, _, err = s.Bucket.List(t.Context(), store.ListObjects{Prefix: p + "none"})
	must(t, err)
	if len(page.Objects) != 0 || page.Cursor != "" {
		t.Errorf("below nothing: %+v", page)
	}
}

func (s *bucketSuite) deletes(t *testing.T) {
	s.need(t, Versions)
	p := s.Prefix()
	var all []store.ObjectInfo
	for i := range 12 {
		all = append(all, s.put(t, fmt.Sprintf("%so%d", p, i), []byte("x")))
	}
	s.remove(t, all[:11]...)
	s.gone(t, p+"o0")
	s.expect(t, p+"o11", []byte("x"))
	if left := s.allVersions(t, p, 0); len(left) != 1 || left[0].Key != p+"o11" {
		t.Errorf("left: %+v", left)
	}
	s.remove(t, all[0]) // again: it is gone, which is what was asked
	// Removed for good, the key is free.
	s.put(t, p+"o0", []byte("again"))
	for name, versions := range map[string][]store.ObjectVersion{
		"no versions": nil, "no version id": {{Key: p + "o11"}}, "too many": make([]store.ObjectVersion, 1001),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Bucket.Delete(t.Context(), versions)
			kind(t, err, store.Invalid)
		})
	}
	s.expect(t, p+"o11", []byte("x"))
}
