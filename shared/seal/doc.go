// Package seal encrypts every body that Cairn stores: envelope encryption with
// one data key per tenant, wrapped by a KMS, and the place where the bytes
// belong as associated data.
//
// # What it guarantees
//
//   - Sealed bytes open only at the Place they were sealed for. A flipped bit, a
//     swap between tenants, executions, generations, kinds, names or plain
//     attributes, and a cut are all Integrity, never other bytes.
//   - No key, no write: when the key cannot be had the answer is KeyUnavailable,
//     Throttled or Unavailable. There is no fallback to plain text.
//   - One KMS call per tenant's key, process and cache window (MaxAge),
//     however many steps and callers there are. Failed fetches are not kept.
//   - Keys in the cache are bounded in age, uses and number, and are zeroed when
//     they leave it; so are the copies that callers worked with. (The Go runtime
//     may keep copies of its own, in cipher objects and moved stacks, until that
//     memory is used again.)
//   - Rotation makes a new generation for new writes; old ones stay readable.
//     Rewrap changes the KMS key without touching what was sealed. Shred deletes
//     the wrapped keys and with them the meaning of everything sealed.
//
// It does not hide lengths (and compresses before it seals: someone who chooses
// part of a body and sees its stored length learns a little about the rest), and
// it does not notice that the newest of a sequence is missing: callers bind each
// body to the one before it through Place.Plain.
//
// # Keys
//
// The key table has one item per tenant: pk = tenant, sk = "keys", id (random,
// made with the item), rev (counts its writes), keys = a list, ascending by
// generation, of
//
//	gen      number of the generation: store time in ms when it was made, or the
//	         one before + 1 (so it is not used again after a shredding, which lies
//	         in the past)
//	kms      the KMS key that wraps it
//	wrapped  the 32-byte data key, wrapped by the KMS with the encryption context
//	         {"tenant": t, "purpose": "state", "generation": gen}
//	token    the tenant's 32-byte token key, sealed (format below) under this
//	         generation's data key at Place{Tenant: t, Generation: gen, Kind:
//	         "~token-key"}
//	created  store time in ms
//
// The last generation is current. The token key (Token, MAC, Verify) is the same
// in all of them, so tokens survive rotation and cost no KMS call of their own.
// All changes are conditional puts of the whole item on id and rev (the first: on
// its absence), so whoever comes second finds the first one's keys and uses them.
//
// # Format
//
// Sealed bytes, format 1, all numbers big-endian, 44 bytes longer than their
// content:
//
//	 0  1 byte    format: 1
//	 1  1 byte    flags: bit 0 = the content is a zstd frame; others are refused
//	 2  6 bytes   generation of the tenant's data key
//	 8  20 bytes  salt, random
//	28  n bytes   AES-256-GCM ciphertext
//	28+n 16 bytes GCM tag
//
// Key of the entry = HKDF-SHA256(secret: data key, salt: salt, info:
// "cairn seal 1 " + Place.Kind), 32 bytes. GCM nonce = 12 zero bytes. Associated
// data = bytes 0 to 27, then the place:
//
//	1 byte    1 (version of this encoding)
//	field     tenant
//	field     execution
//	8 bytes   generation of the execution
//	field     kind
//	field     name
//	field     plain
//
// where a field is its length as an unsigned varint and then its bytes, so no two
// places have one encoding. The content is compressed only when it is longer
// than 256 bytes and that makes it shorter; the frame names its exact length,
// without zstd's checksum. Format 1 stays readable for ever (testdata/*.golden); a
// change needs a new number.
//
// # Why no nonce is used twice under one key
//
// Each message has its own AES key, used once, with a constant nonce. Two
// messages share a key only if they have the same data key, kind and salt. Salts
// are 160 random bits, drawn by each writer for itself, so nothing has to be
// agreed on, however many writers race and however often one is cloned or
// restarted: after q messages under one data key the probability that any two
// salts were equal is at most q^2/2^161. The limit that we state is q = 2^48
// messages per generation, where it is below 2^-64; at a million writes a second
// that is nine years. (A 96-bit random nonce under the data key itself would
// reach 2^-32 at 2^32 messages already.) A single message is at most 64 MiB, far
// below GCM's 64 GiB.
//
// The derived keys are as far apart as HKDF outputs under different salts: to
// learn one tells nothing about another or the data key. GCM does not commit to
// its key: somebody who holds two tenants' data keys could craft bytes that open
// under both. Nobody outside this package holds any.
//
// # Errors
//
// All are *execution.Error: Integrity, KeyUnavailable, Throttled, Unavailable,
// TooLarge, and Internal for a broken source of randomness or a call without
// tenant or kind. Their text names tenants, places and generations, never
// contents or keys.
package seal
