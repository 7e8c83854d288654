package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/jsonx"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/wiring"
)

type world struct {
	*wiring.Services
	table store.Table
	e     *memory.Engine
	fence int64
	op    api.OperationReply
}

func newWorld(t *testing.T) *world {
	e := memory.New(memory.Options{})
	start := e.Now()
	w := &world{e: e, table: e.Table(memory.Main)}
	w.Services = wiring.New(wiring.Outside{Main: w.table, Keys: e.Table(memory.Keys), Bucket: e.Bucket(), KMS: &local.KMS{Master: []byte("master")}, DataKey: "stack",
		Now: e.Now, Elapsed: func() time.Duration { return e.Now().Sub(start) }, Rand: rand.Reader})
	create := &api.CreateRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Workflow: "wf", Claim: &api.CreateClaim{Owner: "w", LeaseSeconds: 60}}
	api.Identify(create)
	c, err := w.Checkpoint.Create(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	w.fence = c.Fence
	apply := &api.ApplyRequest{Common: api.Common{Tenant: "bank"}, Changes: api.Changes{Execution: "e", ExpectedVersion: 1, Fence: c.Fence,
		Operations: []api.OperationDeclaration{{Name: "charge", Args: jsonx.MustParse(`{}`), OnUncertain: execution.Close}}}}
	api.Identify(apply)
	a, err := w.Checkpoint.Apply(t.Context(), apply)
	if err != nil {
		t.Fatal(err)
	}
	w.op = a.Operations[0]
	return w
}

func (w *world) effect(t *testing.T) Effect {
	target, err := ledger.TargetOf(w.op.Callback)
	if err != nil {
		t.Fatal(err)
	}
	return Effect{Table: "main", Target: target, Fence: w.fence, At: w.e.Now(), Sealer: w.Sealer, ProviderRef: "tx1", Result: jsonx.MustParse(`{"id":1.0}`)}
}

// commit makes the tool's transaction: evidence, fence and an effect of its own.
func (w *world) commit(t *testing.T, e Effect) error {
	ws, err := fencedWrites(t.Context(), &e)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.table.Transact(t.Context(), store.Transact{Writes: append(ws, store.Write{Put: &store.Put{
		Item: store.Item{store.AttrPK: store.S("account"), store.AttrSK: store.S("1")}, Cond: store.NotThere()}})})
	return err
}

func (w *world) effects(t *testing.T) int {
	it, _, err := w.table.Get(t.Context(), store.Get{Key: store.Key{PK: "account", SK: "1"}, Consistent: true})
	if err != nil {
		t.Fatal(err)
	}
	if it == nil {
		return 0
	}
	return 1
}

func TestEffectAndEvidenceTogether(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		w := newWorld(t)
		if started {
			w.start(t)
		}
		if err := w.commit(t, w.effect(t)); err != nil {
			t.Fatal(err)
		}
		got, err := w.Ledger.GetOperation(t.Context(), &api.GetOperationRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Operation: w.op.Operation})
		if err != nil || got.Status != "succeeded" || got.ProviderRef != "tx1" || string(got.Result.Bytes()) != `{"id":1.0}` || w.effects(t) != 1 {
			t.Errorf("started %v: %+v, %v", started, got, err)
		}
	}
}

