package execution

import "time"

// Every limit of the product, printed by `cairn limits` (api.md, "Limits").
// Sizes are binary bytes.
const (
	MaxInlineBody        = 32 << 10  // an entry's sealed body above it goes to the bucket
	MaxStateBytes        = 5 << 20   // state, as compact JSON
	MaxRequestBytes      = 6 << 20   // one request
	MaxReplyBytes        = 6 << 20   // one reply
	DefaultInlineBytes   = 100_000   // max_inline_bytes when not given
	MaxArtifactBody      = 4 << 20   // artifact put by body
	MaxArtifactBytes     = 5 << 30   // artifact put by upload
	MaxErrorBytes        = 8 << 10   // an error's message
	MaxOpenOperations    = 5000      // open at once
	MaxUnabsorbedSignals = 5000      // in the inbox
	MaxCarried           = 40        // open operations that a fork may carry
	MaxRequestMemory     = 128       // remembered requests of an execution
	MaxSettledMemory     = 1000      // settled operations kept in full
	MaxLabels            = 40        // labels and subjects together
	MaxHolds             = 16        // holds on one execution
	MaxNote              = 1024      // characters
	MaxKeyText           = 256       // operation key, signal key: characters
	MaxOwner             = 128       // owner, request_id, nonce: characters
	MaxArtifactName      = 255       // characters
	MaxListLimit         = 1000      // limit of a listing
	DefaultListLimit     = 100       //
	SnapshotBytes        = 256 << 10 // stored bytes between snapshots, at most
	DefaultMaxRecoveries = 20        // hand-overs without progress before parking
	MinLeaseSeconds      = 5
	MaxLeaseSeconds      = 24 * 3600
	DefaultReceiptDays   = 90
	MinReceiptDays       = 7
)

// NetworkDelay is the longest time that a request already sent may still take
// to arrive: the margin of same_key and of a not_found (architecture,
// "Reconcile").
const NetworkDelay = 5 * time.Minute

// Grace times of staged objects (architecture, "Artifacts").
const (
	ArtifactGrace  = 24 * time.Hour
	ArtifactMargin = time.Hour
)

// SlotSafety is how long a journal slot must stay occupied, so that a late
// writer finds it taken (architecture, "Slots stay").
const (
	PruneSafety = 24 * time.Hour // entries whose successor is younger are kept
	StubSafety  = time.Hour      // stubs of a deletion live that long
)
