package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// mail is what the gateway is asked to send.
type mail struct {
	To    string `json:"to"`
	Kind  string `json:"kind"`
	About string `json:"about"`
}

// receipt is the gateway's answer and the status of a key.
type receipt struct {
	ID string `json:"id"`
	// Repeated: the key was known, nothing was sent now.
	Repeated bool `json:"repeated,omitempty"`
}

// tally is what the gateway counted.
type tally struct {
	Sent int `json:"sent"`
	// Repeated mails went out more than once to the same person about the same
	// thing: by content, whatever their keys.
	Repeated int `json:"repeated"`
	// Recognised requests came again under a known key and were not sent.
	Recognised int `json:"recognised"`
}

// gateway is the bank's mail gateway: a business system that deduplicates on an
// idempotency key, answers what became of a key, and counts.
type gateway struct {
	mu         sync.Mutex
	byKey      map[string]receipt
	copies     map[mail]int
	recognised int
}

func (g *gateway) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mails", g.post)
	mux.HandleFunc("GET /mails/{key}", g.status)
	mux.HandleFunc("GET /tally", g.count)
	return mux
}

func (g *gateway) post(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var m mail
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&m); err != nil || key == "" || m.To == "" {
		http.Error(w, "a mail and an Idempotency-Key, please", http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known, repeated := g.byKey[key]
	if repeated {
		g.recognised++
		known.Repeated = true
		answer(w, known)
		return
	}
	sent := receipt{ID: fmt.Sprintf("mail-%d", len(g.byKey)+1)}
	g.byKey[key] = sent
	g.copies[m]++
	answer(w, sent)
}

func (g *gateway) status(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.byKey[r.PathValue("key")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, known)
}

func (g *gateway) count(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := tally{Sent: len(g.byKey), Recognised: g.recognised}
	for _, n := range g.copies {
		t.Repeated += n - 1
	}
	answer(w, t)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that has left asks again
}

// mailbox is the gateway's client.
type mailbox struct {
	url  string
	fuse *fuse
}

// send asks for a mail once. An error: nobody knows whether it was sent.
func (m *mailbox) send(ctx context.Context, key string, body []byte) (receipt, error) {
	m.fuse.moment()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/mails", bytes.NewReader(body))
	if err != nil {
		return receipt{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	var r receipt
	err = fetch(req, &r)
	m.fuse.sent()
	return r, err
}

// find asks what became of a key; false: nothing was sent under it.
func (m *mailbox) find(ctx context.Context, key string) (r receipt, found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/mails/"+url.PathEscape(key), nil)
	if err != nil {
		return r, false, err
	}
	err = fetch(req, &r)
	if s, ok := err.(statusError); ok && s == http.StatusNotFound {
		return r, false, nil
	}
	return r, err == nil, err
}

func (m *mailbox) tally(ctx context.Context) (t tally, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/tally", nil)
	if err != nil {
		return t, err
	}
	return t, fetch(req, &t)
}

type statusError int

func (e statusError) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// fetch makes a request and reads its JSON answer.
func fetch(req *http.Request, into any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
