package execution

import (
	"bytes"
	"encoding/json"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// encoding/json reads a JSON null into a nil pointer, so a recorded `null`
// would come back as absent (case D8: "" != null != absent). The records below
// put it back. The check costs a search and nothing more where no null stands.

var explicitNull = []byte(":null")

// decodeRecord decodes strictly and restores explicit nulls of agent values.
func decodeRecord(p []byte, into any, agent map[string]**jsonx.Value) error {
	dec := json.NewDecoder(bytes.NewReader(p))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if !bytes.Contains(p, explicitNull) {
		return nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(p, &raw); err != nil {
		return err
	}
	for name, v := range agent {
		if m, ok := raw[name]; ok && *v == nil && string(m) == "null" {
			*v = jsonNull
		}
	}
	return nil
}

// UnmarshalJSON keeps an explicit null of the input.
func (c *Creation) UnmarshalJSON(p []byte) error {
	type plain Creation
	return decodeRecord(p, (*plain)(c), map[string]**jsonx.Value{"in": &c.Input})
}

// UnmarshalJSON keeps an explicit null of the resume value.
func (c *Claim) UnmarshalJSON(p []byte) error {
	type plain Claim
	return decodeRecord(p, (*plain)(c), map[string]**jsonx.Value{"r": &c.Resume})
}

// UnmarshalJSON keeps an explicit null of what is waited for.
func (w *Wait) UnmarshalJSON(p []byte) error {
	type plain Wait
	return decodeRecord(p, (*plain)(w), map[string]**jsonx.Value{"f": &w.WaitingFor})
}

// UnmarshalJSON keeps explicit nulls of result and error.
func (c *Completion) UnmarshalJSON(p []byte) error {
	type plain Completion
	return decodeRecord(p, (*plain)(c), map[string]**jsonx.Value{"r": &c.Result, "e": &c.Error})
}

// UnmarshalJSON keeps an explicit null of the result.
func (t *Settlement) UnmarshalJSON(p []byte) error {
	type plain Settlement
	return decodeRecord(p, (*plain)(t), map[string]**jsonx.Value{"r": &t.Result})
}

// UnmarshalJSON keeps an explicit null of the result.
func (ev *Evidence) UnmarshalJSON(p []byte) error {
	type plain Evidence
	return decodeRecord(p, (*plain)(ev), map[string]**jsonx.Value{"r": &ev.Result})
}

// UnmarshalJSON keeps explicit nulls of arguments and result.
func (op *Operation) UnmarshalJSON(p []byte) error {
	type plain Operation
	return decodeRecord(p, (*plain)(op), map[string]**jsonx.Value{"a": &op.Args, "re": &op.Result})
}

// UnmarshalJSON keeps explicit nulls of input and resume value.
func (s *State) UnmarshalJSON(p []byte) error {
	type plain State
	return decodeRecord(p, (*plain)(s), map[string]**jsonx.Value{"in": &s.Input, "re": &s.Resume})
}
