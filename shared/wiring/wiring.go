package wiring

import (
	"context"
	"io"
	"log/slog"
	"time"

	checkpointhandler "github.com/cairnstate/cairn/functions/checkpoint/handler"
	recoverhandler "github.com/cairnstate/cairn/functions/recover/handler"
	retentionhandler "github.com/cairnstate/cairn/functions/retention/handler"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/artifact"
	"github.com/cairnstate/cairn/shared/catalog"
	"github.com/cairnstate/cairn/shared/checkpoint"
	"github.com/cairnstate/cairn/shared/door"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/ledger"
	"github.com/cairnstate/cairn/shared/recovery"
	"github.com/cairnstate/cairn/shared/retention"
	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/secrets"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/view"
)

// Outside is everything that the services need from outside. Main, Keys,
// Bucket, KMS, DataKey, Now, Elapsed and Rand are required.
type Outside struct {
	Main, Keys store.Table
	Bucket     store.Bucket
	KMS        seal.KMS
	DataKey    string
	// Now is the wall clock, used for the age of cached keys and nothing else.
	Now func() time.Time
	// Elapsed is a clock that only measures time gone by.
	Elapsed func() time.Duration
	Rand    io.Reader
	// Sleep waits between attempts; nil: a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	Epoch int64
	Log   *slog.Logger     // nil: nobody
	Meter *telemetry.Meter // nil: nobody
	// Resolvers by kind, Target and Migrator are the doors of recovery; nil: there
	// are none. Emit publishes an event to operators; nil: nobody.
	Resolvers map[string]recovery.Resolver
	Target    recovery.Target
	Migrator  recovery.Migrator
	Emit      func(ctx context.Context, detailType string, detail []byte) error
}

// Services are the product.
type Services struct {
	Journal    *journal.Journal
	Catalog    *catalog.Catalog
	Sealer     *seal.Sealer
	Ledger     *ledger.Ledger
	Artifacts  *artifact.Store
	Views      *view.Builder
	Checkpoint *checkpoint.Service
	Recovery   *recovery.Service
	Retention  *retention.Service
	Secrets    *secrets.Guard

	log   *slog.Logger
	meter *telemetry.Meter
}

// New builds the services.
func New(o Outside) *Services {
	table, keys, bucket := store.Metered(o.Main), store.Metered(o.Keys), store.MeteredBucket(o.Bucket)
	s := &Services{log: o.Log, meter: o.Meter}
	s.Sealer = seal.New(seal.Options{Keys: keys, KMS: o.KMS, KeyID: o.DataKey, Rand: o.Rand, Now: o.Now})
	s.Journal = journal.New(journal.Options{Table: table, Bucket: bucket, Sealer: s.Sealer, Elapsed: o.Elapsed, Rand: o.Rand, Sleep: o.Sleep, Epoch: o.Epoch,
		Vault: &retention.Vault{Bucket: bucket}})
	s.Catalog = &catalog.Catalog{Table: table, Elapsed: o.Elapsed}
	s.Artifacts = &artifact.Store{Journal: s.Journal, Bucket: bucket, Catalog: s.Catalog}
	s.Ledger = &ledger.Ledger{Journal: s.Journal, Artifacts: s.Artifacts, Catalog: s.Catalog, Count: o.Meter.Count}
	s.Views = &view.Builder{Journal: s.Journal, Ledger: s.Ledger, Artifacts: s.Artifacts}
	s.Checkpoint = &checkpoint.Service{Table: table, Journal: s.Journal, Catalog: s.Catalog, Ledger: s.Ledger, Artifacts: s.Artifacts, Views: s.Views, Count: o.Meter.Count}
	s.Recovery = &recovery.Service{Table: table, Journal: s.Journal, Catalog: s.Catalog, Ledger: s.Ledger, Views: s.Views, Rand: o.Rand, Resolvers: o.Resolvers, Target: o.Target,
		Migrator: o.Migrator, ChildID: checkpoint.ChildID, Count: o.Meter.Count, Emit: o.Emit}
	s.Secrets = &secrets.Guard{Catalog: s.Catalog}
	s.Recovery.Redact = s.Secrets.Evidence
	s.Checkpoint.ChildEnded, s.Checkpoint.Carry = s.Recovery.ChildEnded, s.Recovery.Carry
	s.Retention = &retention.Service{Table: table, Bucket: bucket, Journal: s.Journal, Sealer: s.Sealer, Catalog: s.Catalog, Ledger: s.Ledger, Log: o.Log, Count: o.Meter.Count}
	s.Checkpoint.Lifetime, s.Recovery.Lifetime = s.Retention.Lifetime, s.Retention.Lifetime
	return s
}

// Functions are the handlers by the function's name.
func (s *Services) Functions() map[string]door.Handler {
	o := door.Options{Log: s.log, Done: s.meter.Done, Check: func(ctx context.Context, req any) error {
		redacted, err := s.Secrets.Check(ctx, req)
		api.CommonOf(req).Redacted = len(redacted) > 0
		return err
	}}
	return map[string]door.Handler{
		api.Checkpoint: checkpointhandler.New(s.Checkpoint, s.Ledger, s.Artifacts, o),
		api.Recover:    recoverhandler.New(s.Recovery, o),
		api.Retention:  retentionhandler.New(s.Retention, o),
	}
}
