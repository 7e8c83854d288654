package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/cairnstate/cairn/shared/execution"
)

// The byte layout is described in doc.go. It is a stored format: old bytes are
// opened for ever (testdata/*.golden).
const (
	format1    = 1
	flagZstd   = 1 // the plain text is a zstd frame
	saltAt     = 8
	saltBytes  = 20
	headerSize = saltAt + saltBytes
	tagSize    = 16

	// Overhead is how much longer sealed bytes are than what they hold, at most.
	Overhead = headerSize + tagSize

	// MaxPlain is the largest plain text that is sealed or opened.
	MaxPlain = 64 << 20

	maxGeneration = 1<<48 - 1 // six bytes in the header
	tinyBody      = 256       // up to it compression wins fewer bytes than it is worth: items are billed by the kilobyte
	smallBody     = 64 << 10  // above, speed counts for more than a few per cent of size
	maxScratch    = 4 << 20   // larger buffers are not kept
)

// The codecs are shared: EncodeAll and DecodeAll are safe for concurrent use
// and keep one set of buffers per processor. The AEAD's tag stands in for
// zstd's checksum.
var (
	smallEncoder = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedDefault) })
	largeEncoder = sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedFastest) })
	decoder      = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxPlain), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	})
)

func newEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// header is the fixed front of sealed bytes.
type header struct {
	flags      byte
	generation int64 // of the tenant's key
}

func (h header) put(dst []byte) {
	dst[0] = format1
	dst[1] = h.flags
	var gen [8]byte
	binary.BigEndian.PutUint64(gen[:], uint64(h.generation))
	copy(dst[2:saltAt], gen[2:])
}

func readHeader(sealed []byte) (header, error) {
	if len(sealed) < Overhead {
		return header{}, fail(execution.Integrity, nil, "sealed bytes are cut short: %d", len(sealed))
	}
	if sealed[0] != format1 {
		return header{}, fail(execution.Integrity, nil, "unknown sealed format %d", sealed[0])
	}
	if sealed[1]&^flagZstd != 0 {
		return header{}, fail(execution.Integrity, nil, "unknown flags %#x of sealed bytes", sealed[1])
	}
	var gen [8]byte
	copy(gen[2:], sealed[2:saltAt])
	h := header{flags: sealed[1], generation: int64(binary.BigEndian.Uint64(gen[:]))}
	if h.generation == 0 {
		return header{}, fail(execution.Integrity, nil, "sealed bytes name no key generation")
	}
	return h, nil
}

// aead makes the cipher of one entry. Its key serves exactly one message (the
// argument is in doc.go), so the nonce is constant.
func aead(key *[keySize]byte, kind string, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key[:], salt, "cairn seal 1 "+kind, keySize)
	if err != nil {
		return nil, fail(execution.Internal, err, "derive a key")
	}
	defer clear(derived)
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fail(execution.Internal, err, "make a cipher")
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fail(execution.Internal, err, "make a cipher")
	}
	return gcm, nil
}

var nonce [12]byte

// scratch has buffers for compressed content in the clear, so that what is
// returned has exactly its size. They are cleared before they go back.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func putScratch(buf *[]byte, used []byte) {
	clear(used)
	if cap(used) <= maxScratch {
		*buf = used[:0]
		scratch.Put(buf)
	}
}

// sealWith compresses, if that is worth it, and seals under one key.
func sealWith(key *[keySize]byte, generation int64, salt []byte, p Place, plain []byte) ([]byte, error) {
	h, content := header{generation: generation}, plain
	if len(plain) > tinyBody {
		enc := smallEncoder
		if len(plain) > smallBody {
			enc = largeEncoder
		}
		buf := scratch.Get().(*[]byte)
		frame := enc().EncodeAll(plain, (*buf)[:0])
		defer func() { putScratch(buf, frame) }()
		if len(frame) < len(plain) {
			h.flags, content = flagZstd, frame
		}
	}
	out := make([]byte, headerSize, Overhead+len(content))
	h.put(out)
	copy(out[saltAt:], salt)
	gcm, err := aead(key, p.Kind, salt)
	if err != nil {
		return nil, err
	}
	return gcm.Seal(out, nonce[:], content, associated(out, p)), nil
}

// openWith is the opposite of sealWith; h was read from sealed.
func openWith(key *[keySize]byte, h header, p Place, sealed []byte) ([]byte, error) {
	gcm, err := aead(key, p.Kind, sealed[saltAt:headerSize])
	if err != nil {
		return nil, err
	}
	if h.flags&flagZstd == 0 {
		plain, err := gcm.Open(nil, nonce[:], sealed[headerSize:], associated(sealed, p))
		if err != nil {
			return nil, notWhatWasSealed(p)
		}
		return plain, nil
	}
	buf := scratch.Get().(*[]byte)
	frame, err := gcm.Open((*buf)[:0], nonce[:], sealed[headerSize:], associated(sealed, p))
	if err != nil {
		scratch.Put(buf)
		return nil, notWhatWasSealed(p)
	}
	defer putScratch(buf, frame)
	return decompress(frame, p)
}

func notWhatWasSealed(p Place) error {
	return fail(execution.Integrity, nil, "%s %s of %s/%s generation %d is not what was sealed there", p.Kind, p.Name, p.Tenant, p.Execution, p.Generation)
}

// decompress allocates exactly what the frame's header announces and refuses a
// frame that holds more or less.
func decompress(frame []byte, p Place) ([]byte, error) {
	var zh zstd.Header
	if err := zh.Decode(frame); err != nil || !zh.HasFCS || zh.FrameContentSize > MaxPlain {
		return nil, fail(execution.Integrity, err, "%s %s of %s/%s has no usable compression header", p.Kind, p.Name, p.Tenant, p.Execution)
	}
	out, err := decoder().DecodeAll(frame, make([]byte, 0, zh.FrameContentSize))
	if err != nil || uint64(len(out)) != zh.FrameContentSize {
		return nil, fail(execution.Integrity, err, "%s %s of %s/%s does not decompress", p.Kind, p.Name, p.Tenant, p.Execution)
	}
	return out, nil
}

// associated is the header (fixed length) followed by the place.
func associated(sealed []byte, p Place) []byte {
	n := headerSize + 32 + len(p.Tenant) + len(p.Execution) + len(p.Kind) + len(p.Name) + len(p.Plain)
	ad := append(make([]byte, 0, n), sealed[:headerSize]...)
	return p.encode(ad)
}
