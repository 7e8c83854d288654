package dynamo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/store"
)

// shown writes an expression with its placeholders filled in.
func shown(e *expression, s string) string {
	var pairs []string
	for p, name := range e.names {
		pairs = append(pairs, p, name)
	}
	for p, av := range e.values {
		v, err := fromValue(av)
		if err != nil {
			return err.Error()
		}
		pairs = append(pairs, p, "'"+v.S+strings.Join(v.SS, ",")+string(v.B)+"'")
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func TestConditions(t *testing.T) {
	eq := store.Eq("n", store.N(1))
	for _, r := range []struct {
		cond store.Cond
		want string
	}{
		{store.NotThere(), "attribute_not_exists(pk)"},
		{store.There(), "attribute_exists(pk)"},
		{eq, "(n = '1')"},
		{store.Compare{Attr: "n", Op: store.NE, Value: store.N(1)}, "(attribute_type(n, 'N') AND n <> '1')"},
		{store.Compare{Attr: "s", Op: store.GE, Value: store.S("x")}, "(s >= 'x')"},
		{store.Contains{Attr: "set", Value: "a"}, "(attribute_type(set, 'SS') AND contains(set, 'a'))"},
		{store.Not{Cond: eq}, "(NOT (n = '1'))"},
		{store.All{eq, store.There()}, "((n = '1') AND attribute_exists(pk))"},
		{store.Any{eq, store.There()}, "((n = '1') OR attribute_exists(pk))"},
		{store.All{store.Any{eq}}, "(n = '1')"}, // no redundant parentheses
		{store.All{}, "(attribute_exists(pk) OR attribute_not_exists(pk))"},
		{store.Any{}, "(attribute_exists(pk) AND attribute_not_exists(pk))"},
		{store.Not{}, "(NOT (attribute_exists(pk) OR attribute_not_exists(pk)))"},
	} {
		var e expression
		got, err := e.cond(r.cond)
		if err != nil || shown(&e, *got) != r.want {
			t.Errorf("%#v: %v, %v", r.cond, shown(&e, *got), err)
		}
	}
	var e expression
	if got, err := e.cond(nil); got != nil || err != nil || e.names != nil {
		t.Errorf("no condition: %v, %v", got, err)
	}
	for name, c := range map[string]store.Cond{
		"order of truth values": store.Compare{Attr: "t", Op: store.LT, Value: store.Bool(true)},
		"no value":              store.Eq("a", store.Value{}),
		"no operator":           store.Compare{Attr: "a", Value: store.N(1)},
		"empty set inside":      store.All{store.Not{Cond: store.Eq("a", store.SS())}},
		"bad text":              store.Eq("a", store.S("\xff")),
	} {
		if got, err := new(expression).cond(c); err == nil {
			t.Errorf("%s: %s", name, *got)
		}
	}
}

func TestActions(t *testing.T) {
	var e expression
	got, err := e.actions([]store.Action{
		store.Set{Attr: "a", Value: store.S("x")}, store.Remove{Attr: "b"}, store.Add{Attr: "c", N: -2},
		store.AddToSet{Attr: "d", Values: []string{"q", "p"}}, store.RemoveFromSet{Attr: "e", Values: []string{"r"}}, store.Set{Attr: "f", Value: store.N(1)},
	})
	if err != nil || shown(&e, *got) != "SET a = 'x', f = '1' REMOVE b ADD c '-2', d 'p,q' DELETE e 'r'" {
		t.Errorf("%s, %v", shown(&e, *got), err)
	}
	if got, err := new(expression).actions(nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for name, a := range map[string][]store.Action{
		"key": {store.Set{Attr: "pk", Value: store.S("x")}}, "sort key": {store.Remove{Attr: "sk"}},
		"twice": {store.Remove{Attr: "a"}, store.Add{Attr: "a", N: 1}}, "no value": {store.Set{Attr: "a"}},
		"empty set": {store.AddToSet{Attr: "a"}}, "twice in a set": {store.RemoveFromSet{Attr: "a", Values: []string{"x", "x"}}},
	} {
		if _, err := new(expression).actions(a); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// Names and values never mix with the expression's text, whatever they hold.
func TestPlaceholdersOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attr := rapid.StringN(1, 20, 100).Draw(t, "attr")
		text := rapid.String().Draw(t, "text")
		var e expression
		got, err := e.cond(store.All{store.Eq(attr, store.S(text)), store.Contains{Attr: attr, Value: text}})
		if err != nil {
			t.Fatal(err)
		}
		if want := "((#0 = :0) AND (attribute_type(#0, :1) AND contains(#0, :2)))"; *got != want {
			t.Fatalf("%s, want %s", *got, want)
		}
		if e.names["#0"] != attr {
			t.Fatalf("name %q", e.names["#0"])
		}
	})
}

// What is mapped to DynamoDB's form and back is the same.
func TestItemsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := store.Item(rapid.MapOfN(rapid.StringN(1, 8, 32), value(3), 1, 6).Draw(t, "item"))
		av, err := toItem(it)
		if err != nil {
			t.Fatal(err)
		}
		back, err := fromItem(av)
		if err != nil {
			t.Fatal(err)
		}
		if len(back) != len(it) {
			t.Fatalf("%d attributes, want %d", len(back), len(it))
		}
		for name, v := range it {
			if !v.Equal(back[name]) {
				t.Fatalf("%q: %v came back as %v", name, v, back[name])
			}
		}
	})
}

func value(depth int) *rapid.Generator[store.Value] {
	kinds := []*rapid.Generator[store.Value]{
		rapid.Map(rapid.String(), store.S), rapid.Map(rapid.Int64(), store.N), rapid.Map(rapid.SliceOf(rapid.Byte()), store.B),
		rapid.Map(rapid.Bool(), store.Bool), rapid.Just(store.Value{Kind: store.KindNULL}),
		rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID[string]), func(ss []string) store.Value { return store.SS(ss...) }),
		rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "-2.5", "1E+30"}), 1, 3, rapid.ID[string]), func(ss []string) store.Value { return store.Value{Kind: store.KindNS, SS: ss} }),
		rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"\x00", "\xff\xfe", "b"}), 1, 3, rapid.ID[string]), func(ss []string) store.Value { return store.Value{Kind: store.KindBS, SS: ss} }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []store.Value) store.Value { return store.Value{Kind: store.KindL, L: l} }),
			rapid.Map(rapid.MapOfN(rapid.String(), value(depth-1), 0, 3), func(m map[string]store.Value) store.Value {
				return store.Value{Kind: store.KindM, M: m}
			}))
	}
	return rapid.OneOf(kinds...)
}
