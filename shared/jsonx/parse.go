package jsonx

import (
	"strconv"
	"strings"
	"sync"
)

// Parse reads a text that is one JSON value, under DefaultLimits. It copies
// data once. The error is always a *SyntaxError.
func Parse(data []byte) (*Value, error) { return parse(string(data), DefaultLimits) }

// ParseLimits is Parse under other limits.
func ParseLimits(data []byte, l Limits) (*Value, error) { return parse(string(data), l) }

// Lend is ParseLimits for a text that is looked at once: the value that f gets, and
// every value in it, is valid only until f returns, for its memory serves the next
// text then. Strings taken from it may be kept. The error is f's or a *SyntaxError.
func Lend(data []byte, l Limits, f func(*Value) error) error {
	p := parsers.Get().(*parser)
	defer p.release()
	p.borrow()
	v, err := p.parse(string(data), l)
	if err == nil {
		err = f(v)
	}
	p.giveBack()
	return err
}

// ParseString is Parse without the copy: the Value's tokens are parts of s.
func ParseString(s string) (*Value, error) { return parse(s, DefaultLimits) }

// MustParse is ParseString for texts known to be right; it panics on others.
func MustParse(s string) *Value {
	v, err := ParseString(s)
	if err != nil {
		panic(err)
	}
	return v
}

// The values that need no text of their own.
var (
	nullValue  = &Value{raw: "null"}
	trueValue  = &Value{raw: "true"}
	falseValue = &Value{raw: "false"}
)

// parser reads one text with a stack of its own instead of recursion, so the
// depth of the text costs nothing but stack entries up to the limit.
type parser struct {
	s           string
	pos         int
	maxDepth    int
	maxExponent int

	frames []frame  // open containers, outermost first
	items  []Member // children read so far of all open containers, in frame order
	names  []string // decoded keys of items

	slab
}

// frame is an open array or object.
type frame struct {
	start   int // its first child in items
	size    int // bytes so far, separators and brackets included
	depth   int32
	array   bool
	escaped bool
	seen    map[string]struct{} // its names, once there are many
}

// manyMembers is the number of members up to which comparing with all others
// beats a map.
const manyMembers = 16

var parsers = sync.Pool{New: func() any { return new(parser) }}

func parse(s string, l Limits) (*Value, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	return p.parse(s, l)
}

func (p *parser) parse(s string, l Limits) (*Value, error) {
	p.s, p.maxDepth, p.maxExponent = s, l.Depth, min(l.Exponent, maxExponentLimit)
	if p.maxDepth <= 0 {
		p.maxDepth = DefaultLimits.Depth
	}
	if p.maxExponent <= 0 {
		p.maxExponent = DefaultLimits.Exponent
	}
	p.slab.start(len(s))
	v, reason := p.document()
	if reason != "" {
		return nil, &SyntaxError{Path: p.path(), Offset: int64(p.pos), Reason: reason}
	}
	return v, nil
}

// release gives the parser back, unless its stacks grew large. What is above
// the stacks' ends is clear already, see close.
func (p *parser) release() {
	if cap(p.items) > 1<<14 || cap(p.frames) > 1<<12 {
		return
	}
	clear(p.frames)
	clear(p.items)
	clear(p.names)
	*p = parser{frames: p.frames[:0], items: p.items[:0], names: p.names[:0], slab: slab{spare: p.spare}}
	parsers.Put(p)
}

func (p *parser) document() (*Value, string) {
	if strings.HasPrefix(p.s, "\uFEFF") {
		return nil, ReasonBOM
	}
	p.pos = skipSpace(p.s, 0)
	v, reason := p.value()
	if reason != "" {
		return nil, reason
	}
	if p.pos = skipSpace(p.s, p.pos); p.pos < len(p.s) {
		return nil, ReasonTrailing
	}
	return v, ""
}

// value reads the value at pos with everything in it.
func (p *parser) value() (*Value, string) {
	for {
		v, reason := p.begin()
		if reason != "" {
			return nil, reason
		}
		for v != nil { // v is complete: hand it to its container
			if len(p.frames) == 0 {
				return v, ""
			}
			if v, reason = p.attach(v); reason != "" {
				return nil, reason
			}
		}
	}
}

// begin reads a scalar or an empty container and returns it, or opens a
// container and returns nil with pos at its first child's value.
func (p *parser) begin() (*Value, string) {
	if p.pos == len(p.s) {
		return nil, ReasonUnexpectedEnd
	}
	switch c := p.s[p.pos]; c {
	case '{', '[':
		return p.openContainer(c == '[')
	case '"':
		end, _, reason := scanString(p.s, p.pos)
		return p.scalar(end, reason)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, reason := scanNumber(p.s, p.pos, p.maxExponent)
		return p.scalar(end, reason)
	case 'n':
		return p.literal(nullValue)
	case 't':
		return p.literal(trueValue)
	case 'f':
		return p.literal(falseValue)
	case 'N', 'I':
		if rest := p.s[p.pos:]; strings.HasPrefix(rest, "NaN") || strings.HasPrefix(rest, "Infinity") {
			return nil, ReasonNotNumber
		}
	}
	return nil, ReasonUnexpected
}

