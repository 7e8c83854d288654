package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// Options of a sandbox. Build is required.
type Options struct {
	Build Build
	// RealTime lets the clock run; else it moves only when told.
	RealTime bool
	// Auto delivers stream records and schedules by itself: after each
	// invocation and move of the clock, and every second with RealTime.
	Auto bool
	// AllowRemote also answers callers that are not on this machine.
	AllowRemote bool
	// Seed varies keys that are derived, not drawn; "" is a seed like any other.
	Seed string
	// Timeout bounds an invocation in host time, as a function's timeout does.
	// 0: 30 seconds.
	Timeout time.Duration
	// Mappings of the stream; nil: store.Mappings.
	Mappings []store.Mapping
}

// Server is a sandbox. Make it with New; it is safe for concurrent use.
type Server struct {
	options   Options
	engine    *memory.Engine
	functions functions
	capture   capture
	scripts   scripts
	handovers handovers
	delivery  delivery

	// world is held for reading by every invocation and for writing by what
	// replaces the world. Taken after delivery.mu.
	world      sync.RWMutex
	background sync.WaitGroup // asynchronous invocations
	wake       chan struct{}  // Auto: something happened
}

// functions are the running functions by name.
type functions struct {
	mu     sync.Mutex
	byName map[string]Function
}

func (f *functions) get(name string) (Function, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.byName[name]
	return found, found != nil
}

func (f *functions) has(name string) bool {
	_, known := f.get(name)
	return known
}

func (f *functions) set(name string, made Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byName[name] = made
}

func (f *functions) replace(made map[string]Function) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byName = made
}

// New makes a sandbox with an empty world and starts its functions.
func New(o Options) (*Server, error) {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Mappings == nil {
		o.Mappings = store.Mappings
	}
	s := &Server{options: o, engine: memory.New(memory.Options{Seed: o.Seed}), wake: make(chan struct{}, 1)}
	s.engine.RealTime(o.RealTime)
	if err := s.delivery.open(o.Mappings); err != nil {
		return nil, err
	}
	return s, s.rebuild()
}

// Engine is the sandbox's store.
func (s *Server) Engine() *memory.Engine { return s.engine }

// rebuild starts all functions anew.
func (s *Server) rebuild() error {
	made, err := s.options.Build(s.newWorld())
	if err != nil {
		return fmt.Errorf("sandbox: the functions do not start: %w", err)
	}
	s.functions.replace(made)
	return nil
}

// objectsPath is where presigned URLs point.
const objectsPath = "/sandbox/objects/"

// Handler serves the whole interface: Lambda's Invoke and the kit. Presigned
// URLs work once Serve, or SetBaseURL on the engine, has said where it is.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.handleInvoke)
	mux.HandleFunc("GET /sandbox/health", s.handleHealth)
	mux.HandleFunc("GET /sandbox/clock", s.handleGetClock)
	mux.HandleFunc("POST /sandbox/clock", s.handleAdvance)
	mux.HandleFunc("POST /sandbox/run", s.handleRun)
	mux.HandleFunc("POST /sandbox/faults", s.handleFaults)
	mux.HandleFunc("GET /sandbox/log", s.handleGetLog)
	mux.HandleFunc("POST /sandbox/log", s.handleMark)
	mux.HandleFunc("GET /sandbox/dump", s.handleDump)
	mux.HandleFunc("POST /sandbox/load", s.handleLoad)
	mux.HandleFunc("POST /sandbox/stream", s.handleStream)
	mux.HandleFunc("GET /sandbox/resolver", s.handleGetResolver)
	mux.HandleFunc("POST /sandbox/resolver", s.handleSetResolver)
	mux.HandleFunc("POST /sandbox/reset", s.handleReset)
	mux.HandleFunc(objectsPath, s.engine.ServePresigned)
	if s.options.AllowRemote {
		return mux
	}
	return localOnly(mux)
}

// localOnly refuses requests that a web page in a browser on this machine might
// have been made to send: a Host or an Origin that is not loopback.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		origin, err := url.Parse(r.Header.Get("Origin"))
		if !isLoopback(host) || err != nil || r.Header.Get("Origin") != "" && !isLoopback(origin.Hostname()) {
			refuseWith(w, http.StatusForbidden, errors.New("only callers on this machine are answered (--allow-remote)"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ErrRemote is the refusal to listen beyond loopback.
var ErrRemote = errors.New("sandbox: refuses to listen beyond loopback without --allow-remote")

// Listen opens the sandbox's door. An address beyond loopback is ErrRemote
// unless remote callers are allowed.
func (s *Server) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !s.options.AllowRemote && (!ok || !tcp.IP.IsLoopback()) {
		return nil, errors.Join(ErrRemote, l.Close())
	}
	return l, nil
}

// URL is the base of a listener's interface. A listener on all addresses is
// reached by the loopback one.
func URL(l net.Listener) string {
	addr := l.Addr().String()
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		addr = fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return "http://" + addr
}

// Serve answers on l until ctx ends; then it lets what is under way finish for
// a few seconds. It closes l and returns nil for such an end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.engine.SetBaseURL(URL(l) + objectsPath)
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { s.auto(ctx) })
	stopped := make(chan error, 1)
	helpers.Go(func() {
		<-ctx.Done()
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		stopped <- server.Shutdown(grace)
	})
	err := server.Serve(l)
	cancel()
	helpers.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := <-stopped; err != nil {
		_ = server.Close()
		return nil // cut off at the end of the grace
	}
	s.background.Wait()
	return nil
}

// nudge tells Auto that something happened.
func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// auto delivers whenever something happened, until ctx ends.
func (s *Server) auto(ctx context.Context) {
	if !s.options.Auto {
		return
	}
	var tick <-chan time.Time
	if s.options.RealTime {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick:
		}
		s.deliver(ctx)
	}
}
