package seal

import (
	"container/list"
	"hash/fnv"
	"sync"
	"time"
)

// keySize is the length of every key here: AES-256 and HMAC-SHA256.
const keySize = 32

// material is a generation's plain keys. Whoever has one wipes it after use.
type material struct {
	generation int64
	data       [keySize]byte // seals bodies
	token      [keySize]byte // the tenant's token key, the same in all generations
}

func (m *material) wipe() { *m = material{} }

// cache keeps tenants' rings and unwrapped keys, least recently used out first.
// Keys are copied in and out under the lock, so an evicted key can be wiped at
// once however many callers work with copies of it.
type cache struct {
	maxTenants int
	maxAge     time.Duration
	maxUses    int64

	mu      sync.Mutex
	tenants map[string]*list.Element // of *tenantKeys
	order   *list.List               // most recently used in front
	drops   [256]uint64              // count calls of drop and dropAll, by slot of the tenant
}

type tenantKeys struct {
	tenant string
	used   time.Time
	ring   *ring // nil when only keys are known
	ringAt time.Time
	keys   map[int64]*cachedKey
}

type cachedKey struct {
	ringID string
	at     time.Time
	uses   int64
	material
}

func newCache(maxTenants int, maxAge time.Duration, maxUses int64) *cache {
	return &cache{maxTenants: maxTenants, maxAge: maxAge, maxUses: maxUses, tenants: map[string]*list.Element{}, order: list.New()}
}

// old reports whether something fetched at has run out. Now may lie a little
// before at, because callers read the clock before they take the lock.
func (c *cache) old(at, now time.Time) bool {
	age := now.Sub(at)
	return age >= c.maxAge || age <= -c.maxAge
}

// take copies a key out: of the generation, or with 0 of the current one. The
// ring is nil when it is not known or too old; ok says whether m was filled.
func (c *cache) take(tenant string, generation int64, now time.Time, m *material) (r *ring, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	e := c.tenants[tenant]
	if e == nil {
		return nil, false
	}
	t := e.Value.(*tenantKeys)
	if t.ring != nil && c.old(t.ringAt, now) {
		t.ring = nil
	}
	if generation == 0 {
		if t.ring == nil {
			return nil, false
		}
		generation = t.ring.current().generation
	}
	k := t.keys[generation]
	if k == nil {
		return t.ring, false
	}
	if c.old(k.at, now) || k.uses >= c.maxUses {
		t.remove(generation)
		return t.ring, false
	}
	k.uses++
	c.touch(e, now)
	*m = k.material
	return t.ring, true
}

// mark is to be read before a fetch and handed to put with what was fetched.
func (c *cache) mark(tenant string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops[slot(tenant)]
}

// slot shares the counters out, so that their number is bounded: two tenants
// with one slot cost each other a fetch at worst.
func slot(tenant string) byte {
	h := fnv.New32a()
	h.Write([]byte(tenant))
	return byte(h.Sum32())
}

// putRing keeps a ring unless a newer one is there or keys were dropped since
// mark. Keys that are not the ring's are wiped.
func (c *cache) putRing(r *ring, mark uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops[slot(r.tenant)] != mark {
		return
	}
	t := c.open(r.tenant, now)
	if t.ring != nil && t.ring.id == r.id && t.ring.rev > r.rev {
		return
	}
	t.ring, t.ringAt = r, now
	for g, k := range t.keys {
		if k.ringID != r.id {
			t.remove(g)
		}
	}
}

// putKey keeps a copy of m, a key of r, unless another ring is known or keys
// were dropped since mark.
func (c *cache) putKey(r *ring, m *material, mark uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops[slot(r.tenant)] != mark {
		return
	}
	t := c.open(r.tenant, now)
	if t.ring != nil && t.ring.id != r.id {
		return
	}
	t.remove(m.generation)
	t.keys[m.generation] = &cachedKey{ringID: r.id, at: now, material: *m}
}

// drop wipes one tenant's keys; what is being fetched is not kept.
func (c *cache) drop(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops[slot(tenant)]++
	if e := c.tenants[tenant]; e != nil {
		c.remove(e)
	}
}

// dropAll wipes everything.
func (c *cache) dropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.drops {
		c.drops[i]++
	}
	for c.order.Len() > 0 {
		c.remove(c.order.Back())
	}
}

func (c *cache) open(tenant string, now time.Time) *tenantKeys {
	e := c.tenants[tenant]
	if e == nil {
		for c.order.Len() >= c.maxTenants {
			c.remove(c.order.Back())
		}
		e = c.order.PushFront(&tenantKeys{tenant: tenant, used: now, keys: map[int64]*cachedKey{}})
		c.tenants[tenant] = e
	}
	c.touch(e, now)
	return e.Value.(*tenantKeys)
}

func (c *cache) touch(e *list.Element, now time.Time) {
	e.Value.(*tenantKeys).used = now
	c.order.MoveToFront(e)
}

// expire wipes the tenants that nobody has used for the maximum age: all their
// keys have run out.
func (c *cache) expire(now time.Time) {
	for e := c.order.Back(); e != nil && c.old(e.Value.(*tenantKeys).used, now); e = c.order.Back() {
		c.remove(e)
	}
}

func (c *cache) remove(e *list.Element) {
	t := c.order.Remove(e).(*tenantKeys)
	delete(c.tenants, t.tenant)
	for g := range t.keys {
		t.remove(g)
	}
}

func (t *tenantKeys) remove(generation int64) {
	if k := t.keys[generation]; k != nil {
		k.wipe()
		delete(t.keys, generation)
	}
}
