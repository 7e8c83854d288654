package sandboxed

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/store/memory"
	"github.com/cairnstate/cairn/shared/store/tenancy"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/wiring"
)

// Functions makes the three functions over the world (sandbox.Build).
func Functions(w sandbox.World) (map[string]sandbox.Function, error) {
	s := wiring.New(wiring.Outside{
		Main: tenancy.Table(w.Engine.Table(memory.Main)), Keys: tenancy.Table(w.Engine.Table(memory.Keys)), Bucket: tenancy.Bucket(w.Engine.Bucket()), KMS: w.KMS, DataKey: w.KMSKey,
		Now: func() time.Time { return w.Now(context.Background()) }, Elapsed: w.Elapsed, Rand: rand.Reader,
		Sleep: func(ctx context.Context, d time.Duration) error {
			if !w.Sleep(ctx, d) {
				return ctx.Err()
			}
			return nil
		},
		Resolvers: map[string]recovery.Resolver{"sandbox": w.Resolver}, Target: w.Target, Emit: w.Emit,
		Log: slog.New(w.Log), Meter: telemetry.NewMeter(w.Metrics, memory.Main, func() time.Time { return w.Now(context.Background()) }),
	})
	out := map[string]sandbox.Function{}
	for name, h := range s.Functions() {
		out[name] = sandbox.Function(h)
	}
	return out, nil
}
