package memory

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/store"
)

// Names of the two tables. Main has the indexes, the stream and time to live;
// every other table has none of them.
const (
	Main = "main"
	Keys = "keys"
)

// Options of an engine; the zero Options are usable.
type Options struct {
	// Start is where the clock begins; zero: 2026-01-01T00:00:00Z.
	Start time.Time
	// Indexes of the main table; nil: store.Indexes.
	Indexes []store.Index
	// LogSize bounds the call log, the oldest calls go first; 0: 100,000.
	LogSize int
	// NoStream keeps no stream records, for an engine whose records nobody takes.
	NoStream bool
	// CountIndexWrites adds to write units what the indexes' own writes cost.
	CountIndexWrites bool
	// TTLLate says how much later than its time an item goes, as DynamoDB takes
	// minutes to days for it, in no order; nil: at once.
	TTLLate func(k store.Key, ttl int64) time.Duration
	// ShareItems hands the same item to every reader of it, which no reader may
	// change, instead of one of the reader's own: cheaper, and it needs more memory.
	// Untouched tells whether somebody did.
	ShareItems bool
	// Seed varies the key that objects are encrypted with at rest.
	Seed string
}

// Engine is the whole world: tables, bucket, clock, faults, log.
// Make it with New.
type Engine struct {
	opts Options

	mu      sync.Mutex
	now     time.Time // the virtual clock, exact
	wall    time.Time // when RealTime began to count; zero: the clock stands
	tables  map[string]*Table
	bucket  *Bucket
	faults  []*armed
	log     log
	stream  []change
	lastSeq uint64
	baseURL string
}

// New makes an empty engine.
func New(opts Options) *Engine {
	if opts.Start.IsZero() {
		opts.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if opts.Indexes == nil {
		opts.Indexes = store.Indexes
	}
	if opts.LogSize <= 0 {
		opts.LogSize = 100_000
	}
	e := &Engine{opts: opts, now: opts.Start.UTC(), log: log{size: opts.LogSize}}
	e.empty()
	return e
}

// empty drops all items and objects. The tables and the bucket that were
// handed out stay usable.
func (e *Engine) empty() {
	if e.tables == nil {
		e.tables = map[string]*Table{}
		e.bucket = &Bucket{e: e}
	}
	for _, t := range e.tables {
		t.clear()
	}
	e.bucket.clear()
	e.setObjectKey(sha256.Sum256([]byte("cairn memory engine: objects at rest " + e.opts.Seed)))
}

// Table gives the table of that name, made empty when it is new.
func (e *Engine) Table(name string) *Table {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.table(name)
}

func (e *Engine) table(name string) *Table {
	t := e.tables[name]
	if t == nil {
		t = &Table{e: e, name: name}
		if name == Main {
			t.schema = e.opts.Indexes
		}
		t.clear()
		e.tables[name] = t
	}
	return t
}

// Bucket gives the bucket.
func (e *Engine) Bucket() *Bucket { return e.bucket }

// Now is the store's clock, in whole milliseconds, UTC.
func (e *Engine) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock()
}

func (e *Engine) clock() time.Time { return e.exact().Truncate(time.Millisecond) }

func (e *Engine) exact() time.Time {
	if e.wall.IsZero() {
		return e.now
	}
	return e.now.Add(time.Since(e.wall))
}

// Advance moves the clock forward and makes what is due by then happen at the
// store: items past their time to live go, each with a REMOVE record, and
// objects with the expiry tag vanish. It runs no functions. A negative d is an
// error: the clock never goes back.
func (e *Engine) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("memory: the clock cannot go back by %v", -d)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.Add(d)
	e.settle()
	return nil
}

// RealTime makes the clock run with the host's (monotonic) clock, or stand again.
func (e *Engine) RealTime(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now, e.wall = e.exact(), time.Time{}
	if on {
		e.wall = time.Now()
	}
}

// settle makes happen what is due at the clock.
func (e *Engine) settle() {
	now := e.clock()
	if t := e.tables[Main]; t != nil {
		t.expire(now)
	}
	e.bucket.expire(now)
}

// Reset takes away every item, object, stream record, fault and log line. The
// clock stays where it is: it never goes back.
func (e *Engine) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.empty()
	e.faults, e.stream = nil, nil
	e.log.clear()
}

// SetBaseURL says where ServePresigned is served, for example
// "http://127.0.0.1:4577/objects/"; presigned URLs begin with it.
func (e *Engine) SetBaseURL(url string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.baseURL = url
}

// Secret derives a key for the purpose from the key that objects are encrypted
// with; it is the same again after a dump that holds that key is loaded. The
// local key service wraps its data keys with it.
func (e *Engine) Secret(purpose string) [32]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secret(purpose)
}

func (e *Engine) secret(purpose string) [32]byte {
	m := hmac.New(sha256.New, e.bucket.key[:])
	m.Write([]byte(purpose))
	return [32]byte(m.Sum(nil))
}

// The engine's own key lies in the key table, so that a dump holds it beside
// the tenants' keys.
var objectKeyAt = store.Key{PK: "~sandbox", SK: "objects"}

func (e *Engine) setObjectKey(key [32]byte) {
	e.bucket.setKey(key)
	keys := e.table(Keys)
	keys.replace(keys.row(objectKeyAt), keys.newRow(store.Item{
		store.AttrPK: store.S(objectKeyAt.PK), store.AttrSK: store.S(objectKeyAt.SK), "key": store.B(key[:]),
	}))
}
