package awscall

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/store"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClockIsALowerBound(t *testing.T) {
	host := epoch.Add(-9 * time.Hour) // a host's clock is none of its business
	c := NewClock(func() time.Time { return host })
	if _, ok := c.AtLeast(); ok {
		t.Fatal("a time before any answer")
	}
	expect := func(want time.Time) {
		t.Helper()
		if got, ok := c.AtLeast(); !ok || !got.Equal(want) {
			t.Fatalf("at least %v, want %v", got, want)
		}
	}
	c.Observe(epoch)
	expect(epoch)
	host = host.Add(10 * time.Second)
	expect(epoch.Add(10 * time.Second))
	c.Observe(epoch.Add(7 * time.Second)) // an answer that took its time
	expect(epoch.Add(10 * time.Second))
	c.Observe(epoch.Add(time.Hour)) // this process was frozen
	expect(epoch.Add(time.Hour))
}

func TestWindowIsRefusedHere(t *testing.T) {
	host := epoch
	clock := NewClock(func() time.Time { return host })
	begin := func(at time.Time) error {
		_, _, err := Begin(t.Context(), clock, Call{Name: "put", Key: "a/b", Write: true, ValidatedAt: at})
		return err
	}
	if err := begin(epoch.Add(-time.Hour)); err != nil {
		t.Errorf("without any answer seen the service decides: %v", err)
	}
	clock.Observe(epoch)
	for age, late := range map[time.Duration]bool{0: false, store.Window: false, store.Window + time.Second: true} {
		if err := begin(epoch.Add(-age)); (store.KindOf(err) == store.TooLate) != late {
			t.Errorf("validated %v ago: %v", age, err)
		}
	}
	if err := begin(time.Time{}); err != nil {
		t.Errorf("no bound: %v", err)
	}
	host = host.Add(store.Window + time.Second)
	if err := begin(epoch); store.KindOf(err) != store.TooLate || store.Ambiguous(err) {
		t.Errorf("after the window has passed here: %v", err)
	}
}

// What a later attempt says is no news of an earlier one.
func TestAmbiguityOutlivesDefiniteAnswers(t *testing.T) {
	for _, r := range []struct {
		err  error
		kind store.ErrorKind
	}{
		{answered(400, "ThrottlingException"), store.Unavailable},
		{answered(400, "AccessDeniedException"), store.Unavailable},
		{answered(400, "InvalidSignatureException"), store.Unavailable},
		{context.Canceled, store.Stopped},
	} {
		c := &Call{Name: "put", Write: true, ambiguous: true}
		if e := c.Fail(r.err); e.Kind != r.kind || !e.Ambiguous {
			t.Errorf("%v: %v", r.err, e)
		}
	}
	// But that it is there is: whichever attempt made it, none can again.
	c := &Call{Name: "put", Write: true, ambiguous: true}
	if e := c.Fail(answered(412, "PreconditionFailed")); e.Kind != store.Exists || e.Ambiguous {
		t.Errorf("%v", e)
	}
	// The later answer's time counts, in whatever order calls are added.
	c = &Call{date: epoch}
	c.Count(&Call{date: epoch.Add(-time.Second), attempts: 2})
	if c.Date() != epoch || c.Attempts() != 2 {
		t.Errorf("%v after %d", c.Date(), c.Attempts())
	}
	if c.Count(&Call{date: epoch.Add(time.Second)}); c.Date() != epoch.Add(time.Second) {
		t.Errorf("%v", c.Date())
	}
}

func TestFailKeepsNoText(t *testing.T) {
	c := &Call{Name: "put", Key: "a/b"}
	e := c.Fail(answered(400, "ValidationException"))
	if e.Err != nil {
		t.Errorf("a cause with the service's text: %v", e.Err)
	}
	if e := c.Fail(context.DeadlineExceeded); !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("a deadline that cannot be recognised: %v", e)
	}
}

func TestKMSRefusals(t *testing.T) {
	for code, kind := range map[string]store.ErrorKind{
		"AccessDeniedException": store.KeyTrouble, "DisabledException": store.KeyTrouble, "NotFoundException": store.KeyTrouble,
		"KMSInvalidStateException": store.KeyTrouble, "InvalidCiphertextException": store.Invalid,
		"ThrottlingException": store.Throttled, "InvalidSignatureException": store.Denied,
	} {
		if e := (&Call{Name: "kms_decrypt", KMS: true}).Fail(answered(400, code)); e.Kind != kind || e.Ambiguous {
			t.Errorf("%s: %v, want %s", code, e, kind)
		}
	}
}

func TestSignatureTooOld(t *testing.T) {
	for name, r := range map[string]struct {
		code string
		date time.Time
		kind store.ErrorKind
	}{
		"old":              {"InvalidSignatureException", epoch.Add(store.Window + time.Second), store.TooLate},
		"young: a secret":  {"InvalidSignatureException", epoch.Add(time.Minute), store.Denied},
		"no clock":         {"InvalidSignatureException", time.Time{}, store.Denied},
		"says so":          {"RequestTimeTooSkewed", time.Time{}, store.TooLate},
		"old but no right": {"AccessDeniedException", epoch.Add(store.Window + time.Second), store.Denied},
	} {
		c := &Call{Name: "put", Write: true, ValidatedAt: epoch, date: r.date}
		if e := c.Fail(answered(400, r.code)); e.Kind != r.kind {
			t.Errorf("%s: %v, want %s", name, e, r.kind)
		}
	}
	if e := (&Call{Name: "get"}).Fail(answered(400, "RequestTimeTooSkewed")); e.Kind != store.Denied {
		t.Errorf("without a validation: %v", e)
	}
}

func TestOnceIfUnknown(t *testing.T) {
	r := OnceIfUnknown(NewRetryer())
	if r.IsErrorRetryable(answered(500, "InternalServerError")) {
		t.Error("an attempt that may have landed is repeated")
	}
	if !r.IsErrorRetryable(answered(400, "ThrottlingException")) {
		t.Error("an attempt that was refused for load is not repeated")
	}
	var _ aws.Retryer = r
}

func TestSleepStopsBeforeTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if Sleep(ctx, time.Hour) || time.Since(start) > 40*time.Millisecond {
		t.Error("a wait that the deadline cuts short was begun")
	}
	if !Sleep(ctx, time.Millisecond) {
		t.Error("a wait that fits was not made")
	}
	for attempt := range 20 {
		if d := Backoff(attempt); d < 12*time.Millisecond || d > time.Second {
			t.Errorf("backoff %d: %v", attempt, d)
		}
	}
}
