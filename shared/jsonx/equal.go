package jsonx

// Identical reports whether a and b have the same text: every token, and
// members in the same order. Two nil values are identical.
func Identical(a, b *Value) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Size() != b.Size() || a.raw != b.raw {
		return false
	}
	if a.kids == nil || b.kids == nil {
		return a.kids == b.kids
	}
	ka, kb := a.kids, b.kids
	if ka == kb {
		return true
	}
	if ka.array != kb.array || ka.depth != kb.depth || len(ka.elems) != len(kb.elems) || len(ka.members) != len(kb.members) {
		return false
	}
	for i := range ka.elems {
		if !Identical(ka.elems[i], kb.elems[i]) {
			return false
		}
	}
	for i := range ka.members {
		if ka.members[i].Key != kb.members[i].Key || !Identical(ka.members[i].Value, kb.members[i].Value) {
			return false
		}
	}
	return true
}

// Equal reports whether a and b hold the same data: numbers are the same
// tokens (1 and 1.0 differ), strings and keys the same UTF-16 code units
// whatever their escapes, arrays the same elements in order, objects the same
// members in any order. Two nil values are equal.
func Equal(a, b *Value) bool {
	return equal(a, b, func(x, y string) bool { return x == y })
}

// EqualValue is Equal with numbers compared by exact value (1, 1.0 and 10e-1
// are equal, and so are 0 and -0), as the test operation of RFC 6902 does.
func EqualValue(a, b *Value) bool { return equal(a, b, sameNumber) }

func equal(a, b *Value, numbers func(x, y string) bool) bool {
	kind := a.Kind()
	if a == b || kind != b.Kind() {
		return a == b
	}
	switch kind {
	case Number:
		return numbers(a.raw, b.raw)
	case String:
		return a.raw == b.raw || (hasEscape(a.raw) || hasEscape(b.raw)) && decode(a.raw) == decode(b.raw)
	case Array:
		if len(a.kids.elems) != len(b.kids.elems) {
			return false
		}
		for i, e := range a.kids.elems {
			if !equal(e, b.kids.elems[i], numbers) {
				return false
			}
		}
	case Object:
		return equalMembers(a.kids, b.kids, numbers)
	}
	return true
}

func equalMembers(a, b *kids, numbers func(x, y string) bool) bool {
	if len(a.members) != len(b.members) {
		return false
	}
	var index *nameIndex // of b, from the first member out of step
	for i, m := range a.members {
		if m.Key != b.members[i].Key {
			if index == nil {
				index = indexMembers(b.members)
			}
			if i = index.find(decode(m.Key)); i < 0 {
				return false
			}
		}
		if !equal(m.Value, b.members[i].Value, numbers) {
			return false
		}
	}
	return true
}
