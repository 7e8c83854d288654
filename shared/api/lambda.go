package api

import (
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// EncodeError gives the errorMessage of an error: one JSON object of at most
// MaxErrorBytes {code, message, retryable, ...facts}, with what is known of
// where the execution stands; nil: nothing. A fact of the error goes before the
// standing's. What is too long is cut, the longest first, and then
// "truncated": true.
func EncodeError(e *execution.Error, standing *Standing) []byte {
	facts := map[string]*jsonx.Value{}
	if standing != nil {
		for _, m := range structMembers(reflect.ValueOf(*standing), false) {
			facts[nameOf(m)] = m.Value
		}
	}
	for name, fact := range e.Facts {
		facts[name] = tree(reflect.ValueOf(fact), false)
	}
	facts["code"] = jsonx.NewString(string(e.Code))
	facts["message"] = jsonx.NewString(e.Message)
	facts["retryable"] = jsonx.NewBool(e.Code.Retryable())
	v := errorTree(facts)
	for v.Size() > execution.MaxErrorBytes && cutLongest(facts) {
		facts["truncated"] = jsonx.NewBool(true)
		v = errorTree(facts)
	}
	return v.Bytes()
}

func nameOf(m jsonx.Member) string {
	name, _ := m.Name()
	return name
}

// errorTree puts what a reader looks for first at the beginning.
func errorTree(facts map[string]*jsonx.Value) *jsonx.Value {
	first := []string{"code", "message", "retryable"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(facts)), func(n string) bool { return slices.Contains(first, n) })
	members := make([]jsonx.Member, 0, len(facts))
	for _, n := range append(first, names...) {
		members = append(members, jsonx.Member{Key: jsonx.Key(n), Value: facts[n]})
	}
	return jsonx.NewObject(members...)
}

// cutLongest halves the longest fact, a list or a text; one of another form
// goes altogether. False when nothing is left to cut.
func cutLongest(facts map[string]*jsonx.Value) bool {
	longest, size := "", 64
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if s := facts[name].Size(); s > size {
			longest, size = name, s
		}
	}
	if longest == "" {
		return false
	}
	v := facts[longest]
	switch text, ok := v.Text(); {
	case v.Kind() == jsonx.Array:
		facts[longest] = jsonx.NewArray(v.Elems()[:v.Len()/2]...)
	case ok:
		text = text[:len(text)/2]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		facts[longest] = jsonx.NewString(text)
	default:
		delete(facts, longest)
	}
	return true
}

// LambdaError is the error as the Lambda runtime must get it: by value, so that
// its type, which Step Functions catches by, is the code. An error that carries
// no code becomes Internal without its text.
func LambdaError(err error, standing *Standing) messages.InvokeResponse_Error {
	e := execution.AsError(err)
	return messages.InvokeResponse_Error{Type: string(e.Code), Message: string(EncodeError(e, standing))}
}

// ParseError gives back what EncodeError wrote, for clients: errors.Is matches
// its code, its facts hold the rest: integers as int64, other numbers as
// json.Number. An error that is none of ours (the function crashed, ran out of
// time or memory) is Unavailable with error_type: its outcome is unknown.
func ParseError(errorType, errorMessage string) *execution.Error {
	v, err := jsonx.ParseString(errorMessage)
	code, _ := v.Get("code").Text()
	if err != nil || code == "" || code != errorType {
		return execution.Errorf(execution.Unavailable, "the function failed; the outcome is unknown").With("error_type", errorType)
	}
	e := &execution.Error{Code: execution.Code(code), Facts: map[string]any{}}
	for _, m := range v.Members() {
		switch name := nameOf(m); name {
		case "code", "retryable":
		case "message":
			e.Message, _ = m.Value.Text()
		default:
			e.Facts[name] = plain(m.Value)
		}
	}
	return e
}
