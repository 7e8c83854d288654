package memory

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/cairnstate/cairn/shared/store"
)

// pack writes an item in a compact form: the same item always gives the same
// string. Millions of items as Go maps would not fit into memory, and what is
// packed cannot be changed by whoever holds the item.
func pack(it store.Item) string {
	buf := packing.Get().(*[]byte)
	defer packing.Put(buf)
	*buf = packMap((*buf)[:0], it)
	return string(*buf)
}

// packing holds buffers; at most as large as the largest item.
var packing = sync.Pool{New: func() any { return new([]byte) }}

func packMap(b []byte, m map[string]store.Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	names := make([]string, 0, 32) // on the stack, most of the time
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = packText(b, name)
		b = packValue(b, m[name])
	}
	return b
}

func packText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func packValue(b []byte, v store.Value) []byte {
	b = append(b, byte(v.Kind))
	switch v.Kind {
	case store.KindS, store.KindN:
		return packText(b, v.S)
	case store.KindB:
		return append(binary.AppendUvarint(b, uint64(len(v.B))), v.B...)
	case store.KindBOOL:
		if v.Bool {
			return append(b, 1)
		}
		return append(b, 0)
	case store.KindSS, store.KindNS, store.KindBS:
		set := v.SS
		if !slices.IsSorted(set) { // a set has no order
			set = slices.Sorted(slices.Values(set))
		}
		b = binary.AppendUvarint(b, uint64(len(set)))
		for _, s := range set {
			b = packText(b, s)
		}
	case store.KindL:
		b = binary.AppendUvarint(b, uint64(len(v.L)))
		for _, e := range v.L {
			b = packValue(b, e)
		}
	case store.KindM:
		b = packMap(b, v.M)
	}
	return b
}

// unpack is pack's inverse: an item of the caller's own.
func unpack(packed string) store.Item {
	p := packed
	return takeMap(&p)
}

// attribute gives one attribute of a packed item; the zero Value when there is
// no such attribute.
func attribute(packed, name string) store.Value {
	p := packed
	for n := takeLen(&p); n > 0; n-- {
		is := takeText(&p)
		if is >= name {
			if is == name {
				return takeValue(&p)
			}
			break
		}
		skipValue(&p)
	}
	return store.Value{}
}

func takeLen(p *string) int {
	var n uint64
	for shift := 0; ; shift += 7 {
		c := (*p)[0]
		*p = (*p)[1:]
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int(n)
		}
	}
}

func takeText(p *string) string {
	n := takeLen(p)
	s := (*p)[:n]
	*p = (*p)[n:]
	return s
}

func takeByte(p *string) byte {
	c := (*p)[0]
	*p = (*p)[1:]
	return c
}

func takeMap(p *string) map[string]store.Value {
	n := takeLen(p)
	m := make(map[string]store.Value, n)
	for ; n > 0; n-- {
		name := takeText(p)
		m[name] = takeValue(p)
	}
	return m
}

func takeValue(p *string) store.Value {
	v := store.Value{Kind: store.Kind(takeByte(p))}
	switch v.Kind {
	case store.KindS, store.KindN:
		v.S = takeText(p)
	case store.KindB:
		v.B = []byte(takeText(p))
	case store.KindBOOL:
		v.Bool = takeByte(p) == 1
	case store.KindSS, store.KindNS, store.KindBS:
		v.SS = make([]string, takeLen(p))
		for i := range v.SS {
			v.SS[i] = takeText(p)
		}
	case store.KindL:
		v.L = make([]store.Value, takeLen(p))
		for i := range v.L {
			v.L[i] = takeValue(p)
		}
	case store.KindM:
		v.M = takeMap(p)
	}
	return v
}

func skipValue(p *string) {
	switch store.Kind(takeByte(p)) {
	case store.KindS, store.KindN, store.KindB:
		takeText(p)
	case store.KindBOOL:
		takeByte(p)
	case store.KindSS, store.KindNS, store.KindBS:
		for n := takeLen(p); n > 0; n-- {
			takeText(p)
		}
	case store.KindL:
		for n := takeLen(p); n > 0; n-- {
			skipValue(p)
		}
	case store.KindM:
		for n := takeLen(p); n > 0; n-- {
			takeText(p)
			skipValue(p)
		}
	}
}
