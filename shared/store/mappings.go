package store

// Mapping is an event source mapping: which changes of the main table's stream
// a function receives, and how. The stack and the sandbox make them from here.
type Mapping struct {
	Function string
	// Filters are EventBridge patterns, one JSON object each; a record that
	// matches one is delivered. A record that matches none is passed over
	// without an invocation.
	Filters []string
	// BatchSize is the most records of an invocation. Functions report partial
	// failures (ReportBatchItemFailures) and a failed batch is bisected.
	BatchSize int
	// Retries is how often a record that fails is tried again before it goes to
	// the dead-letter queue.
	Retries int
}

// Filters of the mappings. `timer#` rings when it is removed, by TTL or by
// hand; userIdentity says which, but not reliably (a replicated removal has
// none), so nothing filters or decides on it.
//
// Of the many changes of heads only those matter that made an execution due
// because of something that happened. The alarms that were merely set for later
// (a lease's end, the next look at a wait) are rung by timers and the sweep; an
// owned execution has no other.
const (
	filterLease     = `{"eventName":["REMOVE"],"dynamodb":{"Keys":{"sk":{"S":["timer#lease","timer#wake","timer#reconcile"]}}}}`
	filterRetention = `{"eventName":["REMOVE"],"dynamodb":{"Keys":{"sk":{"S":["timer#retention"]}}}}`
	filterHead      = `{"eventName":["INSERT","MODIFY"],"dynamodb":{"Keys":{"sk":{"S":["head"]}},` +
		`"NewImage":{"due_kind":{"S":["continue","operation","signal","unhalt","verdict"]}}}}`
)

// Mappings is the whole set.
var Mappings = []Mapping{
	{Function: "recover", Filters: []string{filterLease, filterHead}, BatchSize: 100, Retries: 5},
	{Function: "retention", Filters: []string{filterRetention}, BatchSize: 100, Retries: 5},
}
