package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// headBundled is the newest version that lies in the archive.
const headBundled = "bundled"

// Archive moves an ended execution's history into the archive and keeps its
// newest state in the table. Errors: ExecutionOpen, Held {holds}, Integrity when
// the journal is not whole. Of an archived execution: the manifest again.
func (s *Service) Archive(ctx context.Context, r *api.ArchiveRequest) (*api.ArchiveReply, error) {
	return s.archive(ctx, r.Tenant, r.Execution, execution.RequestID{ID: r.RequestID, Hash: r.Hash, Digest: r.Digest}, r.Actor.Execution())
}

func (s *Service) archive(ctx context.Context, t execution.TenantID, e execution.ExecutionID, req execution.RequestID, actor *execution.Actor) (*api.ArchiveReply, error) {
	for range retries {
		h, err := s.Journal.Open(ctx, t, e, journal.OpenOptions{Head: true})
		if err != nil {
			return nil, err
		}
		out, err := s.archiveAt(ctx, h, req, actor)
		if execution.CodeOf(err) == execution.VersionConflict {
			continue // an entry came between: bundle that too
		}
		if err = s.damage(ctx, h, err); errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	return nil, busy(execution.Ref{Tenant: t, Execution: e})
}

// archiveAt archives a journal as it was opened.
func (s *Service) archiveAt(ctx context.Context, h *journal.Handle, req execution.RequestID, actor *execution.Actor) (*api.ArchiveReply, error) {
	if err := s.Journal.Readable(h); err != nil {
		return nil, err
	}
	switch {
	case !h.Head.Status.Known():
		return nil, execution.Errorf(execution.Integrity, "a status that this version does not know; nothing may be done with it").At(h.State)
	case h.State.Status == execution.StatusArchived:
		return s.archived(ctx, h, true)
	case h.State.Status == execution.StatusMoved:
		// Evidence that comes to it is passed on, which an archived one would not do.
		return nil, execution.Errorf(execution.ExecutionClosed, "the execution has moved to a fork: it stays as it is").With("moved_to", string(h.State.MovedTo)).At(h.State)
	case !h.State.Status.Ended():
		return nil, execution.Errorf(execution.ExecutionOpen, "the execution has not ended").At(h.State)
	}
	if err := s.unheld(ctx, h.Head); err != nil {
		return nil, err
	}
	b, err := s.bundle(ctx, h)
	if err != nil {
		return nil, err
	}
	w, err := s.writeArchived(ctx, h, b, req, actor)
	if err != nil {
		return nil, err
	}
	return s.archived(ctx, w.Handle, w.Replay != nil)
}

// damage tells what is missing in a journal or archive from what went while it
// was being read, by a deletion, a pruning or another archiving: the answer is
// Open's when it is gone, errMoved when it must be opened again, else err itself.
func (s *Service) damage(ctx context.Context, h *journal.Handle, err error) error {
	if execution.CodeOf(err) != execution.Integrity {
		return err
	}
	now, _, readErr := s.Journal.ReadHead(ctx, h.State.Tenant, h.State.Execution)
	was := h.Head
	switch {
	case readErr != nil:
		return readErr
	case now == nil || now.Status == execution.StatusDeleting:
		if _, err := s.Journal.Open(ctx, h.State.Tenant, h.State.Execution, journal.OpenOptions{Head: true}); err != nil {
			return err
		}
		return errMoved
	case now.Generation != h.State.Generation || was == nil && now.Status != h.State.Status:
		return errMoved
	case was != nil && (now.Status != was.Status || now.Floor != was.Floor || now.Item.Int(headBundled) != was.Item.Int(headBundled)):
		return errMoved
	}
	return err
}

// archived removes what may go by now, which an earlier call may have left, and
// answers.
func (s *Service) archived(ctx context.Context, h *journal.Handle, replayed bool) (*api.ArchiveReply, error) {
	head, clock, err := s.Journal.ReadHead(ctx, h.State.Tenant, h.State.Execution)
	if err == nil && head != nil && head.Item.Has(headUntrimmed) {
		err = s.trim(ctx, head, s.Journal.NowOf(clock))
	}
	if err != nil {
		return nil, err
	}
	return s.archivedReply(ctx, h, replayed)
}

func (s *Service) archivedReply(ctx context.Context, h *journal.Handle, replayed bool) (*api.ArchiveReply, error) {
	out := &api.ArchiveReply{Standing: api.Standing{Execution: h.State.Execution, Version: h.State.Version, Status: h.State.Status, Fence: h.State.Fence, Owner: h.State.Owner, Replayed: replayed}}
	if replayed {
		out.Tip = &api.Tip{Version: h.State.Version, Fence: h.State.Fence}
	}
	if h.State.Bundle == nil {
		return out, nil
	}
	m, err := s.vault().manifest(ctx, h.State.Ref, *h.State.Bundle)
	if err != nil {
		return nil, err
	}
	out.Manifest = show(m, *h.State.Bundle, h.State)
	return out, nil
}

func (s *Service) vault() *Vault { return &Vault{Bucket: s.Bucket} }

// show is the manifest as callers see it.
func show(m *manifest, b execution.Bundle, st *execution.State) *api.Manifest {
	out := &api.Manifest{Key: b.Key, Digest: b.Digest, Version: m.Version}
	for _, f := range m.Files {
		out.Files = append(out.Files, api.ManifestFile{Name: f.Key, Digest: f.Digest, Bytes: f.Bytes})
		out.Bytes += f.Bytes
		out.Entries += f.Last - f.First + 1
	}
	for _, a := range st.Artifacts {
		out.Artifacts = append(out.Artifacts, api.Artifact(a))
	}
	return out
}

// bundle writes the entries that are not in an archive yet into files, with a
// manifest over them and over what an earlier archive holds, and reads all of it
// back. An earlier archive whose last version is pruned by now is not taken over:
// between it and the oldest kept version entries are gone, and nobody reads it. The
// same journal gives the same files, so a repeat after a crash finds them; without
// the entry that names it a bundle means nothing.
func (s *Service) bundle(ctx context.Context, h *journal.Handle) (*execution.Bundle, error) {
	st := h.State
	m := &manifest{Format: 1, Tenant: st.Tenant, Execution: st.Execution, Generation: st.Generation, Version: st.Version}
	class, err := s.storageClass(ctx, st)
	if err != nil {
		return nil, err
	}
	from, low := int64(0), h.Head.Oldest()
	if st.Bundle != nil && low <= st.Bundle.Version {
		old, err := s.vault().manifest(ctx, st.Ref, *st.Bundle)
		if err != nil {
			return nil, err
		}
		m.Files, from = slices.Clone(old.Files), st.Bundle.Version+1
	} else if from, err = s.foldedFrom(ctx, st.Ref, low); err != nil {
		return nil, err
	}
	w := &bundler{s: s, ref: st.Ref, class: class, m: m, from: from, clock: h.ValidatedAt()}
	if err := w.entries(ctx, st.Version); err != nil {
		return nil, err
	}
	for _, a := range st.Artifacts {
		m.Artifacts = append(m.Artifacts, bundledArtifact{a.Digest, a.Bytes})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, execution.Errorf(execution.Internal, "a manifest cannot be encoded").Because(err)
	}
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	b := &execution.Bundle{Key: manifestKey(st.Ref, st.Version, digest), Digest: digest, Bytes: int64(len(raw)), Version: st.Version}
	if err := w.put(ctx, b.Key, raw, "application/json"); err != nil {
		return nil, err
	}
	return b, nil
}

// foldedFrom is the entry that a version is folded from.
func (s *Service) foldedFrom(ctx context.Context, ref execution.Ref, version int64) (int64, error) {
	f, err := s.entry(ctx, ref, version)
	return f.Version - f.Chain, err
}

func (s *Service) storageClass(ctx context.Context, st *execution.State) (string, error) {
	if st.Policy != "" {
		p, err := s.Catalog.Policy(ctx, st.Tenant, st.Policy)
		if err != nil {
			return "", err
		}
		if p != nil && p.Archive != nil && p.Archive.StorageClass != "" {
			return p.Archive.StorageClass, nil
		}
	}
	return "GLACIER_IR", nil
}

// bundler writes files of entries.
type bundler struct {
	s     *Service
	ref   execution.Ref
	class string
	m     *manifest
	from  int64
	clock time.Time

	buf         []byte
	first, last int64
	prev        *[32]byte
}

// entries reads the journal from the table, holds it against its own chain of
// digests, and writes it into files.
func (b *bundler) entries(ctx context.Context, tip int64) error {
	next := b.from
	q := store.Query{PK: b.ref.PK(), From: journal.EntryKey(b.ref.PK(), b.from).SK, To: journal.EntryKey(b.ref.PK(), tip).SK, Consistent: true}
	for {
		page, _, err := b.s.Table.Query(ctx, q)
		if err != nil {
			return journal.Fail(err, b.ref)
		}
		for _, it := range page.Items {
			f, ok := journal.EntryOf(b.ref, it)
			if !ok || f.Damaged || f.Stub || f.Version != next || f.Generation != b.ref.Generation || b.prev != nil && f.Prev != *b.prev {
				return execution.Errorf(execution.Integrity, "the journal is not whole: it cannot be archived").With("execution", string(b.ref.Execution)).With("version", next)
			}
			b.prev = &f.Digest
			if err := b.add(ctx, it, f.Version); err != nil {
				return err
			}
			next++
		}
		if page.Next == nil {
			break
		}
		q.Start = page.Next
	}
	if next != tip+1 {
		return execution.Errorf(execution.Integrity, "the journal is not whole: it cannot be archived").With("execution", string(b.ref.Execution)).With("version", next)
	}
	return b.flush(ctx)
}

func (b *bundler) add(ctx context.Context, it store.Item, version int64) (err error) {
	if len(b.buf) >= fileBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	if len(b.buf) == 0 {
		b.buf, b.first = append(b.buf, bundleMagic...), version
	}
	b.last = version
	b.buf, err = appendItem(b.buf, it)
	return err
}

func (b *bundler) flush(ctx context.Context) error {
	if len(b.buf) == 0 {
		return nil
	}
	sum := sha256.Sum256(b.buf)
	digest := hex.EncodeToString(sum[:])
	f := bundleFile{Key: fileKey(b.ref, b.first, b.last, digest), Digest: digest, Bytes: int64(len(b.buf)), First: b.first, Last: b.last}
	if err := b.put(ctx, f.Key, b.buf, "application/octet-stream"); err != nil {
		return err
	}
	b.m.Files = append(b.m.Files, f)
	b.buf = b.buf[:0]
	return nil
}

// put writes an object whose key holds its digest and reads it back. What is
// there already under that key is the same.
//
// Lost: put again. Landed, reply lost: it exists. A crash: see bundle.
func (b *bundler) put(ctx context.Context, key string, body []byte, media string) error {
	for try := 0; ; try++ {
		_, err := b.s.Bucket.Put(ctx, store.PutObject{Key: key, Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body), MediaType: media, StorageClass: b.class, ValidatedAt: b.clock})
		if err == nil || store.KindOf(err) == store.Exists {
			break
		}
		if !store.Ambiguous(err) || try == 2 || ctx.Err() != nil {
			return journal.Fail(err, b.ref)
		}
	}
	sum := sha256.Sum256(body)
	if b.class == "GLACIER" || b.class == "DEEP_ARCHIVE" {
		info, _, err := b.s.Bucket.Head(ctx, key)
		if err != nil {
			return journal.Fail(err, b.ref)
		}
		if info.Bytes != int64(len(body)) || info.SHA256 != nil && !bytes.Equal(info.SHA256, sum[:]) {
			return execution.Errorf(execution.Integrity, "the archive does not hold what was written").With("key", key)
		}
		return nil
	}
	_, err := b.s.vault().read(ctx, b.ref, key, hex.EncodeToString(sum[:]), int64(len(body)))
	return err
}

