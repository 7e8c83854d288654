package seal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// ringSK is the sort key of the one item in which a tenant (the partition key)
// keeps all its wrapped keys. One item makes every change of them atomic: two
// first users cannot both make a key, and shredding cannot stop half way.
const ringSK = "keys"

// Attributes of the ring's item and of the maps in its list.
const (
	attrID      = "id"
	attrRev     = "rev"
	attrKeys    = "keys"
	attrGen     = "gen"
	attrKMS     = "kms"
	attrWrapped = "wrapped"
	attrToken   = "token"
	attrCreated = "created"
)

// maxGenerations keeps a ring far below the size limit of an item (one entry
// has about 400 bytes with AWS KMS).
const maxGenerations = 500

// ring is a tenant's wrapped keys, immutable once made.
type ring struct {
	tenant string
	// id is random and tells this ring from one that was made after it was
	// shredded; rev counts its writes.
	id   string
	rev  int64
	keys []wrappedKey // ascending by generation, never empty; the last is current
}

// wrappedKey is one generation of a tenant's key.
type wrappedKey struct {
	generation int64
	kms        string // the KMS key that wraps it
	wrapped    []byte // by the KMS
	token      []byte // the tenant's token key, sealed under this generation
	created    int64  // store time in milliseconds
}

func (r *ring) current() wrappedKey { return r.keys[len(r.keys)-1] }

func (r *ring) find(generation int64) (wrappedKey, bool) {
	for _, k := range r.keys {
		if k.generation == generation {
			return k, true
		}
	}
	return wrappedKey{}, false
}

// holds reports whether r has exactly this wrapped key, so whether the write
// that brought it has landed.
func (r *ring) holds(k wrappedKey) bool {
	got, ok := r.find(k.generation)
	return ok && bytes.Equal(got.wrapped, k.wrapped)
}

// same is the condition that the ring was not written or made anew since.
func (r *ring) same() store.Cond {
	return store.All{store.Eq(attrID, store.S(r.id)), store.Eq(attrRev, store.N(r.rev))}
}

func (r *ring) item() store.Item {
	list := make([]store.Value, len(r.keys))
	for i, k := range r.keys {
		list[i] = store.Value{Kind: store.KindM, M: map[string]store.Value{
			attrGen:     store.N(k.generation),
			attrKMS:     store.S(k.kms),
			attrWrapped: store.B(k.wrapped),
			attrToken:   store.B(k.token),
			attrCreated: store.N(k.created),
		}}
	}
	return store.Item{
		store.AttrPK: store.S(r.tenant),
		store.AttrSK: store.S(ringSK),
		attrID:       store.S(r.id),
		attrRev:      store.N(r.rev),
		attrKeys:     {Kind: store.KindL, L: list},
	}
}

// decodeRing reads an item strictly: a ring with anything missing or out of
// order is Integrity, never a reason to make new keys.
func decodeRing(tenant string, it store.Item) (*ring, error) {
	damaged := func() (*ring, error) {
		return nil, fail(execution.Integrity, nil, "the key item of tenant %s is damaged", tenant)
	}
	rev, ok := it[attrRev].Int()
	list := it[attrKeys]
	if !ok || it.Str(attrID) == "" || list.Kind != store.KindL || len(list.L) == 0 || it.Key() != (store.Key{PK: tenant, SK: ringSK}) {
		return damaged()
	}
	r := &ring{tenant: tenant, id: it.Str(attrID), rev: rev, keys: make([]wrappedKey, len(list.L))}
	last := int64(0)
	for i, v := range list.L {
		m := store.Item(v.M)
		gen, genOK := m[attrGen].Int()
		created, createdOK := m[attrCreated].Int()
		k := wrappedKey{gen, m.Str(attrKMS), m.Bytes(attrWrapped), m.Bytes(attrToken), created}
		if !genOK || !createdOK || gen <= last || gen > maxGeneration || len(k.wrapped) == 0 || len(k.token) == 0 {
			return damaged()
		}
		r.keys[i], last = k, gen
	}
	return r, nil
}

// encryptionContext binds a wrapped key to its tenant and generation.
func encryptionContext(tenant string, generation int64) map[string]string {
	return map[string]string{"tenant": tenant, "purpose": "state", "generation": strconv.FormatInt(generation, 10)}
}

// readRing reads the tenant's ring consistently; nil when there is none. at is
// the store's clock.
func (s *Sealer) readRing(ctx context.Context, tenant string) (r *ring, at time.Time, err error) {
	it, meta, err := s.opt.Keys.Get(ctx, store.Get{Key: store.Key{PK: tenant, SK: ringSK}, Consistent: true})
	if err != nil {
		return nil, time.Time{}, classify(err, "read the keys of tenant "+tenant)
	}
	if meta.Date.IsZero() {
		return nil, time.Time{}, fail(execution.Unavailable, nil, "the key table's answer about tenant %s has no date", tenant)
	}
	if it == nil {
		return nil, meta.Date, nil
	}
	r, err = decodeRing(tenant, it)
	return r, meta.Date, err
}

// writeRing replaces prev (nil: nothing) with next and returns the ring that is
// in the table afterwards: next, or that of another writer who came first.
// Whether next's part is in it is for the caller to look up (holds). A ring
// that was shredded meanwhile is ErrNoKeys.
//
// Lost: nothing happened, it is put again. Landed but the reply lost: the read
// back, or the failed condition of the second put, shows our own ring. Crash
// right after: the ring stands with a key that nobody used yet; the next user
// unwraps it. A put that wakes up later finds its condition false, because no
// id and rev come twice; only the very first ring of a tenant may still appear, until
// store.Window after validated, and is then simply the tenant's ring.
func (s *Sealer) writeRing(ctx context.Context, prev, next *ring, validated time.Time) (*ring, error) {
	cond := store.NotThere()
	if prev != nil {
		cond = prev.same()
	}
	var last error
	for range 3 {
		_, err := s.opt.Keys.Put(ctx, store.Put{Item: next.item(), Cond: cond, ValidatedAt: validated})
		if err == nil {
			return next, nil
		}
		var refused *store.ConditionFailed
		if errors.As(err, &refused) {
			if refused.Old == nil {
				return nil, noKeys(next.tenant)
			}
			return decodeRing(next.tenant, refused.Old)
		}
		last = err
		if !store.Ambiguous(err) {
			break
		}
		now, _, err := s.readRing(ctx, next.tenant)
		if err != nil {
			continue // still unknown; the put decides
		}
		if now == nil && prev != nil {
			return nil, noKeys(next.tenant)
		}
		if now != nil && (prev == nil || now.id != prev.id || now.rev != prev.rev) {
			return now, nil
		}
	}
	return nil, classify(last, fmt.Sprintf("write the keys of tenant %s", next.tenant))
}
