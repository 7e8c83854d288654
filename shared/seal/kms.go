package seal

import "context"

// KMS is the service that guards the tenants' keys: AWS KMS (package kms) or
// the one of the sandbox and the tests (package local). Implementations are
// safe for concurrent use.
//
// encCtx is the encryption context {"tenant", "purpose": "state",
// "generation"}: what was wrapped with one context can only be unwrapped with
// the same one.
//
// A failure is a *store.Error with Call kms_generate, kms_encrypt or
// kms_decrypt, the key id in Key and one of these kinds; anything else counts
// as internal:
//
//   - KeyTrouble: the key is disabled, pending deletion, missing or of another
//     usage; Denied: the caller may not use it. Both become KeyUnavailable.
//   - Throttled and Unavailable (5xx, no answer, a broken connection), Stopped
//     (the context ended).
//   - Invalid, on Decrypt: the wrapped key or its context is not what was
//     wrapped (InvalidCiphertext, IncorrectKey). It becomes Integrity.
type KMS interface {
	// GenerateDataKey makes a new 32-byte key and gives it plain and wrapped
	// under keyID. The caller owns plain and wipes it.
	GenerateDataKey(ctx context.Context, keyID string, encCtx map[string]string) (plain, wrapped []byte, err error)
	// Encrypt wraps an existing key under keyID (Rewrap only).
	Encrypt(ctx context.Context, keyID string, plain []byte, encCtx map[string]string) (wrapped []byte, err error)
	// Decrypt unwraps what GenerateDataKey or Encrypt wrapped under keyID. The
	// caller owns the result and wipes it.
	Decrypt(ctx context.Context, keyID string, wrapped []byte, encCtx map[string]string) (plain []byte, err error)
}
