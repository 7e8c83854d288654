package seal

import "encoding/binary"

// Place says where sealed bytes belong; it is their associated data. Bytes that
// are opened with any field different from how they were sealed are refused.
type Place struct {
	// Tenant whose key seals; required.
	Tenant string
	// Execution is the execution's id; "" for what belongs to the tenant itself.
	Execution string
	// Generation is the execution's (not the key's).
	Generation int64
	// Kind is what the bytes are: "entry", "slot", "signal", "object", "hold" ...;
	// required.
	Kind string
	// Name is the version, or the slot's or signal's name.
	Name string
	// Plain is whatever else is bound to the bytes: the encoding (or a digest) of
	// the plain attributes that stand beside them, the digest of the previous
	// entry among them. It must itself be injective.
	Plain []byte
}

// placeVersion is the version of the encoding below. It is part of the stored
// format: another encoding needs another number here and in the header.
const placeVersion = 1

// encode appends the place in a form that no two places share: every
// variable-length field is preceded by its length.
func (p Place) encode(dst []byte) []byte {
	dst = append(dst, placeVersion)
	dst = appendField(dst, p.Tenant)
	dst = appendField(dst, p.Execution)
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Generation))
	dst = appendField(dst, p.Kind)
	dst = appendField(dst, p.Name)
	return appendField(dst, p.Plain)
}

func appendField[T ~string | ~[]byte](dst []byte, f T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(f)))
	return append(dst, f...)
}
