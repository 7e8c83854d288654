package jsonx

import "slices"

// A patch edits containers in place, but only its own copies: the first step
// into a container copies it (the children are shared), marks the copy as
// being edited and puts it into its parent, which is being edited already. So
// below a container that is not being edited nothing is, and only the patch can
// reach what is. seal ends the editing of all of them; until then size is
// right, depth may be too large (stale), and removed members of an object with
// an index are holes (a nil Value).

// editing is the state of a container that belongs to a patch. Its zero value
// means that the container is immutable.
type editing struct {
	on      bool
	stale   bool  // depth is an upper bound
	lookups uint8 // by name, up to indexAfter
}

const (
	indexFrom  = 64 // members from which an index by name pays
	indexAfter = 8  // after so many lookups
)

// editor holds the document a patch works on.
type editor struct {
	root  *Value
	own   []*kids // all containers being edited
	spine []*kids // of the last walk: from the root to the container reached
	moves int     // children copied or shifted so far
}

// maxMoves bounds the work of one patch: shifting children is all that costs
// more than reading the patch.
const maxMoves = 1 << 30

// edit makes the container in place editable and returns its children.
func (e *editor) edit(place **Value) *kids {
	if k := (*place).kids; k.editing.on {
		return k
	}
	v := newContainer(*(*place).kids)
	k := v.kids
	if k.array {
		k.elems = append(make([]*Value, 0, len(k.elems)+1), k.elems...)
	} else {
		k.members = append(make([]Member, 0, len(k.members)+1), k.members...)
	}
	e.moves += len(k.elems) + len(k.members)
	k.editing.on = true
	e.own = append(e.own, k)
	*place = v
	return k
}

// seal makes every container immutable again.
func (e *editor) seal() {
	for _, k := range e.own {
		k.settleDepth()
		if k.index != nil {
			k.members = slices.DeleteFunc(k.members, func(m Member) bool { return m.Value == nil })
			k.index = nil
		}
	}
	for _, k := range e.own {
		k.editing = editing{}
	}
	e.own = e.own[:0]
}

// settleDepth makes a stale depth exact.
func (k *kids) settleDepth() {
	if !k.editing.stale {
		return
	}
	k.editing.stale = false
	bound := k.depth
	k.depth = 1
	for i := 0; i < len(k.elems) && k.depth < bound; i++ {
		k.deepen(k.elems[i])
	}
	for i := 0; i < len(k.members) && k.depth < bound; i++ {
		k.deepen(k.members[i].Value)
	}
}

func (k *kids) deepen(child *Value) {
	if child == nil || child.kids == nil {
		return
	}
	child.kids.settleDepth()
	k.depth = max(k.depth, child.kids.depth+1)
}

// count is the number of children without holes.
func (k *kids) count() int {
	if k.index != nil {
		return len(k.index)
	}
	return len(k.elems) + len(k.members)
}

// lookup is find for an object being edited.
func (k *kids) lookup(name string) int {
	if k.index == nil {
		if len(k.members) < indexFrom || k.editing.lookups < indexAfter {
			k.editing.lookups++
			return k.find(name)
		}
		k.index = make(map[string]int, len(k.members))
		for i := range k.members {
			k.index[decode(k.members[i].Key)] = i
		}
	}
	if i, ok := k.index[name]; ok {
		return i
	}
	return -1
}

// place returns where the child that seg names is kept, nil when there is none.
func (k *kids) place(seg segment) **Value {
	if k.array {
		if i := arrayIndex(seg.name); i >= 0 && i < len(k.elems) {
			return &k.elems[i]
		}
		return nil
	}
	if i := k.lookup(seg.name); i >= 0 {
		return &k.members[i].Value
	}
	return nil
}

