package execution

import (
	"encoding/hex"
	"slices"
)

// SnapshotOf prepares a state for being stored as a snapshot: of the settled
// operations only the newest MaxSettledMemory stay in full. dropped are those
// that leave it; their slots must hold their outcome before the snapshot is
// written (architecture, "Reconcile").
func SnapshotOf(s *State) (snap *State, dropped []*Operation) {
	c := *s
	n := len(s.Settled) - MaxSettledMemory
	if n <= 0 {
		return &c, nil
	}
	c.Operations = make(map[OperationID]*Operation, len(s.Operations)-n)
	for id, op := range s.Operations {
		c.Operations[id] = op
	}
	prefixes := make([][]byte, 0, n+len(s.Forgotten)/8)
	for i := 0; i+8 <= len(s.Forgotten); i += 8 {
		prefixes = append(prefixes, s.Forgotten[i:i+8])
	}
	for _, id := range s.Settled[:n] {
		dropped = append(dropped, s.Operations[id])
		delete(c.Operations, id)
		prefixes = append(prefixes, forgottenPrefix(id))
	}
	slices.SortFunc(prefixes, slices.Compare)
	prefixes = slices.CompactFunc(prefixes, slices.Equal)
	c.Forgotten = slices.Concat(prefixes...)
	c.Settled = slices.Clone(s.Settled[n:])
	return &c, dropped
}

// forgottenPrefix is the first 8 bytes of an operation's id.
func forgottenPrefix(id OperationID) []byte {
	b, err := hex.DecodeString(string(id[:min(16, len(id))]))
	if err != nil || len(b) != 8 {
		return make([]byte, 8)
	}
	return b
}
