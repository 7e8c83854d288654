package jsonx

import "strconv"

// Diff returns an RFC 6902 patch that turns from into to: ApplyPatch(from,
// Diff(from, to)) is Identical to to, the spelling of tokens and the order of
// members included. Its operations are add, remove and replace only; it is [],
// when nothing differs, and never larger than replacing the whole document. A
// nil argument stands for null. The time is about linear in the size of both.
func Diff(from, to *Value) *Value {
	if from.Kind() == Invalid {
		from = nullValue
	}
	if to.Kind() == Invalid {
		to = nullValue
	}
	d := differ{}
	d.value(from, to)
	ops := make([]*Value, len(d.ops))
	for i, op := range d.ops {
		ops[i] = op.patch()
	}
	return newArray(ops)
}

// differ collects the operations of a patch.
type differ struct {
	path  []byte // of the place at hand, as the inside of a string token
	ops   []change
	moves int // array elements that applying ops shifts, or somewhat more
}

// change is an operation of the patch.
type change struct {
	op    string
	path  string // inside of a string token
	value *Value // nil for remove
}

var (
	opTokens    = map[string]*Value{"add": {raw: `"add"`}, "remove": {raw: `"remove"`}, "replace": {raw: `"replace"`}}
	opKey       = `"op"`
	opPathKey   = `"path"`
	opValueKey  = `"value"`
	bareOpSize  = len(`{"op":"","path":""},`)
	opValueSize = len(`,"value":`)
)

func (c change) size() int {
	n := bareOpSize + len(c.op) + len(c.path)
	if c.value != nil {
		n += opValueSize + c.value.Size()
	}
	return n
}

func (c change) patch() *Value {
	members := make([]Member, 2, 3)
	members[0] = Member{opKey, opTokens[c.op]}
	members[1] = Member{opPathKey, &Value{raw: `"` + c.path + `"`}}
	if c.value != nil {
		members = append(members, Member{opValueKey, c.value})
	}
	return newObject(members)
}

func (d *differ) emit(op string, v *Value) {
	d.ops = append(d.ops, change{op, string(d.path), v})
}

// value makes the place at path, which holds from, hold to.
func (d *differ) value(from, to *Value) {
	if from == to {
		return
	}
	mark := len(d.ops)
	exact := false
	switch kind := from.Kind(); {
	case kind != to.Kind():
	case kind == Object:
		exact = d.object(from.kids, to.kids)
	case kind == Array:
		exact = d.array(from.kids.elems, to.kids.elems)
	case from.raw == to.raw:
		return
	}
	whole := change{"replace", "", to}.size() + len(d.path)
	for i := mark; exact && i < len(d.ops); i++ {
		whole -= d.ops[i].size()
		exact = whole >= 0
	}
	if !exact {
		d.ops = d.ops[:mark]
		d.emit("replace", to)
	}
}

// object makes one object into another. Replacing keeps a member's place and
// adding puts it last, so what stays must be a leading part of to whose members
// come in the same order, and with the same spelling, in from; the members after
// it are added, if need be after their removal. It is false when an add cannot
// spell a key.
func (d *differ) object(from, to *kids) bool {
	a, b := from.members, to.members
	same := 0 // members in step
	for same < len(a) && same < len(b) && a[same].Key == b[same].Key {
		d.member(a[same], b[same])
		same++
	}
	if same == len(a) {
		return d.addMembers(b[same:])
	}
	index := indexMembers(a[same:])
	stays := make([]bool, len(a))
	kept, next := same, same
	for ; kept < len(b); kept++ {
		i := index.find(decode(b[kept].Key)) + same
		if i < next || a[i].Key != b[kept].Key {
			break
		}
		d.member(a[i], b[kept])
		stays[i], next = true, i+1
	}
	for i := same; i < len(a); i++ {
		if !stays[i] {
			d.at(a[i].Key, func() { d.emit("remove", nil) })
		}
	}
	return d.addMembers(b[kept:])
}

func (d *differ) member(from, to Member) {
	a, b := from.Value, to.Value
	if a != b && (a.kids != nil || b.kids != nil || a.raw != b.raw) {
		d.at(from.Key, func() { d.value(a, b) })
	}
}

func (d *differ) addMembers(members []Member) bool {
	for _, m := range members {
		if !d.at(m.Key, func() { d.emit("add", m.Value) }) {
			return false
		}
	}
	return true
}

// at does something at the member with the key.
func (d *differ) at(key string, do func()) (exact bool) {
	n := len(d.path)
	d.path, exact = appendKeyPointer(d.path, key)
	do()
	d.path = d.path[:n]
	return exact
}

// atIndex does something at an element.
func (d *differ) atIndex(i int, do func()) {
	n := len(d.path)
	d.path = strconv.AppendInt(append(d.path, '/'), int64(i), 10)
	do()
	d.path = d.path[:n]
}

// maxDiffMoves bounds differ.moves. It is well below maxMoves, so that every
// Diff can be applied.
const maxDiffMoves = 1 << 28

// array makes one array into another. Changes go from left to right, so that
// at any time what lies left of the place at hand is as in to. It is false when
// applying the changes would shift too many elements.
func (d *differ) array(from, to []*Value) bool {
	runs := align(from, to)
	a, b := 0, 0
	for _, r := range append(runs, run{len(from), len(to), 0}) {
		paired := min(r.from-a, r.to-b)
		for i := range paired {
			d.atIndex(b+i, func() { d.value(from[a+i], to[b+i]) })
		}
		a, b = a+paired, b+paired
		left := len(from) - a
		d.moves += (r.from-a)*min(left, b) + (r.to-b)*left
		if d.moves > maxDiffMoves {
			return false
		}
		for ; a < r.from; a++ {
			d.atIndex(b, func() { d.emit("remove", nil) })
		}
		for ; b < r.to; b++ {
			d.addElem(b, a == len(from), to[b])
		}
		a, b = a+r.n, b+r.n
	}
	return true
}

func (d *differ) addElem(i int, last bool, v *Value) {
	if !last {
		d.atIndex(i, func() { d.emit("add", v) })
		return
	}
	n := len(d.path)
	d.path = append(d.path, "/-"...)
	d.emit("add", v)
	d.path = d.path[:n]
}
