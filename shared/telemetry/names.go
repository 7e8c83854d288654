package telemetry

// Namespace is the CloudWatch namespace of every metric below.
const Namespace = "Cairn"

// Dimension is the one dimension of every metric; its value is the name of the
// main table (CAIRN_TABLE), which tells the stacks of an account apart. The
// alarms and the dashboard ask for exactly this set of dimensions: a metric
// emitted with another set is in none of them. Tenants and executions are never
// dimensions (their number has no bound); they stand in the log line.
const Dimension = "Table"

// Metrics. Counts are emitted only when something happened; no data means zero.
const (
	// RecoverySuccess counts executions that recovery handed over or moved on.
	RecoverySuccess = "RecoverySuccess"
	// RecoveryFailure counts due executions that recovery could not handle; they
	// stay due.
	RecoveryFailure = "RecoveryFailure"
	// RecoveryDelay is how long after the end of a dead owner's lease somebody
	// claimed the execution, in seconds.
	RecoveryDelay = "RecoveryDelay"
	// StateConflicts counts writes refused because somebody else wrote first:
	// VersionConflict and LeaseLost.
	StateConflicts = "StateConflicts"
	// CheckpointBytes is the size of the state after a write, in bytes.
	CheckpointBytes = "CheckpointBytes"
	// RepeatedRequests counts requests that were recognised as repeats and
	// answered from the journal.
	RepeatedRequests = "RepeatedRequests"
	// Parked counts executions that came to rest because only a person or new
	// evidence can move them.
	Parked = "Parked"
	// UncertainAge is how long an operation has been uncertain when recovery
	// looked at it and could not settle it, in seconds.
	UncertainAge = "UncertainAge"
	// Throttles counts calls that a service refused for their rate, before any
	// retry.
	Throttles = "Throttles"
	// KeyErrors counts KeyUnavailable: a key was disabled, denied or missing.
	KeyErrors = "KeyErrors"
	// RetentionRemoved counts what a retention sweep removed or archived.
	RetentionRemoved = "RetentionRemoved"
	// RetentionFailures counts due work of retention that failed and was put off.
	RetentionFailures = "RetentionFailures"
	// RetentionHeld counts executions that were due and that holds keep.
	RetentionHeld = "RetentionHeld"
	// Contradictions counts final outcomes that contradict the one on record.
	Contradictions = "Contradictions"
)
