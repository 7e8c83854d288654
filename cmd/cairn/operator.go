package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"text/tabwriter"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
)

// operator are the flags of the verbs that look after one tenant's data.
type operator struct {
	endpoint
	Tenant    string `required:"" env:"CAIRN_TENANT" placeholder:"TENANT" help:"Whose data."`
	Alias     bool   `help:"Call through the tenant's alias instead of the plain function names."`
	Actor     string `env:"CAIRN_ACTOR" placeholder:"ID" help:"Who you are: kept on holds, receipts and entries."`
	RequestID string `placeholder:"ID" help:"Identity of the request, to repeat one whose outcome is unknown (default: a random one)."`
	JSON      bool   `name:"json" help:"Print the functions' replies, one JSON object a line."`
	DryRun    bool   `help:"Show what would be done; change nothing."`
}

// fields are a request's or reply's fields; numbers stay as they came.
type fields map[string]any

// session asks the functions for one verb.
type session struct {
	*operator
	env    *env
	client *invoke.Client
}

func (o *operator) session(env *env) (*session, error) {
	if err := execution.CheckIdentifier("--tenant", o.Tenant, execution.MaxTenant); err != nil {
		return nil, usageError{err}
	}
	c, err := o.client(env)
	return &session{operator: o, env: env, client: c}, err
}

// tries bounds how often a request is repeated that the product says may be
// repeated unchanged.
const tries = 5

// ask sends a request, again while it may be repeated. A writing one carries a
// request_id, the same in every try, so a repeat finds what was done.
func (s *session) ask(function, action string, f fields) (fields, error) {
	req := fields{"action": action, "tenant": s.Tenant}
	maps.Copy(req, f)
	if v, ok := api.Lookup(function, action); ok && !v.ReadOnly {
		req["request_id"] = s.id()
		if s.Actor != "" {
			req["actor"] = fields{"kind": "human", "id": s.Actor, "via": "cairn"}
		}
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, usageError{err}
	}
	qualifier := ""
	if s.Alias {
		qualifier = execution.TenantAlias(execution.TenantID(s.Tenant))
	}
	for try := 1; ; try++ {
		reply, err := s.client.Invoke(s.env.ctx, function, qualifier, raw)
		if err == nil {
			return decode(reply)
		}
		if !execution.CodeOf(err).Retryable() || !isFunctionError(err) || try == tries || !s.sleep(time.Duration(try)*time.Second) {
			return nil, refusal(err)
		}
	}
}

func isFunctionError(err error) bool {
	var f *invoke.FunctionError
	return errors.As(err, &f)
}

func (s *session) id() string {
	if s.RequestID != "" {
		return s.RequestID
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// sleep waits; false when the command was interrupted.
func (s *session) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.env.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func decode(reply []byte) (fields, error) {
	dec := json.NewDecoder(bytes.NewReader(reply))
	dec.UseNumber()
	var out fields
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("the reply is no JSON object")
	}
	return out, nil
}

// print writes a reply as JSON, or as text makes it.
func (s *session) print(reply fields, text func(w *tabwriter.Writer)) error {
	if s.JSON {
		return json.NewEncoder(s.env.out).Encode(reply)
	}
	w := tabwriter.NewWriter(s.env.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// progress tells on standard error how far long work is.
func (s *session) progress(format string, args ...any) {
	fmt.Fprintf(s.env.err, format+"\n", args...)
}

// list gives a list of a reply as its objects.
func (f fields) list(name string) []fields {
	var out []fields
	items, _ := f[name].([]any)
	for _, x := range items {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// text gives a field as text, "-" where there is none.
func (f fields) text(name string) string {
	v, ok := f[name]
	if !ok || v == nil || v == "" {
		return "-"
	}
	return fmt.Sprint(v)
}

// incomplete is work that ended without being done: what is left was printed.
func incomplete(text string) error {
	b, _ := json.Marshal(map[string]any{"code": "Incomplete", "message": text, "retryable": true})
	return refusedError{string(b)}
}

// about are the flags that name what a hold or deletion is about.
type about struct {
	Execution string `xor:"about" required:"" placeholder:"ID" help:"One execution."`
	Thread    string `xor:"about" required:"" placeholder:"ID" help:"Everything of a thread."`
	Subject   string `xor:"about" required:"" placeholder:"ID" help:"Everything of a subject."`
}

func (a about) fields() fields {
	f := fields{}
	for name, v := range map[string]string{"execution": a.Execution, "thread": a.Thread, "subject": a.Subject} {
		if v != "" {
			f[name] = v
		}
	}
	return f
}

// bound lists the living executions that a selector names, with their holds.
func (s *session) bound(sel fields, each func(header fields, holds []fields) error) error {
	if e, one := sel["execution"]; one {
		h, err := s.ask("checkpoint", "get", fields{"execution": e, "include": []string{}})
		if err != nil {
			return err
		}
		return s.withHolds(h, each)
	}
	cursor := any(nil)
	for {
		f := fields{"limit": 1000}
		maps.Copy(f, sel)
		if cursor != nil {
			f["cursor"] = cursor
		}
		page, err := s.ask("checkpoint", "list", f)
		if err != nil {
			return err
		}
		for _, h := range page.list("executions") {
			if err := s.withHolds(h, each); err != nil {
				return err
			}
		}
		if cursor = page["cursor"]; cursor == nil {
			return nil
		}
	}
}

func (s *session) withHolds(h fields, each func(fields, []fields) error) error {
	r, err := s.ask("retention", "holds", fields{"execution": h["execution"]})
	if err != nil {
		return err
	}
	return each(h, r.list("holds"))
}

// plan prints what would become of the executions that a selector names. held:
// holds keep them from it.
func (s *session) plan(what string, sel fields, held bool) error {
	would, kept := 0, 0
	w := tabwriter.NewWriter(s.env.out, 0, 0, 2, ' ', 0)
	if !s.JSON {
		fmt.Fprintln(w, "EXECUTION\tSTATUS\tHOLDS\tPLAN")
	}
	err := s.bound(sel, func(h fields, holds []fields) error {
		names := []any{}
		for _, x := range holds {
			names = append(names, x["hold"])
		}
		do := what
		if held && len(names) > 0 {
			do = "held"
			kept++
		} else {
			would++
		}
		if s.JSON {
			return json.NewEncoder(s.env.out).Encode(fields{"execution": h["execution"], "status": h["status"], "holds": names, "plan": do})
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", h.text("execution"), h.text("status"), names, do)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	s.progress("dry run, nothing was changed: %d would be: %s; %d held", would, what, kept)
	return nil
}
