package handler

import (
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/checkpoint"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/ledger"
)

// New makes the handler over the services.
func New(c *checkpoint.Service, l *ledger.Ledger, a *artifact.Store, o door.Options) door.Handler {
	return door.Invoke(api.Checkpoint, door.Verbs{
		"create":          door.Verb(c.Create),
		"apply":           door.Verb(c.Apply),
		"suspend":         door.Verb(c.Suspend),
		"complete":        door.Verb(c.Complete),
		"get":             door.Verb(c.Get),
		"history":         door.Verb(c.History),
		"list":            door.Verb(c.List),
		"fork":            door.Verb(c.Fork),
		"set_workflow":    door.Verb(c.SetWorkflow),
		"get_workflow":    door.Verb(c.GetWorkflow),
		"set_tenant":      door.Verb(c.SetTenant),
		"get_tenant":      door.Verb(c.GetTenant),
		"put_artifact":    door.Verb(a.Put),
		"get_artifact":    door.Verb(a.Get),
		"record_outcome":  door.Verb(l.RecordOutcome),
		"signal":          door.Verb(l.Signal),
		"start_operation": door.Verb(l.StartOperation),
		"get_operation":   door.Verb(l.GetOperation),
	}, o)
}
