package api

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// plan is how a struct is read and written: its fields, those of embedded
// structs among them, in the order of declaration.
type plan struct {
	fields []field
	short  int // the field that a plain string stands for; -1: none
}

type field struct {
	name  string
	key   string // name as a JSON token
	index []int
	rules rules
	// omit: left out when zero; with: but not while that other field is set (-1: none).
	omit, omitEmpty bool
	with            int
}

// rules are what the `cairn` tag says about a field. On lists and maps they
// hold for each element.
type rules struct {
	required  bool // must be in a request
	reply     bool // stands in replies only
	nocontent bool // does not belong to the content digest
	short     bool
	keysID    bool // keys of a map are identifiers

	form   string // id, text, note, digest, pointer; state, object, patch
	length int    // of id, text, note
	items  int    // of a list or map; 0: no limit
	enum   []string
	min    *int64
	max    *int64 // of bytes: the largest length
	with   string
}

var plans sync.Map // reflect.Type -> *plan

// planOf gives the plan of a struct type. It panics on a tag that it does not
// know: a mistake of the program that the first test meets.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{short: -1}
	depth := map[string]int{}
	p.add(t, nil, false, depth)
	for i := range p.fields {
		f := &p.fields[i]
		f.with = p.find(f.rules.with)
		if f.rules.short {
			p.short = i
		}
	}
	plans.Store(t, p)
	return p
}

// add appends the fields of t, which is embedded at index. Of two fields of the
// same name the one less deeply embedded counts, as in Go.
func (p *plan) add(t reflect.Type, index []int, allTenants bool, depth map[string]int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(append([]int{}, index...), i)
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct {
			p.add(sf.Type, at, sf.Tag.Get("cairn") == "alltenants", depth)
			continue
		}
		tag := sf.Tag.Get("json")
		if !sf.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		f := field{name: name, key: jsonx.Key(name), index: at, rules: parseRules(sf.Tag.Get("cairn")), with: -1}
		f.omit, f.omitEmpty = strings.Contains(options, "omitzero"), strings.Contains(options, "omitempty")
		if allTenants && name == "tenant" {
			f.rules.required = false
		}
		if have, ok := depth[name]; !ok {
			p.fields = append(p.fields, f)
		} else if len(at) < have {
			p.fields[p.find(name)] = f
		} else {
			continue
		}
		depth[name] = len(at)
	}
}

func (p *plan) find(name string) int {
	for i := range p.fields {
		if p.fields[i].name == name {
			return i
		}
	}
	return -1
}

func parseRules(tag string) rules {
	var r rules
	if tag == "" {
		return r
	}
	for part := range strings.SplitSeq(tag, ",") {
		name, arg, _ := strings.Cut(part, "=")
		switch name {
		case "required":
			r.required = true
		case "reply":
			r.reply = true
		case "nocontent":
			r.nocontent = true
		case "short":
			r.short = true
		case "keys":
			r.keysID = true
		case "id":
			r.form, r.length = name, 128
			if arg != "" {
				r.length = int(number(arg))
			}
		case "text", "note":
			r.form, r.length = name, int(number(arg))
		case "digest", "pointer", "state", "object", "patch":
			r.form = name
		case "items":
			r.items = int(number(arg))
		case "enum":
			r.enum = strings.Split(arg, "|")
		case "min":
			n := number(arg)
			r.min = &n
		case "max":
			n := number(arg)
			r.max = &n
		case "with":
			r.with = arg
		default:
			panic(fmt.Sprintf("api: unknown rule %q", part))
		}
	}
	return r
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("api: rule with %q for a number", s))
	}
	return n
}
