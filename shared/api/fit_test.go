package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// shelf keeps what was moved out of a reply.
type shelf map[string]*jsonx.Value

func (s shelf) ref(field string, v *jsonx.Value) (*Ref, error) {
	if _, twice := s[field]; twice {
		panic("moved twice: " + field)
	}
	s[field] = v
	at := Time(1767323045678)
	return &Ref{Version: 3, Digest: strings.Repeat("0", 64), Bytes: int64(v.Size()), URL: "https://" + strings.Repeat("u", 1200), ExpiresAt: &at}, nil
}

func text(n int) *jsonx.Value { return jsonx.NewString(strings.Repeat("x", max(0, n-2))) }

func state(n int) *jsonx.Value {
	return jsonx.NewObject(jsonx.Member{Key: `"s"`, Value: text(n - 6)})
}

func viewOf(stateBytes, operations, inbox, artifacts int) *GetReply {
	r := &GetReply{Standing: Standing{Execution: "e", Version: 3, Status: "running", Fence: 1, Owner: "w"}, View: View{Workflow: "wf"}}
	if stateBytes > 0 {
		r.State = state(stateBytes)
	}
	for i := range operations {
		r.Operations = append(r.Operations, OperationView{Operation: execution.OperationID(fmt.Sprintf("%032d", i)), Name: "n", Key: fmt.Sprint("k", i), Attempt: 1, Status: "declared", Seq: int64(i + 10)})
	}
	for i := range inbox {
		r.Inbox = append(r.Inbox, InboxEntry{Name: "n", Key: fmt.Sprintf("k%05d", i), Body: jsonx.NewInt(int64(i))})
	}
	for i := range artifacts {
		r.Artifacts = append(r.Artifacts, Artifact{Digest: strings.Repeat("0", 64), Bytes: int64(i), Name: fmt.Sprint("a", i)})
	}
	return r
}

