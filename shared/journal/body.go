package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// minChain is how much is always left to stand between snapshots: what two read
// units bring. A smaller chain saves no reads, and young executions would store
// most of what they have twice.
const minChain = 8 << 10

// riding puts a snapshot into the entry when enough was stored since the last
// one (architecture, idea 4).
func (j *Journal) riding(ctx context.Context, h *Handle, step *Step) error {
	e := step.Proposal.Entry
	if h.chainBytes < min(max(h.snapBytes, minChain), int64(j.SnapshotBytes)) {
		return nil
	}
	snap, dropped := execution.SnapshotOf(step.Proposal.State)
	// The outcome of what leaves the fold must stand in its slot first. A crash
	// after that leaves slots that say what the fold says too.
	if err := j.keepSlots(ctx, h, dropped); err != nil {
		return err
	}
	e.Body.Snapshot, e.Body.State, e.Body.Patch = snap, step.Proposal.State.Data, nil
	step.Proposal.State = snap
	return nil
}

// seal gives the entry its stored form; sealed is the body when it goes to the
// bucket.
func (j *Journal) seal(ctx context.Context, h *Handle, e *execution.Entry) (*stored, []byte, error) {
	plain, err := execution.EncodeBody(&e.Body)
	if err != nil {
		return nil, nil, err
	}
	s := &stored{entry: *e, prev: h.tip, chain: h.chain + 1}
	if e.Body.Snapshot != nil || h.State.Version == 0 {
		s.chain = 0
	}
	sealed, err := j.Sealer.Seal(ctx, s.place(h.State.Ref), plain)
	if err != nil {
		return nil, nil, execution.AsError(err).With("execution", string(h.State.Execution))
	}
	if len(sealed) <= j.InlineBody {
		s.body = sealed
		return s, nil, nil
	}
	sum := sha256.Sum256(sealed)
	s.object, s.bytes = sum[:], int64(len(sealed))
	return s, sealed, nil
}

// putBody stages an oversize body before the entry that names it.
//
// Lost: the entry is not written; the caller repeats. Landed but the reply
// lost: the name holds the digest of random-salted bytes, so what is there is
// ours. A crash after it leaves an object that no entry names: the orphan sweep
// takes it after the grace time.
func (j *Journal) putBody(ctx context.Context, h *Handle, s *stored, sealed []byte) error {
	ref := h.State.Ref
	in := store.PutObject{Key: BodyObjectKey(ref, s.entry.Version, [32]byte(s.object)), Body: bytes.NewReader(sealed), Bytes: s.bytes, SHA256: [32]byte(s.object), ValidatedAt: h.validated}
	for try := 0; ; try++ {
		_, err := j.Bucket.Put(ctx, in)
		if err == nil || store.KindOf(err) == store.Exists {
			return nil
		}
		if store.KindOf(err) == store.TooLate {
			return errTaken // reload: the validation is too old
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return Fail(err, ref)
		}
		in.Body = bytes.NewReader(sealed)
	}
}

// body opens an entry's sealed body, from its item or from the bucket.
func (j *Journal) body(ctx context.Context, ref execution.Ref, s *stored) error {
	sealed := s.body
	if s.object != nil {
		var err error
		if sealed, err = j.object(ctx, ref, s); err != nil {
			return err
		}
	}
	ref.Generation = s.entry.Generation
	plain, err := j.Sealer.Open(ctx, s.place(ref), sealed)
	if err != nil {
		return execution.AsError(err).With("execution", string(ref.Execution)).With("version", s.entry.Version)
	}
	b, err := execution.DecodeBody(plain)
	if err != nil {
		return execution.AsError(err).With("execution", string(ref.Execution)).With("version", s.entry.Version)
	}
	s.entry.Body = *b
	return nil
}

// object reads an oversize body and holds it against its digest.
func (j *Journal) object(ctx context.Context, ref execution.Ref, s *stored) ([]byte, error) {
	ref.Generation = s.entry.Generation
	key := BodyObjectKey(ref, s.entry.Version, [32]byte(s.object))
	r, info, _, err := j.Bucket.Get(ctx, store.GetObject{Key: key})
	if store.KindOf(err) == store.NotFound {
		return nil, integrity(ref, s.entry.Version, "the object of an entry is missing").With("key", key)
	}
	if err != nil {
		return nil, Fail(err, ref)
	}
	defer r.Close()
	if info.Bytes != s.bytes {
		return nil, integrity(ref, s.entry.Version, "the object of an entry has another size").With("key", key)
	}
	b, err := io.ReadAll(io.LimitReader(r, s.bytes+1))
	if err != nil {
		return nil, execution.Errorf(execution.Unavailable, "an object could not be read to its end").Because(err)
	}
	sum := sha256.Sum256(b)
	if !bytes.Equal(sum[:], s.object) {
		return nil, integrity(ref, s.entry.Version, "the object of an entry has other content").With("key", key)
	}
	return b, nil
}