// walk makes the container that holds the pointer's last segment editable,
// with all above it, and leaves the way in spine. The pointer is not "".
func (e *editor) walk(pointer string) (k *kids, last segment, reason string) {
	e.spine = e.spine[:0]
	place := &e.root
	for {
		if (*place).kids == nil {
			return nil, last, reasonNoPlace
		}
		k = e.edit(place)
		e.spine = append(e.spine, k)
		var ok bool
		if last, pointer, ok = nextSegment(pointer); !ok {
			return nil, last, reasonPointer
		}
		if pointer == "" {
			return k, last, ""
		}
		if place = k.place(last); place == nil {
			return nil, last, reasonNoPlace
		}
	}
}

// set replaces the child at place, which belongs to the end of the spine.
func (e *editor) set(place **Value, v *Value) {
	old := *place
	*place = v
	e.grew(v.Size() - old.Size())
	e.shallower(old.Depth())
	e.deeper(v.Depth())
}

// insert puts an element into the array at the end of the spine.
func (e *editor) insert(i int, v *Value) {
	k := e.spine[len(e.spine)-1]
	e.moves += len(k.elems) - i
	k.elems = slices.Insert(k.elems, i, v)
	e.grew(v.Size() + comma(len(k.elems)))
	e.deeper(v.Depth())
}

// append adds a member to the object at the end of the spine.
func (e *editor) append(seg segment, v *Value) {
	k := e.spine[len(e.spine)-1]
	m := Member{Key: seg.keyToken(), Value: v}
	k.members = append(k.members, m)
	k.escaped = k.escaped || hasEscape(m.Key)
	if k.index != nil {
		k.index[seg.name] = len(k.members) - 1
	}
	e.grew(len(m.Key) + len(":") + v.Size() + comma(k.count()))
	e.deeper(v.Depth())
}

// remove takes the child that seg names out of the container at the end of the
// spine. It returns nil when there is none.
func (e *editor) remove(seg segment) *Value {
	k := e.spine[len(e.spine)-1]
	var v *Value
	var key int // bytes of the key and its colon
	if k.array {
		i := arrayIndex(seg.name)
		if i < 0 || i >= len(k.elems) {
			return nil
		}
		v = k.elems[i]
		e.removeElem(k, i)
	} else {
		i := k.lookup(seg.name)
		if i < 0 {
			return nil
		}
		v = k.members[i].Value
		key = len(k.members[i].Key) + len(":")
		if k.index != nil {
			delete(k.index, seg.name)
			k.members[i] = Member{}
		} else {
			k.members = slices.Delete(k.members, i, i+1)
		}
	}
	e.grew(-key - v.Size() - comma(k.count()+1))
	e.shallower(v.Depth())
	return v
}

// removeElem shifts the shorter side, so that a list used as a queue is cheap.
func (e *editor) removeElem(k *kids, i int) {
	if rest := len(k.elems) - 1 - i; rest <= i {
		e.moves += rest
		k.elems = slices.Delete(k.elems, i, i+1)
		return
	}
	e.moves += i
	copy(k.elems[1:i+1], k.elems[:i])
	k.elems[0] = nil
	k.elems = k.elems[1:]
}

// comma is the number of bytes the separator of one of n children takes.
func comma(n int) int {
	if n > 1 {
		return 1
	}
	return 0
}

// grew adds to the sizes along the spine.
func (e *editor) grew(bytes int) {
	for _, k := range e.spine {
		k.size += bytes
	}
}

// deeper raises the depths along the spine for a new child at its end.
func (e *editor) deeper(depth int) {
	for i := len(e.spine) - 1; i >= 0; i-- {
		depth++
		if k := e.spine[i]; int(k.depth) < depth {
			k.depth = int32(depth)
		}
	}
}

// shallower marks the depths along the spine that may have come from a child
// of that depth which has left its end.
func (e *editor) shallower(depth int) {
	for i := len(e.spine) - 1; i >= 0; i-- {
		depth++
		k := e.spine[i]
		if int(k.depth) > depth {
			return
		}
		k.editing.stale = true
	}
}
