package handler

import (
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/retention"
)

// New makes the handler over the service. o.Stream and o.Sweep are set here.
func New(s *retention.Service, o door.Options) door.Handler {
	o.Stream, o.Sweep = s.Stream, s.Sweep
	return door.Invoke(api.Retention, door.Verbs{
		"set_policy":   door.Verb(s.SetPolicy),
		"get_policy":   door.Verb(s.GetPolicy),
		"hold":         door.Verb(s.Hold),
		"release_hold": door.Verb(s.ReleaseHold),
		"holds":        door.Verb(s.Holds),
		"archive":      door.Verb(s.Archive),
		"restore":      door.Verb(s.Restore),
		"delete":       door.Verb(s.Delete),
		"purge_tenant": door.Verb(s.PurgeTenant),
		"get_receipt":  door.Verb(s.GetReceipt),
		"receipts":     door.Verb(s.Receipts),
		"verify":       door.Verb(s.Verify),
		"rotate_key":   door.Verb(s.RotateKey),
		"keys":         door.Verb(s.Keys),
		"sweep":        door.Verb(s.Sweep),
	}, o)
}
