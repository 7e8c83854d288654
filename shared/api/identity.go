package api

import (
	"crypto/sha256"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// HashRequestID is the identity of a request_id; zero for "".
func HashRequestID(id string) execution.RequestHash { return hashText("cairn request 1\x00", id) }

// HashNonce is the identity of a claim's nonce; zero for "".
func HashNonce(nonce string) execution.RequestHash { return hashText("cairn nonce 1\x00", nonce) }

func hashText(domain, text string) (h execution.RequestHash) {
	if text == "" {
		return h
	}
	sum := sha256.Sum256([]byte(domain + text))
	copy(h[:], sum[:])
	return h
}

// Identify sets the Hash and Digest of a request that was built in Go, as
// Decode does for one from the wire. req is a pointer to one of the request
// types, anything else panics. A later change of the request needs another
// Identify.
func Identify(req any) { identify(ActionOf(req), req) }

func identify(action string, req any) {
	c := CommonOf(req)
	c.Hash = HashRequestID(c.RequestID)
	sum := sha256.Sum256(jsonx.AppendDigestForm(nil, requestTree(action, req, true)))
	copy(c.Digest[:], sum[:])
}

// CommonOf gives the fields that every request has. req is a pointer to one of
// the request types, anything else panics.
func CommonOf(req any) *Common { return req.(interface{ common() *Common }).common() }
