package main

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy carries TCP connections to the engine, and while it is told to, harms
// them. It knows no HTTP but this: what a client sends after the server has
// answered is another request (nothing is pipelined).
type proxy struct {
	listener net.Listener
	target   string
	faulty   atomic.Bool
	requests atomic.Int64
	faults   atomic.Int64

	mu      sync.Mutex
	random  *rand.Rand
	refuses time.Time // new connections are refused until then
	open    map[net.Conn]bool
	done    sync.WaitGroup
}

// harm is what is done to one request and its answer.
type harm int

const (
	unharmed   harm = iota
	lost            // the request never arrives
	cutRequest      // half of its first bytes arrive
	unheard         // it arrives; the answer does not
	cutAnswer       // half of the answer's first bytes arrive
	delayed         // it arrives late
)

func startProxy(target string, seed uint64) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, random: rand.New(rand.NewPCG(seed, 1)), open: map[net.Conn]bool{}}
	p.done.Go(p.accept)
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refusing() {
			p.faults.Add(1)
			reset(c)
			continue
		}
		p.done.Go(func() { p.carry(c) })
	}
}

// refusing begins, now and then, a moment in which nobody is let in.
func (p *proxy) refusing() bool {
	if !p.faulty.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random.IntN(200) == 0 {
		p.refuses = time.Now().Add(time.Duration(100+p.random.IntN(1500)) * time.Millisecond)
	}
	return time.Now().Before(p.refuses)
}

// draw decides about the next request.
func (p *proxy) draw() (harm, time.Duration) {
	p.requests.Add(1)
	if !p.faulty.Load() {
		return unharmed, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := unharmed
	switch n := p.random.IntN(1000); {
	case n < 4:
		h = lost
	case n < 7:
		h = cutRequest
	case n < 13:
		h = unheard
	case n < 16:
		h = cutAnswer
	case n < 26:
		h = delayed
	}
	if h != unharmed {
		p.faults.Add(1)
	}
	return h, time.Duration(20+p.random.IntN(2500)) * time.Millisecond
}

func (p *proxy) track(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
	} else {
		delete(p.open, c)
	}
}

// reset closes a connection without a farewell.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// carry serves one connection until either side, or a fault, ends it.
func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	p.track(client, true)
	p.track(server, true)
	end := sync.OnceFunc(func() {
		reset(client)
		reset(server)
		p.track(client, false)
		p.track(server, false)
	})
	defer end()
	var state exchange
	p.done.Go(func() { defer end(); p.answers(client, server, &state) })
	p.asks(client, server, &state)
}

// exchange is where a connection stands.
type exchange struct {
	mu       sync.Mutex
	answered bool // the server has spoken since the request began
	begun    bool
	harm     harm
}

// asks carries what the client sends.
func (p *proxy) asks(client, server net.Conn, state *exchange) {
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			state.mu.Lock()
			h, wait := unharmed, time.Duration(0)
			if !state.begun || state.answered {
				h, wait = p.draw()
				state.begun, state.answered, state.harm = true, false, h
			}
			state.mu.Unlock()
			switch h {
			case lost:
				return
			case cutRequest:
				_, _ = server.Write(buf[:n/2])
				return
			case delayed:
				time.Sleep(wait)
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// answers carries what the server sends.
func (p *proxy) answers(client, server net.Conn, state *exchange) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 {
			state.mu.Lock()
			state.answered = true
			h := state.harm
			state.mu.Unlock()
			switch h {
			case unheard:
				return
			case cutAnswer:
				_, _ = client.Write(buf[:n/2])
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
