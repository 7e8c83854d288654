package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/store/memory"
)

// dump is everything that lies at rest and everything that was said.
type dump struct {
	memory.Dump
	// Now is the virtual clock. A load moves the clock there if it is behind.
	Now         string            `json:"now,omitempty"`
	Logs        []json.RawMessage `json:"logs"`
	Metrics     []json.RawMessage `json:"metrics"`
	Events      []json.RawMessage `json:"events"`
	Handovers   []json.RawMessage `json:"handovers"`
	DeadLetters []json.RawMessage `json:"dead_letters"`
}

func (s *Server) handleDump(w http.ResponseWriter, _ *http.Request) {
	s.world.Lock() // between invocations
	kept := s.engine.Dump()
	// What a long reply points to (state_ref) the sandbox serves itself: it is an
	// answer on its way, nothing that is kept.
	kept.Objects = slices.DeleteFunc(kept.Objects, func(o memory.Object) bool { return o.ExpiresTag })
	out := dump{
		Dump: kept, Now: stamp(s.engine.Now()),
		Logs: s.capture.logs.all(), Metrics: s.capture.metrics.all(), Events: s.capture.events.all(),
		Handovers: s.handovers.lines.all(), DeadLetters: s.delivery.dead.all(),
	}
	s.world.Unlock()
	reply(w, out)
}

func (s *Server) handleLoad(w http.ResponseWriter, r *http.Request) {
	var in dump
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if err := s.load(in); err != nil {
		refuse(w, err)
		return
	}
	reply(w, struct{}{})
}

// Load takes a dump, as POST /sandbox/load does: items and objects replace
// those of the same key, lists that are there replace what was said. The
// functions start anew.
func (s *Server) Load(from io.Reader) error {
	dec := json.NewDecoder(from)
	dec.DisallowUnknownFields()
	var in dump
	if err := dec.Decode(&in); err != nil {
		return fmt.Errorf("sandbox: dump: %w", err)
	}
	return s.load(in)
}

func (s *Server) load(in dump) error {
	var now time.Time
	if in.Now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339Nano, in.Now); err != nil {
			return errors.New("now: not a time")
		}
	}
	s.delivery.mu.Lock()
	defer s.delivery.mu.Unlock()
	s.world.Lock()
	defer s.world.Unlock()
	if err := s.engine.Load(in.Dump); err != nil {
		return err
	}
	if ahead := now.Sub(s.engine.Now()); in.Now != "" && ahead > 0 {
		if err := s.engine.Advance(ahead); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		lines *lines
		kept  []json.RawMessage
	}{
		{&s.capture.logs, in.Logs}, {&s.capture.metrics, in.Metrics}, {&s.capture.events, in.Events}, {&s.delivery.dead, in.DeadLetters},
	} {
		if list.kept != nil {
			list.lines.set(list.kept)
		}
	}
	if in.Handovers != nil {
		s.handovers.restore(in.Handovers)
	}
	return s.rebuild()
}

func (s *Server) handleReset(w http.ResponseWriter, r *http.Request) {
	var in struct{}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if err := s.reset(); err != nil {
		refuseWith(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, struct{}{})
}

// reset empties the world; the clock stays where it is.
func (s *Server) reset() error {
	s.delivery.mu.Lock()
	defer s.delivery.mu.Unlock()
	s.world.Lock()
	defer s.world.Unlock()
	s.engine.Reset()
	s.capture.clear()
	s.scripts.clear()
	s.handovers.clear()
	s.delivery.clear()
	return s.rebuild()
}
