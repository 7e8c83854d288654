package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// Step brings a state from one version to a later one: by Patch, or by Do where
// that is set.
type Step struct {
	From, To int64
	Patch    *jsonx.Value // RFC 6902
	// Do computes the state after the step. Its answer is checked; its error text
	// is not shown.
	Do func(ctx context.Context, state *jsonx.Value) (Result, error)
	// Renamed are operations that have another name from this version on.
	Renamed []execution.Rename
}

// Result is a state after a step or a chain, and which operations were renamed
// on the way.
type Result struct {
	State   *jsonx.Value
	Renamed []execution.Rename
}

// Check holds a stored version against what a build reads. SchemaTooNew when it
// is above max; below reports that it must be migrated first.
func Check(stored, min, max int64) (below bool, err error) {
	if stored > max {
		return false, execution.Errorf(execution.SchemaTooNew, "the state's schema is newer than this build reads").With("schema_version", stored).With("supports_max", max)
	}
	return stored < min, nil
}

// Chain finds the steps from one version to another, as few as possible; none
// for from == to. MigrationFailed when there is no way.
func Chain(steps []Step, from, to int64) ([]Step, error) {
	if from == to {
		return nil, nil
	}
	// The first visit of a version is by the shortest way.
	came := map[int64]int{} // version -> index of the step that led there
	for reached := []int64{from}; len(reached) > 0; reached = reached[1:] {
		for i, s := range steps {
			if _, seen := came[s.To]; s.From != reached[0] || s.To <= s.From || s.To > to || seen {
				continue
			}
			came[s.To] = i
			reached = append(reached, s.To)
		}
	}
	var chain []Step
	for v := to; v != from; {
		i, ok := came[v]
		if !ok {
			return nil, execution.Errorf(execution.MigrationFailed, "no migration leads from version %d to %d", from, to).With("from", from).With("to", to)
		}
		chain = append(chain, steps[i])
		v = steps[i].From
	}
	slices.Reverse(chain)
	return chain, nil
}

// Run applies a chain to a state. MigrationFailed {from, to, path, reason} names
// the step that failed; errors of a step that carry a retryable code keep it.
func Run(ctx context.Context, chain []Step, state *jsonx.Value) (Result, error) {
	out := Result{State: state}
	for _, s := range chain {
		next, err := s.run(ctx, out.State)
		if err == nil {
			err = valid(next.State)
		}
		if err != nil {
			return Result{}, failed(s, err)
		}
		out.State = next.State
		out.Renamed = append(append(out.Renamed, s.Renamed...), next.Renamed...)
	}
	return out, nil
}

func (s Step) run(ctx context.Context, state *jsonx.Value) (Result, error) {
	if s.Do != nil {
		return s.Do(ctx, state)
	}
	to, err := jsonx.ApplyPatchLimit(state, s.Patch, execution.MaxStateBytes)
	return Result{State: to}, err
}

// valid holds what a step made to the rules of a state.
func valid(v *jsonx.Value) error {
	switch {
	case v == nil || v.Kind() != jsonx.Object:
		return reason("the state would not be an object")
	case v.Size() > execution.MaxStateBytes:
		return reason("the state would be too large")
	case v.Depth() > jsonx.DefaultLimits.Depth:
		return reason("the state would be nested too deep")
	}
	return nil
}

// reason is a constant text that may be shown.
type reason string

func (r reason) Error() string { return string(r) }

// Reason makes an error of a step whose text is shown; it must be a constant.
func Reason(text string) error { return reason(text) }

func failed(s Step, err error) error {
	if e := new(execution.Error); errors.As(err, &e) && e.Code.Retryable() && e.Code != execution.Internal {
		return e
	}
	e := execution.Errorf(execution.MigrationFailed, "the migration from version %d to %d failed", s.From, s.To).With("from", s.From).With("to", s.To)
	var pe *jsonx.PatchError
	var r reason
	switch {
	case errors.As(err, &pe):
		e = e.With("path", pe.Path).With("reason", fmt.Sprintf("patch[%d]: %s", pe.Index, pe.Reason))
	case errors.Is(err, jsonx.ErrTooLarge):
		e = e.With("reason", "the state would be too large")
	case errors.As(err, &r):
		e = e.With("reason", string(r))
	}
	return e.Because(err)
}
