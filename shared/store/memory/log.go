package memory

// Call is one line of the call log.
type Call struct {
	Call       string  `json:"call"`
	Table      string  `json:"table,omitempty"` // other than main
	Key        string  `json:"key"`             // pk/sk, several separated by a space; the object key
	Bytes      int     `json:"bytes"`           // written or read
	ReadUnits  float64 `json:"read_units"`
	WriteUnits float64 `json:"write_units"`
	Condition  string  `json:"condition,omitempty"`
	Consistent bool    `json:"consistent"`
	// Outcome is ok, condition_failed, cancelled, a store.ErrorKind, or the
	// effect of the fault that struck.
	Outcome string `json:"outcome"`
}

// log is a ring of the latest calls. Texts are made when it is read.
type log struct {
	size  int
	calls []call
	next  int // where the next one goes once the ring is full
}

func (l *log) add(c *call) {
	if len(l.calls) < l.size {
		l.calls = append(l.calls, *c)
		return
	}
	l.calls[l.next] = *c
	l.next = (l.next + 1) % l.size
}

func (l *log) clear() { l.calls, l.next = nil, 0 }

// Log gives the calls since the last Mark, oldest first.
func (e *Engine) Log() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]Call, 0, len(e.log.calls))
	for i := range e.log.calls {
		out = append(out, e.log.calls[(e.log.next+i)%len(e.log.calls)].line())
	}
	return out
}

// Mark starts the log afresh.
func (e *Engine) Mark() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log.clear()
}
