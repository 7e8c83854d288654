package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// RefFunc puts a value that is too long for a reply where its reader can get
// it, byte for byte, and says where. field is its place in the reply: state,
// operations[2].result.
type RefFunc func(field string, value *jsonx.Value) (*Ref, error)

// Viewed is a reply with a View: get's, claim's, resume's.
type Viewed interface{ view() *View }

func (v *View) view() *View { return v }

const (
	costRoom   = 200  // bytes kept free for the cost, which is known last
	cursorRoom = 512  // for the cursors
	minMoved   = 2048 // smaller values stay: a reference is about as long
)

// size is the length of a reply's final text.
func size(reply any) int { return sizeOf(reflect.ValueOf(reply)) }

// sizeOf is tree(v, false).Size() without the tree, which is several times as
// large as what it measures.
func sizeOf(v reflect.Value) int {
	if !v.IsValid() {
		return len("null")
	}
	switch t := v.Type(); {
	case t == typeOfValue, t == typeOfTime, t == typeOfDecimal, t == typeOfNumber:
		// These have a text of their own.
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return sizeOf(v.Elem())
	case v.Kind() == reflect.Struct:
		return structSize(v)
	case v.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		n := len("[]") + max(0, v.Len()-1)
		for i := range v.Len() {
			n += sizeOf(v.Index(i))
		}
		return n
	case v.Kind() == reflect.String && plainText(v.String()):
		return v.Len() + len(`""`)
	}
	return tree(v, false).Size()
}

func structSize(v reflect.Value) int {
	p, n, members := planOf(v.Type()), len("{}"), 0
	for i := range p.fields {
		f := &p.fields[i]
		if m := v.FieldByIndex(f.index); !p.leftOut(v, f, m) {
			n += len(f.key) + len(":") + sizeOf(m)
			members++
		}
	}
	return n + max(0, members-1)
}

// plainText reports whether a text stands in JSON as it is.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

var (
	typeOfValue   = reflect.TypeFor[*jsonx.Value]()
	typeOfTime    = reflect.TypeFor[Time]()
	typeOfDecimal = reflect.TypeFor[Decimal]()
	typeOfNumber  = reflect.TypeFor[json.Number]()
)

// tooLong is what a caller gets who asks for less than the least there is.
func tooLong(limit int) error {
	return execution.Errorf(execution.TooLarge, "the reply does not fit into max_inline_bytes").With("field", "max_inline_bytes").With("limit", limit)
}

// FitView brings a reply with a view down to max bytes: long values become
// references, largest first; the lists without a cursor are cut, marked by
// Truncated; those of operations, signals and artifacts end with a cursor. A reply that fits is left alone. What ref returns as an error is
// returned. TooLarge {limit} when not even that is enough: then max is smaller
// than a header with references.
func FitView(reply Viewed, max int, ref RefFunc) error {
	max -= costRoom
	whole := size(reply)
	if whole <= max {
		return nil
	}
	v := reply.view()
	lists := size(v.Operations) + size(v.Inbox) + size(v.Artifacts)
	rest := max - min(lists, max/4) // the lists keep a quarter, if they need it
	if err := moveLargest(v.values(), whole-lists-rest, ref); err != nil {
		return err
	}
	for size(reply)-lists > rest && cutUncursored(reply) {
		v.Truncated = true
	}
	if size(reply) <= max {
		return nil
	}
	if err := v.cutLists(reply, max, ref); err != nil {
		return err
	}
	if size(reply) > max {
		return tooLong(max + costRoom)
	}
	return nil
}

// movable is a value that may be replaced by a reference.
type movable struct {
	field string
	value **jsonx.Value
	ref   **Ref
}

func (v *View) values() []movable {
	m := []movable{{"state", &v.State, &v.StateRef}, {"input", &v.Input, &v.InputRef}, {"resume", &v.Resume, &v.ResumeRef},
		{"result", &v.Result, &v.ResultRef}, {"error", &v.Error, &v.ErrorRef}}
	if v.Wait != nil {
		m = append(m, movable{"wait.waiting_for", &v.Wait.WaitingFor, &v.Wait.WaitingForRef})
	}
	return m
}

// moveLargest replaces values by references, largest first, until excess bytes
// are saved or none is left that is worth it.
func moveLargest(values []movable, excess int, ref RefFunc) error {
	slices.SortStableFunc(values, func(a, b movable) int { return (*b.value).Size() - (*a.value).Size() })
	for _, m := range values {
		was := (*m.value).Size()
		if excess <= 0 || was < minMoved {
			return nil
		}
		r, err := ref(m.field, *m.value)
		if err != nil {
			return err
		}
		*m.value, *m.ref = nil, r
		excess -= was - size(r)
	}
	return nil
}

