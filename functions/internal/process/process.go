package process

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/recovery"
	recoveryaws "github.com/cairnstate/cairn/shared/recovery/aws"
	"github.com/cairnstate/cairn/shared/recovery/https"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/wiring"
)

// Optional variables.
const (
	// VarEpoch ranks fences above all older ones after the table was restored from
	// a backup (docs/OPERATIONS.md); a whole number, 0 when not set.
	VarEpoch = "CAIRN_EPOCH"
	// VarResolverHosts are the hosts that https resolvers may be on, separated by
	// commas, and VarResolverKey signs the questions to them (base64, at least 16
	// bytes): both or none. Without them an https resolver answers nothing.
	VarResolverHosts = "CAIRN_RESOLVER_HOSTS"
	VarResolverKey   = "CAIRN_RESOLVER_KEY"
	// VarEventBus takes what operators should hear of (parked, contradictions); not
	// set: only metrics and logs tell.
	VarEventBus = "CAIRN_EVENT_BUS"
)

// Start runs the named function and does not return. A configuration that is
// incomplete ends the process with the variable's name, so that Lambda reports
// it at the first start and nothing is half configured.
func Start(function string) {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	services, err := build(context.Background(), log)
	if err != nil {
		log.Error("cannot start", "function", function, "error", err.Error())
		os.Exit(1)
	}
	lambda.StartWithOptions(handler(services.Functions()[function]))
}

// handler adapts our handler to the runtime's raw form: bytes in, bytes out.
type handler func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke implements lambda.Handler.
func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return h(ctx, payload) }

func build(ctx context.Context, log *slog.Logger) (*wiring.Services, error) {
	c, err := config.Load(os.Getenv)
	if err != nil {
		return nil, err
	}
	epoch := int64(0)
	if text := os.Getenv(VarEpoch); text != "" {
		if epoch, err = strconv.ParseInt(text, 10, 32); err != nil || epoch < 0 {
			return nil, fmt.Errorf("%s is no whole number", VarEpoch)
		}
	}
	cfg, err := c.AWS(ctx)
	if err != nil {
		return nil, err
	}
	st := c.Stores(cfg)
	start := time.Now()
	out := wiring.Outside{
		Main: st.Main, Keys: st.Keys, Bucket: st.Bucket, KMS: st.KMS, DataKey: c.DataKey,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(start) }, Rand: rand.Reader, Epoch: epoch,
		Log: log, Meter: telemetry.NewMeter(os.Stdout, c.Table, time.Now),
	}
	if err := doors(&out, cfg); err != nil {
		return nil, err
	}
	return wiring.New(out), nil
}

// doors opens what recovery talks to besides the stores.
func doors(out *wiring.Outside, cfg aws.Config) error {
	functions := recoveryaws.NewFunctions(cfg)
	out.Resolvers = map[string]recovery.Resolver{"lambda": functions}
	out.Migrator = functions
	out.Target = recoveryaws.NewTargets(cfg)
	if bus := os.Getenv(VarEventBus); bus != "" {
		out.Emit = recoveryaws.Publish(cfg, bus)
	}
	hosts, key := os.Getenv(VarResolverHosts), os.Getenv(VarResolverKey)
	if hosts == "" && key == "" {
		return nil
	}
	if hosts == "" || key == "" {
		return fmt.Errorf("%s and %s belong together: only one is set", VarResolverHosts, VarResolverKey)
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("%s is no base64", VarResolverKey)
	}
	web, err := https.New(https.Options{Hosts: strings.Split(hosts, ","), Key: secret, Now: time.Now})
	if err != nil {
		return fmt.Errorf("%s, %s: %w", VarResolverHosts, VarResolverKey, err)
	}
	out.Resolvers["https"] = web
	return nil
}
