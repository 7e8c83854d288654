package jsonx

import "strconv"

// NewString returns a String with the spelling of Quote.
func NewString(s string) *Value { return &Value{raw: Quote(s)} }

// NewInt returns a Number.
func NewInt(n int64) *Value { return &Value{raw: strconv.FormatInt(n, 10)} }

// NewBool returns a True or False.
func NewBool(b bool) *Value {
	if b {
		return trueValue
	}
	return falseValue
}

// NewNull returns a Null.
func NewNull() *Value { return nullValue }

// NewArray returns an array of its own copy of elems; nil elements become null.
func NewArray(elems ...*Value) *Value {
	own := make([]*Value, len(elems))
	for i, e := range elems {
		if own[i] = e; e.Kind() == Invalid {
			own[i] = nullValue
		}
	}
	return newArray(own)
}

// NewObject returns an object of its own copy of members. A member with a nil
// Value is left out; of members with the same name the first keeps the place
// and the last gives the value. It panics when a Key is no string token (see
// Key), which is a mistake of the program, never of its data.
func NewObject(members ...Member) *Value {
	own := make([]Member, 0, len(members))
	names := newNameIndex(len(members))
	for _, m := range members {
		if m.Value.Kind() == Invalid {
			continue
		}
		if end, _, reason := scanString(m.Key+" ", 0); m.Key == "" || m.Key[0] != '"' || reason != "" || end != len(m.Key) {
			panic("jsonx: key of a new member is no string token")
		}
		name := decode(m.Key)
		if i := names.find(name); i >= 0 {
			own[i].Value = m.Value
			continue
		}
		names.add(name)
		own = append(own, m)
	}
	return newObject(own)
}

// container is a container's two parts in one allocation.
type container struct {
	value Value
	kids  kids
}

func newContainer(k kids) *Value {
	c := &container{kids: k}
	c.value.kids = &c.kids
	return &c.value
}

// newArray returns an array that takes over elems.
func newArray(elems []*Value) *Value {
	k := kids{array: true, elems: elems}
	k.measure()
	return newContainer(k)
}

// newObject returns an object that takes over members, which are valid.
func newObject(members []Member) *Value {
	k := kids{members: members}
	k.measure()
	return newContainer(k)
}

// measure sets what is cached about the children.
func (k *kids) measure() {
	n := len(k.elems) + len(k.members)
	k.size = len("[]") + max(0, n-1)
	k.depth = 1
	k.escaped = false
	for _, e := range k.elems {
		k.size += e.Size()
		k.depth = max(k.depth, int32(e.Depth())+1)
	}
	for i := range k.members {
		m := &k.members[i]
		k.size += len(m.Key) + len(":") + m.Value.Size()
		k.depth = max(k.depth, int32(m.Value.Depth())+1)
		k.escaped = k.escaped || hasEscape(m.Key)
	}
}

// nameIndex finds the position of a decoded name among many without comparing
// with each.
type nameIndex struct {
	names []string
	byMap map[string]int
}

func newNameIndex(n int) *nameIndex {
	x := &nameIndex{}
	if n > manyMembers {
		x.byMap = make(map[string]int, n)
	} else {
		x.names = make([]string, 0, n)
	}
	return x
}

// indexMembers indexes all members.
func indexMembers(members []Member) *nameIndex {
	x := newNameIndex(len(members))
	for i := range members {
		x.add(decode(members[i].Key))
	}
	return x
}

// add gives name the next position.
func (x *nameIndex) add(name string) {
	if x.byMap != nil {
		x.byMap[name] = len(x.byMap)
		return
	}
	x.names = append(x.names, name)
}

// find returns the position of name, or -1.
func (x *nameIndex) find(name string) int {
	if x.byMap != nil {
		if i, ok := x.byMap[name]; ok {
			return i
		}
		return -1
	}
	for i, n := range x.names {
		if n == name {
			return i
		}
	}
	return -1
}
