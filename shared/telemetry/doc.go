// Package telemetry holds what the functions say about themselves: metrics,
// structured logs and traces.
//
// Metrics are CloudWatch embedded metrics, one JSON line on standard output.
// Their names live here, and only here, because the stack's alarms and dashboard
// are made from the same constants: a metric that is renamed cannot leave a
// silent alarm behind.
//
// Nothing emitted holds agent state, a secret or a key; tenant and execution
// stand in log lines only.
package telemetry
