package docs_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

// The table of COST.md is counted here, on a store that counts units as DynamoDB
// does, those of the indexes included. CAIRN_UPDATE_DOCS=1 writes it.

const (
	costBegin = "<!-- counted: cost_test.go -->\n"
	costEnd   = "<!-- end -->\n"
)

// counted is one row.
type counted struct {
	what string
	cost api.Cost
}

type counter struct {
	t         *testing.T
	engine    *memory.Engine
	kms       *local.KMS
	doors     map[string]door.Handler
	processes byte
	rows      []counted
	// seen has what the last reply says of itself, for the next request.
	seen map[string]any
}

// start begins a new process: nothing in memory, but the tenant's key, which
// every process fetches once in 15 minutes.
func (c *counter) start() {
	began := c.engine.Now()
	c.processes++ // each draws its own tokens
	s := wiring.New(wiring.Outside{
		Main: c.engine.Table(memory.Main), Keys: c.engine.Table(memory.Keys), Bucket: c.engine.Bucket(), KMS: c.kms, DataKey: "key",
		Now: c.engine.Now, Elapsed: func() time.Duration { return c.engine.Now().Sub(began) }, Rand: rand.NewChaCha8([32]byte{c.processes}),
	})
	c.doors = s.Functions()
	if _, err := s.Sealer.Token(context.Background(), "bank", "warm", "up"); err != nil {
		c.t.Fatal(err)
	}
}

// do makes a request; %version and %fence stand for those of the last reply.
func (c *counter) do(function, request string) api.Cost {
	c.t.Helper()
	for _, name := range []string{"version", "fence", "operation"} {
		if v, ok := c.seen[name]; ok {
			request = strings.ReplaceAll(request, "%"+name, fmt.Sprint(v))
		}
	}
	reply, err := c.doors[function](context.Background(), []byte(request))
	if err != nil {
		c.t.Fatalf("%.200s: %v", request, err)
	}
	var out struct {
		Cost       api.Cost
		Version    int64
		Fence      int64
		Operations []struct{ Operation string }
	}
	if err := json.Unmarshal(reply, &out); err != nil {
		c.t.Fatal(err)
	}
	if out.Version > 0 {
		c.seen["version"] = out.Version
	}
	if out.Fence > 0 {
		c.seen["fence"] = out.Fence
	}
	if len(out.Operations) > 0 {
		c.seen["operation"] = out.Operations[0].Operation
	}
	if err := c.engine.Advance(time.Second); err != nil {
		c.t.Fatal(err)
	}
	return out.Cost
}

func (c *counter) row(what, function, request string) {
	c.t.Helper()
	c.rows = append(c.rows, counted{what, c.do(function, request)})
}

// cold counts a request in a process that has seen nothing of the execution.
func (c *counter) cold(what, function, request string) {
	c.t.Helper()
	c.start()
	c.row(what, function, request)
}

// noise is text that does not compress below its length in base64.
func noise(n int) string {
	b := make([]byte, n*3/4)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return base64.StdEncoding.EncodeToString(b)[:n]
}

func request(action, execution, rest string) string {
	return fmt.Sprintf(`{"action":%q,"tenant":"bank","execution":%q,%s}`, action, execution, rest)
}

const under = `"expected_version":%version,"fence":%fence,`