// cutLists cuts the three lists with cursors to what is left of max bytes.
func (v *View) cutLists(reply Viewed, max int, ref RefFunc) error {
	ops, inbox, artifacts := v.Operations, v.Inbox, v.Artifacts
	v.Operations, v.Inbox, v.Artifacts = v.Operations[:0:0], v.Inbox[:0:0], v.Artifacts[:0:0]
	room := max - size(reply) - cursorRoom
	keep := func(n int, share int) int { return min(n, room/share) } // for the lists to come
	var err error

	v.Operations, err = take(ops, room-keep(size(inbox), 3)-keep(size(artifacts), 6), "operations", (*OperationView).values, ref)
	if err != nil {
		return err
	}
	if n := len(v.Operations); n < len(ops) && n > 0 {
		v.OperationsCursor = Cursor("operations", strconv.FormatInt(ops[n-1].Seq, 10))
	}
	room -= size(v.Operations)
	v.Inbox, err = take(inbox, room-keep(size(artifacts), 3), "inbox", (*InboxEntry).values, ref)
	if err != nil {
		return err
	}
	if n := len(v.Inbox); n < len(inbox) && n > 0 {
		v.InboxCursor = Cursor("inbox", inbox[n-1].Name, inbox[n-1].Key)
	}
	room -= size(v.Inbox)
	v.Artifacts, err = take(artifacts, room, "artifacts", nil, ref)
	if err != nil {
		return err
	}
	if n := len(v.Artifacts); n < len(artifacts) && n > 0 {
		v.ArtifactsCursor = Cursor("artifacts", strconv.Itoa(v.ArtifactsFrom+n))
	}
	if len(ops) > 0 && len(v.Operations) == 0 || len(inbox) > 0 && len(v.Inbox) == 0 || len(artifacts) > 0 && len(v.Artifacts) == 0 {
		return tooLong(max + costRoom)
	}
	return nil
}

// take gives the first entries that fit into room bytes. Long values inside an
// entry become references rather than fill a page each.
func take[T any](list []T, room int, name string, values func(*T) []movable, ref RefFunc) ([]T, error) {
	most := room
	for i := range list {
		n := size(&list[i]) + 1
		if n > most/8 && values != nil {
			at := name + "[" + strconv.Itoa(i) + "]."
			inside := values(&list[i])
			for j := range inside {
				inside[j].field = at + inside[j].field
			}
			if err := moveLargest(inside, n-most/8, ref); err != nil {
				return nil, err
			}
			n = size(&list[i]) + 1
		}
		if room -= n; room < 0 {
			return list[:i:i], nil
		}
	}
	return list, nil
}

func (o *OperationView) values() []movable {
	m := []movable{{"result", &o.Result, &o.ResultRef}}
	if o.Evidence != nil {
		m = append(m, movable{"evidence.result", &o.Evidence.Result, &o.Evidence.ResultRef})
	}
	return m
}

func (e *InboxEntry) values() []movable { return []movable{{"body", &e.Body, &e.BodyRef}} }

// cutUncursored halves the longest list that has no cursor; false when all are
// short.
func cutUncursored(reply Viewed) bool {
	v := reply.view()
	lists := []func(halve bool) int{lengthOf(&v.ParkedReasons)}
	if v.Wait != nil {
		lists = append(lists, lengthOf(&v.Wait.Operations), lengthOf(&v.Wait.Signals))
	}
	if r, ok := reply.(*ResumeReply); ok {
		lists = append(lists, lengthOf(&r.Reasons))
	}
	longest := slices.MaxFunc(lists, func(a, b func(bool) int) int { return a(false) - b(false) })
	return longest(true) > 1
}

// lengthOf gives a list's length, and halves it when asked; one entry stays.
func lengthOf[T any](list *[]T) func(halve bool) int {
	return func(halve bool) int {
		n := len(*list)
		if halve && n > 1 {
			*list = (*list)[:n/2]
		}
		return n
	}
}

// FitApply replaces results by references, largest first, until the reply has
// at most max bytes. The step is written by then, so a reply that stays longer
// is no error: it has no more than its operations.
func FitApply(reply *ApplyReply, max int, ref RefFunc) error {
	var values []movable
	for i := range reply.Operations {
		o := &reply.Operations[i]
		values = append(values, movable{"operations[" + strconv.Itoa(i) + "].result", &o.Result, &o.ResultRef})
	}
	return moveLargest(values, size(reply)-(max-costRoom), ref)
}

// FitOperation replaces arguments and results by references, largest first,
// until the reply has at most max bytes. TooLarge {limit} when that is not
// enough.
func FitOperation(reply *GetOperationReply, max int, ref RefFunc) error {
	values := []movable{{"intent.args", &reply.Intent.Args, &reply.Intent.ArgsRef}, {"result", &reply.Result, &reply.ResultRef}}
	for i := range reply.Evidence {
		e := &reply.Evidence[i]
		values = append(values, movable{"evidence[" + strconv.Itoa(i) + "].result", &e.Result, &e.ResultRef})
	}
	if err := moveLargest(values, size(reply)-(max-costRoom), ref); err != nil {
		return err
	}
	if size(reply) > max-costRoom {
		return tooLong(max)
	}
	return nil
}

// HistoryListing is the kind of the cursors of an execution's history.
func HistoryListing(e execution.ExecutionID) string { return Listing("history", e) }

// FitHistory cuts a page of history to max bytes; the rest follows under the
// cursor of the last version shown. Long resume values become
// references.
func FitHistory(reply *HistoryReply, max int, ref RefFunc) error {
	entries := reply.Entries
	reply.Entries = nil
	var err error
	values := func(e *HistoryEntry) []movable { return []movable{{"resume", &e.Resume, &e.ResumeRef}} }
	reply.Entries, err = take(entries, max-costRoom-cursorRoom-size(reply), "entries", values, ref)
	switch n := len(reply.Entries); {
	case err != nil:
		return err
	case n == 0 && len(entries) > 0:
		return tooLong(max)
	case n < len(entries):
		reply.Cursor = Cursor(HistoryListing(reply.Execution), strconv.FormatInt(entries[n-1].Version, 10))
	}
	return nil
}
