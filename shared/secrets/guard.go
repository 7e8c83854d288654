package secrets

import (
	"context"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Guard applies tenants' settings to requests.
type Guard struct {
	Catalog *catalog.Catalog
}

// Modes of settings.secrets; "" is ModeRefuse.
const (
	ModeRefuse = "refuse"
	ModeRedact = "redact"
	ModeAllow  = "allow"
)

// Check looks through a decoded request, a pointer to one of api's request
// types: SecretRefused {path, kind} for the first credential-like value, or the
// request is changed in place and the paths of what was redacted are returned.
// Evidence is never refused. The request's identity (Common.Digest) is that of
// what came. A request that holds no data costs nothing; else the tenant's
// settings are read, at most once a minute.
func (g *Guard) Check(ctx context.Context, req any) (redacted []string, err error) {
	w := &walker{}
	w.collect(reflect.ValueOf(req).Elem(), "", evidenceRequest(req))
	if len(w.places) == 0 {
		return nil, nil
	}
	settings, err := g.Catalog.Current(ctx, api.CommonOf(req).Tenant)
	if err != nil {
		return nil, err
	}
	if settings.Secrets == ModeAllow {
		return nil, nil
	}
	rules := NewRules(settings.SecretFields, settings.Allowed)
	for _, p := range w.places {
		found := p.look(rules, settings.Secrets == ModeRedact || p.evidence)
		if len(found) == 0 {
			continue
		}
		if p.identity || settings.Secrets != ModeRedact && !p.evidence {
			return nil, refusal(found[0])
		}
		for _, f := range found {
			redacted = append(redacted, f.Path)
		}
	}
	return redacted, nil
}

// Evidence redacts what came from outside without a request (a resolver's
// answer); path is where it will stand. In mode allow it is given as it is.
func (g *Guard) Evidence(ctx context.Context, t execution.TenantID, v *jsonx.Value, path string) (*jsonx.Value, error) {
	if v == nil {
		return nil, nil
	}
	settings, err := g.Catalog.Current(ctx, t)
	if err != nil || settings.Secrets == ModeAllow {
		return v, err
	}
	v, _ = NewRules(settings.SecretFields, settings.Allowed).Redact(v, path)
	return v, nil
}

func refusal(f Finding) error {
	return execution.Errorf(execution.SecretRefused, "a value that looks like a credential must not be stored: keep it in a secret store and refer to it by secret_ref").
		With("path", f.Path).With("kind", f.Kind).With("field", strings.SplitN(strings.TrimPrefix(f.Path, "/"), "/", 2)[0])
}

// evidenceRequest reports requests that are evidence as a whole.
func evidenceRequest(req any) bool {
	switch req.(type) {
	case *api.RecordOutcomeRequest, *api.SignalRequest, *api.ReconcileRequest:
		return true
	}
	return false
}

// place is a part of a request that may hold a credential.
type place struct {
	path     string
	evidence bool
	identity bool              // a text that names something: with another one it would name another
	value    **jsonx.Value     // agent data
	text     *string           // or a control text
	labels   map[string]string // or texts by name
}

// look searches a place and, when it may, redacts it.
func (p *place) look(r *Rules, redact bool) []Finding {
	switch {
	case p.value != nil && redact:
		v, found := r.Redact(*p.value, p.path)
		*p.value = v
		return found
	case p.value != nil:
		if f, ok := r.Scan(*p.value, p.path); ok {
			return []Finding{f}
		}
	case p.labels != nil:
		return p.lookLabels(r, redact)
	case !r.allows(p.path):
		if at, ok := find(*p.text, 0); ok {
			if redact && !p.identity {
				*p.text = redactFrom(*p.text, at)
			}
			return []Finding{{p.path, at.kind}}
		}
	}
	return nil
}

func (p *place) lookLabels(r *Rules, redact bool) (found []Finding) {
	names := make([]string, 0, len(p.labels))
	for name := range p.labels {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		path := p.path + "/" + name
		at, ok := find(p.labels[name], 0)
		if !ok || r.allows(path) {
			continue
		}
		found = append(found, Finding{path, at.kind})
		if redact {
			p.labels[name] = redactFrom(p.labels[name], at)
		}
	}
	return found
}

// walker collects the places of a request by its JSON names, so that a field
// that is added later is looked at too.
type walker struct{ places []place }

// unread are control texts that are no agent data: identities, which cannot
// hold more than their form allows, and handles that are credentials by design
// and kept as a hash, sealed or not at all.
var unread = map[string]bool{"tenant": true, "execution": true, "operation": true, "workflow": true, "thread": true, "task": true, "request_id": true, "nonce": true, "callback": true,
	"task_token": true, "cursor": true, "operations_cursor": true, "inbox_cursor": true, "artifacts_cursor": true, "digest": true, "uploaded": true, "sha256": true, "key": true, "name": true,
	"kms_key": true, "secret_fields": true, "allowed": true, "secrets": true}

// named reports the free texts under which something new is found again: operation
// keys and artifact names. They cannot be redacted, so they are refused. Where such
// a text names what is there already, or comes with evidence, it passes.
func named(t reflect.Type, field string) bool {
	switch t {
	case reflect.TypeFor[api.OperationDeclaration]():
		return field == "key"
	case reflect.TypeFor[api.ArtifactRef](), reflect.TypeFor[api.PutArtifactRequest]():
		return field == "name"
	}
	return false
}

var valueType = reflect.TypeFor[*jsonx.Value]()

func (w *walker) collect(v reflect.Value, path string, evidence bool) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			w.collect(v.Field(i), path, evidence)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		if named(t, name) && v.Field(i).Len() >= 8 {
			w.places = append(w.places, place{path: path + "/" + name, text: v.Field(i).Addr().Interface().(*string), identity: true})
		}
		if unread[name] {
			continue
		}
		// The owner's own report of outcomes is evidence inside a step.
		w.one(v.Field(i), path+"/"+name, evidence || name == "outcomes" && path == "")
	}
}

func (w *walker) one(v reflect.Value, path string, evidence bool) {
	switch {
	case v.Type() == valueType:
		if !v.IsNil() {
			w.places = append(w.places, place{path: path, evidence: evidence, value: v.Addr().Interface().(**jsonx.Value)})
		}
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		if !v.IsNil() {
			w.collect(v.Elem(), path, evidence)
		}
	case v.Kind() == reflect.Struct:
		w.collect(v, path, evidence)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			w.one(v.Index(i), path+"/"+strconv.Itoa(i), evidence)
		}
	case v.Type() == reflect.TypeFor[string]() && v.Len() >= 8:
		w.places = append(w.places, place{path: path, evidence: evidence, text: v.Addr().Interface().(*string)})
	case v.Type() == reflect.TypeFor[map[string]string]() && v.Len() > 0:
		w.places = append(w.places, place{path: path, evidence: evidence, labels: v.Interface().(map[string]string)})
	}
}
