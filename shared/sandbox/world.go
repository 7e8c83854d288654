package sandbox

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// Function is one Lambda function's handler: JSON in, JSON out; the error that
// it returns becomes the Lambda error (*execution.Error by its code, or
// messages.InvokeResponse_Error as it is). It must be safe for concurrent use,
// as if many instances of the function shared its memory.
type Function func(ctx context.Context, payload []byte) ([]byte, error)

// Build makes the functions anew over a world, by name: at the start, after
// reset and load, and after a crash (then only the function that died is
// replaced), so that no memory of the process before survives.
type Build func(World) (map[string]Function, error)

// The functions of the product, as Build names them.
const (
	Checkpoint = "checkpoint"
	Recover    = "recover"
	Retention  = "retention"
)

// World is everything outside a function's process.
type World struct {
	// Engine holds the tables (memory.Main, memory.Keys) and the bucket. Its
	// clock is the store's.
	Engine *memory.Engine
	// KMS wraps the tenants' keys under KMSKey; faults on kms_generate and
	// kms_decrypt strike it.
	KMS    seal.KMS
	KMSKey string
	// Resolver answers by the scripts of /sandbox/resolver, for resolvers of
	// kind sandbox; any other kind fails. Target takes every hand-over, of
	// whatever kind, and shows it in the dump. Faults on resolver and target
	// strike them.
	Resolver recovery.Resolver
	Target   recovery.Target
	// Log takes the functions' log records; they stand in the dump's `logs`.
	Log slog.Handler
	// Metrics takes metrics, one JSON object a line (as EMF has it); they stand
	// in the dump's `metrics`.
	Metrics io.Writer
	// Emit publishes an event to operators; it stands in the dump's `events`.
	// detail is one JSON value.
	Emit func(ctx context.Context, detailType string, detail []byte) error
	// Now is the host clock of the process that an invocation runs in: virtual,
	// and off by the invocation's X-Sandbox-Skew-Seconds. Without an
	// invocation's context it is the virtual clock.
	Now func(ctx context.Context) time.Time
	// Elapsed is a monotonic clock from an arbitrary zero; it runs with the
	// virtual clock and has no skew.
	Elapsed func() time.Duration
	// Sleep ends at once and moves no clock: waiting makes no sense where time
	// moves only when told. False when ctx has ended.
	Sleep func(ctx context.Context, d time.Duration) bool
}

type skewKey struct{}

func (s *Server) newWorld() World {
	e := s.engine
	start := e.Now()
	return World{
		Engine: e, KMS: newKMS(e), KMSKey: "alias/cairn-sandbox",
		Resolver: resolverDoor{e, &s.scripts}, Target: targetDoor{e, &s.handovers},
		Log: s.capture.handler(e.Now), Metrics: &s.capture.metrics, Emit: s.emit,
		Now: func(ctx context.Context) time.Time {
			skew, _ := ctx.Value(skewKey{}).(time.Duration)
			return e.Now().Add(skew)
		},
		Elapsed: func() time.Duration { return e.Now().Sub(start) },
		Sleep:   func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil },
	}
}
