package ledger

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/store"
)

// The form of a callback, apart from its MAC.
func TestCallbackForm(t *testing.T) {
	t.Parallel()
	form := func(format byte, generation, attempt uint64, texts ...string) []byte {
		b := []byte{format}
		for _, f := range texts {
			b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
		}
		return binary.AppendUvarint(binary.AppendUvarint(b, generation), attempt)
	}
	good := form(callbackFormat, 7, 1, "t", "e", "op")
	long := slices.Clone(good)
	long[len(long)-5] = 5 // the last text runs one byte beyond the end
	for name, tt := range map[string]struct {
		b  []byte
		ok bool
	}{
		"good": {good, true}, "largest attempt": {form(callbackFormat, 7, 1<<31-1, "t", "e", "op"), true},
		"nothing": {nil, false}, "format": {form(2, 7, 1, "t", "e", "op"), false}, "a byte more": {append(slices.Clone(good), 1), false}, "cut": {good[:len(good)-1], false},
		"a text too long": {long, false}, "generation 0": {form(callbackFormat, 0, 1, "t", "e", "op"), false}, "generation below 0": {form(callbackFormat, 1<<63, 1, "t", "e", "op"), false},
		"attempt 0": {form(callbackFormat, 7, 0, "t", "e", "op"), false}, "attempt 1<<31": {form(callbackFormat, 7, 1<<31, "t", "e", "op"), false},
		"attempt below 0":   {form(callbackFormat, 7, 1<<63, "t", "e", "op"), false},
		"a number too long": {append(good[:len(good)-1:len(good)-1], 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1), false},
	} {
		got, ok := parseCallback(tt.b)
		if ok != tt.ok || ok && (got.Tenant != "t" || got.Execution != "e" || got.Operation != "op" || got.Generation != 7) {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
		_, err := TargetOf(base64.RawURLEncoding.EncodeToString(append(slices.Clone(tt.b), make([]byte, callbackMAC)...)))
		if (err == nil) != tt.ok {
			t.Errorf("%s: with a MAC: %v", name, err)
		}
	}
	for _, h := range []string{"", "*", base64.RawURLEncoding.EncodeToString(make([]byte, callbackMAC)), base64.RawURLEncoding.EncodeToString(good)} {
		if _, err := TargetOf(h); execution.CodeOf(err) != execution.InvalidRequest {
			t.Errorf("%q: %v", h, err)
		}
	}
}

// Only the fork that carries an execution on inherits its evidence.
func TestInherited(t *testing.T) {
	t.Parallel()
	from := &execution.State{Ref: execution.Ref{Tenant: "t", Execution: "e", Generation: 7}}
	for name, tt := range map[string]struct {
		f    *execution.ForkPoint
		want bool
	}{
		"its fork": {&execution.ForkPoint{Execution: "e", Generation: 7, Carry: true}, true}, "no fork": {nil, false},
		"a copy": {&execution.ForkPoint{Execution: "e", Generation: 7}, false}, "another's": {&execution.ForkPoint{Execution: "f", Generation: 7, Carry: true}, false},
		"of another life": {&execution.ForkPoint{Execution: "e", Generation: 6, Carry: true}, false},
	} {
		if inherited(&execution.State{ForkedFrom: tt.f}, from) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}

// A forgotten operation is what its last slot says.
func TestFromSlots(t *testing.T) {
	t.Parallel()
	none := execution.Errorf(execution.NotFound, "none")
	if _, err := fromSlots("op", nil, none); err != none {
		t.Errorf("%v", err)
	}
	first := &journal.Slot{Attempt: 1, Outcome: execution.OutcomeRejected, Reason: "r"}
	for range 20 { // slots have no order in memory
		op, err := fromSlots("op", map[int]*journal.Slot{1: first, 2: {Attempt: 2, Outcome: execution.OutcomeInProgress}, 3: {Attempt: 3, Outcome: execution.OutcomeUnknown, Reason: "u"}}, none)
		if err != nil || op.Attempt != 3 || op.Final() || op.Reason != "" {
			t.Fatalf("%+v %v", op, err)
		}
	}
	if op, err := fromSlots("op", map[int]*journal.Slot{1: first}, none); err != nil || op.Outcome != execution.OutcomeRejected || op.Reason != "r" {
		t.Errorf("%+v %v", op, err)
	}
}

// What a slot says, in the words of the evidence table.
func TestSlotEvidence(t *testing.T) {
	t.Parallel()
	type said struct {
		f execution.Finding
		o execution.Outcome
	}
	unknown := said{execution.QueryFailed, execution.OutcomeUnknown}
	for name, tt := range map[string]struct {
		s    journal.Slot
		want []said
	}{
		"nothing":                {journal.Slot{}, nil},
		"started":                {journal.Slot{StartedAt: 3}, []said{{execution.InProgress, ""}}},
		"in progress":            {journal.Slot{Outcome: execution.OutcomeInProgress}, []said{{execution.InProgress, execution.OutcomeInProgress}}},
		"unknown":                {journal.Slot{Outcome: execution.OutcomeUnknown, SawUnknown: true}, []said{unknown}},
		"started and unknown":    {journal.Slot{Outcome: execution.OutcomeUnknown, SawUnknown: true, StartedAt: 3}, []said{unknown}},
		"of a newer version":     {journal.Slot{Outcome: "teleported"}, []said{unknown}},
		"unknown, then rejected": {journal.Slot{Outcome: execution.OutcomeRejected, SawUnknown: true}, []said{unknown, {execution.Found, execution.OutcomeRejected}}},
		"contradicted": {journal.Slot{Outcome: execution.OutcomeSucceeded, Contradictions: []execution.Contradiction{{Outcome: execution.OutcomeFailed}, {Outcome: execution.OutcomeSucceeded}}},
			[]said{{execution.Found, execution.OutcomeSucceeded}, {execution.Found, execution.OutcomeFailed}, {execution.Several, ""}}},
	} {
		var got []said
		for _, ev := range slotEvidence(&tt.s) {
			got = append(got, said{ev.Finding, ev.Outcome})
			if ev.Source != execution.FromLedger {
				t.Errorf("%s: from %s", name, ev.Source)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A view takes each operation's evidence in once, and never goes back in time.
func TestProject(t *testing.T) {
	t.Parallel()
	s := &execution.State{Ref: execution.Ref{Generation: 7}, Version: 3, Status: execution.StatusRunning, TipAt: 100, Open: 1, Data: jsonx.MustParse(`{}`),
		Operations: map[execution.OperationID]*execution.Operation{"a": {ID: "a", Attempt: 1, Sends: 1}}}
	found := execution.Evidence{Operation: "a", Attempt: 1, Finding: execution.Found, Outcome: execution.OutcomeSucceeded, Source: execution.FromLedger}
	stranger := found
	stranger.Operation = "b"
	if got := Project(s, []execution.Evidence{stranger}, 50); got != s {
		t.Errorf("%+v", got)
	}
	later := found
	later.AskedAt = 5
	for now, at := range map[int64]int64{50: 100, 150: 150} {
		got := Project(s, []execution.Evidence{stranger, found, later}, now)
		if op := got.Operation("a"); got.TipAt != at || got.Open != 0 || op.Outcome != execution.OutcomeSucceeded || len(op.Contradictions) != 0 {
			t.Errorf("%+v %+v", got, op)
		}
	}
	if s.Operation("a").Final() {
		t.Error("the state was changed")
	}
}

// Why a slot cannot be started.
func TestSlotTaken(t *testing.T) {
	t.Parallel()
	s := &execution.State{Ref: execution.Ref{Generation: 7}}
	for name, tt := range map[string]struct {
		old  store.Item
		code execution.Code
		fact any
	}{
		"another nonce":      {store.Item{journal.SlotGeneration: store.N(7), journal.SlotNonce: store.B([]byte("m"))}, execution.OperationMismatch, nil},
		"this very nonce":    {store.Item{journal.SlotGeneration: store.N(7), journal.SlotNonce: store.B([]byte("n"))}, execution.LeaseLost, nil},
		"another life":       {store.Item{journal.SlotGeneration: store.N(6), journal.SlotNonce: store.B([]byte("m"))}, execution.LeaseLost, nil},
		"closed":             {store.Item{journal.SlotGeneration: store.N(7), journal.SlotOutcome: store.S("not_executed")}, execution.LeaseLost, "not_executed"},
		"of a newer version": {store.Item{journal.SlotGeneration: store.N(7), journal.SlotOutcome: store.S("teleported")}, execution.LeaseLost, nil},
	} {
		err := slotTaken(s, &execution.Operation{ID: "op"}, []byte("n"), tt.old)
		if execution.CodeOf(err) != tt.code || execution.AsError(err).Facts["outcome"] != tt.fact {
			t.Errorf("%s: %v %v", name, err, execution.AsError(err).Facts)
		}
	}
}

// Attempt and arguments of evidence, held against the operation.
func TestRecordingHolds(t *testing.T) {
	t.Parallel()
	args := jsonx.MustParse(`{"a":1}`)
	known := &execution.Operation{Attempt: 2, ArgsDigest: execution.DigestArgs(args)}
	for name, tt := range map[string]struct {
		op      *execution.Operation
		attempt int
		args    *jsonx.Value
		code    execution.Code
	}{
		"the current attempt": {known, 2, args, ""}, "an earlier one": {known, 1, nil, ""}, "none of two": {known, 0, nil, execution.InvalidRequest}, "a later one": {known, 3, nil, execution.InvalidRequest},
		"none of one": {&execution.Operation{Attempt: 1}, 0, nil, ""}, "other arguments": {known, 2, jsonx.MustParse(`{"a":2}`), execution.OperationMismatch},
		"arguments nobody knows": {&execution.Operation{Attempt: 1}, 1, args, ""},
	} {
		rec := &recording{r: &api.RecordOutcomeRequest{Args: tt.args}, to: CallbackTarget{Attempt: tt.attempt}}
		if err := rec.holds(tt.op); execution.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Contradictions are shown once each.
func TestContradictionsAreShownOnce(t *testing.T) {
	t.Parallel()
	one := execution.Contradiction{Attempt: 1, Outcome: execution.OutcomeFailed, ProviderRef: "p", At: 5}
	list := []execution.Contradiction{one, one, {Attempt: 2, Outcome: execution.OutcomeFailed, ProviderRef: "p"}, {Attempt: 1, Outcome: execution.OutcomeSucceeded, ProviderRef: "p"}, {Attempt: 1, Outcome: execution.OutcomeFailed}}
	if got := contradictions(list); len(got) != 4 {
		t.Errorf("%+v", got)
	}
}

// Who may start: the owner of a running execution, for the attempt that is open.
func TestMayStart(t *testing.T) {
	t.Parallel()
	l := &Ledger{Journal: journal.New(journal.Options{Elapsed: func() time.Duration { return 0 }})}
	const id = execution.OperationID("0123456789abcdef0123456789abcdef")
	prefix := []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	open := map[execution.OperationID]*execution.Operation{id: {ID: id, Attempt: 2, Fence: 5, OnUncertain: execution.Close}}
	state := func(f func(s *execution.State)) *execution.State {
		s := &execution.State{Status: execution.StatusRunning, Owner: "w", Fence: 5, Operations: open}
		f(s)
		return s
	}
	for name, tt := range map[string]struct {
		s       *execution.State
		attempt int
		code    execution.Code
	}{
		"the owner":             {state(func(*execution.State) {}), 2, ""},
		"forgotten, but there":  {state(func(s *execution.State) { s.Forgotten = prefix }), 2, ""},
		"a status nobody knows": {state(func(s *execution.State) { s.Status = "dreaming" }), 2, execution.Integrity},
		"ended":                 {state(func(s *execution.State) { s.Status = execution.StatusCompleted }), 2, execution.ExecutionClosed},
		"halted":                {state(func(s *execution.State) { s.Status = execution.StatusHalted }), 2, execution.Halted},
		"waiting":               {state(func(s *execution.State) { s.Status = execution.StatusWaiting }), 2, execution.LeaseLost},
		"nobody's":              {state(func(s *execution.State) { s.Owner = "" }), 2, execution.LeaseLost},
		"another fence":         {state(func(s *execution.State) { s.Fence = 6 }), 2, execution.LeaseLost},
		"an earlier attempt":    {state(func(*execution.State) {}), 1, execution.LeaseLost},
		"a later attempt":       {state(func(*execution.State) {}), 3, execution.InvalidRequest},
		"none":                  {state(func(s *execution.State) { s.Operations = nil }), 2, execution.NotFound},
		"settled long ago":      {state(func(s *execution.State) { s.Operations, s.Forgotten = nil, prefix }), 2, execution.LeaseLost},
	} {
		op, err := l.mayStart(&journal.Handle{State: tt.s}, &api.StartOperationRequest{Operation: id, Attempt: tt.attempt, Fence: 5, Nonce: "n"})
		if execution.CodeOf(err) != tt.code || (err == nil) != (op != nil) {
			t.Errorf("%s: %+v %v", name, op, err)
		}
	}
}
