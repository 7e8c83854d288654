package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// fill gives every field of a value a random content that survives a trip.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Type() {
	case valueType:
		texts := []string{`null`, `1.0`, `1e400`, `"<&>\u0000\ud800é"`, `{"b":[1,{}],"a":10000000000000000000999}`, `[]`}
		v.Set(reflect.ValueOf(jsonx.MustParse(texts[r.IntN(len(texts))])))
		return
	case timeType:
		v.SetInt(r.Int64N(4e12))
		return
	case decimalType:
		v.SetString([]string{"0", "1.50", "1e3", "0.000001"}[r.IntN(4)])
		return
	case bytesType:
		v.SetBytes([]byte(fmt.Sprint(r.Int64()))[:r.IntN(8)])
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Tag.Get("json") != "-" && f.IsExported() && (r.IntN(4) > 0 || f.Anonymous) {
				fill(r, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(r, e, depth+1)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", r.IntN(99))), e)
		}
	case reflect.String:
		v.SetString([]string{"x", "<&>", "é\u2028", "a\x00b\"\\"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<53) - 1<<52)
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(1000)) / 8)
	default:
		panic(v.Type().String())
	}
}

// Every struct comes back as it went in. Nil lists that are shown come back
// empty, which is compared by their text.
func TestRoundTripOfEveryStruct(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range Verbs {
		for _, make := range []func() any{v.NewReply, v.New} {
			for range 50 {
				in, out := make(), make()
				fill(r, reflect.ValueOf(in).Elem(), 0)
				text, err := EncodeReply(in)
				if err != nil {
					t.Fatal(err)
				}
				if !json.Valid(text) {
					t.Fatalf("%T is no JSON: %s", in, text)
				}
				if err := DecodeReply(text, out); err != nil {
					t.Fatalf("%T: %v\n%s", in, err, text)
				}
				again, _ := EncodeReply(out)
				if string(again) != string(text) {
					t.Fatalf("%T:\n%s\n%s", in, text, again)
				}
				if third := make(); DecodeReply(again, third) != nil || !reflect.DeepEqual(out, third) {
					t.Fatalf("%T is not stable", in)
				}
			}
		}
	}
}

func TestReplyKeepsTokens(t *testing.T) {
	const state = `{"<k>":1.0,"s":"\u0000<&>\u2028\ud800/","big":10000000000000000999,"é":[1E6,-0]}`
	reply := &GetReply{Standing: Standing{Execution: "e", Version: 3, Status: execution.StatusRunning}, View: View{State: jsonx.MustParse(state), Result: jsonx.NewNull()}}
	text, err := EncodeReply(reply)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"execution":"e","version":3,"status":"running","fence":0,"owner":"","state":` + state + `,"result":null}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
	var back GetReply
	if err := DecodeReply(text, &back); err != nil || back.State.String() != state || back.Result.Kind() != jsonx.Null || back.Error != nil {
		t.Errorf("%v %+v", err, back)
	}
}

func TestReplyForms(t *testing.T) {
	remaining := int64(0)
	for _, c := range []struct {
		reply any
		want  string
	}{
		{&ApplyReply{}, `{"state_bytes":0}`},
		{&ListReply{}, `{"executions":[]}`},
		{&HistoryReply{}, `{"entries":[]}`},
		{&RenewReply{Standing{Status: "running", Fence: 3, Owner: "w", LeaseRemainingMS: &remaining, Cost: &Cost{ReadUnits: 0.5}}},
			`{"status":"running","fence":3,"owner":"w","lease_remaining_ms":0,"cost":{"reads":0,"writes":0,"read_units":0.5,"write_units":0,"object_requests":0}}`},
		{&GetOperationReply{Standing: Standing{Execution: "e", Status: "running"}, Status: "declared"},
			`{"execution":"e","fence":0,"owner":"","operation":"","intent":{"name":"","on_uncertain":"","version":0},"attempt":0,"attempts":[],"provider_key":"","evidence":[],"contradictions":[],"status":"declared"}`},
		{&PurgeTenantReply{}, `{"done":false,"counts":{},"deferred":[]}`},
		{&GetArtifactReply{Body: []byte{}}, `{"artifact":{"digest":"","bytes":0},"body":""}`},
		{&HistoryReply{Entries: []HistoryEntry{{Version: 1, Kind: "created", At: 1767323045678}}},
			`{"entries":[{"version":1,"kind":"created","at":"2026-01-02T03:04:05.678Z","fence":0,"changes":{"state":false}}]}`},
		{&SetTenantReply{Settings: Settings{Allowed: []string{}}}, `{"settings":{"allowed":[]}}`},
	} {
		text, err := EncodeReply(c.reply)
		if err != nil {
			t.Fatal(err)
		}
		if sorted(t, text) != sorted(t, []byte(c.want)) {
			t.Errorf("%T:\n%s\nwant\n%s", c.reply, text, c.want)
		}
	}
}

func TestReplyTooLarge(t *testing.T) {
	big := jsonx.NewString(strings.Repeat("x", execution.MaxReplyBytes))
	_, err := EncodeReply(&GetReply{View: View{Input: big}})
	if execution.CodeOf(err) != execution.TooLarge {
		t.Error(err)
	}
	_, err = EncodeRequest(&CreateRequest{Input: big})
	if execution.CodeOf(err) != execution.TooLarge {
		t.Error(err)
	}
}

// A reply of a newer version is read, one of another form is not.
func TestDecodeReply(t *testing.T) {
	var r GetReply
	if err := DecodeReply([]byte(`{"execution":"e","new":{"x":[1]},"thread":null,"operations":[{"operation":"o","newer":1}]}`), &r); err != nil || r.Execution != "e" || len(r.Operations) != 1 {
		t.Errorf("%v %+v", err, r)
	}
	for _, body := range []string{`[]`, `{`, `{"version":"1"}`, `{"version":1.5}`, `{"operations":{}}`, `{"expires_at":"soon"}`, `{"replayed":1}`, `{"cost":{"read_units":"x"}}`, `{"budgets":{"a":{"limit":"1"}}}`} {
		if err := DecodeReply([]byte(body), &GetReply{}); execution.CodeOf(err) != execution.Internal {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]Time{
		"1970-01-01T00:00:00Z": 0, "1970-01-01T00:00:00.001Z": 1, "1970-01-01T00:00:00.5Z": 500, "1969-12-31T23:59:59.999Z": -1, "2026-01-02T03:04:05.678Z": 1767323045678,
	} {
		if got, ok := ParseTime(text); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02t03:04:05z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234Z",
		"2026-01-02T03:04:60Z", "2026-13-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02T24:00:00Z", " 2026-01-02T03:04:05Z", "2026-01-02T3:04:05Z", "2026-01-02 03:04:05Z"} {
		if got, ok := ParseTime(text); ok {
			t.Errorf("%q gave %v", text, got)
		}
	}
	var back struct{ T *Time }
	if err := json.Unmarshal([]byte(`{"T":"2026-01-02T03:04:05.678Z"}`), &back); err != nil || back.T.Millis() != 1767323045678 {
		t.Errorf("%v %v", err, back.T)
	}
	if at := TimeOrNil(0); at != nil || at.Millis() != 0 || TimeOrNil(1).Millis() != 1 {
		t.Errorf("no time: %v", at)
	}
}
