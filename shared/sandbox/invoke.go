package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/cairnstate/cairn/shared/store/memory"
)

// Lambda's quotas of an invocation's payload.
const (
	maxPayload      = 6 << 20 // request and reply of RequestResponse
	maxEventPayload = 1 << 20 // request of Event
	eventAttempts   = 3       // an asynchronous invocation is tried again twice
)

// SkewHeader says by how many seconds the clock of the invocation's host is off
// (fractions and negative numbers too).
const SkewHeader = "X-Sandbox-Skew-Seconds"

// result is what an invocation came to.
type result struct {
	payload []byte
	failed  bool // the payload is an error: X-Amz-Function-Error
}

// handleInvoke is Lambda's Invoke.
func (s *Server) handleInvoke(w http.ResponseWriter, r *http.Request) {
	in, refused := parseInvoked(r.PathValue("name"), r.URL.Query().Get("Qualifier"))
	if refused == nil && !s.functions.has(in.Name) {
		refused = notFound(in)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	skew, err := parseSkew(r.Header.Get(SkewHeader))
	if err != nil {
		badRequest("InvalidParameterValueException", err.Error()).write(w)
		return
	}
	kind, limit := r.Header.Get("X-Amz-Invocation-Type"), int64(maxPayload)
	switch kind {
	case "", "RequestResponse":
		kind = "RequestResponse"
	case "DryRun":
	case "Event":
		limit = maxEventPayload
	default:
		badRequest("ValidationException", "1 validation error detected: Value at 'invocationType' failed to satisfy constraint: Member must satisfy enum value set: [Event, RequestResponse, DryRun]").write(w)
		return
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return // the caller is gone
	}
	if int64(len(payload)) > limit {
		tooLarge(kind, limit).write(w)
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}") // as Lambda does
	}
	id := requestID()
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("X-Amz-Executed-Version", executed)
	// Like Lambda: an invocation goes on when its caller has left.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), skewKey{}, skew)
	switch kind {
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	case "Event":
		s.background.Go(func() { s.event(ctx, in, id, payload) })
		w.WriteHeader(http.StatusAccepted)
	default:
		s.invoke(ctx, in, id, payload).write(w)
		s.nudge()
	}
}

func (r result) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(r.payload)))
	if r.failed {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	_, _ = w.Write(r.payload)
}

// event runs an asynchronous invocation with Lambda's retries, without their
// waits; what fails to the end becomes an event of the dump, without its payload.
func (s *Server) event(ctx context.Context, in invoked, id string, payload []byte) {
	for range eventAttempts {
		if !s.invoke(ctx, in, id, payload).failed {
			s.nudge()
			return
		}
	}
	detail, _ := json.Marshal(map[string]string{"function": in.Name, "request_id": id})
	_ = s.emit(ctx, "asynchronous invocation failed", detail)
	s.nudge()
}

// invoke runs a function once, under the world's lock, so that no reset or load
// comes in between.
func (s *Server) invoke(ctx context.Context, in invoked, id string, payload []byte) result {
	s.world.RLock()
	defer s.world.RUnlock()
	return s.run(ctx, in, id, payload)
}

// run is invoke for callers that hold the world's lock.
func (s *Server) run(ctx context.Context, in invoked, id string, payload []byte) result {
	f, known := s.functions.get(in.Name)
	if !known {
		return failure("Runtime.Unknown", "no function "+in.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	ctx, invocation := memory.WithInvocation(ctx)
	defer invocation.End()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id, InvokedFunctionArn: in.ARN()})
	reply, err := s.guarded(ctx, f, payload)
	if invocation.Crashed() || errors.Is(err, errDied) {
		// A crash ends the process: whatever it answered never left, and its
		// memory is gone.
		if err := s.restart(in.Name); err != nil {
			return failure("Runtime.Unknown", "the function does not start again: "+err.Error())
		}
		return failure("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: exit status 1", id))
	}
	if err != nil {
		return failure(lambdaFailure(err))
	}
	if len(reply) > maxPayload {
		return failure("Function.ResponseSizeTooLarge", fmt.Sprintf("Response payload size (%d bytes) exceeded maximum allowed payload size (%d bytes).", len(reply), maxPayload))
	}
	return result{payload: reply}
}

var errDied = errors.New("sandbox: the function died")

// guarded runs f; a panic kills the function, as it would kill the process. The
// log has the stack and not the panic's value, which may hold agent data.
func (s *Server) guarded(ctx context.Context, f Function, payload []byte) (reply []byte, err error) {
	defer func() {
		if recover() != nil {
			slog.New(s.capture.handler(s.engine.Now)).ErrorContext(ctx, "panic", "stack", string(debug.Stack()))
			err = errDied
		}
	}()
	return f(ctx, payload)
}

func failure(errorType, message string) result {
	payload, _ := json.Marshal(struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}{message, errorType})
	return result{payload: payload, failed: true}
}

// restart makes one function anew. The others keep their memory: they are other
// processes.
func (s *Server) restart(name string) error {
	made, err := s.options.Build(s.newWorld())
	if err != nil {
		return err
	}
	s.functions.set(name, made[name])
	return nil
}

func parseSkew(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errors.New(SkewHeader + ": not a number of seconds")
	}
	return toDuration(SkewHeader, seconds)
}

// requestID is a random UUID, as Lambda's request ids are.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
