package config_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/enginetest"
)

func complete() map[string]string {
	return map[string]string{
		"CAIRN_TABLE": "main", "CAIRN_KEY_TABLE": "keys", "CAIRN_BUCKET": "objects", "CAIRN_DATA_KEY": "alias/cairn", "AWS_REGION": "eu-central-1",
	}
}

func load(env map[string]string) (config.Config, error) {
	return config.Load(func(name string) string { return env[name] })
}

// wrong lists the variables that an error names.
func wrong(err error) (names []string) {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, e := range all.Unwrap() {
			var v *config.VarError
			if errors.As(e, &v) {
				names = append(names, v.Var)
			}
		}
	}
	return names
}

func TestLoad(t *testing.T) {
	c, err := load(complete())
	if err != nil || c != (config.Config{Table: "main", KeyTable: "keys", Bucket: "objects", DataKey: "alias/cairn", Region: "eu-central-1"}) {
		t.Fatalf("%+v, %v", c, err)
	}
	for name := range complete() {
		env := complete()
		delete(env, name)
		if _, err := load(env); !slices.Equal(wrong(err), []string{name}) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := load(nil); len(wrong(err)) != len(complete()) {
		t.Errorf("nothing set: %v", err)
	}
	for name, change := range map[string]map[string]string{
		"CAIRN_KEY_TABLE":     {"CAIRN_KEY_TABLE": "main"},
		"AWS_ENDPOINT_URL":    {"AWS_ENDPOINT_URL": "127.0.0.1:4566"},
		"AWS_ENDPOINT_URL_S3": {"AWS_ENDPOINT_URL_S3": "ftp://127.0.0.1"},
	} {
		env := complete()
		maps.Copy(env, change)
		if _, err := load(env); !slices.Equal(wrong(err), []string{name}) {
			t.Errorf("%v: %v", change, err)
		}
	}
}

func TestPathStyleOnLoopbackOnly(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"": false, "http://127.0.0.1:4566": true, "http://localhost:4566": true, "http://[::1]:4566": true,
		"https://s3.example.com": false, "http://127.0.0.1.example.com": false, "http://10.0.0.1": false,
	} {
		var o awss3.Options
		config.Config{Endpoint: endpoint}.S3(&o)
		if o.UsePathStyle != want {
			t.Errorf("%q: %v", endpoint, o.UsePathStyle)
		}
	}
	var o awss3.Options
	config.Config{Endpoint: "https://example.com", EndpointS3: "http://localhost:1"}.S3(&o)
	if !o.UsePathStyle || o.BaseEndpoint == nil || *o.BaseEndpoint != "http://localhost:1" {
		t.Error("an endpoint of its own for S3 is not used")
	}
}

// Opening asks nobody and takes next to nothing: it is part of every cold
// start.
func TestOpenIsQuick(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "") // reading one is not what is measured
	env := complete()
	env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1" // nobody listens
	c, err := load(env)
	if err != nil {
		t.Fatal(err)
	}
	best := time.Hour
	for range 5 { // the machine may be busy
		start := time.Now()
		_ = c.Stores(c.Lambda(func(name string) string { return env[name] }))
		best = min(best, time.Since(start))
	}
	if best > 12*time.Millisecond {
		t.Errorf("took %v", best)
	}
}

// The stores of a configuration read from the environment work.
func TestOpenOnEngine(t *testing.T) {
	e := enginetest.Open(t)
	creds, err := e.AWS.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := load(map[string]string{
		"CAIRN_TABLE": e.Config.Table, "CAIRN_KEY_TABLE": e.Config.KeyTable, "CAIRN_BUCKET": e.Config.Bucket, "CAIRN_DATA_KEY": e.Config.DataKey,
		"AWS_REGION": e.Config.Region, "AWS_ENDPOINT_URL": e.Config.Endpoint,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Stores(c.Lambda(func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": creds.AccessKeyID, "AWS_SECRET_ACCESS_KEY": creds.SecretAccessKey}[name]
	}))
	k := store.Key{PK: enginetest.Tenant(t) + "#x", SK: "a"}
	for name, table := range map[string]store.Table{"main": s.Main, "keys": s.Keys} {
		if it, meta, err := table.Get(t.Context(), store.Get{Key: k, Consistent: true}); err != nil || it != nil || meta.Date.IsZero() {
			t.Errorf("%s: %v, %v, %v", name, it, meta, err)
		}
	}
	if _, _, err := s.Bucket.Head(t.Context(), "none"); store.KindOf(err) != store.NotFound {
		t.Errorf("bucket: %v", err)
	}
	if _, _, err := s.KMS.GenerateDataKey(t.Context(), c.DataKey, map[string]string{"tenant": "t"}); err != nil {
		t.Errorf("KMS: %v", err)
	}
}
