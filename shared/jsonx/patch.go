package jsonx

// MaxPatchResult is the size limit, in bytes, of ApplyPatch and of an
// ApplyPatchLimit with no limit of its own.
const MaxPatchResult = 64 << 20

// Reasons of a PatchError.
const (
	reasonNoDocument = "no document"
	reasonNoArray    = "patch is no array"
	reasonNoObject   = "operation is no object"
	reasonOp         = "op is missing or unknown"
	reasonPath       = "path is missing or no string"
	reasonFrom       = "from is missing or no string"
	reasonValue      = "value is missing"
	reasonPointer    = "invalid JSON pointer"
	reasonNoPlace    = "nothing at this place"
	reasonIndex      = "invalid array index or out of range"
	reasonTest       = "test failed"
	reasonIntoItself = "value cannot move into itself"
	reasonRemoveAll  = "the whole document cannot be removed"
	reasonTooLarge   = "result too large"
	reasonTooDeep    = "result nested too deep"
	reasonTooMany    = "too many elements would be moved"
)

var reasonCauses = map[string]error{
	reasonTest:     ErrTestFailed,
	reasonTooLarge: ErrTooLarge,
	reasonTooMany:  ErrTooLarge,
	reasonTooDeep:  ErrTooDeep,
}

// ApplyPatch applies an RFC 6902 patch and returns the result, which shares
// unchanged nodes with doc and patch. doc and patch stay as they are; when one
// operation fails there is no result.
//
// An add to an existing key replaces the value and keeps its place and its
// spelling; a new key goes to the end, spelled as in the path. A test compares
// like EqualValue. Keys are addressed by their UTF-16 code units, so a path
// with a lone surrogate escape reaches the key that holds it. A result nested
// deeper than DefaultLimits.Depth or larger than MaxPatchResult is refused, at
// the operation that makes it so, and so is the removal of the whole document.
// The error is always a *PatchError.
func ApplyPatch(doc, patch *Value) (*Value, error) { return ApplyPatchLimit(doc, patch, 0) }

// ApplyPatchLimit is ApplyPatch with another size limit in bytes; 0 or less
// means MaxPatchResult.
func ApplyPatchLimit(doc, patch *Value, maxBytes int) (*Value, error) {
	if maxBytes <= 0 {
		maxBytes = MaxPatchResult
	}
	if doc.Kind() == Invalid {
		return nil, patchError(-1, "", "", reasonNoDocument)
	}
	if patch.Kind() != Array {
		return nil, patchError(-1, "", "", reasonNoArray)
	}
	e := editor{root: doc}
	for i, v := range patch.kids.elems {
		before := e.root.Size()
		op, fault := readOperation(v)
		reason := fault
		if fault == "" {
			reason = op.apply(&e)
		}
		switch {
		case reason != "":
		case e.moves > maxMoves:
			reason = reasonTooMany
		case e.root.Size() > max(maxBytes, before):
			reason = reasonTooLarge
		}
		if reason != "" {
			return nil, patchError(i, op.name, op.faultPath(), reason)
		}
	}
	if e.root.Size() > maxBytes {
		return nil, patchError(-1, "", "", reasonTooLarge)
	}
	e.seal()
	return e.root, nil
}

// ValidatePatch checks the shape of a patch: an array of operations with known
// names, the members each needs, and well-formed pointers. Members the RFC does
// not name are allowed. The error is a *PatchError.
func ValidatePatch(patch *Value) error {
	if patch.Kind() != Array {
		return patchError(-1, "", "", reasonNoArray)
	}
	for i, v := range patch.kids.elems {
		op, reason := readOperation(v)
		if reason == "" && !validPointer(op.path) {
			reason = reasonPointer
		}
		if reason == "" && !validPointer(op.from) {
			op.path, reason = op.from, reasonPointer
		}
		if reason == "" && op.name == "remove" && op.path == "" {
			reason = reasonRemoveAll
		}
		if reason != "" {
			return patchError(i, op.name, op.path, reason)
		}
	}
	return nil
}

func validPointer(pointer string) bool {
	for pointer != "" {
		var ok bool
		if _, pointer, ok = nextSegment(pointer); !ok {
			return false
		}
	}
	return true
}

// patchError makes the error for a pointer given as the inside of a token.
func patchError(index int, op, pointer, reason string) *PatchError {
	path := printable(decode(`"` + pointer + `"`))
	return &PatchError{Index: index, Op: op, Path: path, Reason: reason, cause: reasonCauses[reason]}
}

// operation is one operation of a patch. Pointers are the insides of their
// string tokens.
type operation struct {
	name   string
	path   string
	from   string
	value  *Value
	atFrom bool // what failed was at from
}

