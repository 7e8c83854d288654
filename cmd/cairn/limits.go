package main

import (
	"encoding/json"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/cairnstate/cairn/shared/execution"
)

type limitsCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
}

// Help implements kong.HelpProvider.
func (*limitsCmd) Help() string {
	return `Sizes are binary bytes, times are seconds.

Examples:

    cairn limits
    cairn limits --json | jq '.[] | select(.name == "state_bytes").value'`
}

// limit is one line of the table.
type limit struct {
	Name    string `json:"name"`
	Value   int64  `json:"value"`
	Unit    string `json:"unit"`
	Meaning string `json:"meaning"`
}

// limits are all of them; the values stand in package execution alone.
var limits = []limit{
	{"request_bytes", execution.MaxRequestBytes, "bytes", "one request"},
	{"reply_bytes", execution.MaxReplyBytes, "bytes", "one reply"},
	{"default_max_inline_bytes", execution.DefaultInlineBytes, "bytes", "a reply with a view, unless max_inline_bytes says otherwise"},
	{"error_bytes", execution.MaxErrorBytes, "bytes", "an error's message"},
	{"state_bytes", execution.MaxStateBytes, "bytes", "state, as compact JSON"},
	{"inline_body_bytes", execution.MaxInlineBody, "bytes", "an entry's body; above it the body goes to the bucket"},
	{"snapshot_bytes", execution.SnapshotBytes, "bytes", "stored between two snapshots, at most"},
	{"artifact_body_bytes", execution.MaxArtifactBody, "bytes", "an artifact put by body"},
	{"artifact_upload_bytes", execution.MaxArtifactBytes, "bytes", "an artifact put by upload"},
	{"identifier_bytes", execution.MaxIdentifier, "bytes", "an identifier: [A-Za-z0-9][A-Za-z0-9._-]*"},
	{"tenant_bytes", execution.MaxTenant, "bytes", "a tenant's identifier"},
	{"owner_characters", execution.MaxOwner, "characters", "owner, request_id, nonce"},
	{"key_characters", execution.MaxKeyText, "characters", "the key of an operation or a signal"},
	{"artifact_name_characters", execution.MaxArtifactName, "characters", "an artifact's name"},
	{"note_characters", execution.MaxNote, "characters", "a note"},
	{"open_operations", execution.MaxOpenOperations, "operations", "open at once in one execution"},
	{"carried_operations", execution.MaxCarried, "operations", "open ones that a fork may carry"},
	{"unabsorbed_signals", execution.MaxUnabsorbedSignals, "signals", "in an execution's inbox"},
	{"labels", execution.MaxLabels, "labels", "labels and subjects of one execution together"},
	{"holds", execution.MaxHolds, "holds", "on one execution"},
	{"list_limit", execution.MaxListLimit, "items", "limit of a listing"},
	{"default_list_limit", execution.DefaultListLimit, "items", "limit of a listing that gives none"},
	{"remembered_requests", execution.MaxRequestMemory, "requests", "whose repeat an execution recognises"},
	{"settled_operations", execution.MaxSettledMemory, "operations", "settled ones that are kept in full"},
	{"min_lease_seconds", execution.MinLeaseSeconds, "seconds", "shortest lease"},
	{"max_lease_seconds", execution.MaxLeaseSeconds, "seconds", "longest lease"},
	{"default_max_recoveries", execution.DefaultMaxRecoveries, "hand-overs", "without progress before an execution is parked"},
	{"network_delay_seconds", int64(execution.NetworkDelay.Seconds()), "seconds", "that a request already sent may still take to arrive"},
	{"artifact_grace_seconds", int64(execution.ArtifactGrace.Seconds()), "seconds", "that a staged artifact waits for the entry that names it"},
	{"default_receipt_days", execution.DefaultReceiptDays, "days", "that a deletion's receipt is kept"},
	{"min_receipt_days", execution.MinReceiptDays, "days", "that a deletion's receipt is kept at least"},
}

// Run implements the verb.
func (c *limitsCmd) Run(env *env) error {
	if c.JSON {
		enc := json.NewEncoder(env.out)
		enc.SetIndent("", "  ")
		return enc.Encode(limits)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"limit", "value", "unit", "of"})
	for _, l := range limits {
		t.AppendRow(table.Row{l.Name, l.Value, l.Unit, l.Meaning})
	}
	_, err := fmt.Fprintln(env.out, t.Render())
	return err
}
