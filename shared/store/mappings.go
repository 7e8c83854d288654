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
const (
	filterLease     = `{"eventName":["REMOVE"],"dynamodb":{"Keys":{"sk":{"S":["timer#lease","timer#wake","timer#reconcile"]}}}}`
	filterRetention = `{"eventName":["REMOVE"],"dynamodb":{"Keys":{"sk":{"S":["timer#retention"]}}}}`
	filterHead      = `{"dynamodb":{"Keys":{"sk":{"S":["head"]}}}}`
)

// Mappings is the whole set.
var Mappings = []Mapping{
	{Function: "recover", Filters: []string{filterLease, filterHead}, BatchSize: 100, Retries: 5},
	{Function: "retention", Filters: []string{filterRetention, filterHead}, BatchSize: 100, Retries: 5},
}
