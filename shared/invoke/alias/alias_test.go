package alias_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/client/awslambda"
	"github.com/cairnstate/cairn/examples/deployed"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/invoke"
	"github.com/cairnstate/cairn/shared/invoke/alias"
)

var stack bool

func TestMain(m *testing.M) {
	var err error
	if stack, err = deployed.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const principal = "arn:aws:iam::000000000000:user/acme-agents"

func doors(t *testing.T) (*alias.Doors, []string) {
	t.Helper()
	if !stack {
		t.Skip("SKIP: no CAIRN_STACK (make stack-test)")
	}
	t.Parallel()
	cfg, err := invoke.AWS(t.Context(), invoke.Options{Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	functions := []string{os.Getenv("CAIRN_CHECKPOINT"), os.Getenv("CAIRN_RECOVER"), os.Getenv("CAIRN_RETENTION")}
	return alias.New(cfg, functions), functions
}

func find(t *testing.T, d *alias.Doors, tenant execution.TenantID) *alias.Door {
	t.Helper()
	all, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, door := range all {
		if door.Tenant == tenant {
			return &door
		}
	}
	return nil
}

// A door is made, shown, used, and closed; each step may be repeated.
func TestDoors(t *testing.T) {
	d, functions := doors(t)
	tenant := execution.TenantID("acme." + strconv.FormatUint(rand.Uint64(), 36) + "_1")
	for range 2 {
		if err := d.Add(t.Context(), tenant, []string{principal}); err != nil {
			t.Fatal(err)
		}
	}
	door := find(t, d, tenant)
	if door == nil || !slices.Equal(door.Functions, functions) || !slices.Equal(door.Principals, []string{principal}) || door.Alias != execution.TenantAlias(tenant) {
		t.Errorf("%+v", door)
	}
	calls, err := invoke.New(t.Context(), invoke.Options{Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	through := client.New(client.Options{Door: &awslambda.Door{Lambda: calls, Tenant: tenant}, Tenant: tenant})
	if _, err := through.Create(t.Context(), &api.CreateRequest{Execution: "e", Workflow: "w"}); err != nil {
		t.Errorf("through its own door: %v", err)
	}
	// Every verb of another tenant's is refused before anything is looked at.
	for _, c := range []struct{ function, request string }{
		{api.Checkpoint, `"get","execution":"e"`},
		{api.Checkpoint, `"apply","execution":"e","expected_version":1`},
		{api.Checkpoint, `"suspend","execution":"e","expected_version":1,"wait":{}`},
		{api.Checkpoint, `"complete","execution":"e","expected_version":1,"outcome":"completed"`},
		{api.Checkpoint, `"signal","execution":"e","name":"n","key":"k"`},
		{api.Checkpoint, `"create","execution":"e","workflow":"w","request_id":"r"`},
		{api.Checkpoint, `"history","execution":"e"`},
		{api.Checkpoint, `"list","status":"running"`},
		{api.Checkpoint, `"get_tenant"`},
		{api.Recover, `"claim","execution":"e","owner":"o","lease_seconds":60`},
		{api.Recover, `"resume","execution":"e","owner":"o","lease_seconds":60`},
		{api.Recover, `"halt","execution":"e","reason":"r","request_id":"r"`},
		{api.Recover, `"sweep"`},
		{api.Retention, `"delete","execution":"e","reason":"r","request_id":"r"`},
		{api.Retention, `"purge_tenant","request_id":"r"`},
		{api.Retention, `"verify","execution":"e"`},
		{api.Retention, `"sweep"`},
	} {
		for _, other := range []string{`,"tenant":"globex"`, ""} { // a sweep may name none: it is of all tenants
			_, err := calls.Invoke(t.Context(), c.function, execution.TenantAlias(tenant), []byte(`{"action":`+c.request+other+`}`))
			var refused *execution.Error
			if !errors.As(err, &refused) || refused.Code != execution.InvalidRequest || refused.Facts["field"] != "tenant" {
				t.Errorf("%s %s%s: %v", c.function, c.request, other, err)
			}
		}
	}
	for range 2 {
		if err := d.Revoke(t.Context(), tenant, []string{principal}); err != nil {
			t.Fatal(err)
		}
	}
	if door := find(t, d, tenant); door == nil || len(door.Principals) != 0 {
		t.Errorf("revoked: %+v", door)
	}
	if err := d.Add(t.Context(), tenant, []string{principal}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Remove(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	if door := find(t, d, tenant); door != nil {
		t.Errorf("removed: %+v", door)
	}
}

func TestNoDoorForNoTenant(t *testing.T) {
	d, _ := doors(t)
	for _, tenant := range []execution.TenantID{"", "a#b", "*", execution.TenantID(strings.Repeat("x", 65)), execution.TenantID("a" + strings.Repeat("_", 60))} {
		if err := d.Add(t.Context(), tenant, nil); execution.CodeOf(err) != execution.InvalidRequest {
			t.Errorf("%q: %v", tenant, err)
		}
	}
}