func encoded(t interface{ Fatal(...any) }, reply any) string {
	text, err := EncodeReply(reply)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFitViewState(t *testing.T) {
	for _, c := range []struct {
		size, max int
		inline    bool
	}{
		{50_000, 100_000, true}, {99_000, 100_000, true}, {100_000, 100_000, false}, {120_000, 100_000, false}, {262_144, 100_000, false}, {5 << 20, 5_500_000, true}, {5 << 20, 6 << 20, true}, {3000, 3000, false},
	} {
		r, s := viewOf(c.size, 0, 0, 0), shelf{}
		whole := r.State
		if err := FitView(r, c.max, s.ref); err != nil {
			t.Fatal(err)
		}
		if got := encoded(t, r); len(got) > c.max || (r.State != nil) != c.inline || (r.StateRef == nil) != c.inline {
			t.Errorf("%+v: %d bytes, inline %v", c, len(got), r.State != nil)
		}
		if !c.inline && s["state"] != whole {
			t.Errorf("%+v: another state was moved", c)
		}
	}
}

// A small state stays beside lists that are too long, a large one makes room.
func TestFitViewLists(t *testing.T) {
	r, s := viewOf(20_000, 5000, 3000, 2000), shelf{}
	if err := FitView(r, 100_000, s.ref); err != nil {
		t.Fatal(err)
	}
	if len(s) != 0 || r.State == nil || r.OperationsCursor == "" || r.InboxCursor == "" || r.ArtifactsCursor == "" {
		t.Errorf("moved %d, cursors %q %q %q", len(s), r.OperationsCursor, r.InboxCursor, r.ArtifactsCursor)
	}
	if n := len(encoded(t, r)); n > 100_000 || n < 90_000 {
		t.Errorf("%d bytes", n)
	}
	last, err := ParseCursor("operations_cursor", "operations", r.OperationsCursor, 1)
	if err != nil || last[0] != fmt.Sprint(r.Operations[len(r.Operations)-1].Seq) {
		t.Errorf("%v %v", last, err)
	}
	if _, err := ParseCursor("inbox_cursor", "inbox", r.OperationsCursor, 2); execution.CodeOf(err) != execution.InvalidRequest {
		t.Error("a cursor of another list was taken")
	}
	r, s = viewOf(90_000, 5000, 0, 0), shelf{}
	if err := FitView(r, 100_000, s.ref); err != nil || r.State != nil || len(r.Operations) < 300 {
		t.Errorf("%v: %d operations beside the state", err, len(r.Operations))
	}
	r, s = viewOf(90_000, 20, 0, 0), shelf{}
	if err := FitView(r, 100_000, s.ref); err != nil || r.State == nil || len(r.Operations) != 20 {
		t.Errorf("%v: the state was moved without need", err)
	}
}

// Following the cursors shows everything, once and in order.
func TestFitViewPages(t *testing.T) {
	const n = 1100
	var ops []string
	from := int64(0)
	for page := 0; ; page++ {
		if page > 50 {
			t.Fatal("pages never end")
		}
		r := viewOf(0, n, 0, 0)
		for len(r.Operations) > 0 && r.Operations[0].Seq <= from {
			r.Operations = r.Operations[1:]
		}
		if err := FitView(r, 20_000, shelf{}.ref); err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Operations {
			ops = append(ops, o.Key)
		}
		if r.OperationsCursor == "" {
			break
		}
		p, err := ParseCursor("operations_cursor", "operations", r.OperationsCursor, 1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(p[0], &from)
	}
	if len(ops) != n || ops[0] != "k0" || ops[n-1] != fmt.Sprint("k", n-1) {
		t.Errorf("%d operations", len(ops))
	}
}

// Whatever a view holds, its text is within the limit or the answer is
// TooLarge; nothing gets lost unsaid.
func TestFitViewProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		max := rapid.IntRange(2000, 200_000).Draw(rt, "max")
		r := &ResumeReply{Standing: Standing{Execution: "e", Status: "running"}, View: viewOf(rapid.IntRange(10, 300_000).Draw(rt, "state"), rapid.IntRange(0, 400).Draw(rt, "ops"),
			rapid.IntRange(0, 400).Draw(rt, "inbox"), rapid.IntRange(0, 300).Draw(rt, "artifacts")).View}
		sizes := rapid.SliceOfN(rapid.IntRange(0, 60_000), 6, 6).Draw(rt, "values")
		r.Input, r.Result, r.Error, r.Resume = text(sizes[0]), text(sizes[1]), text(sizes[2]), text(sizes[3])
		r.Wait = &WaitView{WaitingFor: text(sizes[4])}
		for range rapid.IntRange(0, 3000).Draw(rt, "reasons") {
			r.Reasons = append(r.Reasons, Reason{Code: "uncertain", Operation: "0123"})
			r.ParkedReasons = r.Reasons
		}
		big := 0
		for i := range r.Operations {
			if i%7 == sizes[5]%7 && big < 200_000 {
				r.Operations[i].Result = text(sizes[i%6])
				big += sizes[i%6]
			}
		}
		nOps, nInbox, nArt, nReasons := len(r.Operations), len(r.Inbox), len(r.Artifacts), len(r.Reasons)
		err := FitView(r, max, shelf{}.ref)
		if err != nil {
			if execution.CodeOf(err) != execution.TooLarge || max > 30_000 {
				rt.Fatalf("max %d: %v", max, err)
			}
			return
		}
		got := encoded(rt, r)
		if len(got) > max {
			rt.Fatalf("%d bytes of %d", len(got), max)
		}
		if (len(r.Operations) < nOps) != (r.OperationsCursor != "") || (len(r.Inbox) < nInbox) != (r.InboxCursor != "") ||
			(len(r.Artifacts) < nArt) != (r.ArtifactsCursor != "") || len(r.Reasons) < nReasons && !r.Truncated {
			rt.Fatalf("a list was cut and does not say so")
		}
		if (r.State == nil) == (r.StateRef == nil) || (r.Input == nil) == (r.InputRef == nil) || (r.Wait.WaitingFor == nil) == (r.Wait.WaitingForRef == nil) {
			rt.Fatal("a value and its reference")
		}
	})
}

// fillWithAnything fills a value with whatever its type can hold.
func fillWithAnything(rt *rapid.T, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[*jsonx.Value]():
		if rapid.Bool().Draw(rt, "json") {
			v.Set(reflect.ValueOf(jsonx.MustParse(rapid.SampledFrom([]string{"null", "1.0", `"a\\u0000"`, `{"a":[1,{}]}`, `[]`}).Draw(rt, "value"))))
		}
		return
	case reflect.TypeFor[Decimal](), reflect.TypeFor[json.Number]():
		v.SetString(rapid.SampledFrom([]string{"0", "1.50", "-3e7"}).Draw(rt, "number"))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 6 && rapid.Bool().Draw(rt, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fillWithAnything(rt, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillWithAnything(rt, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 2).Draw(rt, "length"); n >= 0 && depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fillWithAnything(rt, v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if rapid.Bool().Draw(rt, "map") && v.Type().Key().Kind() == reflect.String && depth < 6 {
			v.Set(reflect.MakeMap(v.Type()))
			e := reflect.New(v.Type().Elem()).Elem()
			fillWithAnything(rt, e, depth+1)
			v.SetMapIndex(reflect.ValueOf("k\"").Convert(v.Type().Key()), e)
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "plain text", "quo\"te", "back\\slash", "<&>", "ü€", "\x00\x1f\x7f", "\u2028"}).Draw(rt, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{0, 7, -12, 1767323045678}).Draw(rt, "int"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(rt, "byte")))
	}
}

