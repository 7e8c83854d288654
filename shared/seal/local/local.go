// Package local is a seal.KMS inside the process, for the sandbox and tests:
// authenticated wrapping under a master secret, with the encryption context
// enforced, keys that can be disabled, and a hook for faults. It guards nothing
// against somebody who can read the process or the master secret.
//
// It keeps no state but the states of keys: what one KMS wrapped, every other
// one with the same master secret unwraps.
//
// Wrapped format, 61 bytes for a 32-byte key: 1 (version), a random 12-byte
// nonce, AES-256-GCM ciphertext and tag under HKDF-SHA256(master, info: "cairn
// local kms 1 " + key id). Associated data is the version and the context's
// names and values in order of names, each with its length in front. Random
// nonces are good for 2^32 wrappings per key id.
package local

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/cairnstate/cairn/shared/store"
)

// The calls, as the hooks and errors name them.
const (
	CallGenerate = "kms_generate"
	CallEncrypt  = "kms_encrypt"
	CallDecrypt  = "kms_decrypt"
)

const (
	version   = 1
	nonceSize = 12
	keySize   = 32
)

// State is what a key of the KMS can be in.
type State string

// The states of a key; a key that nobody set a state for is Enabled.
const (
	Enabled         State = ""
	Disabled        State = "DisabledException"
	PendingDeletion State = "KMSInvalidStateException"
	Missing         State = "NotFoundException"
	Denied          State = "AccessDeniedException"
)

// KMS implements seal.KMS. Set the fields before its first use. Safe for
// concurrent use.
type KMS struct {
	// Master is the secret that everything is wrapped under, of any length; two
	// with the same one are the same KMS. Required.
	Master []byte
	// Rand gives data keys and nonces; read under a lock. nil: the system's.
	Rand io.Reader
	// Before is asked before a call happens; an error is the call's answer and
	// nothing happens. key is "<tenant>#<generation>" (the call's encryption
	// context). nil: nothing.
	Before func(ctx context.Context, call, key string) error

	mu     sync.Mutex
	states map[string]State
	randMu sync.Mutex
}

// SetState puts a key in a state.
func (k *KMS) SetState(keyID string, s State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.states == nil {
		k.states = map[string]State{}
	}
	k.states[keyID] = s
}

func (k *KMS) state(keyID string) State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.states[keyID]
}

// GenerateDataKey implements seal.KMS.
func (k *KMS) GenerateDataKey(ctx context.Context, keyID string, encCtx map[string]string) (plain, wrapped []byte, err error) {
	plain = make([]byte, keySize)
	wrapped, err = k.call(ctx, CallGenerate, keyID, encCtx, func(gcm cipher.AEAD) ([]byte, error) {
		if err := k.random(plain); err != nil {
			return nil, err
		}
		return k.wrap(gcm, plain, encCtx)
	})
	if err != nil {
		clear(plain)
		return nil, nil, err
	}
	return plain, wrapped, nil
}

// Encrypt implements seal.KMS. Like AWS it refuses more than 4,096 bytes.
func (k *KMS) Encrypt(ctx context.Context, keyID string, plain []byte, encCtx map[string]string) ([]byte, error) {
	return k.call(ctx, CallEncrypt, keyID, encCtx, func(gcm cipher.AEAD) ([]byte, error) {
		if len(plain) == 0 || len(plain) > 4096 {
			return nil, &store.Error{Call: CallEncrypt, Key: keyID, Kind: store.Invalid, Code: "ValidationException"}
		}
		return k.wrap(gcm, plain, encCtx)
	})
}

// Decrypt implements seal.KMS.
func (k *KMS) Decrypt(ctx context.Context, keyID string, wrapped []byte, encCtx map[string]string) ([]byte, error) {
	return k.call(ctx, CallDecrypt, keyID, encCtx, func(gcm cipher.AEAD) ([]byte, error) {
		if len(wrapped) > 1+nonceSize && wrapped[0] == version {
			plain, err := gcm.Open(nil, wrapped[1:1+nonceSize], wrapped[1+nonceSize:], associated(encCtx))
			if err == nil {
				return plain, nil
			}
		}
		return nil, &store.Error{Call: CallDecrypt, Key: keyID, Kind: store.Invalid, Code: "InvalidCiphertextException"}
	})
}

// call runs f unless the hook or the key's state forbids it.
func (k *KMS) call(ctx context.Context, call, keyID string, encCtx map[string]string, f func(cipher.AEAD) ([]byte, error)) ([]byte, error) {
	if k.Before != nil {
		if err := k.Before(ctx, call, encCtx["tenant"]+"#"+encCtx["generation"]); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Call: call, Key: keyID, Kind: store.Stopped, Err: err}
	}
	switch s := k.state(keyID); s {
	case Enabled:
	case Denied:
		return nil, &store.Error{Call: call, Key: keyID, Kind: store.Denied, Code: string(s)}
	default:
		return nil, &store.Error{Call: call, Key: keyID, Kind: store.KeyTrouble, Code: string(s)}
	}
	gcm, err := k.cipher(keyID)
	if err != nil {
		return nil, err
	}
	return f(gcm)
}

func (k *KMS) cipher(keyID string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k.Master, nil, "cairn local kms 1 "+keyID, keySize)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (k *KMS) wrap(gcm cipher.AEAD, plain []byte, encCtx map[string]string) ([]byte, error) {
	out := make([]byte, 1+nonceSize, 1+nonceSize+len(plain)+gcm.Overhead())
	out[0] = version
	if err := k.random(out[1:]); err != nil {
		return nil, err
	}
	return gcm.Seal(out, out[1:1+nonceSize], plain, associated(encCtx)), nil
}

func (k *KMS) random(b []byte) error {
	k.randMu.Lock()
	defer k.randMu.Unlock()
	r := k.Rand
	if r == nil {
		r = rand.Reader
	}
	_, err := io.ReadFull(r, b)
	return err
}

func associated(encCtx map[string]string) []byte {
	out := []byte{version}
	for _, name := range slices.Sorted(maps.Keys(encCtx)) {
		for _, f := range []string{name, encCtx[name]} {
			out = binary.AppendUvarint(out, uint64(len(f)))
			out = append(out, f...)
		}
	}
	return out
}