func (w *world) start(t *testing.T) {
	r := &api.StartOperationRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Operation: w.op.Operation, Attempt: 1, Fence: w.fence, Nonce: "n"}
	if _, err := w.Ledger.StartOperation(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// Nothing happens where the slot is closed, an outcome stands or the fence moved.
func TestNoEffect(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, w *world, e *Effect){
		"closed by recovery": func(t *testing.T, w *world, e *Effect) {
			h, err := w.Journal.Open(t.Context(), "bank", "e", openFresh)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Ledger.Settle(t.Context(), h, []execution.Settlement{{Operation: w.op.Operation, Attempt: 1, Outcome: execution.OutcomeNotExecuted, Source: execution.FromSlot}}); err != nil {
				t.Fatal(err)
			}
		},
		"recorded": func(t *testing.T, w *world, e *Effect) {
			r := &api.RecordOutcomeRequest{Common: api.Common{Tenant: "bank"}, Execution: "e", Operation: w.op.Operation, Outcome: execution.OutcomeFailed}
			if _, err := w.Ledger.RecordOutcome(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		},
		"fenced out": func(t *testing.T, w *world, e *Effect) {
			if _, err := w.Journal.Claim(t.Context(), "bank", "e", execution.Change{Kind: execution.KindClaimed, Claim: &execution.ClaimRequest{Owner: "b", LeaseSeconds: 60, Force: "test"}}, nil); err != nil {
				t.Fatal(err)
			}
		},
		"given up": func(t *testing.T, w *world, e *Effect) {
			up := store.Update{Key: journal.HeadKey(e.Target.PK()), Actions: []store.Action{store.Remove{Attr: journal.HeadOwner}}}
			if _, _, err := w.Journal.Table.Update(t.Context(), up); err != nil {
				t.Fatal(err)
			}
		},
		"halted": func(t *testing.T, w *world, e *Effect) {
			up := store.Update{Key: journal.HeadKey(e.Target.PK()), Actions: []store.Action{store.Set{Attr: journal.HeadStatus, Value: store.S("halted")}}}
			if _, _, err := w.Journal.Table.Update(t.Context(), up); err != nil {
				t.Fatal(err)
			}
		},
		"another generation": func(t *testing.T, w *world, e *Effect) { e.Target.Generation++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := w.effect(t)
			before(t, w, &e)
			var no *store.Cancelled
			if err := w.commit(t, e); !errors.As(err, &no) {
				t.Errorf("committed: %v", err)
			}
			if w.effects(t) != 0 {
				t.Error("the effect happened")
			}
		})
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	items, err := FencedTransactItems(t.Context(), w.effect(t))
	if err != nil || len(items) != 2 || items[0].Update == nil || items[1].ConditionCheck == nil {
		t.Fatalf("%+v, %v", items, err)
	}
	if *items[0].Update.TableName != "main" || items[0].Update.ConditionExpression == nil || items[1].ConditionCheck.ConditionExpression == nil {
		t.Errorf("%+v", items)
	}
	one, err := TransactItem(t.Context(), w.effect(t))
	if err != nil || one.Update == nil {
		t.Fatalf("%+v, %v", one, err)
	}
	var shown bytes.Buffer
	for _, v := range one.Update.ExpressionAttributeValues {
		shown.WriteString(strings.ToValidUTF8(string(encode(v)), "?"))
	}
	if strings.Contains(shown.String(), "tx1") {
		t.Error("the provider reference stands in plain")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for field, change := range map[string]func(*Effect){
		"table": func(e *Effect) { e.Table = "" }, "target": func(e *Effect) { e.Target.Attempt = 0 }, "at": func(e *Effect) { e.At = time.Time{} },
		"sealer": func(e *Effect) { e.Sealer = nil }, "outcome": func(e *Effect) { e.Outcome = execution.OutcomeNotExecuted }, "fence": func(e *Effect) { e.Fence = 0 },
		"result": func(e *Effect) { e.Result = jsonx.MustParse(`"` + strings.Repeat("x", 17<<10) + `"`) },
	} {
		e := w.effect(t)
		change(&e)
		_, err := FencedTransactItems(context.Background(), e)
		if got := execution.AsError(err); err == nil || got.Facts["field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, change := range map[string]func(*Effect){"tenant": func(e *Effect) { e.Target.Tenant = "" }, "execution": func(e *Effect) { e.Target.Execution = "" }, "operation": func(e *Effect) { e.Target.Operation = "" },
		"generation": func(e *Effect) { e.Target.Generation = 0 }} {
		e := w.effect(t)
		change(&e)
		if _, err := TransactItem(context.Background(), e); execution.AsError(err).Facts["field"] != "target" {
			t.Errorf("no %s: %v", name, err)
		}
	}
	e := w.effect(t)
	e.Result = jsonx.MustParse(`"` + strings.Repeat("x", 16<<10-2) + `"`)
	if _, err := TransactItem(context.Background(), e); err != nil {
		t.Errorf("a result of the very limit: %v", err)
	}
	for _, h := range []string{"", "x", w.op.Callback[2:]} {
		if _, err := ledger.TargetOf(h); execution.CodeOf(err) != execution.InvalidRequest {
			t.Errorf("%q: %v", h, err)
		}
	}
}

var openFresh = journal.OpenOptions{}

func encode(v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberS:
		return []byte(v.Value)
	}
	return nil
}
