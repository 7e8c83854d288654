package jsonx

import (
	"strings"

	"pgregory.net/rapid"
)

// Generators of texts and values for the property tests: few names and tokens,
// so that collisions, near misses and moved members are common.

var tokens = []string{
	"null", "true", "false", "0", "-0", "1", "1.0", "10e-1", "1E0", "100", "1e2", "-1", "0.5", "5e-1", "1e9999", "10e9998", "0e5",
	`""`, `"a"`, `"\u0061"`, `"/"`, `"\/"`, `"\ud800"`, `"\uD800"`, `"\udc00"`, `"😀"`, `"\ud83d\ude00"`, `"\u0000"`, `"\n"`, `"\u000a"`,
}

var keys = []string{
	`"a"`, `"b"`, `"c"`, `"\u0062"`, `""`, `"~"`, `"/"`, `"~1"`, `"a\/b"`, `"\u007e0"`, `"0"`, `"-"`, `"é"`, `"\u00e9"`, `"e\u0301"`,
	`"\ud800"`, `"\ud801x"`, `"😀"`, `"\ud83d\ude00"`, `"\uffff"`, `"\"\\"`, `"\u0001"`,
}

func genValue(depth int) *rapid.Generator[*Value] {
	return rapid.Custom(func(t *rapid.T) *Value {
		shape := 0
		if depth > 0 {
			shape = rapid.IntRange(0, 4).Draw(t, "shape")
		}
		switch shape {
		case 0, 1:
			return MustParse(rapid.SampledFrom(tokens).Draw(t, "token"))
		case 2:
			return NewArray(rapid.SliceOfN(genValue(depth-1), 0, 6).Draw(t, "elems")...)
		}
		var members []Member
		for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 6).Draw(t, "keys") {
			members = append(members, Member{key, genValue(depth-1).Draw(t, "value")})
		}
		return NewObject(members...)
	})
}

// genNear returns a value that differs from v in a few places.
func genNear(v *Value, depth int) *rapid.Generator[*Value] {
	return rapid.Custom(func(t *rapid.T) *Value {
		change := rapid.IntRange(0, 9).Draw(t, "change")
		switch {
		case change == 0 || v.Len() == 0 && change < 4:
			return genValue(depth).Draw(t, "new")
		case v.Len() == 0 || change == 1:
			return v
		}
		at := rapid.IntRange(0, v.Len()-1).Draw(t, "at")
		if v.Kind() == Array {
			elems := append([]*Value(nil), v.Elems()...)
			switch {
			case change < 4:
				elems = append(elems[:at], elems[at+1:]...)
			case change < 7:
				elems = append(elems[:at], append([]*Value{genValue(depth).Draw(t, "elem")}, elems[at:]...)...)
			default:
				elems[at] = genNear(elems[at], depth-1).Draw(t, "near")
			}
			return NewArray(elems...)
		}
		members := append([]Member(nil), v.Members()...)
		switch {
		case change == 2:
			members[at].Value = nil
		case change == 3:
			members = append(members, Member{rapid.SampledFrom(keys).Draw(t, "key"), genValue(depth).Draw(t, "value")})
		case change == 4:
			to := rapid.IntRange(0, len(members)-1).Draw(t, "to")
			members[at], members[to] = members[to], members[at]
		default:
			members[at].Value = genNear(members[at].Value, depth-1).Draw(t, "near")
		}
		return NewObject(members...)
	})
}

// shuffled returns v with the members of its objects in another order.
func shuffled(t *rapid.T, v *Value) *Value {
	switch v.Kind() {
	case Array:
		elems := make([]*Value, v.Len())
		for i, e := range v.Elems() {
			elems[i] = shuffled(t, e)
		}
		return NewArray(elems...)
	case Object:
		members := append([]Member(nil), v.Members()...)
		for i := range members {
			members[i].Value = shuffled(t, members[i].Value)
		}
		if len(members) > 1 {
			members = rapid.Permutation(members).Draw(t, "order")
		}
		return NewObject(members...)
	}
	return v
}

// genPointer returns a pointer as a string token, most often one that leads
// somewhere in v.
func genPointer(v *Value) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var path []byte
		for v.Len() > 0 && rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
			at := rapid.IntRange(0, v.Len()-1).Draw(t, "at")
			if v.Kind() == Array {
				path = append(path, "/"+NewInt(int64(at)).Raw()...)
				v = v.Elem(at)
			} else {
				path, _ = appendKeyPointer(path, v.Members()[at].Key)
				v = v.Members()[at].Value
			}
		}
		path = append(path, rapid.SampledFrom([]string{"", "", "", "/-", "/0", "/a", "/n", `\u002fn`, "/01", "/~", "x", "/~1~0"}).Draw(t, "last")...)
		return `"` + string(path) + `"`
	})
}

// genPatch returns a patch of which about half the operations fit v.
func genPatch(v *Value) *rapid.Generator[*Value] {
	return rapid.Custom(func(t *rapid.T) *Value {
		var ops []string
		for range rapid.IntRange(0, 4).Draw(t, "ops") {
			op := rapid.SampledFrom([]string{"add", "replace", "remove", "move", "copy", "test"}).Draw(t, "op")
			ops = append(ops, `{"op":"`+op+`","path":`+genPointer(v).Draw(t, "path")+
				`,"from":`+genPointer(v).Draw(t, "from")+`,"value":`+genValue(1).Draw(t, "value").String()+`}`)
		}
		return MustParse("[" + strings.Join(ops, ",") + "]")
	})
}
