package journal

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/execution"
)

// Handle is an execution's journal as it was read: the fold at its tip and
// what is needed to extend it. Immutable.
type Handle struct {
	State *execution.State
	// Head is nil where it was not asked for.
	Head *Head
	// Slots are those of open operations' current attempts, where they were asked
	// for; nil: they were not.
	Slots map[execution.OperationID]*Slot
	// Recent are the newest entries that this handle has seen, in order.
	Recent []EntryInfo
	// Fresh: read from the store for this call. A warm handle saves the reads;
	// nothing is refused because of it.
	Fresh bool

	tip        [32]byte // digest of the tip
	chain      int64    // entries since the one with a snapshot
	chainBytes int64    // stored bytes of those
	snapBytes  int64    // stored bytes of the one with the snapshot
	// validated is the store time of the oldest read or acknowledged write that
	// shows that nothing stood after the tip.
	validated time.Time
	clock     Clock
}

// EntryInfo is what a conflict tells about an entry.
type EntryInfo struct {
	Version int64
	Kind    execution.Kind
	Actor   *execution.Actor
}

// recentEntries bounds Handle.Recent.
const recentEntries = 32

// note adds what was read or written now; a handle that h was copied from keeps
// its own.
func (h *Handle) note(newer ...EntryInfo) {
	newer = newer[max(0, len(newer)-recentEntries):]
	older := h.Recent[max(0, len(h.Recent)+len(newer)-recentEntries):]
	h.Recent = append(append(make([]EntryInfo, 0, len(older)+len(newer)), older...), newer...)
}

func infoOf(e *execution.Entry) EntryInfo { return EntryInfo{e.Version, e.Kind, e.Body.Actor} }

// Now is the store's time in milliseconds as this handle knows it.
func (j *Journal) Now(h *Handle) int64 { return j.NowOf(h.clock) }

// ValidatedAt is what a write justified by this handle must carry.
func (h *Handle) ValidatedAt() time.Time { return h.validated }

// LeaseRemaining is how long the owner's lease still runs in milliseconds, at
// least 0; 0 when nobody owns it. It needs the head.
func (j *Journal) LeaseRemaining(h *Handle) int64 {
	var head int64
	if h.Head != nil && h.Head.Fence == h.State.Fence {
		head = h.Head.LeaseExpiresAt
	}
	return max(0, h.State.LeaseEnd(head)-j.Now(h))
}

// usable reports whether a warm handle may still justify a write: a good part
// of the window must be left for the write itself.
func (j *Journal) usable(h *Handle) bool {
	return !h.clock.slow && j.NowOf(h.clock)-h.validated.UnixMilli() < warmFor.Milliseconds()
}

// warmFor is how long after its validation a handle is used without a read.
const warmFor = 4 * time.Minute

// warm keeps the most recently used handles.
type warm struct {
	mu    sync.Mutex
	limit int
	order list.List
	byPK  map[string]*list.Element
}

type warmEntry struct {
	pk string
	h  *Handle
}

func (w *warm) get(pk string) *Handle {
	w.mu.Lock()
	defer w.mu.Unlock()
	el := w.byPK[pk]
	if el == nil {
		return nil
	}
	w.order.MoveToFront(el)
	return el.Value.(*warmEntry).h
}

// put keeps h unless a newer one of the same generation is there.
func (w *warm) put(pk string, h *Handle) {
	if w.limit < 0 {
		return
	}
	c := *h
	c.Head, c.Slots, c.Fresh = nil, nil, false
	w.mu.Lock()
	defer w.mu.Unlock()
	if el := w.byPK[pk]; el != nil {
		old := el.Value.(*warmEntry)
		if old.h.State.Generation == c.State.Generation && old.h.State.Version > c.State.Version {
			return
		}
		old.h = &c
		w.order.MoveToFront(el)
		return
	}
	if w.byPK == nil {
		w.byPK = map[string]*list.Element{}
	}
	w.byPK[pk] = w.order.PushFront(&warmEntry{pk, &c})
	for w.order.Len() > w.limit {
		last := w.order.Back()
		delete(w.byPK, last.Value.(*warmEntry).pk)
		w.order.Remove(last)
	}
}

func (w *warm) drop(pk string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if el := w.byPK[pk]; el != nil {
		delete(w.byPK, pk)
		w.order.Remove(el)
	}
}

// Forget drops whatever is kept in memory about an execution.
func (j *Journal) Forget(t execution.TenantID, e execution.ExecutionID) {
	j.warm.drop(execution.PartitionKey(t, e))
}

// unsent remembers writes that were ambiguous and whose answer never went out,
// so that a repeat in this same process may still say `go` (M). It knows them by
// their bytes: an entry that another process wrote for the same request, or this
// one later, has been answered.
type unsent struct {
	mu   sync.Mutex
	list []unsentKey
}

type unsentKey struct {
	pk    string
	hash  execution.RequestHash
	fence int64
	entry [32]byte // digest of the entry
}

const maxUnsent = 1024

func (u *unsent) add(k unsentKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, k)
	if len(u.list) > maxUnsent {
		u.list = append([]unsentKey(nil), u.list[len(u.list)-maxUnsent:]...)
	}
}

// take gives the digests of the entries that were sent for a request and forgets
// them: whoever takes them answers.
func (u *unsent) take(pk string, hash execution.RequestHash, fence int64) (entries [][32]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(x unsentKey) bool {
		if x.pk != pk || x.hash != hash {
			return false
		}
		if x.fence == fence {
			entries = append(entries, x.entry)
		}
		return true
	})
	return entries
}
