package api

import (
	"fmt"
	"reflect"

	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/jsonx"
)

// The three functions.
const (
	Checkpoint = "checkpoint"
	Recover    = "recover"
	Retention  = "retention"
)

// Verb is one action of one function.
type Verb struct {
	Function string
	Action   string
	// ReadOnly verbs change nothing.
	ReadOnly bool

	request, reply reflect.Type
}

// New gives a pointer to a new request.
func (v Verb) New() any { return reflect.New(v.request).Interface() }

// NewReply gives a pointer to a new reply.
func (v Verb) NewReply() any { return reflect.New(v.reply).Interface() }

func write[Request, Reply any](function, action string) Verb {
	return Verb{Function: function, Action: action, request: reflect.TypeFor[Request](), reply: reflect.TypeFor[Reply]()}
}

func read[Request, Reply any](function, action string) Verb {
	v := write[Request, Reply](function, action)
	v.ReadOnly = true
	return v
}

// Verbs lists the whole interface.
var Verbs = []Verb{
	write[CreateRequest, CreateReply](Checkpoint, "create"),
	write[ApplyRequest, ApplyReply](Checkpoint, "apply"),
	write[SuspendRequest, ApplyReply](Checkpoint, "suspend"),
	write[CompleteRequest, ApplyReply](Checkpoint, "complete"),
	read[GetRequest, GetReply](Checkpoint, "get"),
	read[HistoryRequest, HistoryReply](Checkpoint, "history"),
	read[ListRequest, ListReply](Checkpoint, "list"),
	write[PutArtifactRequest, PutArtifactReply](Checkpoint, "put_artifact"),
	read[GetArtifactRequest, GetArtifactReply](Checkpoint, "get_artifact"),
	write[RecordOutcomeRequest, RecordOutcomeReply](Checkpoint, "record_outcome"),
	write[StartOperationRequest, StartOperationReply](Checkpoint, "start_operation"),
	write[SignalRequest, SignalReply](Checkpoint, "signal"),
	read[GetOperationRequest, GetOperationReply](Checkpoint, "get_operation"),
	write[ForkRequest, ForkReply](Checkpoint, "fork"),
	write[SetWorkflowRequest, SetWorkflowReply](Checkpoint, "set_workflow"),
	read[GetWorkflowRequest, GetWorkflowReply](Checkpoint, "get_workflow"),
	write[SetTenantRequest, SetTenantReply](Checkpoint, "set_tenant"),
	read[GetTenantRequest, GetTenantReply](Checkpoint, "get_tenant"),

	write[ClaimRequest, ClaimReply](Recover, "claim"),
	write[RenewRequest, RenewReply](Recover, "renew"),
	write[ReleaseRequest, ReleaseReply](Recover, "release"),
	write[ReconcileRequest, ReconcileReply](Recover, "reconcile"),
	write[ResumeRequest, ResumeReply](Recover, "resume"),
	write[HaltRequest, HaltReply](Recover, "halt"),
	write[UnhaltRequest, UnhaltReply](Recover, "unhalt"),
	write[MigrateRequest, MigrateReply](Recover, "migrate"),
	write[SweepRequest, SweepReply](Recover, "sweep"),

	write[SetPolicyRequest, SetPolicyReply](Retention, "set_policy"),
	read[GetPolicyRequest, GetPolicyReply](Retention, "get_policy"),
	write[HoldRequest, HoldReply](Retention, "hold"),
	write[ReleaseHoldRequest, ReleaseHoldReply](Retention, "release_hold"),
	read[HoldsRequest, HoldsReply](Retention, "holds"),
	write[ArchiveRequest, ArchiveReply](Retention, "archive"),
	write[RestoreRequest, RestoreReply](Retention, "restore"),
	write[DeleteRequest, DeleteReply](Retention, "delete"),
	write[PurgeTenantRequest, PurgeTenantReply](Retention, "purge_tenant"),
	read[GetReceiptRequest, GetReceiptReply](Retention, "get_receipt"),
	read[ReceiptsRequest, ReceiptsReply](Retention, "receipts"),
	read[VerifyRequest, VerifyReply](Retention, "verify"),
	write[RotateKeyRequest, RotateKeyReply](Retention, "rotate_key"),
	read[KeysRequest, KeysReply](Retention, "keys"),
	write[SweepRequest, SweepReply](Retention, "sweep"),
}

var (
	actions = map[reflect.Type]string{}
	verbsAt = map[[2]string]*Verb{}
	homeOf  = map[string]string{} // action -> the function that has it
)

func init() {
	for i := range Verbs {
		v := &Verbs[i]
		actions[v.request] = v.Action
		verbsAt[[2]string{v.Function, v.Action}] = v
		homeOf[v.Action] = v.Function
	}
}

// Lookup finds a verb.
func Lookup(function, action string) (Verb, bool) {
	v := verbsAt[[2]string{function, action}]
	if v == nil {
		return Verb{}, false
	}
	return *v, true
}

// ActionOf gives the action of a request, which is a pointer to one of the
// request types; anything else is a mistake of the program and panics.
func ActionOf(req any) string {
	t := reflect.TypeOf(req)
	if t != nil && t.Kind() == reflect.Pointer {
		if a, ok := actions[t.Elem()]; ok {
			return a
		}
	}
	panic(fmt.Sprintf("api: %T is no pointer to a request", req))
}

// verbOf finds the verb that a request names.
func verbOf(function string, action *jsonx.Value) (*Verb, error) {
	name, ok := action.Text()
	switch {
	case action == nil:
		return nil, execution.Invalid("action", "is required")
	case !ok:
		return nil, execution.Invalid("action", "must be a string")
	}
	if v := verbsAt[[2]string{function, name}]; v != nil {
		return v, nil
	}
	if home, ok := homeOf[name]; ok {
		return nil, execution.Invalid("action", "%s is an action of the function %s", name, home).With("function", home)
	}
	return nil, execution.Invalid("action", "unknown action")
}
