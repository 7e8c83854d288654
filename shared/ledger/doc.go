// Package ledger takes in evidence: outcomes of operations and signals.
package ledger
