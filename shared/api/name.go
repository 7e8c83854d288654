package api

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// maxShown is how many bytes of a caller's own name an error repeats.
const maxShown = 256

// join names a member of what stands at a place.
func join(at, name string) string {
	if at == "" {
		return shown(name)
	}
	return at + "." + shown(name)
}

// shown makes a name fit for an error: printable and short.
func shown(name string) string {
	plain := len(name) <= maxShown
	for _, r := range name {
		plain = plain && unicode.IsPrint(r)
	}
	if plain {
		return name
	}
	q := strconv.QuoteToASCII(name)
	if q = q[1 : len(q)-1]; len(q) > maxShown {
		q = q[:maxShown] + "..."
	}
	return q
}

func unknownField(at string, m jsonx.Member, p *plan) error {
	name, ok := m.Name()
	if !ok {
		return execution.Invalid(join(at, strings.Trim(m.Key, `"`)), "unknown field")
	}
	for i := range p.fields {
		if f := p.fields[i].name; f != name && strings.EqualFold(f, name) {
			return execution.Invalid(join(at, name), "unknown field; names are exact: %s", f)
		}
	}
	return execution.Invalid(join(at, name), "unknown field")
}

// dataFields are the names under which agent data stands in requests.
var dataFields = map[string]bool{
	"state": true, "patch": true, "merge": true, "input": true, "args": true, "result": true,
	"error": true, "body": true, "waiting_for": true, "resume": true,
}

// syntaxError names the field and, inside agent data, the path at which the
// text of a request was refused.
func syntaxError(err error) error {
	var e *jsonx.SyntaxError
	if !errors.As(err, &e) {
		return execution.Errorf(execution.InvalidRequest, "the request is no JSON")
	}
	if e.Path == "" {
		return execution.Errorf(execution.InvalidRequest, "the request is no JSON object: %s", e.Reason).With("path", "")
	}
	field, path := locate(e.Path)
	return execution.InvalidPath(field, path, e.Reason)
}

// locate splits a pointer into the request into the field and the pointer
// inside it: /operations/2/args/x into operations[2].args and /x.
func locate(pointer string) (field, path string) {
	for pointer != "" {
		segment, rest := pointer[1:], ""
		if i := strings.IndexByte(segment, '/'); i >= 0 {
			segment, rest = segment[:i], segment[i:]
		}
		name := strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
		if _, err := strconv.Atoi(segment); err == nil && field != "" {
			field += "[" + segment + "]"
		} else {
			field = join(field, name)
		}
		pointer = rest
		if dataFields[name] {
			return field, pointer
		}
	}
	return field, ""
}

// deepPath is the pointer to the deepest value of v, cut after some steps: it
// says where to look.
func deepPath(v *jsonx.Value) string {
	var b strings.Builder
	for v.Depth() > 0 && b.Len() < maxShown {
		next, step := (*jsonx.Value)(nil), ""
		for i, e := range v.Elems() {
			if next == nil || e.Depth() > next.Depth() {
				next, step = e, strconv.Itoa(i)
			}
		}
		for _, m := range v.Members() {
			if next == nil || m.Value.Depth() > next.Depth() {
				next, step = m.Value, strings.Trim(m.Key, `"`)
			}
		}
		if next == nil {
			break
		}
		b.WriteByte('/')
		b.WriteString(shown(strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")))
		v = next
	}
	return b.String()
}
