package seal

import (
	"context"
	"errors"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// KeyInfo describes one generation of a tenant's key.
type KeyInfo struct {
	Generation int64
	// Current: new writes are sealed under it (other processes follow within
	// their MaxAge).
	Current bool
	Created time.Time
	// KMSKey wraps it.
	KMSKey string
}

// attempts bounds how often an administrative change starts over because
// another one came first.
const attempts = 5

func isNoKeys(err error) bool { return errors.Is(err, ErrNoKeys) }

// Generations lists the tenant's keys, oldest first; none when it has no keys.
// It makes no KMS call.
func (s *Sealer) Generations(ctx context.Context, tenant string) ([]KeyInfo, error) {
	r, _, err := s.readRing(ctx, tenant)
	if err != nil || r == nil {
		return nil, err
	}
	out := make([]KeyInfo, len(r.keys))
	for i, k := range r.keys {
		out[i] = KeyInfo{k.generation, i == len(r.keys)-1, time.UnixMilli(k.created).UTC(), k.kms}
	}
	return out, nil
}

// Rotate makes a new key for what is written from now on; the older ones go on
// opening what they sealed. This process uses it at once, others within their
// MaxAge. Of rotations at the same time one may stand for all. A tenant without
// keys gets its first. Errors as Seal; TooLarge after 500 generations.
func (s *Sealer) Rotate(ctx context.Context, tenant string) (generation int64, err error) {
	for range attempts {
		mark := s.cache.mark(tenant)
		r, at, err := s.readRing(ctx, tenant)
		if err != nil {
			return 0, err
		}
		if r == nil {
			var m material
			if err := s.key(ctx, tenant, 0, true, &m); err != nil {
				return 0, err
			}
			generation = m.generation
			m.wipe()
			return generation, nil
		}
		if len(r.keys) >= maxGenerations {
			return 0, fail(execution.TooLarge, nil, "tenant %s has %d generations of keys", tenant, len(r.keys))
		}
		s.cache.putRing(r, mark, s.now())
		current := r.current()
		next, err := s.rotateFrom(ctx, r, at)
		if isNoKeys(err) {
			continue // shredded meanwhile: begin anew
		}
		if err != nil {
			return 0, err
		}
		if g := next.current().generation; g > current.generation {
			return g, nil
		}
		// Only re-wrapped by somebody meanwhile: again.
	}
	return 0, fail(execution.Unavailable, nil, "the keys of tenant %s keep changing", tenant)
}

func (s *Sealer) rotateFrom(ctx context.Context, r *ring, at time.Time) (*ring, error) {
	var m material
	defer m.wipe()
	if err := s.key(ctx, r.tenant, r.current().generation, false, &m); err != nil {
		return nil, err
	}
	return s.addKey(ctx, r, r.tenant, r.current().kms, &m, at)
}

// Rewrap wraps all the tenant's keys anew under another key of the KMS ("" for
// the stack's), which wraps its later generations too. Nothing that they sealed
// is touched. Other processes unwrap with the old key of the KMS for up to their
// MaxAge: disable it no earlier. It returns how many keys it wrapped; a repeat is harmless. Errors
// as Seal; no keys: 0.
func (s *Sealer) Rewrap(ctx context.Context, tenant, kmsKey string) (int, error) {
	if kmsKey == "" {
		kmsKey = s.opt.KeyID
	}
	for range attempts {
		mark := s.cache.mark(tenant)
		r, at, err := s.readRing(ctx, tenant)
		if err != nil || r == nil {
			return 0, err
		}
		next := &ring{tenant: tenant, id: r.id, rev: r.rev + 1}
		for _, k := range r.keys {
			w, err := s.wrapAnew(ctx, tenant, k, kmsKey)
			if err != nil {
				return 0, err
			}
			next.keys = append(next.keys, w)
		}
		got, err := s.writeRing(ctx, r, next, at)
		if isNoKeys(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		s.cache.putRing(got, mark, s.now())
		if got.holds(next.current()) {
			return len(next.keys), nil
		}
		// Somebody rotated meanwhile: again, with the new key too.
	}
	return 0, fail(execution.Unavailable, nil, "the keys of tenant %s keep changing", tenant)
}

// wrapAnew gives k wrapped under another KMS key. The plain key is asked of the
// KMS, not of the cache: whoever may no longer unwrap must not wrap either.
func (s *Sealer) wrapAnew(ctx context.Context, tenant string, k wrappedKey, kmsKey string) (wrappedKey, error) {
	var m material
	defer m.wipe()
	if err := s.unwrap(ctx, tenant, k, &m); err != nil {
		return wrappedKey{}, err
	}
	wrapped, err := s.opt.KMS.Encrypt(ctx, kmsKey, m.data[:], encryptionContext(tenant, k.generation))
	if err != nil {
		return wrappedKey{}, classify(err, "wrap a key of tenant "+tenant)
	}
	k.kms, k.wrapped = kmsKey, wrapped
	return k, nil
}

// Shred deletes all the tenant's wrapped keys: what they sealed can never be
// opened again (until backups of the key table have run out, somebody who
// restores one still can). A repeat is harmless.
//
// Other processes keep unwrapped keys for up to their MaxAge and would go on
// sealing with them, into bytes that nobody can open afterwards. So the tenant
// must be closed to writers before and stay closed for MaxAge after.
//
// Errors: Throttled, Unavailable (unknown: repeat), KeyUnavailable when the
// table refuses.
func (s *Sealer) Shred(ctx context.Context, tenant string) error {
	var last error
	var id string
	for range attempts {
		r, at, err := s.readRing(ctx, tenant)
		var cond store.Cond
		switch {
		case execution.CodeOf(err) == execution.Integrity:
			cond = store.There() // damaged keys are shredded all the same
		case err != nil:
			return err
		case r == nil || id != "" && r.id != id: // gone, or gone and made anew
			s.cache.drop(tenant)
			return nil
		default:
			id, cond = r.id, r.same()
		}
		// Lost: read and delete again. Landed but the reply lost: the read finds
		// nothing, or a ring of another id. Crash right after: the keys are gone,
		// which was the purpose; this process's copies went with it. Late: no id and
		// rev come twice, so the keys of a tenant that began anew are not met.
		_, _, err = s.opt.Keys.Delete(ctx, store.Delete{Key: store.Key{PK: tenant, SK: ringSK}, Cond: cond, ValidatedAt: at})
		s.cache.drop(tenant)
		var changed *store.ConditionFailed
		if err == nil || errors.As(err, &changed) {
			continue // read again: rotated meanwhile, or gone
		}
		last = classify(err, "shred the keys of tenant "+tenant)
		if !store.Ambiguous(err) {
			return last
		}
	}
	if last == nil {
		last = fail(execution.Unavailable, nil, "the keys of tenant %s keep changing", tenant)
	}
	return last
}

// Wipe wipes all cached keys of this process. The next use fetches them anew.
func (s *Sealer) Wipe() { s.cache.dropAll() }
