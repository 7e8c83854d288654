package artifact

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
)

// about is what is known of a staged artifact until an entry accepts it.
type about struct{ name, mediaType string }

// aboutKey is the metadata that holds it, sealed: 255 characters of name and 255
// of media type stay under the 2 KB that an object's metadata may have.
const aboutKey = "cairn"

func aboutPlace(ref execution.Ref, digest string) seal.Place {
	return seal.Place{Tenant: string(ref.Tenant), Execution: string(ref.Execution), Generation: ref.Generation, Kind: "artifact", Name: digest}
}

// metadata seals a; nil for nil: the object has no name.
func (s *Store) metadata(ctx context.Context, ref execution.Ref, digest string, a *about) (map[string]string, error) {
	if a == nil {
		return nil, nil
	}
	plain := binary.AppendUvarint(nil, uint64(len(a.name)))
	plain = append(append(plain, a.name...), a.mediaType...)
	b, err := s.Journal.Sealer.Seal(ctx, aboutPlace(ref, digest), plain)
	if err != nil {
		return nil, execution.AsError(err).With("execution", string(ref.Execution))
	}
	return map[string]string{aboutKey: base64.RawStdEncoding.EncodeToString(b)}, nil
}

// about opens what stands beside an object; the zero about where nothing does.
func (s *Store) about(ctx context.Context, ref execution.Ref, digest string, info store.ObjectInfo) (about, error) {
	text, ok := info.Metadata[aboutKey]
	if !ok {
		return about{}, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return about{}, damaged(ref, 0, info.Key, "the metadata of an object is not what was written")
	}
	plain, err := s.Journal.Sealer.Open(ctx, aboutPlace(ref, digest), b)
	if err != nil {
		return about{}, execution.AsError(err).With("execution", string(ref.Execution)).With("key", info.Key)
	}
	n, used := binary.Uvarint(plain)
	if used <= 0 || n > uint64(len(plain)-used) {
		return about{}, damaged(ref, 0, info.Key, "the metadata of an object is not what was written")
	}
	return about{string(plain[used : used+int(n)]), string(plain[used+int(n):])}, nil
}
