package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/cairnstate/cairn/shared/execution"
)

// Cursor makes the opaque text with which a listing goes on: of a kind, so that
// one of another list is refused, and from a position. It is no secret and
// grants nothing: the request's tenant and execution say what is read.
func Cursor(kind string, position ...string) string {
	text, _ := json.Marshal(append([]string{kind}, position...)) // strings always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

// Listing is the kind of a cursor that belongs to one question: what is asked for,
// of whom. With the cursor of another one a listing would begin in the middle and
// still say at its end that it was complete.
func Listing(kind string, asked ...any) string {
	text, _ := json.Marshal(asked) // texts, numbers and maps of texts always marshal
	sum := sha256.Sum256(text)
	return kind + " " + hex.EncodeToString(sum[:8])
}

// ParseCursor takes a cursor of a kind with n parts apart. InvalidRequest
// naming the field for anything else.
func ParseCursor(field, kind, cursor string, n int) ([]string, error) {
	var parts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &parts) != nil || len(parts) != n+1 || parts[0] != kind {
		return nil, execution.Invalid(field, "is no cursor of this list")
	}
	return parts[1:], nil
}
