package seal

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// Options configure a Sealer. Keys, KMS, KeyID and Now are required.
type Options struct {
	// Keys is the key table.
	Keys store.Table
	KMS  KMS
	// KeyID is the stack's data key in the KMS: it wraps the keys of tenants
	// that have none of their own yet.
	KeyID string
	// Rand gives salts and token keys; it is read under a lock. nil: the
	// system's.
	Rand io.Reader
	// Now is the clock for the age of cached keys and nothing else.
	Now func() time.Time
	// MaxAge is how long an unwrapped key and a tenant's list of keys are used
	// before they are fetched again; so long a rotation or a shredding by another
	// process may go unnoticed. 0: 15 minutes.
	MaxAge time.Duration
	// MaxUses is how often an unwrapped key is used before it is fetched again.
	// 0: 2^24.
	MaxUses int64
	// MaxTenants is for how many tenants keys are kept. 0: 1,000.
	MaxTenants int
	// FetchTimeout bounds one fetch of keys, which goes on when the caller that
	// began it gives up. 0: 10 seconds.
	FetchTimeout time.Duration
}

// Sealer seals and opens bodies under the tenants' keys. It is safe for
// concurrent use; a process needs one.
type Sealer struct {
	opt    Options
	cache  *cache
	flight singleflight.Group
	randMu sync.Mutex
}

// New makes a Sealer. It makes no call.
func New(opt Options) *Sealer {
	if opt.Rand == nil {
		opt.Rand = rand.Reader
	}
	if opt.MaxAge <= 0 {
		opt.MaxAge = 15 * time.Minute
	}
	if opt.MaxUses <= 0 {
		opt.MaxUses = 1 << 24
	}
	if opt.MaxTenants <= 0 {
		opt.MaxTenants = 1000
	}
	if opt.FetchTimeout <= 0 {
		opt.FetchTimeout = 10 * time.Second
	}
	return &Sealer{opt: opt, cache: newCache(opt.MaxTenants, opt.MaxAge, opt.MaxUses)}
}

// MaxAge is how long keys are cached at most.
func (s *Sealer) MaxAge() time.Duration { return s.opt.MaxAge }

// now is wall-clock time: the monotonic clock may stand still while a process
// is frozen.
func (s *Sealer) now() time.Time { return s.opt.Now().Round(0) }

// Seal compresses plain if that makes it smaller and seals it under the
// tenant's current key, which is made on first use. The result is at most
// Overhead longer. plain is not kept or changed; nil is as good as empty.
//
// Errors: KeyUnavailable, Throttled, Unavailable when the key cannot be had
// (nothing is ever left unsealed instead), Integrity when the tenant's keys are
// damaged, TooLarge above MaxPlain.
func (s *Sealer) Seal(ctx context.Context, p Place, plain []byte) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if len(plain) > MaxPlain {
		return nil, fail(execution.TooLarge, nil, "%s of %d bytes is above the limit of %d", p.Kind, len(plain), MaxPlain)
	}
	var m material
	defer m.wipe()
	if err := s.key(ctx, p.Tenant, 0, true, &m); err != nil {
		return nil, err
	}
	return s.sealUnder(&m, p, plain)
}

// Open gives back what was sealed at this place. sealed is not kept or changed.
//
// Errors: Integrity when sealed or p differs in any bit from what Seal had, or
// names a key that the tenant does not have; KeyUnavailable, Throttled,
// Unavailable when the key cannot be had, KeyUnavailable with ErrNoKeys when
// the tenant has no keys at all. Open never makes a key.
func (s *Sealer) Open(ctx context.Context, p Place, sealed []byte) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	h, err := readHeader(sealed)
	if err != nil {
		return nil, err
	}
	var m material
	defer m.wipe()
	if err := s.key(ctx, p.Tenant, h.generation, false, &m); err != nil {
		return nil, err
	}
	return openWith(&m.data, h, p, sealed)
}

// Token is a short stand-in for a value (a subject, a label) that tells nothing
// about it: 22 characters of base64url, the same for the same tenant, kind and
// value for as long as the tenant has keys, whatever is rotated. Errors as
// Seal.
func (s *Sealer) Token(ctx context.Context, tenant, kind, value string) (string, error) {
	sum, err := s.mac(ctx, tenant, "token", kind, []byte(value), true)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sum[:16]), nil
}

// MAC authenticates data (an opaque handle that goes out and comes back) for
// one purpose: 32 bytes under a key that is never rotated. Errors as Seal.
func (s *Sealer) MAC(ctx context.Context, tenant, purpose string, data []byte) ([]byte, error) {
	sum, err := s.mac(ctx, tenant, "mac", purpose, data, true)
	if err != nil {
		return nil, err
	}
	return sum[:], nil
}

// Verify reports whether mac is MAC's answer for the same arguments. It makes
// no key: for a tenant without keys nothing verifies. Errors as Open, never
// Integrity for a wrong mac.
func (s *Sealer) Verify(ctx context.Context, tenant, purpose string, data, mac []byte) (bool, error) {
	sum, err := s.mac(ctx, tenant, "mac", purpose, data, false)
	if isNoKeys(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return hmac.Equal(sum[:], mac), nil
}

// mac is HMAC-SHA256 under the tenant's token key over three fields, each with
// its length in front, so no two uses share an input.
func (s *Sealer) mac(ctx context.Context, tenant, use, kind string, data []byte, create bool) (sum [sha256.Size]byte, err error) {
	if tenant == "" || kind == "" {
		return sum, fail(execution.Internal, nil, "a token needs a tenant and a kind")
	}
	var m material
	defer m.wipe()
	if err := s.key(ctx, tenant, 0, create, &m); err != nil {
		return sum, err
	}
	h := hmac.New(sha256.New, m.token[:])
	in := appendField(nil, "cairn "+use+" 1")
	in = appendField(in, kind)
	in = appendField(in, data)
	h.Write(in)
	h.Sum(sum[:0])
	return sum, nil
}

// Digest is the SHA-256 of sealed bytes, by which the next entry names them.
func Digest(sealed []byte) [32]byte { return sha256.Sum256(sealed) }

func (s *Sealer) sealUnder(m *material, p Place, plain []byte) ([]byte, error) {
	var salt [saltBytes]byte
	if err := s.random(salt[:]); err != nil {
		return nil, err
	}
	return sealWith(&m.data, m.generation, salt[:], p, plain)
}

func (s *Sealer) random(b []byte) error {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	if _, err := io.ReadFull(s.opt.Rand, b); err != nil {
		return fail(execution.Internal, err, "no random bytes")
	}
	return nil
}

func (p Place) check() error {
	if p.Tenant == "" || p.Kind == "" {
		return fail(execution.Internal, nil, "a place needs a tenant and a kind")
	}
	return nil
}
