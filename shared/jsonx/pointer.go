package jsonx

import "strings"

// segment is one reference token of a JSON Pointer that stands in a string
// token.
type segment struct {
	name string // decoded, ~0 and ~1 resolved
	raw  string // the spelling in the string token
}

// nextSegment takes the first segment off a pointer given as the inside of a
// string token. ok is false when the pointer does not start with a slash or
// has a stray tilde.
func nextSegment(pointer string) (seg segment, rest string, ok bool) {
	start, end, next := cutSegment(pointer)
	if start < 0 {
		return segment{}, "", false
	}
	seg.raw = pointer[start:end]
	seg.name = seg.raw
	if strings.IndexByte(seg.raw, '\\') >= 0 {
		dst, _ := appendDecoded(nil, seg.raw)
		seg.name = string(dst)
	}
	if strings.IndexByte(seg.name, '~') >= 0 {
		if seg.name, ok = untilde(seg.name); !ok {
			return segment{}, "", false
		}
	}
	return seg, pointer[next:], true
}

// cutSegment finds the first segment: its bounds and where the next one's
// slash is. A slash may be written as it is, as \/ or as \u002f. start is -1
// when there is none at the front.
func cutSegment(p string) (start, end, next int) {
	start = slash(p)
	if start == 0 {
		return -1, 0, 0
	}
	for i := start; i < len(p); i++ {
		switch p[i] {
		case '/':
			return start, i, i
		case '\\':
			if slash(p[i:]) > 0 {
				return start, i, i
			}
			_, n := decodeEscape(p[i:])
			i += n - 1
		}
	}
	return start, len(p), len(p)
}

// slash returns the length of the spelling of a slash at the front of p, or 0.
func slash(p string) int {
	if p == "" {
		return 0
	}
	switch p[0] {
	case '/':
		return 1
	case '\\':
		if r, n := decodeEscape(p); r == '/' {
			return n
		}
	}
	return 0
}

// untilde resolves ~0 and ~1; ok is false when a tilde is followed by anything
// else.
func untilde(s string) (name string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '~')
		if i < 0 {
			b.WriteString(s)
			return b.String(), true
		}
		b.WriteString(s[:i])
		switch {
		case strings.HasPrefix(s[i:], "~0"):
			b.WriteByte('~')
		case strings.HasPrefix(s[i:], "~1"):
			b.WriteByte('/')
		default:
			return "", false
		}
		s = s[i+2:]
	}
}

// comparePointers reports whether path names the same place as from, or one
// inside it. Malformed pointers are neither.
func comparePointers(from, path string) (same, inside bool) {
	for from != "" && path != "" {
		var a, b segment
		var okA, okB bool
		a, from, okA = nextSegment(from)
		b, path, okB = nextSegment(path)
		if !okA || !okB || a.name != b.name {
			return false, false
		}
	}
	return from == "" && path == "", from == "" && path != ""
}

// keyToken is the token under which a segment becomes a new key: its own
// spelling, so that escapes written in the patch stay, unless it needed a
// tilde.
func (s segment) keyToken() string {
	if strings.IndexByte(s.name, '~') >= 0 || strings.IndexByte(s.name, '/') >= 0 {
		return quote(s.name)
	}
	return `"` + s.raw + `"`
}

// appendPointer appends a slash and a decoded name to a decoded pointer.
func appendPointer(dst []byte, name string) []byte {
	dst = append(dst, '/')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendKeyPointer appends a slash and a key to a pointer given as the inside
// of a string token, keeping the key's spelling. exact is false when an add at
// this pointer would spell the key in another way.
func appendKeyPointer(dst []byte, key string) (out []byte, exact bool) {
	inner := key[1 : len(key)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		// Unescaped, a name with / or ~ is spelled by quote as it stands.
		return appendPointer(dst, inner), true
	}
	name := decode(key)
	if strings.IndexByte(name, '~') < 0 && strings.IndexByte(name, '/') < 0 {
		dst = append(dst, '/')
		return append(dst, inner...), true
	}
	tilded := appendPointer(nil, name)
	return appendQuoted(dst, string(tilded)), quote(name) == key
}

// arrayIndex reads an array index: digits without leading zeros. It is -1 for
// anything else and for numbers no array reaches.
func arrayIndex(s string) int {
	if s == "" || len(s) > 9 || s[0] == '0' && len(s) > 1 {
		return -1
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
