package handler

import (
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/recovery"
)

// New makes the handler over the service. o.Stream and o.Sweep are set here.
func New(s *recovery.Service, o door.Options) door.Handler {
	o.Stream, o.Sweep = s.Stream, s.Sweep
	return door.Invoke(api.Recover, door.Verbs{
		"claim":     door.Verb(s.Claim),
		"renew":     door.Verb(s.Renew),
		"release":   door.Verb(s.Release),
		"reconcile": door.Verb(s.Reconcile),
		"resume":    door.Verb(s.Resume),
		"halt":      door.Verb(s.Halt),
		"unhalt":    door.Verb(s.Unhalt),
		"migrate":   door.Verb(s.Migrate),
		"sweep":     door.Verb(s.Sweep),
	}, o)
}
