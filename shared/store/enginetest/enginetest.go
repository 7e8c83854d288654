// Package enginetest opens the stores of a local AWS engine for integration
// tests: localstack/engine.sh starts one, CAIRN_TEST_ENDPOINT names it.
//
// Without an engine the test that asks is skipped, and each skip is printed
// with its number. All tests of a process share one account (a 12-digit access
// key id of its own, so processes do not see each other), one pair of tables,
// one bucket and one key; tests keep apart by tenants that they make with
// Tenant.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/seal/kms"
	"github.com/cairnstate/cairn/shared/store/dynamo"
	"github.com/cairnstate/cairn/shared/store/s3"
)

// Var is the variable with the endpoint's URL; only loopback ones are taken.
const Var = "CAIRN_TEST_ENDPOINT"

// Engine is what the tests of a process share.
type Engine struct {
	config.Stores
	Config config.Config
	AWS    aws.Config
}

var (
	open    = sync.OnceValues(prepare)
	skipped atomic.Int64
	tenants atomic.Int64
)

// Open gives the engine's stores, or skips the test when there is no engine.
// An engine that is named but does not work fails the test.
func Open(t testing.TB) *Engine {
	t.Helper()
	if os.Getenv(Var) == "" {
		n := skipped.Add(1)
		fmt.Fprintf(os.Stderr, "SKIP %d (no local AWS engine, %s is not set): %s\n", n, Var, t.Name())
		t.SkipNow()
	}
	e, err := open()
	if err != nil {
		t.Fatalf("local AWS engine: %v", err)
	}
	return e
}

// Tenant makes a name that no other test of the process uses.
func Tenant(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("t%d", tenants.Add(1))
}

func prepare() (*Engine, error) { return Prepare(os.Getenv(Var)) }

// Prepare makes an account of its own on the engine at endpoint, with tables,
// bucket and key; an endpoint that is not on loopback is refused.
func Prepare(endpoint string) (*Engine, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("the engine's endpoint: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("the engine's endpoint is not a loopback address") // tests never touch a real account
	}
	account, err := randomAccount()
	if err != nil {
		return nil, err
	}
	c := config.Config{
		Table: "main", KeyTable: "keys", Bucket: "cairn-" + account, Region: "us-east-1", Endpoint: endpoint,
	}
	cfg := aws.Config{
		Region: c.Region, BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider(account, "test", ""),
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := dynamo.EnsureTables(ctx, dynamo.NewClient(cfg), c.Table, c.KeyTable); err != nil {
		return nil, err
	}
	if err := s3.EnsureBucket(ctx, s3.NewClient(cfg, c.S3), c.Bucket); err != nil {
		return nil, err
	}
	if c.DataKey, err = kms.CreateKey(ctx, kms.NewClient(cfg)); err != nil {
		return nil, err
	}
	return &Engine{Stores: c.Stores(cfg), Config: c, AWS: cfg}, nil
}

// randomAccount makes an access key id that the engine takes for an account
// of its own: 12 digits, the first not 0.
func randomAccount() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(900_000_000_000))
	if err != nil {
		return "", err
	}
	return n.Add(n, big.NewInt(100_000_000_000)).String(), nil
}
