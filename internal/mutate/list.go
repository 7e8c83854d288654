package main

// Where the tests of each part are.
const (
	pure      = "./shared/execution"
	journaled = "./shared/journal ./shared/recovery ./shared/ledger"
	evidence  = "./shared/ledger ./shared/recovery"
	recovers  = "./shared/recovery"
	retains   = "./shared/retention"
	sealed    = "./shared/seal ./shared/journal"
	world     = "./internal/simulation"
)

// mutants are the rules, each taken away.
var mutants = []mutant{
	// Who may write (execution/propose.go).
	{"write: an old fence", "shared/execution/propose.go", `c.HasFence && (c.Fence != s.Fence || s.Owner == "")`, `c.HasFence && s.Owner == ""`, pure, ""},
	{"write: the fence of nobody", "shared/execution/propose.go", `c.HasFence && (c.Fence != s.Fence || s.Owner == "")`, `c.HasFence && c.Fence != s.Fence`, pure, ""},
	{"write: no fence", "shared/execution/propose.go", `if s.Fence > 0 && !c.HasFence {`, `if false {`, pure, ""},
	{"write: an ended execution", "shared/execution/propose.go", "	if s.Status.Ended() {\n		return closed(s)\n	}\n	if s.Status == StatusHalted {", "	if s.Status == StatusHalted {", pure, ""},
	{"write: a halted execution", "shared/execution/propose.go", "	if s.Status == StatusHalted {\n		return Errorf(Halted, \"the execution is halted\")\n	}\n	if s.Fence > 0", "	if s.Fence > 0", pure, ""},
	{"write: the expected version", "shared/execution/propose.go", `case p.c.Expected == 0 || p.c.Expected == p.s.Version:`, `case true:`, pure, ""},
	{"write: a version beyond the end", "shared/execution/propose.go", `case p.c.Expected > p.s.Version:`, `case false:`, pure, ""},
	{"write: the system after the end", "shared/execution/propose.go", `case s.Status.Ended() && p.c.Kind != KindArchived`, `case false && p.c.Kind != KindArchived`, pure, ""},
	{"claim: a live lease", "shared/execution/propose.go", `s.Owner == "" || p.env.Now >= end ||`, `true || p.env.Now >= end ||`, pure, ""},
	{"claim: a lease a little early", "shared/execution/propose.go", `p.env.Now >= end ||`, `p.env.Now >= end-1 ||`, pure, ""},
	{"claim: superseding another's", "shared/execution/propose.go", `r.Supersede && r.Owner == s.Owner {`, `r.Supersede {`, pure, ""},
	{"claim: an ended execution", "shared/execution/propose.go", "	case s.Status.Ended():\n		return closed(s)\n	case s.Status == StatusHalted:\n		return Errorf(Halted, \"the execution is halted\")\n	}\n	if err := p.version()", "	case s.Status == StatusHalted:\n		return Errorf(Halted, \"the execution is halted\")\n	}\n	if err := p.version()", pure, ""},
	{"claim: at a version that is gone", "shared/execution/propose.go", "	if err := p.version(); err != nil {\n		return err\n	}\n	end :=", "	end :=", pure, ""},
	{"claim: a fence that does not grow", "shared/execution/propose.go", `if p.entry.Fence <= p.s.Fence {`, `if false {`, pure, ""},
	{"claim: progress renews", "shared/execution/state.go", `return max(headExpiry, s.TipAt+s.LeaseSeconds*1000)`, `return headExpiry`, pure, ""},
	{"complete: operations are open", "shared/execution/propose.go", `if p.c.Complete != nil && s.Open > 0 {`, `if false {`, pure, ""},
	{"budget: spent beyond it", "shared/execution/propose.go", `if exceeds(b.Limit, b.Spent, n) {`, `if false {`, pure, ""},
	{"absorb: a signal twice", "shared/execution/propose.go", `if _, before := p.s.Absorbed[k]; before || seen[k] {`, `if false {`, pure, ""},
	{"time: an entry before its predecessor", "shared/execution/propose.go", `p.entry.At = max(env.Now, s.TipAt)`, `p.entry.At = env.Now`, pure, ""},

	// Repeats.
	{"repeat: the memory of requests", "shared/execution/propose.go", `if m, ok := s.Remembered(r.Hash); ok {`, `if m, ok := s.Remembered(r.Hash); ok && false {`, pure, ""},
	{"repeat: other content", "shared/execution/propose.go", `if m.Digest != r.Digest {`, `if false {`, pure, ""},
	{"repeat: without a request id", "shared/execution/propose.go", `m.Version == p.c.Expected+1 && m.Hash == r.Hash && m.Digest == r.Digest {`, `false && m.Version == p.c.Expected+1 && m.Hash == r.Hash && m.Digest == r.Digest {`, pure, ""},
	{"repeat: beyond the memory", "shared/execution/propose.go", `first == 0 || first+1 >= p.s.RequestFloor {`, `true {`, pure, ""},
	{"repeat: what it was given", "shared/execution/declare.go", `case ambiguous && op.Fence == fence && op.Sends == 1:`, `case op.Fence == fence:`, pure, ""},
	{"repeat: an old fence's answer", "shared/execution/declare.go", `case ambiguous && op.Fence == fence && op.Sends == 1:`, `case ambiguous && op.Sends == 1:`, pure, ""},

	// What may be done about an operation (execution/declare.go, operation.go).
	{"go: settled", "shared/execution/declare.go", "	case op.Final():\n		return 0, Settled\n	}\n	return again(op, fence, now)", "	case op.Final():\n		return op.Attempt, Go\n	}\n	return again(op, fence, now)", pure, ""},
	{"go: under review", "shared/execution/declare.go", "	case op.NeedsReview:\n		return 0, UncertainDisp\n	case op.Outcome == OutcomeRejected", "	case op.Outcome == OutcomeRejected", pure, ""},
	{"go: uncertain", "shared/execution/declare.go", "	return 0, UncertainDisp\n}\n\n// Replayed is", "	return op.Attempt, Go\n}\n\n// Replayed is", pure, ""},
	{"go: the key's window is over", "shared/execution/declare.go", `if now < op.RepeatBy() {`, `if op.RepeatBy() > 0 {`, pure, ""},
	{"go: the same attempt after a rejection", "shared/execution/declare.go", `return op.Attempt + 1, firstDisposition(op)`, `return op.Attempt, firstDisposition(op)`, pure, ""},
	{"go: other arguments", "shared/execution/declare.go", `&& op.ArgsDigest == DigestArgs(d.Args) {`, `{`, pure, ""},
	{"start: close begins with go", "shared/execution/declare.go", `if op.OnUncertain == Close {`, `if false {`, pure, ""},
	{"uncertain: another owner's", "shared/execution/operation.go", `case op.NeedsReview, op.SawUnknown, op.Fence != fence:`, `case op.NeedsReview, op.SawUnknown:`, pure, ""},
	{"uncertain: reported unknown", "shared/execution/operation.go", `case op.NeedsReview, op.SawUnknown, op.Fence != fence:`, `case op.NeedsReview, op.Fence != fence:`, pure, ""},
	{"uncertain: past its deadline", "shared/execution/operation.go", `return op.DeadlineSeconds > 0 && now >= op.Intent+op.DeadlineSeconds*1000`, `return false`, pure, ""},
	{"window: no margin for the network", "shared/execution/operation.go", `by := op.KeySince + op.DedupSeconds*1000 - NetworkDelay.Milliseconds()`, `by := op.KeySince + op.DedupSeconds*1000`, pure, ""},
	{"window: sending to its very end", "shared/execution/operation.go", "			d -= margin\n", "			d -= 0 * margin\n", pure, ""},
	{"window: impossible as soon as unsent", "shared/execution/operation.go", `return op.SendBy() + NetworkDelay.Milliseconds()`, `return op.SendBy()`, pure, ""},
	{"provider key: the same after a rejection", "shared/execution/operation.go", `binary.BigEndian.PutUint64(n[8:], uint64(op.Rejections))`, `binary.BigEndian.PutUint64(n[8:], 0)`, pure, ""},
	{"provider key: another generation's", "shared/execution/operation.go", "	binary.BigEndian.PutUint64(n[:8], uint64(root.Generation))\n	binary.BigEndian.PutUint64(n[8:], uint64(op.Rejections))", "	binary.BigEndian.PutUint64(n[:8], 0)\n	binary.BigEndian.PutUint64(n[8:], uint64(op.Rejections))", pure, ""},

	// Evidence (execution/judge.go).
	{"evidence: absence asked too early", "shared/execution/judge.go", `ev.AskedAt >= limit+validation.Milliseconds()`, `true`, pure, ""},
	{"evidence: absence without the window", "shared/execution/judge.go", `ev.AskedAt >= limit+validation.Milliseconds()`, `ev.AskedAt >= limit`, pure, ""},
	{"evidence: absence without a limit", "shared/execution/judge.go", `return limit > 0 && ev.AskedAt`, `return ev.AskedAt`, pure, ""},
	{"evidence: not_executed by hearsay", "shared/execution/judge.go", `return ev.Source == FromLedger || ev.Source == FromSlot`, `return true`, pure, ""},
	{"evidence: absence needs no slot", "shared/execution/judge.go", `j.Settle, j.NeedsSlot = settlement(op, absence(proof), now), true`, `j.Settle, j.NeedsSlot = settlement(op, absence(proof), now), false`, pure + " " + recovers, ""},
	{"evidence: a rejection of several sendings", "shared/execution/judge.go", `if op.Sends != 1 && op.OnUncertain != Close || op.SawUnknown {`, `if op.SawUnknown {`, pure, ""},
	{"evidence: a rejection after unknown", "shared/execution/judge.go", `if op.Sends != 1 && op.OnUncertain != Close || op.SawUnknown {`, `if op.Sends != 1 && op.OnUncertain != Close {`, pure, ""},
	{"evidence: contradicting findings", "shared/execution/judge.go", `case several || disagree(found):`, `case several:`, pure, ""},
	{"evidence: several effects", "shared/execution/judge.go", `case several || disagree(found):`, `case several && false || disagree(found):`, pure, ""},
	{"evidence: review ends by itself", "shared/execution/judge.go", `case op.Final(), op.NeedsReview: // only a verdict leads out`, `case op.Final():`, pure, ""},
	{"evidence: another attempt's", "shared/execution/judge.go", "		case ev.Attempt != op.Attempt:\n			j.past(op, ev)\n", "", pure, ""},
	{"evidence: a settled outcome is unsettled", "shared/execution/judge.go", "		case op.Final():\n			j.afterFinal(op, ev)\n", "", pure, ""},
	{"verdict: before it can be known", "shared/execution/declare.go", `ev.Outcome == OutcomeNotExecuted && !ev.Force && p.env.Now`, `false && p.env.Now`, pure, ""},
	{"evidence: asked in the future", "shared/execution/declare.go", `if ev.AskedAt > p.env.Now {`, `if false {`, pure, ""},
	{"outcome: not_executed by the owner", "shared/execution/declare.go", `if slotBound(t.Outcome) && t.Source != FromLedger {`, `if false {`, pure, ""},

	// The journal's writes.
	{"journal: the next entry must not be there", "shared/journal/write.go", `put := &store.Put{Item: item, Cond: store.NotThere(), ValidatedAt: h.validated}`, `put := &store.Put{Item: item, ValidatedAt: h.validated}`, journaled, ""},
	{"journal: the validation window", "shared/journal/write.go", `put := &store.Put{Item: item, Cond: store.NotThere(), ValidatedAt: h.validated}`, `put := &store.Put{Item: item, Cond: store.NotThere()}`, journaled, ""},
	{"journal: the window of transactions", "shared/journal/write.go", `in := store.Transact{Token: token, ValidatedAt: h.validated, Writes:`, `in := store.Transact{Token: token, Writes:`, journaled, ""},
	{"journal: the head as the fold has it", "shared/journal/write.go", `cond := append(store.All{HeadIs(h.State)}, hc.Conditions...)`, `cond := append(store.All{store.There()}, hc.Conditions...)`, journaled, ""},
	{"journal: an unknown outcome counts as failure", "shared/journal/write.go", `case !store.Ambiguous(err) && sent:`, `case false:`, journaled, ""},
	{"journal: absent counts as lost", "shared/journal/write.go", "		case readErr == nil && got != nil:\n			return Clock{}, errTaken\n		}", "		case readErr == nil && got != nil:\n			return Clock{}, errTaken\n		case readErr == nil:\n			return Clock{}, Fail(err, ref)\n		}", journaled, ""},
	{"journal: another's write is taken for its own", "shared/journal/write.go", `return bytes.Equal(a.Bytes(attrBody), b.Bytes(attrBody))`, `return true`, journaled, ""},
	{"journal: refusals from memory", "shared/journal/write.go", "			if !h.Fresh { // decide on what stands in the store, never on memory\n				warm = false\n				continue\n			}\n", "", journaled, ""},
	{"journal: outcomes leave the fold unkept", "shared/journal/body.go", "	if err := j.keepSlots(ctx, h, dropped); err != nil {\n		return err\n	}\n", "	_ = dropped\n", "./shared/journal ./shared/ledger", ""},
	{"journal: slots after the entry", "shared/journal/write.go", "	if step.Before != nil {\n		if err := step.Before(ctx); err != nil {\n			return nil, err\n		}\n	}\n", "", evidence, ""},
	{"journal: an entry that names another", "shared/journal/open.go", `if s.prev != h.tip {`, `if false {`, "./shared/journal", ""},
	{"journal: a tip that was swapped", "shared/journal/open.go", `|| found[0].digest(ref) != h.tip {`, `{`, "./shared/journal", ""},
	{"claim: a renewal in between", "shared/journal/claim.go", `Conditions: []store.Cond{same}}}, nil`, `Conditions: []store.Cond{store.Any{same, store.There()}}}}, nil`, journaled, ""},
	{"claim: an old nonce", "shared/journal/claim.go", `if p != nil && p.Replay != nil && (p.Replay.Version != h.State.ClaimVersion || h.State.Owner == "") {`, `if false {`, journaled, ""},
	{"renew: another's lease", "shared/journal/claim.go", `case h.Fence != fence || h.Owner != owner || h.Status != execution.StatusRunning:`, `case h.Owner != owner || h.Status != execution.StatusRunning:`, journaled, ""},
	{"renew: the fence at the write", "shared/journal/claim.go", `store.Eq(HeadFence, store.N(fence)), store.Compare`, `store.Compare`, journaled, ""},
	{"renew: a shorter lease", "shared/journal/claim.go", `if expiry <= head.LeaseExpiresAt {`, `if false {`, journaled, ""},
	{"create: over an existing one", "shared/journal/create.go", `{Put: &store.Put{Item: head, Cond: store.NotThere()}},`, `{Put: &store.Put{Item: head}},`, journaled, ""},
	{"create: in a tenant that is being purged", "shared/journal/create.go", `{Check: &store.Check{Key: ClosingKey(ref.Tenant), Cond: store.NotThere()}},`, `{Check: &store.Check{Key: ClosingKey(ref.Tenant), Cond: store.Any{store.NotThere(), store.There()}}},`, "./shared/journal ./shared/retention", ""},
	{"create: a slot that a late writer aims at", "shared/journal/create.go", `c.Change.FirstVersion = max(c.Change.FirstVersion, r.Int(ReceiptLast)+2)`, `c.Change.FirstVersion = 1`, "./shared/journal ./shared/retention", ""},
	{"create: before the deletion is done", "shared/journal/create.go", `case r.Str(ReceiptState) != ReceiptDeleted:`, `case false:`, "./shared/journal ./shared/retention", ""},

	// The ledger.
	{"slot: the first outcome stands", "shared/journal/slot.go", `up := &store.Update{Key: SlotKey(ref.PK(), s.Operation, s.Attempt), Cond: store.Any{store.NotThere(), open},`, `up := &store.Update{Key: SlotKey(ref.PK(), s.Operation, s.Attempt), Cond: store.Any{store.NotThere(), store.There(), open},`, evidence, ""},
	{"slot: closing one that was started", "shared/journal/slot.go", `store.Absent{Attr: SlotOutcome}, store.Absent{Attr: SlotStarted}, store.Absent{Attr: SlotNonce}}}`, `store.Absent{Attr: SlotOutcome}}}`, evidence, ""},
	{"start: the head's fence", "shared/ledger/start.go", `Cond: store.All{journal.HeadIs(s), store.Present{Attr: journal.HeadOwner}}}},`, `Cond: store.There()}},`, evidence, ""},
	{"start: a closed slot", "shared/ledger/start.go", `store.Absent{Attr: journal.SlotOutcome},
		store.Any{`, `
		store.Any{`, evidence, ""},
	{"start: another's nonce", "shared/ledger/start.go", `store.Any{store.Eq(journal.SlotNonce, store.B(nonce)), store.All{`, `store.Any{store.Present{Attr: journal.SlotNonce}, store.All{`, evidence, ""},
	{"start: too late", "shared/ledger/start.go", `case op.SendBy() > 0 && now >= op.SendBy():`, `case false:`, evidence, ""},
	{"start: an attempt that is over", "shared/ledger/start.go", `case r.Attempt < op.Attempt:`, `case false:`, evidence, ""},
	{"record: before what the journal settled", "shared/ledger/record.go", "	if err := l.Journal.KeepOutcome(ctx, head.Ref, op, slot.Attempt, slot.At, clock.Date()); err != nil {\n		return nil, err\n	}\n", "", evidence, ""},
	{"record: no wake-up", "shared/ledger/record.go", "		wake = journal.DueEvidence\n", "		wake = \"\"\n", evidence, ""},
	{"record: a contradiction is dropped", "shared/ledger/record.go", `first, err := l.Journal.Contradict(ctx, head.Ref, slot, digest, opts)`, `first, err := true, error(nil); _ = digest`, evidence, ""},

	// Recovery.
	{"settle: before it stands in its slot", "shared/recovery/reconcile.go", "		step.Before = func(ctx context.Context) error { return s.settleSlots(ctx, h, p.Slots) }\n", "", recovers, ""},
	{"settle: what the slot says", "shared/recovery/reconcile.go", `} else if f.Outcome != t.Outcome {`, `} else if false {`, recovers, ""},
	{"archive: one that passes evidence on", "shared/retention/archive.go", `case h.State.Status == execution.StatusMoved:`, `case false:`, retains, "TestArchiveRefusals"},
	{"verdict: swallowed by a rejection", "shared/recovery/reconcile.go", `if verdict >= 0 && won.undecided[t.Operation] {`, `if false && verdict >= 0 {`, recovers, ""},
	{"carry: a fence that was the parent's", "shared/execution/declare.go", `ev.Fenced = ev.Fenced && op.Fence >= 0`, `_ = op.Fence`, recovers, ""},
	{"carry: a child under the parent's name", "shared/recovery/children.go", `if f := st.ForkedFrom; f != nil && f.Carry {`, `if f := st.ForkedFrom; f != nil && f.Carry && false {`, recovers, ""},
	{"handover: counted once", "shared/recovery/handover.go", `Cond: store.All{journal.HeadIs(h.State), was, dueAsRead(h.Head), leaseAsRead(h.Head)},`, `Cond: store.Any{store.There(), was},`, recovers, ""},
	{"handover: crash loops", "shared/recovery/handover.go", `case st.Handovers+head.Handover >= most:`, `case most < 0:`, recovers, ""},
	{"look: a live lease", "shared/recovery/look.go", `if left := s.Journal.LeaseRemaining(h); left > 0 {`, `if left := s.Journal.LeaseRemaining(h); left < 0 {`, recovers, ""},
	{"look: nothing is due yet", "shared/recovery/look.go", `case head.DueAt == 0 || now+clockGrain < head.DueAt:`, `case head.DueAt == 0:`, recovers, ""},
	{"ask: fenced by the attempt's own fence", "shared/recovery/gather.go", `if q.Fence <= op.Fence {`, `if false {`, recovers, ""},
	{"ask: the time after the question", "shared/recovery/gather.go", `ev.AskedAt = asked
`, `ev.AskedAt = s.Journal.Now(h) + 1
`, recovers, ""},

	// Retention.
	{"delete: filled slots stay taken", "shared/retention/erase.go", `case !final && f.Filled && (f.At == 0 || now-f.At < execution.StubSafety.Milliseconds()):`, `case false:`, retains, "TestDelet"},
	{"archive: what went meanwhile is no damage", "shared/retention/archive.go", `if err = s.damage(ctx, h, err); errors.Is(err, errMoved) {`, `if errors.Is(err, errMoved) {`, retains, "TestArchive"},
	{"plan: held", "shared/retention/plan.go", `case len(f.Holds) > 0:`, `case false:`, retains, "TestPlan|TestProperty"},
	{"plan: open operations", "shared/retention/plan.go", `case f.Open > 0 && (due == Remove || due == Archive):`, `case false:`, retains, "TestPlan|TestProperty"},
	{"plan: before its date", "shared/retention/plan.go", `if due == Keep || at > now {`, `if due == Keep {`, retains, "TestPlan|TestProperty"},
	{"plan: a status nobody knows", "shared/retention/plan.go", `case !f.Status.Known():`, `case false:`, retains, "TestPlan|TestProperty"},
	{"close: held", "shared/retention/close.go", `c := store.All{live(h), store.Absent{Attr: journal.HeadHolds}, journal.SubjectsAsRead(h)}`, `c := store.All{live(h), journal.SubjectsAsRead(h)}`, retains, "Hold|Race|Close"},
	{"close: the thread is held", "shared/retention/close.go", `}, journal.HoldChecks(h)...)})`, `}, journal.HoldChecks(h)[:0]...)})`, retains, "Hold"},

	// Keys and tenants.
	{"seal: the tenant in the place", "shared/seal/place.go", "	dst = appendField(dst, p.Tenant)\n", "", sealed, ""},
	{"seal: the execution in the place", "shared/seal/place.go", "	dst = appendField(dst, p.Execution)\n", "", sealed, ""},
	{"seal: the generation in the place", "shared/seal/place.go", "	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Generation))\n", "", sealed, ""},
	{"seal: what stands beside the body", "shared/seal/place.go", "	return appendField(dst, p.Plain)\n", "	return dst\n", sealed, ""},
	{"seal: fields that run together", "shared/seal/place.go", "	dst = binary.AppendUvarint(dst, uint64(len(f)))\n", "", "./shared/seal", ""},
	{"door: another tenant's alias", "shared/door/door.go", `if bound && alias != execution.TenantAlias(api.CommonOf(req).Tenant) {`, `if bound && alias == "" {`, "./shared/door", ""},
	{"door: a panic comes out", "shared/door/door.go", `if recover() == nil {`, `if true {`, "./shared/door", ""},
}