func (p *parser) scalar(end int, reason string) (*Value, string) {
	if reason != "" {
		p.pos = end
		return nil, reason
	}
	v := p.newValue()
	v.raw = p.s[p.pos:end]
	p.pos = end
	return v, ""
}

func (p *parser) literal(v *Value) (*Value, string) {
	if rest := p.s[p.pos:]; !strings.HasPrefix(rest, v.raw) {
		if strings.HasPrefix(v.raw, rest) {
			p.pos = len(p.s)
			return nil, ReasonUnexpectedEnd
		}
		return nil, ReasonUnexpected
	}
	p.pos += len(v.raw)
	return v, ""
}

func (p *parser) openContainer(array bool) (*Value, string) {
	if len(p.frames) == p.maxDepth {
		return nil, ReasonDepth
	}
	p.frames = append(p.frames, frame{start: len(p.items), size: len("[]"), depth: 1, array: array})
	p.pos = skipSpace(p.s, p.pos+1)
	if p.pos == len(p.s) {
		return nil, ReasonUnexpectedEnd
	}
	if c := p.s[p.pos]; array && c == ']' || !array && c == '}' {
		return p.close(), ""
	}
	if array {
		return nil, ""
	}
	return nil, p.key()
}

// attach puts a complete value into the innermost container and reads on to
// the next child (returning nil) or the container's end (returning it).
func (p *parser) attach(v *Value) (*Value, string) {
	f := &p.frames[len(p.frames)-1]
	if f.array {
		p.items = append(p.items, Member{Value: v})
		p.names = append(p.names, "")
	} else {
		p.items[len(p.items)-1].Value = v
	}
	if v.kids == nil {
		f.size += len(v.raw)
	} else {
		f.size += v.kids.size
		f.depth = max(f.depth, v.kids.depth+1)
	}
	p.pos = skipSpace(p.s, p.pos)
	if p.pos == len(p.s) {
		return nil, ReasonUnexpectedEnd
	}
	switch c := p.s[p.pos]; {
	case c == ',':
		f.size++
		p.pos = skipSpace(p.s, p.pos+1)
		if f.array {
			return nil, ""
		}
		return nil, p.key()
	case f.array && c == ']', !f.array && c == '}':
		return p.close(), ""
	}
	return nil, ReasonUnexpected
}

// key reads a key and its colon and leaves pos at the value.
func (p *parser) key() string {
	if p.pos == len(p.s) {
		return ReasonUnexpectedEnd
	}
	if p.s[p.pos] != '"' {
		return ReasonUnexpected
	}
	start := p.pos
	end, escaped, reason := scanString(p.s, start)
	if reason != "" {
		p.pos = end
		return reason
	}
	f := &p.frames[len(p.frames)-1]
	key := p.s[start:end]
	name := key[1 : len(key)-1]
	if escaped {
		f.escaped = true
		name = decode(key)
	}
	again := f.repeats(name, p.names[f.start:])
	p.items = append(p.items, Member{Key: key})
	p.names = append(p.names, name)
	if again {
		return ReasonDuplicateMember
	}
	f.size += len(key) + len(":")
	p.pos = skipSpace(p.s, end)
	if p.pos == len(p.s) {
		return ReasonUnexpectedEnd
	}
	if p.s[p.pos] != ':' {
		return ReasonUnexpected
	}
	p.pos = skipSpace(p.s, p.pos+1)
	return ""
}

// repeats reports whether name is one of names, the names of f so far.
func (f *frame) repeats(name string, names []string) bool {
	if len(names) < manyMembers {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}
	if f.seen == nil {
		f.seen = make(map[string]struct{}, 4*manyMembers)
		for _, n := range names {
			f.seen[n] = struct{}{}
		}
	}
	if _, ok := f.seen[name]; ok {
		return true
	}
	f.seen[name] = struct{}{}
	return false
}

// close ends the innermost container at its bracket and returns it.
func (p *parser) close() *Value {
	f := p.frames[len(p.frames)-1]
	items := p.items[f.start:]
	v, k := p.newValue(), p.newKids()
	v.kids = k
	k.size, k.depth, k.array, k.escaped = f.size, f.depth, f.array, f.escaped
	if f.array {
		k.elems = p.newElems(len(items))
		for i := range items {
			k.elems[i] = items[i].Value
		}
	} else {
		k.members = p.newMembers(len(items))
		copy(k.members, items)
	}
	clear(items)
	clear(p.names[f.start:])
	p.items, p.names = p.items[:f.start], p.names[:f.start]
	p.frames[len(p.frames)-1] = frame{}
	p.frames = p.frames[:len(p.frames)-1]
	p.pos++
	return v
}

// path is the pointer of the place where reading stopped.
func (p *parser) path() string {
	var dst []byte
	for i, f := range p.frames {
		end := len(p.items)
		if i+1 < len(p.frames) {
			end = p.frames[i+1].start
		}
		if f.array {
			dst = append(dst, '/')
			dst = strconv.AppendInt(dst, int64(end-f.start), 10)
		} else if end > f.start && p.items[end-1].Value == nil {
			dst = appendPointer(dst, p.names[end-1])
		}
		if len(dst) > 4*maxPrintedPath {
			break
		}
	}
	return printable(string(dst))
}
