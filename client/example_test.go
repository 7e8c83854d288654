package client_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/cairnstate/cairn/client"
	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/sandbox"
	"github.com/cairnstate/cairn/shared/wiring/sandboxed"
)

// An agent that charges a card and waits for a person. Its body runs again from
// the beginning after every wait and every crash.
func Example() {
	box, err := sandbox.New(sandbox.Options{Build: sandboxed.Functions})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(box.Handler())
	defer server.Close()
	ctx := context.Background()
	c := client.New(client.Options{Door: client.HTTP{URL: server.URL}, Tenant: "acme"})
	if _, err := c.Create(ctx, &api.CreateRequest{Execution: "order-7", Workflow: "orders", State: client.JSON(map[string]int{"amount": 25})}); err != nil {
		panic(err)
	}

	agent := func(ctx context.Context, run *client.Run) (client.End, error) {
		var order struct{ Amount int }
		if err := run.Load(&order); err != nil {
			return client.End{}, err
		}
		charge := api.OperationDeclaration{Name: "charge", Args: client.JSON(order), OnUncertain: execution.SameKey, DedupSeconds: 86400}
		outcomes, err := run.Do(ctx, api.Changes{}, []api.OperationDeclaration{charge}, func(_ context.Context, e client.Effect) (client.Outcome, error) {
			fmt.Println("charging", e.Args) // under e.ProviderKey
			return client.Success(client.JSON("receipt 1"), "ch_1"), nil
		})
		if err != nil {
			return client.End{}, err
		}
		if approvals := run.Take("approved"); len(approvals) > 0 {
			return client.Done(outcomes[0].Result), nil
		}
		return client.WaitFor(api.Wait{Signals: []string{"approved"}, Until: run.In(72 * 3600e9)}), nil
	}

	result, err := c.Drive(ctx, "order-7", client.DriveOptions{Owner: "worker-a"}, agent)
	fmt.Println(result, err)
	if _, err := c.Signal(ctx, &api.SignalRequest{Execution: "order-7", Name: "approved", Key: "by-ada"}); err != nil {
		panic(err)
	}
	result, err = c.Drive(ctx, "order-7", client.DriveOptions{Owner: "worker-b"}, agent)
	fmt.Println(result, err)
	// Output:
	// charging {"Amount":25}
	// waiting at version 4 <nil>
	// finished at version 6 <nil>
}
