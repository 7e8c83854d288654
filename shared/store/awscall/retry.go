package awscall

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// MaxAttempts is how often the SDK tries a request by itself.
const MaxAttempts = 3

// NewRetryer is the SDK's standard retryer with few, quick attempts: the
// protocols above decide what a failure means, and a Lambda's time is short.
func NewRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = MaxAttempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return Backoff(attempt), nil
		})
	})
}

// OnceIfUnknown is r without retries of attempts that may have landed, for
// requests whose repetition changes the result (adding to a number).
func OnceIfUnknown(r aws.Retryer) aws.Retryer { return onceIfUnknown{r} }

type onceIfUnknown struct{ aws.Retryer }

func (r onceIfUnknown) IsErrorRetryable(err error) bool {
	return !Classify(err).Unknown && r.Retryer.IsErrorRetryable(err)
}

// Backoff is the wait after the attempt-th failure: exponential from 25 ms to
// one second, with full jitter over its upper half.
func Backoff(attempt int) time.Duration {
	d := min(25*time.Millisecond<<min(max(attempt-1, 0), 6), time.Second)
	return d/2 + rand.N(d/2)
}

// Sleep waits for d, or until ctx ends: then false. It does not begin a wait
// that ctx's deadline would cut short.
func Sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// HTTPClient is the client of small requests and answers, made from the one
// that the SDK's configuration holds (it may carry the CA bundle of
// AWS_CA_BUNDLE); a client of another make is used as it is. attempt bounds one
// attempt from dialling to the last byte of the answer; 0: only the wait for
// the answer's headers is bounded (15 s), for streamed bodies.
func HTTPClient(base aws.HTTPClient, attempt time.Duration) aws.HTTPClient {
	c, ok := base.(*awshttp.BuildableClient)
	switch {
	case base == nil:
		c = awshttp.NewBuildableClient()
	case !ok:
		return base
	}
	c = c.WithDialerOptions(func(d *net.Dialer) { d.Timeout = 2 * time.Second }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = 3 * time.Second
			t.MaxIdleConnsPerHost = 64
			if attempt == 0 {
				t.ResponseHeaderTimeout = 15 * time.Second
			}
		})
	if attempt > 0 {
		c = c.WithTimeout(attempt)
	}
	return c
}
