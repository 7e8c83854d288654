package memory_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// fill makes a world with something of everything.
func fill(t *testing.T, e *memory.Engine) {
	t.Helper()
	tb := e.Table(memory.Main)
	odd := item("p", "odd", 1)
	for name, raw := range map[string]string{"list": `{"L":[{"S":""},{"NULL":true},{"M":{"":{"BOOL":false}}}]}`, "ns": `{"NS":["1","2.5"]}`, "bs": `{"BS":["AAE=","AQ=="]}`, "b": `{"B":""}`, "ss": `{"SS":["","a"]}`} {
		it, err := memory.DecodeItem([]byte(`{"pk":"x","sk":"y","v":` + raw + `}`))
		must(t, err)
		odd[name] = it["v"]
	}
	head := item("p", "head", 1)
	head["xs"], head["xu"], head["xd"], head["due"], head["ttl"] = store.S("t#running#1"), store.S("2026"), store.S("~due#1"), store.N(5), store.N(e.Now().Unix()+60)
	for _, it := range []store.Item{odd, head, item("q", "a", 2)} {
		_, err := tb.Put(t.Context(), store.Put{Item: it})
		must(t, err)
	}
	_, err := e.Table(memory.Keys).Put(t.Context(), store.Put{Item: item("tenant", "key#1", 3)})
	must(t, err)
	putObject(t, e, "t/e/1", "a canary in a body")
	e.Bucket().Hide("t/e/1")
	putObject(t, e, "t/e/1", "second")
	putObject(t, e, "t/empty", "")
	_, err = e.Bucket().Put(t.Context(), store.PutObject{Key: "t/view", Body: strings.NewReader("{}"), Bytes: 2, SHA256: sha256.Sum256([]byte("{}")), MediaType: "application/json", StorageClass: "GLACIER_IR", ExpiresTag: true, KMSKey: "k"})
	must(t, err)
	e.Bucket().StartUpload("t/unfinished")
}

func dumpText(t *testing.T, e *memory.Engine) string {
	t.Helper()
	raw, err := json.Marshal(e.Dump())
	must(t, err)
	return string(raw)
}

func load(t *testing.T, e *memory.Engine, text string) {
	t.Helper()
	var d memory.Dump
	must(t, json.Unmarshal([]byte(text), &d))
	must(t, e.Load(d))
}

// A whole dump through JSON restores a world exactly: in the same engine after
// a reset, and in one with another key.
func TestDumpRestores(t *testing.T) {
	e := memory.New(memory.Options{})
	fill(t, e)
	text := dumpText(t, e)
	if strings.Contains(text, "canary") {
		t.Error("an object in the clear")
	}
	for _, o := range e.Dump().Objects {
		if bytes.Contains(o.Body, []byte("canary")) {
			t.Error("an object in the clear")
		}
	}
	secret := e.Secret("x")
	e.Reset()
	if d := e.Dump(); len(d.Items) != 0 || len(d.Objects) != 0 || len(d.Keys) != 1 || e.PendingRecords() != 0 {
		t.Errorf("after a reset: %s", dumpText(t, e))
	}
	other := memory.New(memory.Options{Seed: "another"})
	putObject(t, other, "before", "readable before and after")
	for name, to := range map[string]*memory.Engine{"same": e, "other": other} {
		load(t, to, text)
		if name == "same" {
			if got := dumpText(t, to); got != text {
				t.Errorf("restored:\n%s\nwas\n%s", got, text)
			}
		} else if got := readObject(t, to, "before"); got != "readable before and after" {
			t.Errorf("after a change of keys: %q", got)
		}
		if to.Secret("x") != secret {
			t.Errorf("%s: derived keys differ", name)
		}
		if got := readObject(t, to, "t/e/1"); got != "second" {
			t.Errorf("%s: object: %q", name, got)
		}
		if to.PendingRecords() != 0 {
			t.Errorf("%s: a load made stream records", name)
		}
		page, _, err := to.Table(memory.Main).Query(t.Context(), store.Query{PK: "~due#1", Index: "due"})
		must(t, err)
		if len(page.Items) != 1 || page.Items[0].Key() != key("p", "head") {
			t.Errorf("%s: index: %v", name, page.Items)
		}
		// Time goes on for what was loaded.
		must(t, to.Advance(25*time.Hour))
		if value(t, to.Table(memory.Main), key("p", "head")) != -1 {
			t.Errorf("%s: time to live", name)
		}
		if _, _, err := to.Bucket().Head(t.Context(), "t/view"); store.KindOf(err) != store.NotFound {
			t.Errorf("%s: expiry tag: %v", name, err)
		}
		// New version ids are new.
		putObject(t, to, "t/new", "x")
		seen := map[string]bool{}
		for _, o := range to.Dump().Objects {
			if seen[o.Key+o.VersionID] {
				t.Errorf("%s: version %s of %s twice", name, o.VersionID, o.Key)
			}
			seen[o.Key+o.VersionID] = true
		}
	}
}

