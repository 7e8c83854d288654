package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/cairnstate/cairn/shared/store/memory"
)

// Bounds of the kit's own requests.
const (
	maxKitBody = 1 << 30 // a load
	maxAdvance = 100 * 365 * 24 * time.Hour
)

// readJSON reads one JSON value with no fields but v's; an empty body is {}.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxKitBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("body: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("body: more than one JSON value")
	}
	return nil
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that has left is no trouble
}

func refuse(w http.ResponseWriter, err error) { refuseWith(w, http.StatusBadRequest, err) }

func refuseWith(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// toDuration refuses what is no bounded number of seconds.
func toDuration(field string, seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) || math.Abs(seconds) > maxAdvance.Seconds() {
		return 0, fmt.Errorf("%s: must be within %.0f seconds", field, maxAdvance.Seconds())
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), nil
}

func (s *Server) handleHealth(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"status": "ok"})
}

func (s *Server) handleGetClock(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"now": stamp(s.engine.Now())})
}

func (s *Server) handleAdvance(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Seconds *float64 `json:"advance_seconds"`
	}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if in.Seconds == nil {
		refuse(w, errors.New("advance_seconds: required"))
		return
	}
	d, err := toDuration("advance_seconds", *in.Seconds)
	if err == nil && d < 0 {
		err = errors.New("advance_seconds: the clock never goes back")
	}
	if err == nil {
		err = s.engine.Advance(d)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	s.handleGetClock(w, r)
	s.nudge()
}

func (s *Server) handleFaults(w http.ResponseWriter, r *http.Request) {
	var faults []memory.Fault
	if err := readJSON(w, r, &faults); err != nil {
		refuse(w, err)
		return
	}
	if err := s.engine.SetFaults(faults); err != nil {
		refuse(w, err)
		return
	}
	reply(w, struct{}{})
}

func (s *Server) handleGetLog(w http.ResponseWriter, _ *http.Request) {
	reply(w, s.engine.Log())
}

func (s *Server) handleMark(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Mark bool `json:"mark"`
	}
	if err := readJSON(w, r, &in); err != nil {
		refuse(w, err)
		return
	}
	if !in.Mark {
		refuse(w, errors.New("mark: must be true"))
		return
	}
	s.engine.Mark()
	reply(w, struct{}{})
}
