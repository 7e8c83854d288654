package artifact

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// What a Head tells about an object: its digest where the service knows it, and
// its size where the caller does.
func TestWhole(t *testing.T) {
	t.Parallel()
	sum := make([]byte, 32)
	digest := hex.EncodeToString(sum)
	for name, tt := range map[string]struct {
		digest string
		bytes  int64
		info   store.ObjectInfo
		ok     bool
	}{
		"all of it":       {digest, 7, store.ObjectInfo{SHA256: sum, Bytes: 7}, true},
		"put in parts":    {digest, 7, store.ObjectInfo{Bytes: 7}, true},
		"size not known":  {digest, -1, store.ObjectInfo{SHA256: sum, Bytes: 7}, true},
		"another digest":  {"00", 7, store.ObjectInfo{SHA256: sum, Bytes: 7}, false},
		"another size":    {digest, 7, store.ObjectInfo{SHA256: sum, Bytes: 8}, false},
		"nothing of some": {digest, 0, store.ObjectInfo{SHA256: sum, Bytes: 8}, false},
		"parts, another":  {digest, 7, store.ObjectInfo{Bytes: 8}, false},
	} {
		if err := whole(execution.Ref{}, tt.digest, tt.bytes, tt.info); (err == nil) != tt.ok || err != nil && execution.CodeOf(err) != execution.Integrity {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// How old an object is, by the store's clock; without it nobody knows.
func TestOlder(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for age, want := range map[time.Duration]bool{time.Hour - 1: false, time.Hour: true, time.Hour + 1: true} {
		if got, err := older(store.ObjectInfo{LastModified: now.Add(-age)}, store.ObjectMeta{Date: now}, time.Hour); err != nil || got != want {
			t.Errorf("%v: %v %v", age, got, err)
		}
	}
	if _, err := older(store.ObjectInfo{LastModified: now}, store.ObjectMeta{}, time.Hour); execution.CodeOf(err) != execution.Unavailable {
		t.Error(err)
	}
}

// An artifact of an execution: by its name, its digest, or as a result.
func TestFind(t *testing.T) {
	t.Parallel()
	st := &execution.State{Artifacts: []execution.Artifact{{Digest: "d1", Name: "a"}, {Digest: "d2", Name: "a"}},
		Operations: map[execution.OperationID]*execution.Operation{"none": {}, "op": {ResultRef: &execution.Artifact{Digest: "d3"}, SettledAt: 9}, "other": {ResultRef: &execution.Artifact{Digest: "d4"}, SettledAt: 8}}}
	for range 20 { // operations have no order in memory
		if a := find(st, "d3", ""); a == nil || a.Digest != "d3" || a.Version != 9 {
			t.Fatalf("%+v", a)
		}
	}
	if a := find(st, "", "a"); a == nil || a.Digest != "d2" {
		t.Errorf("%+v", a)
	}
	if a := find(st, "d1", ""); a == nil || a.Name != "a" {
		t.Errorf("%+v", a)
	}
	if find(st, "d5", "") != nil || find(st, "d1", "b") != nil {
		t.Error("found what is not there")
	}
}

// A name in a header: nothing that could end it or begin another.
func TestDisposition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "attachment", "aZ09-._": "attachment; filename*=UTF-8''aZ09-._", "a b\"\r\n/@[`{": "attachment; filename*=UTF-8''a%20b%22%0D%0A%2F%40%5B%60%7B", "\u00e4:": "attachment; filename*=UTF-8''%C3%A4%3A"} {
		if got := disposition(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestMediaTypeParameters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"a/b": true, "a/b; c=d": true, `a/b; c="d e"`: true, "a/b;": false, "a/": false, "/b": false, "ab": false, "a/b; c": false, "a/b; =d": false, "a/b; c=": false,
		`a/b; c="d`: false, `a/b; c="`: false, `a/b; c d=e`: false, "a/b; c=d;": false, "a/b\r\nX: y": false, `a/b; c="d\"e"`: false} {
		if err := checkMediaType("f", s); (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// What fits into a reply, as base64 beside the rest.
func TestInline(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]bool{0: true, 3 * 1024: true, 3*1024 + 3: false} {
		if inline(n, 4096+4096) != want {
			t.Errorf("%d bytes: %v", n, !want)
		}
	}
}