func TestSameCallsSameBytes(t *testing.T) {
	a, b := memory.New(memory.Options{}), memory.New(memory.Options{})
	fill(t, a)
	fill(t, b)
	if dumpText(t, a) != dumpText(t, b) {
		t.Error("two engines differ after the same calls")
	}
	if !reflect.DeepEqual(a.TakeRecords(0), b.TakeRecords(0)) {
		t.Error("streams differ")
	}
}

// Load overwrites by key: changed attributes, odd types, damaged objects, a
// plain new object.
func TestLoadOverwrites(t *testing.T) {
	e := memory.New(memory.Options{})
	fill(t, e)
	tb := e.Table(memory.Main)
	load(t, e, `{"items":[{"pk":"p","sk":{"S":"head"},"n":{"N":"7"},"status":{"NULL":true},"xs":{"N":"1"},"xu":{"S":"2026"}}]}`)
	if it, _, _ := tb.Get(t.Context(), store.Get{Key: key("p", "head"), Consistent: true}); it.Int("n") != 7 || it["status"].Kind != store.KindNULL || it.Has("ttl") {
		t.Errorf("overwritten: %v", it)
	}
	page, _, err := tb.Query(t.Context(), store.Query{PK: "t#running#1", Index: "status"})
	must(t, err)
	if len(page.Items) != 0 {
		t.Errorf("index: %v", page.Items)
	}
	d := e.Dump()
	for i := range d.Objects {
		if o := &d.Objects[i]; o.Key == "t/e/1" && !o.DeleteMarker {
			o.Body = append([]byte{}, o.Body[:len(o.Body)-1]...)
		}
	}
	damaged := d.Objects[2].Body
	must(t, e.Load(memory.Dump{Objects: d.Objects}))
	if got := readObject(t, e, "t/e/1"); got != string(damaged) {
		t.Error("damaged bytes are given as they are")
	}
	if got := e.Dump().Objects[2].Body; !bytes.Equal(got, damaged) {
		t.Error("a dump shows what was loaded")
	}
	load(t, e, `{"objects":[{"key":"plain","body":"aGVsbG8="}]}`)
	if got := readObject(t, e, "plain"); got != "hello" {
		t.Errorf("a plain object: %q", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	e := memory.New(memory.Options{})
	fill(t, e)
	before := dumpText(t, e)
	good := `{"pk":{"S":"new"},"sk":{"S":"new"}}`
	for _, bad := range []string{
		`{"items":[` + good + `,{}]}`, `{"items":[` + good + `,[]]}`, `{"items":[` + good + `,null]}`, `{"items":[` + good + `,{"pk":{"S":"a"}}]}`, `{"items":[` + good + `,{"pk":{"S":""},"sk":{"S":"a"}}]}`,
		`{"items":[` + good + `,{"pk":{"N":"1"},"sk":{"S":"a"}}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":"plain"}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":{"N":"one"}}]}`,
		`{"items":[` + good + `,{"pk":"a","sk":"b","x":{"N":1}}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":{"S":"1","N":"1"}}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":{"Q":"1"}}]}`,
		`{"items":[` + good + `,{"pk":"a","sk":"b","x":{"B":"***"}}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":{"SS":[]}}]}`, `{"items":[` + good + `,{"pk":"a","sk":"b","x":{"S":null}}]}`,
		`{"items":[` + good + `],"keys":[{}]}`, `{"items":[` + good + `],"keys":[{"pk":"~sandbox","sk":"objects","key":{"B":"AA=="}}]}`, `{"items":[` + good + `],"objects":[{"key":""}]}`,
	} {
		var d memory.Dump
		if err := json.Unmarshal([]byte(bad), &d); err != nil {
			t.Fatalf("%s: %v", bad, err)
		}
		if err := e.Load(d); err == nil {
			t.Errorf("loaded: %s", bad)
		}
		if dumpText(t, e) != before {
			t.Fatalf("changed something: %s", bad)
		}
	}
}
