package jsonx

import (
	"fmt"
	"strings"
	"testing"
)

// agentState is a state as agents keep it: a list of messages with tool calls,
// a few counters and a plan, of about the given size.
func agentState(size int) string {
	var b strings.Builder
	b.WriteString(`{"task":{"id":17,"goal":"Book the flight the customer asked for","steps_done":4},"messages":[`)
	for i := 0; b.Len() < size-200; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"assistant","content":"I found %d flights that fit. Do you want the \"first\" one?\nIt leaves at 11:%02d.","tool_calls":[{"id":"call_%06d","type":"function","function":{"name":"search_flights","arguments":"{\"origin\":\"JFK\",\"destination\":\"SEA\",\"date\":\"2024-05-20\"}"}}]}`, i%7, i%60, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%06d","content":[{"flight":"HAT%03d","price":%d.50,"seats":{"economy":%d,"business":%d},"direct":true,"via":null}]}`, i, i%999, i%500, i%20, i%5)
	}
	b.WriteString(`],"budget":{"spent":12.25,"limit":100},"done":false}`)
	return b.String()
}

func BenchmarkParse1MB(b *testing.B) {
	data := []byte(agentState(1 << 20))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse10KB(b *testing.B) {
	data := []byte(agentState(10 << 10))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse100B(b *testing.B) {
	data := []byte(`{"op":"add","path":"/messages/-","value":{"role":"user","content":"Yes, please."}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

// smallPatch is 1 KB: two messages and some leaves.
func smallPatch() *Value {
	return MustParse(`[{"op":"add","path":"/messages/-","value":{"role":"user","content":"` + strings.Repeat("Yes, please. ", 30) + `"}},
		{"op":"add","path":"/messages/-","value":{"role":"assistant","content":"` + strings.Repeat("I book it. ", 30) + `"}},
		{"op":"replace","path":"/task/steps_done","value":5},
		{"op":"replace","path":"/budget/spent","value":13.75},{"op":"replace","path":"/done","value":true}]`)
}

func BenchmarkApplyPatch10KB(b *testing.B) {
	doc, patch := MustParse(agentState(10<<10)), smallPatch()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ApplyPatch(doc, patch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyPatch1MB(b *testing.B) {
	doc, patch := MustParse(agentState(1<<20)), smallPatch()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ApplyPatch(doc, patch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, size := range []int{10 << 10, 1 << 20} {
		from := MustParse(agentState(size))
		to, err := ApplyPatch(from, smallPatch())
		if err != nil {
			b.Fatal(err)
		}
		to = MustParse(to.String()) // no shared nodes
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if Diff(from, to).Len() != 5 {
					b.Fatal("not the expected patch")
				}
			}
		})
	}
}

func BenchmarkAppend1MB(b *testing.B) {
	v := MustParse(agentState(1 << 20))
	b.SetBytes(int64(v.Size()))
	var buf []byte
	for b.Loop() {
		buf = v.Append(buf[:0])
	}
}

func BenchmarkDigestForm1MB(b *testing.B) {
	v := MustParse(agentState(1 << 20))
	b.SetBytes(int64(v.Size()))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = AppendDigestForm(buf[:0], v)
	}
}
