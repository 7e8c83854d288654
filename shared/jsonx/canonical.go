package jsonx

import "slices"

// AppendDigestForm appends the text of v with the members of every object
// sorted by the UTF-16 code units of their names. Every token stays as it is
// written, so of all differences only the order of members disappears.
func AppendDigestForm(dst []byte, v *Value) []byte { return appendSorted(dst, v, false) }

// AppendCanonical appends the one text that stands for everything EqualValue
// to v: members sorted by the UTF-16 code units of their names, strings and
// keys with the escapes of Quote, numbers as digits without zeros at either end
// and an exponent (1, 1.0 and 10e-1 give 1; 100 gives 1e2; -0 gives 0). Values
// that are not EqualValue give different texts. The text is JSON; the exponent
// of a number may differ from the written one by its count of digits and so be
// beyond the limit of Parse.
func AppendCanonical(dst []byte, v *Value) []byte { return appendSorted(dst, v, true) }

func appendSorted(dst []byte, v *Value, canonical bool) []byte {
	switch v.Kind() {
	case Invalid:
		return dst
	case Array:
		dst = append(dst, '[')
		for i, e := range v.kids.elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendSorted(dst, e, canonical)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, m := range sortedMembers(v.kids.members) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendScalar(dst, m.Key, canonical)
			dst = append(dst, ':')
			dst = appendSorted(dst, m.Value, canonical)
		}
		return append(dst, '}')
	}
	return appendScalar(dst, v.raw, canonical)
}

func appendScalar(dst []byte, token string, canonical bool) []byte {
	switch c := token[0]; {
	case canonical && c == '"' && hasEscape(token):
		dst = append(dst, '"')
		dst = appendQuoted(dst, decode(token))
		return append(dst, '"')
	case canonical && (c == '-' || c >= '0' && c <= '9'):
		return appendDecimal(dst, parseDecimal(token))
	}
	return append(dst, token...)
}

// sortedMembers returns members in order of names; it is members itself when
// they are in order already.
func sortedMembers(members []Member) []Member {
	sorted := true
	for i := 1; i < len(members) && sorted; i++ {
		sorted = compareUTF16(decode(members[i-1].Key), decode(members[i].Key)) < 0
	}
	if sorted {
		return members
	}
	type named struct {
		name   string
		member Member
	}
	byName := make([]named, len(members))
	for i, m := range members {
		byName[i] = named{decode(m.Key), m}
	}
	slices.SortFunc(byName, func(a, b named) int { return compareUTF16(a.name, b.name) })
	out := make([]Member, len(members))
	for i, n := range byName {
		out[i] = n.member
	}
	return out
}
