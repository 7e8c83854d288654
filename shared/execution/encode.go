package execution

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// The plain text of a stored body (docs/FORMAT.md):
//
//	byte 0      format version, 1
//	byte 1      what the agent text is: 0 nothing, 1 a whole state, 2 a patch
//	uvarint     length of the control JSON
//	...         control JSON: Body
//	...         agent text: exact tokens, to the end
//
// The agent's state stands beside the control JSON so that a megabyte of it is
// read once and not searched for the end of a string.
const (
	bodyFormat = 1
	textNone   = 0
	textState  = 1
	textPatch  = 2
)

// EncodeBody gives the bytes to seal. With a snapshot, b.State must be the
// state that belongs to it.
func EncodeBody(b *Body) ([]byte, error) {
	var control bytes.Buffer
	enc := json.NewEncoder(&control)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, Errorf(Internal, "an entry's body cannot be encoded").Because(err)
	}
	c := bytes.TrimSuffix(control.Bytes(), []byte("\n"))
	kind, text := byte(textNone), (*jsonx.Value)(nil)
	switch {
	case b.State != nil:
		kind, text = textState, b.State
	case b.Patch != nil:
		kind, text = textPatch, b.Patch
	}
	out := make([]byte, 0, 2+binary.MaxVarintLen64+len(c)+text.Size())
	out = append(out, bodyFormat, kind)
	out = binary.AppendUvarint(out, uint64(len(c)))
	out = append(out, c...)
	if text != nil {
		out = text.Append(out)
	}
	return out, nil
}

// DecodeBody reads what EncodeBody wrote. Errors: SchemaTooNew for a format or
// field of a newer version, Integrity for anything that is no body.
func DecodeBody(p []byte) (*Body, error) {
	if len(p) < 3 {
		return nil, Errorf(Integrity, "an entry's body is cut short")
	}
	if p[0] != bodyFormat {
		return nil, Errorf(SchemaTooNew, "an entry's body has a format that this version does not know")
	}
	n, used := binary.Uvarint(p[2:])
	if used <= 0 || n > uint64(len(p)-2-used) {
		return nil, Errorf(Integrity, "an entry's body is cut short")
	}
	control, text := p[2+used:2+used+int(n)], p[2+used+int(n):]
	b := &Body{}
	if err := decodeRecord(control, b); err != nil {
		return nil, undecodable(err)
	}
	if p[1] == textNone && len(text) == 0 {
		return b, nil
	}
	// A patch nests deeper than the state it makes.
	v, err := jsonx.ParseLimits(text, jsonx.Limits{Depth: jsonx.DefaultLimits.Depth + jsonx.PatchDepth})
	if err != nil {
		return nil, Errorf(Integrity, "an entry's agent text is no JSON").Because(err)
	}
	switch p[1] {
	case textState:
		b.State = v
	case textPatch:
		b.Patch = v
	default:
		return nil, Errorf(SchemaTooNew, "an entry's body has a format that this version does not know")
	}
	return b, nil
}

// undecodable tells what a newer version wrote from what nobody wrote.
func undecodable(err error) error {
	if !errors.As(err, new(errForm)) {
		return Errorf(Integrity, "an entry's body is no record").Because(err)
	}
	return Errorf(SchemaTooNew, "an entry's body holds what this version does not know").Because(err)
}

// MarshalText gives the hash as base64 without padding.
func (h RequestHash) MarshalText() ([]byte, error) { return b64(h[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *RequestHash) UnmarshalText(p []byte) error { return unb64(h[:], p) }

// MarshalText gives the digest as base64 without padding.
func (d ContentDigest) MarshalText() ([]byte, error) { return b64(d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *ContentDigest) UnmarshalText(p []byte) error { return unb64(d[:], p) }

func b64(p []byte) []byte {
	return base64.RawStdEncoding.AppendEncode(nil, p)
}

func unb64(dst, p []byte) error {
	out, err := base64.RawStdEncoding.DecodeString(string(p))
	if err != nil || len(out) != len(dst) {
		return Errorf(Integrity, "a stored digest has the wrong form")
	}
	copy(dst, out)
	return nil
}
