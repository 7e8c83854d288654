package seal

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// key fills m with the tenant's key of a generation, 0 for the current one.
// With create the first key is made when the tenant has none; without, that is
// ErrNoKeys. A generation that the ring does not have is Integrity.
func (s *Sealer) key(ctx context.Context, tenant string, generation int64, create bool, m *material) error {
	alone := false
	// Each round fetches what is missing and looks again. More than three rounds
	// need an eviction or a change of the ring in between.
	for range 50 {
		r, ok := s.cache.take(tenant, generation, s.now(), m)
		if ok {
			return nil
		}
		if r == nil {
			err := s.once(ctx, "ring/"+strconv.FormatBool(create)+"/"+tenant, func(ctx context.Context) error {
				return s.loadRing(ctx, tenant, create)
			})
			if errors.Is(err, ErrNoKeys) && !alone {
				// The read that we joined may have begun before the first key was made.
				alone = true
				err = s.loadRing(ctx, tenant, create)
			}
			if err != nil {
				return err
			}
			continue
		}
		k := r.current()
		if generation != 0 {
			if k, ok = r.find(generation); !ok {
				if alone {
					return fail(execution.Integrity, nil, "tenant %s has no key %d", tenant, generation)
				}
				// Another process may have rotated since the ring was read.
				alone = true
				if err := s.loadRing(ctx, tenant, create); err != nil {
					return err
				}
				continue
			}
		}
		err := s.once(ctx, "key/"+strconv.FormatInt(k.generation, 10)+"/"+tenant, func(ctx context.Context) error {
			return s.loadKey(ctx, r, k)
		})
		if err != nil {
			return err
		}
	}
	return fail(execution.Unavailable, nil, "the keys of tenant %s are evicted faster than they are used: the cache is too small", tenant)
}

// loadRing reads the tenant's ring into the cache, with create making it when
// there is none.
func (s *Sealer) loadRing(ctx context.Context, tenant string, create bool) error {
	mark := s.cache.mark(tenant)
	r, at, err := s.readRing(ctx, tenant)
	switch {
	case err != nil:
		return err
	case r != nil:
		s.cache.putRing(r, mark, s.now())
		return nil
	case !create:
		s.cache.drop(tenant)
		return noKeys(tenant)
	}
	token := material{}
	defer token.wipe()
	if err := s.random(token.token[:]); err != nil {
		return err
	}
	_, err = s.addKey(ctx, nil, tenant, s.opt.KeyID, &token, at)
	return err
}

// loadKey unwraps one generation into the cache: the one KMS call per
// generation and cache window.
func (s *Sealer) loadKey(ctx context.Context, r *ring, k wrappedKey) error {
	mark := s.cache.mark(r.tenant)
	var m material
	defer m.wipe()
	if err := s.unwrap(ctx, r.tenant, k, &m); err != nil {
		return err
	}
	s.cache.putKey(r, &m, mark, s.now())
	return nil
}

func (s *Sealer) unwrap(ctx context.Context, tenant string, k wrappedKey, m *material) error {
	plain, err := s.opt.KMS.Decrypt(ctx, k.kms, k.wrapped, encryptionContext(tenant, k.generation))
	if err != nil {
		return classifyUnwrap(err, tenant, k.generation)
	}
	defer clear(plain)
	if len(plain) != keySize {
		return fail(execution.Integrity, nil, "key %d of tenant %s has %d bytes", k.generation, tenant, len(plain))
	}
	m.generation = k.generation
	copy(m.data[:], plain)
	h, err := readHeader(k.token)
	if err != nil {
		return err
	}
	token, err := openWith(&m.data, h, tokenPlace(tenant, k.generation), k.token)
	if err != nil {
		return err
	}
	defer clear(token)
	if len(token) != keySize {
		return fail(execution.Integrity, nil, "the token key of tenant %s has %d bytes", tenant, len(token))
	}
	copy(m.token[:], token)
	return nil
}

// addKey makes the next generation, wrapped under kmsKey, with the token key
// that from holds, and writes it after prev (nil: the first). It returns the
// ring that is in the table afterwards, with the new generation or with that of
// somebody who came first; either is in the cache then.
func (s *Sealer) addKey(ctx context.Context, prev *ring, tenant, kmsKey string, from *material, at time.Time) (*ring, error) {
	mark := s.cache.mark(tenant)
	k := wrappedKey{generation: at.UnixMilli(), kms: kmsKey, created: at.UnixMilli()}
	next := &ring{tenant: tenant, rev: 1}
	if prev != nil {
		k.generation = max(k.generation, prev.current().generation+1)
		next.id, next.rev = prev.id, prev.rev+1
		next.keys = append(next.keys, prev.keys...)
	} else {
		var id [16]byte
		if err := s.random(id[:]); err != nil {
			return nil, err
		}
		next.id = hex.EncodeToString(id[:])
	}
	plain, wrapped, err := s.opt.KMS.GenerateDataKey(ctx, kmsKey, encryptionContext(tenant, k.generation))
	if err != nil {
		return nil, classify(err, "make a key for tenant "+tenant)
	}
	defer clear(plain)
	if len(plain) != keySize {
		return nil, fail(execution.Internal, nil, "the KMS made a key of %d bytes", len(plain))
	}
	m := material{generation: k.generation, token: from.token}
	defer m.wipe()
	copy(m.data[:], plain)
	k.wrapped = wrapped
	if k.token, err = s.sealUnder(&m, tokenPlace(tenant, k.generation), m.token[:]); err != nil {
		return nil, err
	}
	next.keys = append(next.keys, k)
	r, err := s.writeRing(ctx, prev, next, at)
	if err != nil {
		return nil, err
	}
	s.cache.putRing(r, mark, s.now())
	if r.holds(k) {
		s.cache.putKey(r, &m, mark, s.now())
	}
	return r, nil
}

// tokenPlace is where the token key belongs: in the ring, beside this
// generation's key.
func tokenPlace(tenant string, generation int64) Place {
	return Place{Tenant: tenant, Generation: generation, Kind: "~token-key"}
}

// once runs f for all callers that ask for the same thing at the same time. f
// has a context of its own, so that a caller who gives up takes nobody along; a
// panic in it comes up in every caller.
func (s *Sealer) once(ctx context.Context, name string, f func(ctx context.Context) error) error {
	type panicked struct{ value any }
	ch := s.flight.DoChan(name, func() (out any, err error) {
		defer func() {
			if v := recover(); v != nil {
				out, err = panicked{v}, nil
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opt.FetchTimeout)
		defer cancel()
		return nil, f(ctx)
	})
	select {
	case got := <-ch:
		if p, ok := got.Val.(panicked); ok {
			panic(p.value)
		}
		return got.Err
	case <-ctx.Done():
		return classify(&store.Error{Call: "get", Key: name, Kind: store.Stopped, Err: context.Cause(ctx)}, "wait for a key")
	}
}