func (op *operation) faultPath() string {
	if op.atFrom {
		return op.from
	}
	return op.path
}

// readOperation checks the shape of an operation; pointers are only cut out.
func readOperation(v *Value) (op operation, reason string) {
	if v.Kind() != Object {
		return op, reasonNoObject
	}
	name, _ := v.Get("op").Text()
	switch name {
	case "add", "remove", "replace", "move", "copy", "test":
		op.name = name
	default:
		return op, reasonOp
	}
	var ok bool
	if op.path, ok = pointerMember(v, "path"); !ok {
		return op, reasonPath
	}
	switch name {
	case "add", "replace", "test":
		if op.value = v.Get("value"); op.value == nil {
			return op, reasonValue
		}
	case "move", "copy":
		if op.from, ok = pointerMember(v, "from"); !ok {
			return op, reasonFrom
		}
	}
	return op, ""
}

func pointerMember(v *Value, name string) (inner string, ok bool) {
	p := v.Get(name)
	if p.Kind() != String {
		return "", false
	}
	return p.raw[1 : len(p.raw)-1], true
}

// apply carries out the operation and returns why it cannot.
func (op *operation) apply(e *editor) (reason string) {
	switch op.name {
	case "add":
		return e.add(op.path, op.value)
	case "replace":
		return e.replace(op.path, op.value)
	case "remove":
		_, reason = e.take(op.path)
	case "test":
		var v *Value
		if v, reason = e.read(op.path); reason == "" && !EqualValue(v, op.value) {
			reason = reasonTest
		}
	case "copy":
		var v *Value
		if v, reason = e.read(op.from); reason != "" {
			op.atFrom = true
			return reason
		}
		return e.add(op.path, v)
	case "move":
		return op.move(e)
	}
	return reason
}

func (op *operation) move(e *editor) (reason string) {
	op.atFrom = true
	switch same, inside := comparePointers(op.from, op.path); {
	case same: // nothing moves, but it has to exist
		_, reason = e.read(op.from)
		return reason
	case inside:
		return reasonIntoItself
	}
	v, reason := e.take(op.from)
	if reason != "" {
		return reason
	}
	op.atFrom = false
	return e.add(op.path, v)
}

// add is the operation of that name.
func (e *editor) add(pointer string, v *Value) string {
	if pointer == "" {
		return e.setRoot(v)
	}
	k, seg, reason := e.walk(pointer)
	if reason != "" {
		return reason
	}
	if e.tooDeep(v) {
		return reasonTooDeep
	}
	if !k.array {
		if place := k.place(seg); place != nil {
			e.set(place, v)
		} else {
			e.append(seg, v)
		}
		return ""
	}
	i := len(k.elems)
	if seg.name != "-" {
		i = arrayIndex(seg.name)
	}
	if i < 0 || i > len(k.elems) {
		return reasonIndex
	}
	e.insert(i, v)
	return ""
}

// replace is the operation of that name.
func (e *editor) replace(pointer string, v *Value) string {
	if pointer == "" {
		return e.setRoot(v)
	}
	k, seg, reason := e.walk(pointer)
	if reason != "" {
		return reason
	}
	if e.tooDeep(v) {
		return reasonTooDeep
	}
	place := k.place(seg)
	if place == nil {
		return reasonNoPlace
	}
	e.set(place, v)
	return ""
}

func (e *editor) setRoot(v *Value) string {
	e.spine = e.spine[:0]
	if e.tooDeep(v) {
		return reasonTooDeep
	}
	e.root = v
	return ""
}

// take removes and returns what the pointer names.
func (e *editor) take(pointer string) (v *Value, reason string) {
	if pointer == "" {
		return nil, reasonRemoveAll
	}
	_, seg, reason := e.walk(pointer)
	if reason != "" {
		return nil, reason
	}
	if v = e.remove(seg); v == nil {
		return nil, reasonNoPlace
	}
	return v, ""
}

// read returns what the pointer names as an immutable value.
func (e *editor) read(pointer string) (v *Value, reason string) {
	v = e.root
	if pointer != "" {
		k, seg, reason := e.walk(pointer)
		if reason != "" {
			return nil, reason
		}
		place := k.place(seg)
		if place == nil {
			return nil, reasonNoPlace
		}
		v = *place
	}
	if v.kids != nil && v.kids.editing.on {
		e.seal()
	}
	return v, ""
}

// tooDeep reports whether v below the end of the spine would be nested too
// deep.
func (e *editor) tooDeep(v *Value) bool {
	if v.kids != nil {
		v.kids.settleDepth()
	}
	return len(e.spine)+v.Depth() > DefaultLimits.Depth
}
