package jsonx

import (
	"fmt"
	"strings"
)

// respelled returns v with every key spelled as Quote does.
func respelled(v *Value) *Value {
	elems, members := make([]*Value, len(v.Elems())), make([]Member, len(v.Members()))
	for i, e := range v.Elems() {
		elems[i] = respelled(e)
	}
	for i, m := range v.Members() {
		members[i] = Member{quote(decode(m.Key)), respelled(m.Value)}
	}
	switch v.Kind() {
	case Array:
		return NewArray(elems...)
	case Object:
		return NewObject(members...)
	}
	return v
}

// plainApply is the reference: every operation rebuilds the whole tree. It
// does not know how new keys are spelled.
func plainApply(doc, patch *Value) (*Value, bool) {
	for _, op := range patch.Elems() {
		name, _ := op.Get("op").Text()
		path, okPath := plainPointer(op.Get("path"))
		from, okFrom := plainPointer(op.Get("from"))
		if !okPath || (name == "move" || name == "copy") && !okFrom {
			return nil, false
		}
		value, ok := op.Get("value"), true
		if name == "move" || name == "copy" {
			if value, ok = plainGet(doc, from); !ok {
				return nil, false
			}
		}
		if name == "move" && len(from) <= len(path) && plainPrefix(from, path) {
			if len(from) < len(path) {
				return nil, false
			}
			continue
		}
		if name == "remove" || name == "move" {
			if name == "remove" {
				from = path
			}
			if doc, ok = plainChange(doc, from, nil, "remove"); !ok {
				return nil, false
			}
		}
		switch name {
		case "test":
			at, found := plainGet(doc, path)
			if !found || string(AppendCanonical(nil, at)) != string(AppendCanonical(nil, value)) {
				return nil, false
			}
		case "add", "copy", "move":
			doc, ok = plainChange(doc, path, value, "add")
		case "replace":
			doc, ok = plainChange(doc, path, value, "replace")
		}
		if !ok {
			return nil, false
		}
	}
	return doc, true
}

func plainPrefix(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func plainPointer(v *Value) ([]string, bool) {
	if v.Kind() != String {
		return nil, false
	}
	text := decode(v.Raw())
	if text == "" {
		return nil, true
	}
	segments := strings.Split(text, "/")
	for i, s := range segments {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(s); strings.Contains(rest, "~") {
			return nil, false
		}
		segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	return segments[1:], segments[0] == ""
}

func plainGet(v *Value, path []string) (*Value, bool) {
	for _, s := range path {
		i := plainIndex(v, s)
		switch {
		case i < 0 || i >= v.Len():
			return nil, false
		case v.Kind() == Array:
			v = v.Elem(i)
		default:
			v = v.Members()[i].Value
		}
	}
	return v, true
}

func plainIndex(v *Value, s string) int {
	if v.Kind() == Array {
		if s == "-" {
			return v.Len()
		}
		for i := range v.Len() + 1 {
			if fmt.Sprint(i) == s {
				return i
			}
		}
		return -1
	}
	for i, m := range v.Members() {
		if decode(m.Key) == s {
			return i
		}
	}
	if v.Kind() == Object {
		return v.Len()
	}
	return -1
}

func plainChange(v *Value, path []string, value *Value, how string) (*Value, bool) {
	if len(path) == 0 {
		return value, how != "remove"
	}
	i := plainIndex(v, path[0])
	last := len(path) == 1
	if i < 0 || i > v.Len() || i == v.Len() && (!last || how != "add") {
		return nil, false
	}
	ok := true
	if v.Kind() == Array {
		elems := append([]*Value(nil), v.Elems()...)
		switch {
		case last && how == "add":
			elems = append(elems[:i:i], append([]*Value{value}, elems[i:]...)...)
		case last && how == "remove":
			elems = append(elems[:i:i], elems[i+1:]...)
		default:
			elems[i], ok = plainChange(elems[i], path[1:], value, how)
		}
		return NewArray(elems...), ok
	}
	members := append([]Member(nil), v.Members()...)
	switch {
	case last && i == v.Len():
		members = append(members, Member{quote(path[0]), value})
	case last && how == "remove":
		members = append(members[:i:i], members[i+1:]...)
	default:
		members[i].Value, ok = plainChange(members[i].Value, path[1:], value, how)
	}
	return NewObject(members...), ok
}
