package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cairnstate/cairn/shared/jsonx"
)

// recording is one recorded run.
type recording struct {
	name     string
	messages []*jsonx.Value
}

// load reads the recordings, every token as it is.
func load(file string) ([]recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, err
	}
	all, err := jsonx.Parse(text)
	if err != nil {
		return nil, err
	}
	var runs []recording
	for _, r := range all.Elems() {
		runs = append(runs, recording{fmt.Sprintf("task-%s-trial-%s", r.Get("task_id").Raw(), r.Get("trial").Raw()), r.Get("traj").Elems()})
	}
	return runs, nil
}

// effect is a call of a tool that changes something.
type effect struct {
	name string
	args *jsonx.Value
}

// identity is the effect as the airline knows it: name and arguments, whatever
// call id the model made up.
func (e *effect) identity() string { return e.name + string(jsonx.AppendCanonical(nil, e.args)) }

// effectOf gives the effect that a message asks for; nil: none. Tools that only
// read have no effect to protect.
func effectOf(message *jsonx.Value) (*effect, error) {
	call := message.Get("tool_calls").Elem(0).Get("function")
	name, _ := call.Get("name").Text()
	switch {
	case name == "book_reservation", name == "cancel_reservation", name == "send_certificate", name == "transfer_to_human_agents",
		strings.HasPrefix(name, "update_reservation_"):
	default:
		return nil, nil
	}
	text, _ := call.Get("arguments").Text()
	args, err := jsonx.ParseString(text)
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", name, err)
	}
	return &effect{name, args}, nil
}

// content is the text of a tool's answer.
func content(message *jsonx.Value) string {
	text, _ := message.Get("content").Text()
	return text
}

// refused reports a definite refusal: the airline did nothing.
func refused(answer string) bool { return strings.HasPrefix(answer, "Error:") }

// answered is a tool's message with another answer.
func answered(message *jsonx.Value, answer *jsonx.Value) *jsonx.Value {
	members := append([]jsonx.Member{}, message.Members()...)
	for i := range members {
		if name, _ := members[i].Name(); name == "content" {
			members[i].Value = answer
		}
	}
	return jsonx.NewObject(members...)
}

// expected is how a run must end: as recorded, but that an effect which had
// succeeded before is answered by its first result. repeats counts those.
func (r *recording) expected() (state *jsonx.Value, repeats int, err error) {
	done := map[string]*jsonx.Value{}
	messages := append([]*jsonx.Value{}, r.messages...)
	for i, m := range messages[:len(messages)-1] {
		e, err := effectOf(m)
		if err != nil {
			return nil, 0, err
		}
		if e == nil {
			continue
		}
		answer := messages[i+1]
		if first := done[e.identity()]; first != nil {
			messages[i+1] = answered(answer, first)
			repeats++
		} else if !refused(content(answer)) {
			done[e.identity()] = answer.Get("content")
		}
	}
	return jsonx.NewObject(jsonx.Member{Key: jsonx.Key("messages"), Value: jsonx.NewArray(messages...)}), repeats, nil
}
