// Package config turns the environment into ready stores.
//
// Reading it costs no I/O and opening the stores no requests, so a Lambda
// function starts in the time that the process needs. A configuration that is
// only half there is refused with the name of the variable; nothing has a
// silent default that would send data elsewhere.
package config

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/kms"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/dynamo"
	"github.com/cairnstate/cairn/shared/store/s3"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// Names of the variables.
const (
	VarTable    = "CAIRN_TABLE"     // the main table's name
	VarKeyTable = "CAIRN_KEY_TABLE" // the key table's name
	VarBucket   = "CAIRN_BUCKET"    // the bucket's name
	VarDataKey  = "CAIRN_DATA_KEY"  // the KMS key (id or ARN) that wraps tenant keys
	VarRegion   = "AWS_REGION"      // set by Lambda
	// VarTenantRole is the ARN of the role under which data of a tenant is reached,
	// in a session tagged with the tenant; "": with the process's own rights.
	VarTenantRole = "CAIRN_TENANT_ROLE"
	// The endpoint of a local engine; the SDK reads these by itself.
	VarEndpoint   = "AWS_ENDPOINT_URL"
	VarEndpointS3 = "AWS_ENDPOINT_URL_S3"
)

var roleARN = regexp.MustCompile(`^arn:[a-z-]+:iam::[0-9]{12}:role/.+$`)

// Config is a complete configuration.
type Config struct {
	Table, KeyTable, Bucket, DataKey string
	Region                           string
	Endpoint, EndpointS3             string // "" means AWS
	TenantRole                       string // "": no sessions
}

// Stores are the ready stores; safe for concurrent use.
type Stores struct {
	Main, Keys store.Table
	Bucket     store.Bucket
	KMS        seal.KMS
}

// VarError names the variable that is missing or wrong.
type VarError struct{ Var, Problem string }

func (e *VarError) Error() string { return fmt.Sprintf("config: %s %s", e.Var, e.Problem) }

// Load reads the configuration; getenv is os.Getenv. The error joins a
// *VarError for each variable that is missing or wrong.
func Load(getenv func(string) string) (Config, error) {
	c := Config{
		Table: getenv(VarTable), KeyTable: getenv(VarKeyTable), Bucket: getenv(VarBucket), DataKey: getenv(VarDataKey),
		Region: getenv(VarRegion), Endpoint: getenv(VarEndpoint), EndpointS3: getenv(VarEndpointS3),
		TenantRole: getenv(VarTenantRole),
	}
	var errs []error
	for _, v := range []struct{ name, value string }{
		{VarTable, c.Table}, {VarKeyTable, c.KeyTable}, {VarBucket, c.Bucket}, {VarDataKey, c.DataKey}, {VarRegion, c.Region},
	} {
		if v.value == "" {
			errs = append(errs, &VarError{v.name, "is not set"})
		}
	}
	if c.Table != "" && c.Table == c.KeyTable {
		errs = append(errs, &VarError{VarKeyTable, "names the main table"})
	}
	if c.TenantRole != "" && !roleARN.MatchString(c.TenantRole) {
		errs = append(errs, &VarError{VarTenantRole, "is no ARN of a role"})
	}
	for _, v := range []struct{ name, value string }{{VarEndpoint, c.Endpoint}, {VarEndpointS3, c.EndpointS3}} {
		if v.value == "" {
			continue
		}
		if u, err := url.Parse(v.value); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, &VarError{v.name, "is no http or https URL"})
		}
	}
	return c, errors.Join(errs...)
}

// Lambda is the SDK's configuration inside a Lambda process: credentials stand in
// its environment for as long as it lives. (The SDK's own loader would link all the
// ways in which a person signs in, which costs a function size and time.)
func (c Config) Lambda(getenv func(string) string) aws.Config {
	cfg := aws.Config{Region: c.Region, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		cr := aws.Credentials{AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: getenv("AWS_SESSION_TOKEN"), Source: "environment"}
		if !cr.HasKeys() {
			return cr, &VarError{"AWS_ACCESS_KEY_ID", "or AWS_SECRET_ACCESS_KEY is not set"}
		}
		return cr, nil
	})}
	if c.Endpoint != "" {
		cfg.BaseEndpoint = &c.Endpoint
	}
	return cfg
}

// S3 sets the options of the S3 client: a loopback endpoint has no host names
// for buckets.
func (c Config) S3(o *awss3.Options) {
	endpoint := c.Endpoint
	if c.EndpointS3 != "" {
		endpoint = c.EndpointS3
		o.BaseEndpoint = &c.EndpointS3
	}
	o.UsePathStyle = loopback(endpoint)
}

func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || endpoint == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

// Stores makes the stores with the SDK's configuration given, each call bound to
// a tenant (package tenancy) and, with a TenantRole, made in its session. It asks
// nobody; the first call on a store finds out whether it is there.
func (c Config) Stores(cfg aws.Config) Stores {
	// One clock for all: what any service says about the time holds for the others.
	clock := awscall.NewClock(time.Now)
	if c.TenantRole != "" {
		cfg = cfg.Copy()
		cfg.Credentials = newSessions(cfg, c.TenantRole)
	}
	tables := dynamo.NewClient(cfg)
	return Stores{
		Main:   tenancy.Table(dynamo.New(tables, c.Table, clock, nil)),
		Keys:   tenancy.Table(dynamo.New(tables, c.KeyTable, clock, nil)),
		Bucket: tenancy.Bucket(s3.New(s3.NewClient(cfg, c.S3), c.Bucket, clock, time.Now)),
		KMS:    boundKMS{kms.New(kms.NewClient(cfg), clock)},
	}
}
