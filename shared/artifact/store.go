package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Store keeps artifacts. Journal, Bucket and Catalog are required. Safe for
// concurrent use.
type Store struct {
	Journal *journal.Journal
	Bucket  store.Bucket
	// Catalog gives a tenant's own KMS key.
	Catalog *catalog.Catalog
}

const (
	uploadFor  = 15 * time.Minute // a URL to upload to
	readFor    = time.Hour        // a URL to read from
	tries      = 4                // of a call whose outcome is unknown or that met another writer
	sideBySide = 8                // objects looked at or copied at once
)

// AcceptedDigests are the artifacts that a state names: accepted ones and the
// results of its operations. (Results that lie in the ledger and were not taken
// in yet are journal.ResultRefs.)
func AcceptedDigests(s *execution.State) map[string]struct{} {
	out := make(map[string]struct{}, len(s.Artifacts))
	for i := range s.Artifacts {
		out[s.Artifacts[i].Digest] = struct{}{}
	}
	for _, op := range s.Operations {
		if op.ResultRef != nil {
			out[op.ResultRef.Digest] = struct{}{}
		}
	}
	return out
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// parseDigest reads 64 lower-case hex digits.
func parseDigest(field, text string) ([32]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != sha256.Size || hex.EncodeToString(b) != text {
		return [32]byte{}, execution.Invalid(field, "must be 64 lower-case hex digits")
	}
	return [32]byte(b), nil
}

// damaged is Integrity naming what was to be read.
func damaged(ref execution.Ref, version int64, key, text string) *execution.Error {
	e := execution.Errorf(execution.Integrity, "%s", text).With("execution", string(ref.Execution)).With("key", key)
	if version > 0 {
		e = e.With("version", version)
	}
	return e
}

// kmsKey is the tenant's own key, "" for the bucket's.
func (s *Store) kmsKey(ctx context.Context, t execution.TenantID) (string, error) {
	settings, err := s.Catalog.Current(ctx, t)
	return settings.KMSKey, err
}

// checkMediaType is InvalidRequest naming the field unless t is type/subtype
// with simple parameters: nothing that could add a header or end one.
func checkMediaType(field, t string) error {
	kind, params, _ := strings.Cut(t, ";")
	a, b, ok := strings.Cut(strings.TrimRight(kind, " "), "/")
	if !ok || !token(a) || !token(b) || strings.HasSuffix(t, ";") {
		return execution.Invalid(field, "must be a media type: type/subtype, with simple parameters")
	}
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		name, value, ok := strings.Cut(strings.Trim(p, " "), "=")
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = strings.NewReplacer(" ", "", ":", "", ",", "", "/", "", "=", "").Replace(value[1 : n-1])
		}
		if !ok || !token(name) || !token(value) {
			return execution.Invalid(field, "must have parameters of the form name=value")
		}
	}
	return nil
}

// token is RFC 9110's.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