// What a reply is measured to be is what it becomes.
func TestSizeIsThatOfTheText(t *testing.T) {
	for _, reply := range []any{GetReply{}, ResumeReply{}, ApplyReply{}, HistoryReply{}, GetOperationReply{}, ReconcileReply{}, DeleteReply{}, VerifyReply{}, HoldsReply{}, GetArtifactReply{}} {
		rapid.Check(t, func(rt *rapid.T) {
			v := reflect.New(reflect.TypeOf(reply))
			fillWithAnything(rt, v.Elem(), 0)
			if got, want := size(v.Interface()), tree(v, false).Size(); got != want {
				rt.Fatalf("%T: %d, and the text has %d: %s", reply, got, want, tree(v, false))
			}
		})
	}
}

func TestFitReturnsTheErrorOfRef(t *testing.T) {
	broken := errors.New("x")
	ref := func(string, *jsonx.Value) (*Ref, error) { return nil, broken }
	if err := FitView(viewOf(200_000, 0, 0, 0), 100_000, ref); !errors.Is(err, broken) {
		t.Error(err)
	}
	r := viewOf(0, 1, 0, 0)
	r.Operations[0].Result = text(200_000)
	if err := FitView(r, 100_000, ref); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestFitViewTooSmall(t *testing.T) {
	err := FitView(viewOf(200_000, 5, 0, 0), 500, shelf{}.ref)
	var e *execution.Error
	if !errors.As(err, &e) || e.Code != execution.TooLarge || e.Facts["limit"] != 500 || e.Facts["field"] != "max_inline_bytes" {
		t.Error(err)
	}
}

func TestFitApply(t *testing.T) {
	r := &ApplyReply{}
	for i := range 5 {
		r.Operations = append(r.Operations, OperationReply{Operation: "o", Disposition: Settled, Result: text(10_000 * (i + 1))})
	}
	s := shelf{}
	if err := FitApply(r, 100_000, s.ref); err != nil || len(encoded(t, r)) > 100_000 {
		t.Errorf("%v: %d bytes", err, len(encoded(t, r)))
	}
	if len(s) != 2 || s["operations[4].result"] == nil || s["operations[3].result"] == nil {
		t.Errorf("%d moved, not the largest two", len(s))
	}
	if err := FitApply(&ApplyReply{Operations: make([]OperationReply, 5000)}, 1000, s.ref); err != nil {
		t.Errorf("a written step was refused: %v", err)
	}
}

func TestFitOperation(t *testing.T) {
	r := &GetOperationReply{OperationDetail: OperationDetail{Intent: Intent{Args: text(300_000)}, Result: text(200_000), Evidence: []SlotView{{Result: text(200_000)}}}}
	s := shelf{}
	if err := FitOperation(r, 100_000, s.ref); err != nil || len(encoded(t, r)) > 100_000 || len(s) != 3 || r.Intent.ArgsRef == nil {
		t.Errorf("%v: %d moved", err, len(s))
	}
	small := &GetOperationReply{OperationDetail: OperationDetail{Result: text(1000)}}
	if err := FitOperation(small, 100_000, s.ref); err != nil || small.Result == nil {
		t.Errorf("%v: a short result was moved", err)
	}
	if err := FitOperation(&GetOperationReply{}, 100, s.ref); execution.CodeOf(err) != execution.TooLarge {
		t.Error(err)
	}
}

func TestFitHistory(t *testing.T) {
	r := &HistoryReply{}
	for i := range 1000 {
		r.Entries = append(r.Entries, HistoryEntry{Version: int64(i + 1), Kind: "claimed", Resume: text(100 + i%2*90_000)})
	}
	s := shelf{}
	if err := FitHistory(r, 300_000, s.ref); err != nil {
		t.Fatal(err)
	}
	if n := len(encoded(t, r)); n > 300_000 || n < 200_000 {
		t.Errorf("%d bytes", n)
	}
	p, err := ParseCursor("cursor", HistoryListing(r.Execution), r.Cursor, 1)
	if err != nil || p[0] != fmt.Sprint(len(r.Entries)) || len(s) < 50 {
		t.Errorf("%v %v, %d moved, %d entries", p, err, len(s), len(r.Entries))
	}
	short := &HistoryReply{Entries: make([]HistoryEntry, 3)}
	if err := FitHistory(short, 100_000, s.ref); err != nil || len(short.Entries) != 3 || short.Cursor != "" {
		t.Error(err)
	}
}

func TestParseCursor(t *testing.T) {
	c := Cursor("inbox", "n", "k\u2028\x00\"")
	if p, err := ParseCursor("c", "inbox", c, 2); err != nil || p[0] != "n" || p[1] != "k\u2028\x00\"" {
		t.Errorf("%v %v", p, err)
	}
	for _, bad := range []string{"", "x", "!", c + "A", Cursor("inbox", "n"), Cursor("other", "n", "k")} {
		var e *execution.Error
		if _, err := ParseCursor("c", "inbox", bad, 2); !errors.As(err, &e) || e.Facts["field"] != "c" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
