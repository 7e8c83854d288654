package jsonx

// slab allocates the nodes of one parsed text in chunks. Slices cut from a
// chunk have no spare capacity, so appending to one never touches another.
type slab struct {
	chunk   int // entries of the next chunk of values
	values  []Value
	kids    []kids
	elems   []*Value
	members []Member
	lent    *chunks // where chunks come from and stay, nil when nodes may be kept
}

// chunks serve one lent text after the other; each is the newest of its kind,
// clear before it serves.
type chunks struct {
	values  []Value
	kids    []kids
	elems   []*Value
	members []Member
}

func (a *slab) borrow(c *chunks) {
	a.values, a.kids, a.elems, a.members, a.lent = c.values, c.kids, c.elems, c.members, c
}

// giveBack clears what was used of the chunks.
func (a *slab) giveBack() {
	c := a.lent
	clear(c.values[:len(c.values)-len(a.values)])
	clear(c.kids[:len(c.kids)-len(a.kids)])
	clear(c.elems[:len(c.elems)-len(a.elems)])
	clear(c.members[:len(c.members)-len(a.members)])
}

const maxChunk = 1024

// start sets the first chunk for a text of so many bytes.
func (a *slab) start(textBytes int) { a.chunk = min(textBytes/24+1, maxChunk/4) }

func (a *slab) newValue() *Value {
	if len(a.values) == 0 {
		a.values = make([]Value, a.chunk)
		if a.lent != nil {
			a.lent.values = a.values
		}
		a.chunk = min(a.chunk*2, maxChunk)
	}
	v := &a.values[0]
	a.values = a.values[1:]
	return v
}

func (a *slab) newKids() *kids {
	if len(a.kids) == 0 {
		a.kids = make([]kids, max(1, a.chunk/8))
		if a.lent != nil {
			a.lent.kids = a.kids
		}
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
		if a.lent != nil {
			a.lent.elems = a.elems
		}
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
		if a.lent != nil {
			a.lent.members = a.members
		}
	}
	s := a.members[:n:n]
	a.members = a.members[n:]
	return s
}
