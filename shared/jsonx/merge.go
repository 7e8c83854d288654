package jsonx

import (
	"errors"
	"slices"
)

// MergePatch applies an RFC 7396 merge patch and returns the result, which
// shares unchanged nodes with doc and merge. A key that stays keeps its place
// and spelling, a new one goes to the end with the spelling in merge. The error
// is not nil only when doc or merge is nil.
func MergePatch(doc, merge *Value) (*Value, error) {
	if doc.Kind() == Invalid || merge.Kind() == Invalid {
		return nil, errors.New("json merge patch: no document or no patch")
	}
	return mergeValue(doc, merge), nil
}

// mergeValue merges into target, which may be nil.
func mergeValue(target, patch *Value) *Value {
	if patch.Kind() != Object {
		return patch
	}
	if target.Kind() != Object {
		return withoutNulls(patch)
	}
	old := target.kids.members
	members := slices.Clone(old)
	index := indexMembers(old)
	changed := false
	for _, m := range patch.kids.members {
		i := index.find(decode(m.Key))
		null := m.Value.Kind() == Null
		switch {
		case i < 0 && null:
			continue
		case i < 0:
			members = append(members, Member{Key: m.Key, Value: mergeValue(nil, m.Value)})
		case null:
			members[i].Value = nil
		default:
			members[i].Value = mergeValue(old[i].Value, m.Value)
			if members[i].Value == old[i].Value {
				continue
			}
		}
		changed = true
	}
	if !changed {
		return target
	}
	return newObject(slices.DeleteFunc(members, func(m Member) bool { return m.Value == nil }))
}

// withoutNulls is the object a merge patch makes where there was none: members
// that are null are left out, down to where the first value is no object.
func withoutNulls(v *Value) *Value {
	if v.Kind() != Object {
		return v
	}
	var members []Member // non-nil from the first change
	for i, m := range v.kids.members {
		clean := withoutNulls(m.Value)
		null := clean.Kind() == Null
		if members == nil && (null || clean != m.Value) {
			members = slices.Clone(v.kids.members[:i])
		}
		if members != nil && !null {
			members = append(members, Member{Key: m.Key, Value: clean})
		}
	}
	if members == nil {
		return v
	}
	return newObject(members)
}
