package jsonx

// slab allocates the nodes of one parsed text in chunks. Slices cut from a
// chunk have no spare capacity, so appending to one never touches another.
type slab struct {
	chunk  int    // entries of the next chunk of values
	chunks        // what is left of the newest of each kind
	newest chunks // these whole
	spare  chunks // of Lend, clear
}

type chunks struct {
	values  []Value
	kids    []kids
	elems   []*Value
	members []Member
}

// borrow begins with the spare chunks, which nodes that may be kept never use.
func (a *slab) borrow() { a.chunks, a.newest, a.spare = a.spare, a.spare, chunks{} }

// giveBack clears what was used of the newest chunks, for the next borrow.
func (a *slab) giveBack() {
	c := a.newest
	clear(c.values[:len(c.values)-len(a.values)])
	clear(c.kids[:len(c.kids)-len(a.kids)])
	clear(c.elems[:len(c.elems)-len(a.elems)])
	clear(c.members[:len(c.members)-len(a.members)])
	a.spare = c
}

const maxChunk = 1024

// start sets the first chunk for a text of so many bytes.
func (a *slab) start(textBytes int) { a.chunk = min(textBytes/24+1, maxChunk/4) }

func (a *slab) newValue() *Value {
	if len(a.values) == 0 {
		a.values = make([]Value, a.chunk)
		a.newest.values = a.values
		a.chunk = min(a.chunk*2, maxChunk)
	}
	v := &a.values[0]
	a.values = a.values[1:]
	return v
}

func (a *slab) newKids() *kids {
	if len(a.kids) == 0 {
		a.kids = make([]kids, max(1, a.chunk/8))
		a.newest.kids = a.kids
	}
	k := &a.kids[0]
	a.kids = a.kids[1:]
	return k
}

func (a *slab) newElems(n int) []*Value {
	if n > len(a.elems) {
		if n >= a.chunk/4 {
			return make([]*Value, n)
		}
		a.elems = make([]*Value, a.chunk)
		a.newest.elems = a.elems
	}
	s := a.elems[:n:n]
	a.elems = a.elems[n:]
	return s
}

func (a *slab) newMembers(n int) []Member {
	if n > len(a.members) {
		if n >= a.chunk/4 {
			return make([]Member, n)
		}
		a.members = make([]Member, a.chunk)
		a.newest.members = a.members
	}
	s := a.members[:n:n]
	a.members = a.members[n:]
	return s
}
