package jsonx

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file turns string tokens into decoded text and back. Decoded text is
// WTF-8, see the package comment.

const hexDigits = "0123456789abcdef"

// decode returns the decoded form of a valid string token with its quotes.
func decode(raw string) string {
	inner := raw[1 : len(raw)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	dst, _ := appendDecoded(make([]byte, 0, len(inner)), inner)
	return string(dst)
}

func hasEscape(raw string) bool { return strings.IndexByte(raw, '\\') >= 0 }

// decodeText is decode for callers outside: false when the text holds a lone
// surrogate.
func decodeText(raw string) (string, bool) {
	inner := raw[1 : len(raw)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	dst, lone := appendDecoded(make([]byte, 0, len(inner)), inner)
	if lone {
		return "", false
	}
	return string(dst), true
}

// appendDecoded decodes the inside of a valid string token. lone reports
// whether it holds a lone surrogate.
func appendDecoded(dst []byte, s string) (out []byte, lone bool) {
	for len(s) > 0 {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...), lone
		}
		dst = append(dst, s[:i]...)
		r, n := decodeEscape(s[i:])
		dst = appendWTF8(dst, r)
		lone = lone || isSurrogate(r)
		s = s[i+n:]
	}
	return dst, lone
}

// decodeEscape reads the valid escape at the start of s: its rune (a surrogate
// only when it is alone) and its length.
func decodeEscape(s string) (rune, int) {
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(s[1]), 2
	}
	hi := hex4(s[2:])
	if hi >= 0xD800 && hi < 0xDC00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if lo := hex4(s[8:]); lo >= 0xDC00 && lo < 0xE000 {
			return (hi-0xD800)<<10 + (lo - 0xDC00) + 0x10000, 12
		}
	}
	return hi, 6
}

// hex4 reads four hex digits that are known to be there.
func hex4(s string) (r rune) {
	for i := range 4 {
		c := s[i]
		switch {
		case c <= '9':
			c -= '0'
		case c >= 'a':
			c -= 'a' - 10
		default:
			c -= 'A' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

func isSurrogate(r rune) bool { return r >= 0xD800 && r < 0xE000 }

func appendWTF8(dst []byte, r rune) []byte {
	if isSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, r)
}

// runeWTF8 reads the first rune of decoded text. A byte that starts none (only
// possible in text that did not come from a token) reads as RuneError, 1.
func runeWTF8(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && len(s) >= 3 &&
		s[0] == 0xED && s[1] >= 0xA0 && s[1] < 0xC0 && s[2] >= 0x80 && s[2] < 0xC0 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, n
}

// compareUTF16 orders decoded texts by their UTF-16 code units.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	if a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
		return int(a[i]) - int(b[i])
	}
	for i > 0 && (continues(a, i) || continues(b, i)) {
		i--
	}
	return compareUnits(a[i:], b[i:])
}

func continues(s string, i int) bool { return i < len(s) && s[i]&0xC0 == 0x80 }

func compareUnits(a, b string) int {
	for a != "" && b != "" {
		ra, na := runeWTF8(a)
		rb, nb := runeWTF8(b)
		a, b = a[na:], b[nb:]
		if ra == rb {
			continue
		}
		ha, la := units(ra)
		hb, lb := units(rb)
		if ha != hb {
			return int(ha - hb)
		}
		// Same high surrogate: each side goes on with its low surrogate or,
		// when it stood alone, with whatever follows (0 at the end: it is
		// never a low surrogate, so the order is decided here).
		if la == 0 {
			la = firstUnit(a)
		}
		if lb == 0 {
			lb = firstUnit(b)
		}
		return int(la - lb)
	}
	return len(a) - len(b)
}

// units returns the UTF-16 code units of r; low is 0 when there is only one.
func units(r rune) (high, low rune) {
	if r < 0x10000 {
		return r, 0
	}
	r -= 0x10000
	return 0xD800 + r>>10, 0xDC00 + r&0x3FF
}

func firstUnit(s string) rune {
	if s == "" {
		return -1
	}
	r, _ := runeWTF8(s)
	high, _ := units(r)
	return high
}

// Quote returns the JSON string token of s: quotes, backslashes and control
// characters escaped, everything else as it is (no HTML escapes). Each run of
// bytes that are no UTF-8 becomes U+FFFD.
func Quote(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return quote(s)
}

// Key returns the key token for the name s; it is Quote, for Member literals.
func Key(s string) string { return Quote(s) }

// quote returns the token of a decoded text: lone surrogates become escapes.
func quote(s string) string {
	if plainText(s) {
		return `"` + s + `"`
	}
	dst := make([]byte, 0, len(s)+16)
	dst = append(dst, '"')
	dst = appendQuoted(dst, s)
	return string(append(dst, '"'))
}

// plainText reports whether s is its own spelling inside quotes. It may say no
// to some text that is.
func plainText(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c == 0xED {
			return false
		}
	}
	return true
}

// appendQuoted appends the one spelling that quote uses, without the quotes.
func appendQuoted(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c != 0xED {
			i++
			continue
		}
		size, esc := 1, byte(0)
		var r rune
		switch c {
		case '"', '\\':
			esc = c
		case '\b':
			esc = 'b'
		case '\f':
			esc = 'f'
		case '\n':
			esc = 'n'
		case '\r':
			esc = 'r'
		case '\t':
			esc = 't'
		case 0xED:
			if r, size = runeWTF8(s[i:]); !isSurrogate(r) {
				i += size
				continue
			}
		default:
			r = rune(c)
		}
		dst = append(dst, s[start:i]...)
		if esc != 0 {
			dst = append(dst, '\\', esc)
		} else {
			dst = appendU(dst, r)
		}
		i += size
		start = i
	}
	return append(dst, s[start:]...)
}

// appendU appends the escape \uXXXX of a code unit.
func appendU(dst []byte, unit rune) []byte {
	return append(dst, '\\', 'u', hexDigits[unit>>12&15], hexDigits[unit>>8&15], hexDigits[unit>>4&15], hexDigits[unit&15])
}

const maxPrintedPath = 256

// printable makes a pointer in decoded form fit for messages: what does not
// print (and the backslash, so that it stays unambiguous) becomes \uXXXX, and
// what is longer than 256 bytes is cut.
func printable(path string) string {
	dst := make([]byte, 0, min(len(path), maxPrintedPath+16))
	for i := 0; i < len(path); {
		r, n := runeWTF8(path[i:])
		mark := len(dst)
		if unicode.IsPrint(r) && r != '\\' && !(r == utf8.RuneError && n == 1) {
			dst = append(dst, path[i:i+n]...)
		} else {
			high, low := units(r)
			if dst = appendU(dst, high); low != 0 {
				dst = appendU(dst, low)
			}
		}
		if len(dst) > maxPrintedPath {
			for mark > maxPrintedPath-len("…") {
				_, n := utf8.DecodeLastRune(dst[:mark])
				mark -= n
			}
			return string(dst[:mark]) + "…"
		}
		i += n
	}
	return string(dst)
}
