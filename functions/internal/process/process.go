package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/telemetry"
	"github.com/cairnstate/cairn/shared/wiring"
)

// VarEpoch ranks fences above all older ones after the table was restored from
// a backup (docs/OPERATIONS.md); a whole number, 0 when not set.
const VarEpoch = "CAIRN_EPOCH"

// Start runs the named function and does not return. A configuration that is
// incomplete ends the process with the variable's name, so that Lambda reports
// it at the first start and nothing is half configured.
//
// doors, one or none, open what the function talks to besides the stores.
func Start(function string, doors ...func(*wiring.Outside, aws.Config) error) {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	services, err := build(log, doors)
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

func build(log *slog.Logger, doors []func(*wiring.Outside, aws.Config) error) (*wiring.Services, error) {
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
	cfg := c.Lambda(os.Getenv)
	st := c.Stores(cfg)
	start := time.Now()
	out := wiring.Outside{
		Main: st.Main, Keys: st.Keys, Bucket: st.Bucket, KMS: st.KMS, DataKey: c.DataKey,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(start) }, Rand: rand.Reader, Epoch: epoch,
		Log: log, Meter: telemetry.NewMeter(os.Stdout, c.Table, time.Now),
	}
	for _, open := range doors {
		if err := open(&out, cfg); err != nil {
			return nil, err
		}
	}
	return wiring.New(out), nil
}