func count(t *testing.T) []counted {
	c := &counter{t: t, engine: memory.New(memory.Options{CountIndexWrites: true, NoStream: true}), kms: &local.KMS{Master: []byte("cost")}, seen: map[string]any{}}
	c.start()
	c.do("checkpoint", `{"action":"create","tenant":"bank","execution":"first","workflow":"documents","request_id":"r0"}`)
	c.row("create", "checkpoint", request("create", "e0", `"workflow":"documents","request_id":"r1","state":{"missing":["passport"]}`))
	c.row("create with thread, one label, first owner", "checkpoint",
		request("create", "e1", `"workflow":"documents","thread":"customer-1","request_id":"r2","state":{"missing":["passport"]},"labels":{"branch":"north"},"claim":{"owner":"a","lease_seconds":60}`))
	c.row("apply, small change", "checkpoint", request("apply", "e1", under+`"merge":{"step":1}`))
	c.row("apply, small change, one operation declared", "checkpoint", request("apply", "e1", under+`"merge":{"step":2},"operations":[{"name":"send","args":{"to":"x"}}]`))
	c.row("record_outcome", "checkpoint", `{"action":"record_outcome","tenant":"bank","execution":"e1","operation":"%operation","outcome":"succeeded","result":{"ok":true}}`)
	c.row("apply, outcome taken from the ledger", "checkpoint", request("apply", "e1", under+`"outcomes":[{"operation":"%operation"}]`))
	c.cold("apply, small change, in a new process", "checkpoint", request("apply", "e1", under+`"merge":{"step":3}`))
	c.row("apply, 10 KB new in the state", "checkpoint", request("apply", "e1", under+`"merge":{"text":"`+noise(10<<10)+`"}`))
	c.row("apply, 100 KB new in the state (body in the bucket)", "checkpoint", request("apply", "e1", under+`"merge":{"text":"`+noise(100<<10)+`"}`))
	c.do("checkpoint", request("apply", "e1", under+`"merge":{"text":null}`))
	c.row("renew", "recover", request("renew", "e1", `"owner":"a","fence":%fence,"lease_seconds":120`))
	c.row("get, small execution", "checkpoint", request("get", "e1", `"include":["state"]`))
	c.row("put_artifact, 10 KB", "checkpoint", request("put_artifact", "e1", `"name":"scan","media_type":"text/plain","body":"`+base64.StdEncoding.EncodeToString([]byte(noise(10<<10)))+`"`))
	c.row("suspend for a signal", "checkpoint", request("suspend", "e1", under+`"wait":{"signals":["upload"]}`))
	c.row("signal that wakes", "checkpoint", request("signal", "e1", `"name":"upload","key":"passport","body":{"pages":2}`))
	c.row("claim", "recover", request("claim", "e1", `"owner":"b","lease_seconds":60,"nonce":"n1"`))
	c.row("apply, a signal absorbed", "checkpoint", request("apply", "e1", under+`"absorb":[{"name":"upload","key":"passport"}]`))
	c.row("release", "recover", request("release", "e1", `"owner":"b","fence":%fence`))
	c.cold("resume, nothing uncertain, in a new process", "recover", request("resume", "e1", `"owner":"c","lease_seconds":60,"nonce":"n2"`))
	c.do("checkpoint", request("apply", "e1", under+`"operations":[{"name":"pay","args":{"n":1},"on_uncertain":"close"}]`))
	c.row("start_operation", "checkpoint", `{"action":"start_operation","tenant":"bank","execution":"e1","operation":"%operation","attempt":1,"fence":%fence,"nonce":"`+hex.EncodeToString([]byte("n3"))+`"}`)
	c.row("apply, outcome reported", "checkpoint", request("apply", "e1", under+`"outcomes":[{"operation":"%operation","outcome":"succeeded"}]`))
	c.row("complete", "checkpoint", request("complete", "e1", under+`"outcome":"completed"`))
	c.row("history, one page", "checkpoint", request("history", "e1", `"limit":10`))
	c.row("list by status, one page", "checkpoint", `{"action":"list","tenant":"bank","status":"completed"}`)
	c.row("sweep of recover, nothing due", "recover", `{"action":"sweep","tenant":"bank"}`)
	c.row("hold", "retention", request("hold", "e1", `"hold":"h1","reason":"r"`))
	c.row("release_hold", "retention", request("release_hold", "e1", `"hold":"h1","reason":"r"`))
	c.row("delete, this execution of 16 entries and 2 objects", "retention", request("delete", "e1", `"reason":"r","request_id":"d1"`))
	return c.rows
}

// TestCostsAreCounted fails when a request costs more than COST.md says, or when
// the document lacks a row.
func TestCostsAreCounted(t *testing.T) {
	t.Parallel()
	rows := count(t)
	text := read(t, "COST.md")
	head, rest, ok := strings.Cut(text, costBegin)
	table, tail, ok2 := strings.Cut(rest, costEnd)
	if !ok || !ok2 {
		t.Fatal("COST.md has no place for the table")
	}
	if os.Getenv("CAIRN_UPDATE_DOCS") != "" {
		if err := os.WriteFile("COST.md", []byte(head+costBegin+costTable(rows)+costEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, r := range rows {
		_, line, found := strings.Cut(table, "\n| "+r.what+" |")
		line, _, _ = strings.Cut(line, "\n")
		var said api.Cost
		_, err := fmt.Sscanf(line, "%d | %d | %g | %g | %d |", &said.Reads, &said.Writes, &said.ReadUnits, &said.WriteUnits, &said.ObjectRequests)
		switch c := r.cost; {
		case !found || err != nil:
			t.Errorf("COST.md has no row %q", r.what)
		case c.Reads > said.Reads || c.Writes > said.Writes || c.ReadUnits > said.ReadUnits || c.WriteUnits > said.WriteUnits || c.ObjectRequests > said.ObjectRequests:
			t.Errorf("%s costs %+v, COST.md says %+v (CAIRN_UPDATE_DOCS=1 writes what is counted)", r.what, c, said)
		}
	}
}

func costTable(rows []counted) string {
	var b strings.Builder
	b.WriteString("| request | table reads | table writes | read units | write units | object requests |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %g | %g | %d |\n", r.what, r.cost.Reads, r.cost.Writes, r.cost.ReadUnits, r.cost.WriteUnits, r.cost.ObjectRequests)
	}
	return b.String()
}