// writeArchived writes the entry that names the bundle. It carries a snapshot, so
// the state is read from it alone; holds are checked in the same transaction.
func (s *Service) writeArchived(ctx context.Context, at *journal.Handle, b *execution.Bundle, req execution.RequestID, actor *execution.Actor) (*journal.Written, error) {
	c := &execution.Change{Kind: execution.KindArchived, System: true, Actor: actor, Request: req, Expected: at.State.Version, Bundle: b}
	return s.Journal.Write(ctx, at.State.Tenant, at.State.Execution, journal.WriteOptions{Head: true}, func(ctx context.Context, h *journal.Handle) (*journal.Step, error) {
		p, err := execution.Propose(h.State, h.State.Ref, c, execution.Environment{Now: s.Journal.Now(h), Epoch: s.Journal.Epoch})
		if err != nil || p.Replay != nil {
			return &journal.Step{Proposal: p}, err
		}
		if !h.State.Status.Ended() || h.State.Status == execution.StatusMoved {
			return nil, execution.Errorf(execution.ExecutionOpen, "the execution has not ended").At(h.State)
		}
		if err := s.unheld(ctx, h.Head); err != nil {
			return nil, err
		}
		outcome := h.State.Status
		now := p.Entry.At
		f, err := s.facts(ctx, h.Head)
		if err != nil {
			return nil, err
		}
		f.Status, f.Outcome, f.ArchivedAt, f.Untrimmed = execution.StatusArchived, outcome, now, true
		d := Plan(f, now)
		hc := &journal.HeadChange{Conditions: []store.Cond{store.Absent{Attr: journal.HeadHolds}, journal.SubjectsAsRead(h.Head), journal.AskedAsRead(h.Head)},
			Actions: append([]store.Action{store.Set{Attr: headArchived, Value: store.N(now)}, store.Set{Attr: headOutcome, Value: store.S(string(outcome))},
				store.Set{Attr: headUntrimmed, Value: store.N(1)}, store.Set{Attr: headBundled, Value: store.N(b.Version)}}, journal.RetainActions(h.State.Execution, d.Next)...)}
		return s.snapshotStep(h, p, hc, journal.HoldChecks(h.Head))
	})
}

