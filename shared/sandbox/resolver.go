package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// maxAsked bounds how many questions a script remembers.
const maxAsked = 1000

// scripts are the business systems behind resolvers of kind sandbox. Safe for
// concurrent use.
type scripts struct {
	mu     sync.Mutex
	byName map[string]*script
}

// script is one scripted system. Its JSON form is what GET /sandbox/resolver
// shows.
type script struct {
	Name string `json:"name"`
	// Script has the answers in order; the last one repeats. "timeout" and
	// "error" are failures to answer; another string is a finding; any other
	// value is answered as it is.
	Script []json.RawMessage `json:"script"`
	Asked  []asked           `json:"asked"`
	next   int
}

// asked is one question and what it got.
type asked struct {
	At       string            `json:"at"`
	Question recovery.Question `json:"question"`
	Answer   json.RawMessage   `json:"answer"`
}

func (s *scripts) set(name string, answers []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*script{}
	}
	s.byName[name] = &script{Name: name, Script: answers, Asked: []asked{}}
}

func (s *scripts) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName = nil
}

func (s *scripts) get(name string) (script, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byName[name]
	if found == nil {
		return script{}, false
	}
	copied := *found
	copied.Asked = slices.Clone(found.Asked)
	return copied, true
}

func (s *scripts) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// take gives the next answer of a script and remembers the question.
func (s *scripts) take(name, at string, q recovery.Question) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byName[name]
	if found == nil {
		return nil, false
	}
	answer := found.Script[min(found.next, len(found.Script)-1)]
	found.next++
	if len(found.Asked) == maxAsked {
		found.Asked = slices.Delete(found.Asked, 0, 1)
	}
	found.Asked = append(found.Asked, asked{At: at, Question: q, Answer: answer})
	return answer, true
}

// resolverDoor implements recovery.Resolver by scripts. The engine's faults on
// resolver strike it; their key is the script's name and the operation.
type resolverDoor struct {
	engine  *memory.Engine
	scripts *scripts
}

var (
	errNoScript    = errors.New("sandbox: no script of that name answers")
	errAnswerError = errors.New("sandbox: the resolver answered with an error")
)

// Ask implements recovery.Resolver.
func (d resolverDoor) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	if q.Config.Kind != "sandbox" {
		return recovery.Answer{}, errors.New("sandbox: resolvers of kind " + q.Config.Kind + " cannot be reached from here")
	}
	var answer recovery.Answer
	key := q.Config.Target + "/" + string(q.Tenant) + "#" + string(q.Execution) + "/" + string(q.Operation)
	err := d.engine.Door(ctx, "resolver", key, func() error {
		said, known := d.scripts.take(q.Config.Target, stamp(d.engine.Now()), q)
		if !known {
			return errNoScript
		}
		switch findingOf(said) {
		case "timeout":
			return context.DeadlineExceeded
		case "error":
			return errAnswerError
		}
		answer.JSON = said
		if said[0] == '"' {
			answer.JSON = slices.Concat([]byte(`{"finding":`), said, []byte(`}`))
		}
		return nil
	})
	if err != nil {
		return recovery.Answer{}, err
	}
	return answer, nil
}

// findingOf is the answer itself when it is a string, else its finding.
func findingOf(answer json.RawMessage) string {
	var text string
	if json.Unmarshal(answer, &text) == nil {
		return text
	}
	var object struct {
		Finding string `json:"finding"`
	}
	_ = json.Unmarshal(answer, &object) // whatever it is, it is not a failure
	return object.Finding
}

func (s *Server) handleSetResolver(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name   string            `json:"name"`
		Script []json.RawMessage `json:"script"`
	}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if in.Name == "" {
		refuse(w, errors.New("name: required"))
		return
	}
	if len(in.Script) == 0 {
		refuse(w, errors.New("script: needs at least one answer"))
		return
	}
	for i, answer := range in.Script {
		in.Script[i] = bytes.TrimSpace(answer)
	}
	s.scripts.set(in.Name, in.Script)
	reply(w, struct{}{})
}

func (s *Server) handleGetResolver(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		all := []script{}
		for _, name := range s.scripts.names() {
			if found, ok := s.scripts.get(name); ok {
				all = append(all, found)
			}
		}
		reply(w, map[string]any{"resolvers": all})
		return
	}
	found, ok := s.scripts.get(name)
	if !ok {
		refuseWith(w, http.StatusNotFound, errors.New("name: no resolver script "+name))
		return
	}
	reply(w, found)
}
