package journal

import (
	"context"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/store"
)

// docs/FORMAT.md names every attribute that is written here, and every name in
// the stored records.
func TestFormatIsDocumented(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	w := newWorld(t)
	w.inline = 400
	j := w.process()
	h := w.create(j, "e", `{}`, "w1")
	c := change(h, "r", `{"n":1}`)
	c.Note = strings.Repeat("oversize 123 ", 60)
	got, err := j.step(context.Background(), "e", c)
	if err != nil {
		t.Fatal(err)
	}
	c = change(got.Handle, "s", `{"n":2}`)
	c.Kind, c.Wait = execution.KindSuspended, &execution.Wait{}
	if _, err := j.step(context.Background(), "e", c); err != nil {
		t.Fatal(err)
	}
	s := &Slot{Operation: "0123456789abcdef0123456789abcdef", Attempt: 1, Generation: h.State.Generation, Outcome: execution.OutcomeUnknown, At: 5, Args: []byte("1")}
	if _, _, err := j.FillSlot(context.Background(), h.State.Ref, s, FillOptions{Callback: []byte("m")}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Contradict(context.Background(), h.State.Ref, s, []byte{1}, FillOptions{}); err != nil {
		t.Fatal(err)
	}
	items := w.items("acme#e")
	items["stub"] = StubItem(h.State.Ref, EntryFacts{Version: 1}, 3)
	items["closing"] = ClosingEntry(h.State.Ref, EntryFacts{Version: 1}, 3)
	n := 0
	for sk, it := range items {
		for attr := range it {
			if attr != store.AttrPK && attr != store.AttrSK && !strings.Contains(doc, "`"+attr+"`") {
				t.Errorf("%s: attribute %s is not in docs/FORMAT.md", sk, attr)
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d attributes seen", n)
	}
	for _, v := range []any{execution.Body{}, execution.State{}, execution.Operation{}, execution.Creation{}, execution.Claim{}, execution.Settlement{}, execution.Evidence{}, execution.Wait{},
		execution.Completion{}, slotBody{}} {
		ty := reflect.TypeOf(v)
		for i := range ty.NumField() {
			name, _, _ := strings.Cut(ty.Field(i).Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if !regexp.MustCompile("[`{, /]" + name + "[`}, :/]").MatchString(doc) {
				t.Errorf("%s.%s: name %q is not in docs/FORMAT.md", ty.Name(), ty.Field(i).Name, name)
			}
		}
	}
}