// snapshotStep makes a step's entry carry the whole fold. Outcomes that leave the
// fold with it stand in their slots first.
func (s *Service) snapshotStep(h *journal.Handle, p *execution.Proposal, hc *journal.HeadChange, with []store.Write) (*journal.Step, error) {
	snap, dropped := execution.SnapshotOf(p.State)
	p.Entry.Body.Snapshot, p.Entry.Body.State, p.Entry.Body.Patch = snap, p.State.Data, nil
	p.State = snap
	step := &journal.Step{Proposal: p, Head: hc, With: with}
	if len(dropped) > 0 {
		step.Before = func(ctx context.Context) error {
			for _, op := range dropped {
				if err := s.Journal.KeepSlot(ctx, h, op); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return step, nil
}

// trim removes from the table the entries that the archive holds and whose slots
// no late writer can aim at any more; younger ones wait for the next look. What the
// history rule passed while it was too young to go is in no archive: it goes first,
// with its bodies.
//
// A crash anywhere leaves the oldest kept entry in the table until those below it
// and their bodies are gone.
func (s *Service) trim(ctx context.Context, h *journal.Head, now int64) error {
	bundled := h.Item.Int(headBundled)
	if h.Floor > h.FirstVersion {
		oldest, err := s.entry(ctx, h.Ref, h.Floor)
		for more := true; more && err == nil; {
			_, more, err = s.drop(ctx, h.Ref, oldest.Version-oldest.Chain, now, true)
		}
		if err != nil && execution.CodeOf(err) != execution.Integrity { // it went in an earlier look, those below it before
			return err
		}
	}
	_, more, err := s.drop(ctx, h.Ref, bundled+1, now, false)
	if err != nil {
		return err
	}
	left, _, err := s.Table.Query(ctx, store.Query{PK: h.PK(), From: journal.EntryPrefix, To: journal.EntryKey(h.PK(), bundled).SK, Limit: 1, Consistent: true})
	if err != nil {
		return journal.Fail(err, h.Ref)
	}
	f, err := s.facts(ctx, h)
	if err != nil {
		return err
	}
	f.Untrimmed = len(left.Items) > 0
	next := Plan(f, now).Next
	acts := journal.RetainActions(h.Execution, next)
	if !f.Untrimmed {
		acts = append(acts, store.Remove{Attr: headUntrimmed})
	} else if next <= now && !more {
		// Due, but something is still too young: the entry that follows it.
		acts = journal.RetainActions(h.Execution, now+hour)
	}
	_, err = s.update(ctx, h.Ref, store.Update{Key: journal.HeadKey(h.PK()), Cond: store.All{live(h), store.Eq(journal.HeadStatus, store.S(string(h.Status))), sameTime(headBundled, bundled), journal.AskedAsRead(h)}, Actions: acts})
	return err
}
