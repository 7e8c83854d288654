package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
)

// Options of a Client. Door is required.
type Options struct {
	Door Door
	// Tenant is filled in where a request names none.
	Tenant execution.TenantID
	// Actor is filled in where a writing request names none; nil: none.
	Actor *api.Actor
	// Rand makes request ids, nonces and jitter; nil: crypto/rand. It need not be
	// safe for concurrent use.
	Rand io.Reader
	// Clock; nil: the machine's.
	Clock Clock
	// Attempts bounds how often one call is sent; 0: 8. The context bounds it too.
	Attempts int
	// HTTP fetches and uploads artifacts by their URLs; nil: http.DefaultClient.
	HTTP *http.Client
}

// Client calls the functions. Make it with New.
type Client struct {
	options Options
	randMu  sync.Mutex
}

// Backoff between the attempts of a call: doubling, with full jitter above half.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// New makes a client; it makes no call.
func New(o Options) *Client {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Clock == nil {
		o.Clock = HostClock()
	}
	if o.Attempts <= 0 {
		o.Attempts = 8
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	return &Client{options: o}
}

// Tenant is the one that requests are made for.
func (c *Client) Tenant() execution.TenantID { return c.options.Tenant }

// do makes one logical call: completes the request, encodes it once, and sends
// these bytes until there is a definite answer. in is not changed.
func do[Reply, Request any](ctx context.Context, c *Client, function string, in *Request) (*Reply, error) {
	req := *in
	if err := c.complete(function, &req); err != nil {
		return nil, err
	}
	payload, err := api.EncodeRequest(&req)
	if err != nil {
		return nil, err
	}
	reply := new(Reply)
	if err := c.send(ctx, function, payload, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// send repeats a request until it is answered or refused for good.
func (c *Client) send(ctx context.Context, function string, payload []byte, reply any) error {
	for attempt := 1; ; attempt++ {
		body, err := c.options.Door.Invoke(ctx, function, payload)
		if err == nil {
			// A reply that cannot be read says nothing about what happened.
			err = api.DecodeReply(body, reply)
		}
		if err == nil {
			return nil
		}
		e := asAnswer(err)
		if !repeatable(e) || attempt >= c.options.Attempts || ctx.Err() != nil {
			return because(e, ctx.Err())
		}
		if err := c.options.Clock.Sleep(ctx, c.pause(attempt, e)); err != nil {
			return because(e, err)
		}
	}
}

// asAnswer gives an error of a door as the product's error.
func asAnswer(err error) *execution.Error {
	var e *execution.Error
	if errors.As(err, &e) {
		return e
	}
	return execution.Errorf(execution.Unavailable, "no answer: the outcome is unknown").Because(err)
}

// because keeps what the function said and adds that the caller's time is over.
func because(e *execution.Error, err error) error {
	if err == nil {
		return e
	}
	return e.Because(errors.Join(e.Err, err))
}

// repeatable codes heal by themselves. LeaseHeld does too, but by waiting for
// another worker: that is the caller's decision.
func repeatable(e *execution.Error) bool {
	return e.Code.Retryable() && e.Code != execution.LeaseHeld
}

// pause is the wait before the next attempt; the function's own word is a lower
// bound.
func (c *Client) pause(attempt int, e *execution.Error) time.Duration {
	full := min(firstPause<<min(attempt-1, 16), maxPause)
	d := full/2 + time.Duration(c.random()%uint64(full/2+1))
	if ms, ok := e.Facts["retry_after_ms"].(int64); ok && ms > 0 {
		d = max(d, time.Duration(min(ms, int64(time.Hour/time.Millisecond)))*time.Millisecond)
	}
	return d
}

func (c *Client) random() uint64 {
	var b [8]byte
	if c.read(b[:]) != nil {
		return 0 // the middle of the range does as well
	}
	return binary.BigEndian.Uint64(b[:])
}

func (c *Client) read(b []byte) error {
	c.randMu.Lock()
	defer c.randMu.Unlock()
	if _, err := io.ReadFull(c.options.Rand, b); err != nil {
		return execution.Errorf(execution.Internal, "no randomness").Because(err)
	}
	return nil
}

// fresh sets an empty identity to a random one.
func (c *Client) fresh(id *string) error {
	if *id != "" {
		return nil
	}
	var b [16]byte
	if err := c.read(b[:]); err != nil {
		return err
	}
	*id = base64.RawURLEncoding.EncodeToString(b[:])
	return nil
}

// complete fills in what the client knows and what makes a repeat recognisable.
func (c *Client) complete(function string, req any) error {
	common := api.CommonOf(req)
	if common.Tenant == "" {
		common.Tenant = c.options.Tenant
	}
	if verb, _ := api.Lookup(function, api.ActionOf(req)); verb.ReadOnly {
		return nil
	}
	if common.Actor == nil {
		common.Actor = c.options.Actor
	}
	switch r := req.(type) {
	case *api.ClaimRequest:
		return c.fresh(&r.Nonce)
	case *api.ResumeRequest:
		return c.fresh(&r.Nonce)
	case *api.StartOperationRequest:
		return c.fresh(&r.Nonce)
	case *api.RenewRequest, *api.SignalRequest, *api.RecordOutcomeRequest:
		return nil // the same again is a replay by itself
	case *api.ApplyRequest:
		return c.step(&r.Common, r.Fence)
	case *api.SuspendRequest:
		return c.step(&r.Common, r.Fence)
	case *api.CompleteRequest:
		return c.step(&r.Common, r.Fence)
	}
	return c.fresh(&common.RequestID)
}

// step: under a fence only the owner writes, so content and expected version
// tell its steps apart. Without one, two callers may write the same content at
// the same version, and one of them must learn that it lost.
func (c *Client) step(common *api.Common, fence int64) error {
	if fence > 0 {
		return nil
	}
	return c.fresh(&common.RequestID)
}
