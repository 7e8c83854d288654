package secrets

import (
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// Mask is what a redacted value is replaced by.
const Mask = "[redacted]"

// Rules say what counts besides the known forms.
type Rules struct {
	fields  map[string]bool // names of the tenant, compared plain
	allowed []string        // JSON pointers from the request on
}

// NewRules takes a tenant's settings: names of secret fields, and JSON paths
// (RFC 6901, from the request on) that are not looked at.
func NewRules(fields, allowed []string) *Rules {
	r := &Rules{allowed: allowed}
	if len(fields) > 0 {
		r.fields = make(map[string]bool, len(fields))
		for _, f := range fields {
			r.fields[plainName(f)] = true
		}
	}
	return r
}

// Finding is a credential-like value: where it is, and what it looks like.
type Finding struct {
	Path string // JSON pointer from the request on; a key that is itself one is masked
	Kind string
}

// Scan finds the first credential-like value in v, which stands at path.
func (r *Rules) Scan(v *jsonx.Value, path string) (Finding, bool) {
	s := &scanner{rules: r, stop: true, path: []byte(path)}
	s.value(v, none)
	if len(s.found) == 0 {
		return Finding{}, false
	}
	return s.found[0], true
}

// Redact gives v without credential-like values, v itself when there are none,
// and what was found.
func (r *Rules) Redact(v *jsonx.Value, path string) (*jsonx.Value, []Finding) {
	s := &scanner{rules: r, path: []byte(path)}
	out := s.value(v, none)
	return out, s.found
}

// under says what the nearest name above a value makes of it.
type under int

const (
	none       under = iota
	credential       // a name that only credentials have: its own string
	field            // a name of the tenant's: everything below
)

type scanner struct {
	rules *Rules
	stop  bool   // at the first one
	path  []byte // of the value at hand
	found []Finding
}

func (s *scanner) done() bool { return s.stop && len(s.found) > 0 }

func (s *scanner) add(kind string) { s.found = append(s.found, Finding{string(s.path), kind}) }

// below looks at a value under a segment of the path.
func (s *scanner) below(segment string, v *jsonx.Value, u under) *jsonx.Value {
	n := len(s.path)
	s.path = append(append(s.path, '/'), escape(segment)...)
	out := s.value(v, u)
	s.path = s.path[:n]
	return out
}

// value gives v without what was found in it; v itself when nothing was.
func (s *scanner) value(v *jsonx.Value, u under) *jsonx.Value {
	if v == nil || s.done() || len(s.rules.allowed) > 0 && s.rules.allows(string(s.path)) {
		return v
	}
	switch v.Kind() {
	case jsonx.String:
		return s.text(v, u)
	case jsonx.Number:
		if u == field {
			s.add("secret_field")
			return jsonx.NewString(Mask)
		}
	case jsonx.Array:
		return s.array(v, u)
	case jsonx.Object:
		return s.object(v, u)
	}
	return v
}

func (s *scanner) text(v *jsonx.Value, u under) *jsonx.Value {
	t, exact := v.Text()
	if !exact { // lone surrogates: looked at as it is written
		t = v.Raw()
	}
	switch {
	case u == field && t != "" && !reference(t) && t != Mask:
		s.add("secret_field")
		return jsonx.NewString(Mask)
	case u == credential && secretText(t) && t != Mask:
		s.add("credential_name")
		return jsonx.NewString(Mask)
	}
	at, ok := find(t, 0)
	if !ok {
		return v
	}
	s.add(at.kind)
	if s.stop {
		return v
	}
	if !exact {
		return jsonx.NewString(Mask)
	}
	return jsonx.NewString(redactFrom(t, at))
}

// RedactText gives a text without what looks like a credential, and whether it
// held any.
func RedactText(t string) (string, bool) {
	at, ok := find(t, 0)
	if !ok {
		return t, false
	}
	return redactFrom(t, at), true
}

// redactFrom masks a span and all after it.
func redactFrom(t string, at span) string {
	var b strings.Builder
	from := 0
	for ok := true; ok; at, ok = find(t, from) {
		b.WriteString(t[from:at.from])
		b.WriteString(Mask)
		from = at.to
	}
	b.WriteString(t[from:])
	return b.String()
}

func (s *scanner) array(v *jsonx.Value, u under) *jsonx.Value {
	if u == credential {
		u = none
	}
	var changed []*jsonx.Value
	for i, e := range v.Elems() {
		n := len(s.path)
		s.path = strconv.AppendInt(append(s.path, '/'), int64(i), 10)
		now := s.element(e, u)
		s.path = s.path[:n]
		if now != e && changed == nil {
			changed = append(changed, v.Elems()...)
		}
		if changed != nil {
			changed[i] = now
		}
		if s.done() {
			return v
		}
	}
	if changed == nil {
		return v
	}
	return jsonx.NewArray(changed...)
}

// element looks at an array's element: in a JSON Patch the name of what is
// written stands in its path.
func (s *scanner) element(e *jsonx.Value, u under) *jsonx.Value {
	p, ok := e.Get("path").Text()
	if e.Kind() != jsonx.Object || !ok || e.Get("op").Kind() != jsonx.String || e.Get("value") == nil {
		return s.value(e, u)
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	now := s.under(strings.NewReplacer("~1", "/", "~0", "~").Replace(last), u)
	value := s.below("value", e.Get("value"), now)
	if value == e.Get("value") {
		return s.value(e, u)
	}
	members := append([]jsonx.Member(nil), e.Members()...)
	for i, m := range members {
		if name, _ := m.Name(); name == "value" {
			members[i].Value = value
		}
	}
	return jsonx.NewObject(members...)
}

func (s *scanner) object(v *jsonx.Value, u under) *jsonx.Value {
	if u == credential {
		u = none
	}
	if v.Len() == 1 && v.Get("secret_ref") != nil {
		u = none // a reference; what has a known form is none, wherever it stands
	}
	var changed []jsonx.Member
	masked := 0
	for i, m := range v.Members() {
		name, _ := m.Name()
		shown := name
		key := m.Key
		if at, ok := find(name, 0); ok {
			// The key itself is one. Keys stay different.
			shown = Mask
			s.found = append(s.found, Finding{string(s.path) + "/" + Mask, at.kind})
			masked++
			if key = jsonx.Key(Mask); masked > 1 {
				key = jsonx.Key(Mask + " " + strconv.Itoa(masked))
			}
		}
		now := s.below(shown, m.Value, s.under(name, u))
		if (now != m.Value || key != m.Key) && changed == nil {
			changed = append(changed, v.Members()...)
		}
		if changed != nil {
			changed[i] = jsonx.Member{Key: key, Value: now}
		}
		if s.done() {
			return v
		}
	}
	if changed == nil {
		return v
	}
	return jsonx.NewObject(changed...)
}

// under says what a member's name makes of its value.
func (s *scanner) under(name string, u under) under {
	if u == field {
		return field
	}
	plain := plainName(name)
	switch {
	case name == "secret_ref":
		return none
	case s.rules.fields[plain] && plain != "":
		return field
	case credentialNames[plain]:
		return credential
	}
	return none
}

func escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// allows reports a path that the tenant excepted, or one below.
func (r *Rules) allows(path string) bool {
	for _, a := range r.allowed {
		if path == a || strings.HasPrefix(path, a) && path[len(a)] == '/' {
			return true
		}
	}
	return false
}
