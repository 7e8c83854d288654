package fieldcases

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestL1FrozenWorkerForksChain(t *testing.T) {
	k := start(t)
	k.create("other")
	other := k.claim("other", "A", 900)
	k.create("e")
	a := k.claim("e", "A", 10)
	v1 := k.apply("e", a.version(), object{"fence": a.fence(), "state": object{"c": 1}}).version()
	o := k.declare("e", a.fence(), object{"key": "k"}).str("operation")
	k.wait(11 * time.Second)
	b := k.claim("e", "B", 300)
	if b.fence() <= a.fence() {
		t.Fatal("the fence did not grow")
	}
	// Evidence is not a write of state: a zombie may bring it.
	k.outcome("e", o, "succeeded")
	c2 := object{"fence": b.fence(), "state": object{"c": 2}, "request_id": "c2"}
	v2 := k.apply("e", b.version(), c2).version()
	before, objects := k.rest().raw(k.tenant, "e"), len(k.rest().objects(k.tenant, ""))
	zombie := func(execution string, fence int64) {
		t.Helper()
		for _, at := range []int64{v1, b.version(), v2} {
			f := object{"execution": execution, "expected_version": at, "fence": fence, "state": object{"c": "A"}}
			k.refused("apply", f, "LeaseLost")
			k.refused("apply", with(f, object{"request_id": fmt.Sprint("z", at)}), "LeaseLost")
			k.refused("apply", with(f, object{"operations": []any{object{"name": "charge", "args": object{}, "key": "z"}}}), "LeaseLost")
			k.refused("suspend", object{"execution": execution, "expected_version": at, "fence": fence, "wait": object{}}, "LeaseLost")
			for _, outcome := range []string{"completed", "failed", "cancelled"} {
				k.refused("complete", object{"execution": execution, "expected_version": at, "fence": fence, "outcome": outcome}, "LeaseLost")
			}
			k.refused("apply", object{"execution": execution, "expected_version": at, "fence": fence, "then": object{"continue": object{}}}, "LeaseLost")
		}
		k.refused("put_artifact", object{"execution": execution, "fence": fence, "name": "z", "media_type": "a/b", "body": "AAAA"}, "LeaseLost")
		k.refused("renew", object{"execution": execution, "owner": "A", "fence": fence, "lease_seconds": 60}, "LeaseLost")
		k.refused("renew", object{"execution": execution, "owner": "B", "fence": fence, "lease_seconds": 60}, "LeaseLost")
		k.refused("release", object{"execution": execution, "owner": "A", "fence": fence}, "LeaseLost")
		k.refused("reconcile", object{"execution": execution, "fence": fence}, "LeaseLost")
		k.refused("start_operation", object{"execution": execution, "operation": o, "attempt": 1, "fence": fence, "nonce": "zn"}, "LeaseLost")
	}
	zombie("e", a.fence())
	zombie("e", a.fence())
	zombie("e", b.fence()+1)
	zombie("e", other.fence()+7) // another's, or none at all
	for _, fence := range []any{omit{}, 0} {
		k.refused("apply", object{"execution": "e", "expected_version": v2, "fence": fence, "state": object{}}, "InvalidRequest", "LeaseLost")
	}
	equal(t, k.rest().raw(k.tenant, "e"), before, "items after the zombie")
	equal(t, len(k.rest().objects(k.tenant, "")), objects, "objects after the zombie")
	g := k.get("e")
	equal(t, []any{g.version(), g.str("owner"), g.fence()}, []any{v2, "B", b.fence()}, "tip")
	for i, e := range k.history("e") {
		equal(t, e.(object)["version"], any(number(fmt.Sprint(i+1))), "versions without a gap")
		if int64(i+1) >= b.version() && e.(object)["fence"] == any(number(fmt.Sprint(a.fence()))) {
			t.Fatal("an entry by the old fence after the takeover")
		}
	}
	again := k.apply("e", b.version(), c2)
	equal(t, again.version(), v2, "the owner's own repeat")
	equal(t, again.at("replayed"), any(true), "replayed")
	k.apply("other", other.version(), object{"fence": other.fence(), "state": object{"fine": 1}})
	// Given up by continue or release: the old fence is lost as well.
	k.apply("e", v2, object{"fence": b.fence(), "then": object{"continue": object{"after_seconds": 30}}})
	k.refused("apply", object{"execution": "e", "expected_version": v2 + 1, "fence": b.fence(), "state": object{}}, "LeaseLost")
	k.refused("renew", object{"execution": "e", "owner": "B", "fence": b.fence(), "lease_seconds": 60}, "LeaseLost")
}

func TestL2ZombieHeartbeat(t *testing.T) {
	k := start(t)
	zombieHeartbeat(k)
	k.run("after one's own end", func(k *kit) {
		codes := map[string]bool{}
		for n := range 5 {
			c := k.create(fmt.Sprintf("x%d", n), object{"claim": object{"owner": "A", "lease_seconds": 5}})
			k.wait(6 * time.Second)
			_, f := k.try("renew", object{"execution": fmt.Sprintf("x%d", n), "owner": "A", "fence": c.fence(), "lease_seconds": 30})
			if f != nil {
				codes[f.code] = true
			} else {
				codes["accepted"] = true
			}
		}
		if len(codes) != 1 || !codes["accepted"] && !codes["LeaseLost"] {
			k.Fatalf("renew after its own end: %v", codes)
		}
	})
	k.run("renew against claim", func(k *kit) {
		for n := range 100 {
			execution := fmt.Sprintf("r%d", n)
			a := k.create(execution, object{"claim": object{"owner": "A", "lease_seconds": 5}})
			k.wait(time.Duration(4900+n%3*100) * time.Millisecond)
			k.wait(150 * time.Millisecond)
			answers := k.together(2, func(i int) (reply, *failure) {
				if i == 0 {
					return k.try("renew", object{"execution": execution, "owner": "A", "fence": a.fence(), "lease_seconds": 60})
				}
				return k.try("claim", object{"execution": execution, "owner": "B", "lease_seconds": 60})
			})
			won, codes := winners(answers)
			if len(won) > 1 {
				k.Fatalf("round %d: both succeeded", n)
			}
			for _, c := range codes {
				oneOf(k, c, []string{"LeaseLost", "LeaseHeld", "VersionConflict"}, "the loser")
			}
			if len(won) == 1 {
				equal(k, k.get(execution).str("owner"), []string{"A", "B"}[won[0]], "owner after the race")
			}
		}
	})
}

// zombieHeartbeat renews and releases with a fence that is over.
func zombieHeartbeat(k *kit) {
	k.Helper()
	k.create("hb")
	a := k.claim("hb", "A", 5)
	k.wait(6 * time.Second)
	b := k.claim("hb", "B", 30)
	before := k.get("hb")
	k.refused("renew", object{"execution": "hb", "owner": "A", "fence": a.fence(), "lease_seconds": 900}, "LeaseLost")
	k.refused("renew", object{"execution": "hb", "owner": "B", "fence": a.fence(), "lease_seconds": 900}, "LeaseLost")
	k.refused("renew", object{"execution": "hb", "owner": "A", "fence": b.fence(), "lease_seconds": 900}, "LeaseLost", "InvalidRequest")
	k.refused("release", object{"execution": "hb", "owner": "A", "fence": a.fence()}, "LeaseLost")
	after := k.get("hb")
	for _, f := range []string{"owner", "fence", "version", "status"} {
		equal(k, after.at(f), before.at(f), f)
	}
	if k.sandbox != "" {
		equal(k, after.at("lease_remaining_ms"), before.at("lease_remaining_ms"), "lease_remaining_ms")
	}
	f := k.refused("claim", object{"execution": "hb", "owner": "A", "lease_seconds": 30}, "LeaseHeld")
	most := int64(30_000)
	if k.sandbox == "" {
		most += 1000 // the engine tells its time in whole seconds
	}
	if ms := f.facts.int("retry_after_ms"); ms < 25_000 || ms > most {
		k.Fatalf("retry_after_ms of a fresh lease of 30 s: %d", ms)
	}
	equal(k, f.facts.str("owner"), "B", "the owner named")
	equal(k, f.facts.at("retryable"), any(true), "retryable")
	k.wait(2 * time.Second)
	k.do("renew", object{"execution": "hb", "owner": "B", "fence": b.fence(), "lease_seconds": 30})
	k.apply("hb", after.version(), object{"fence": b.fence(), "state": object{"b": 1}})
	// A renewal never shortens.
	left := k.get("hb").int("lease_remaining_ms")
	k.do("renew", object{"execution": "hb", "owner": "B", "fence": b.fence(), "lease_seconds": 5})
	if now := k.get("hb").int("lease_remaining_ms"); now < left-3000 {
		k.Fatalf("a renewal shortened the lease from %d to %d ms", left, now)
	}
	// The same owner's name is no proof of being the same process.
	k.refused("claim", object{"execution": "hb", "owner": "B", "lease_seconds": 30}, "LeaseHeld")
	s := k.claim("hb", "B", 30, object{"supersede": true})
	k.refused("apply", object{"execution": "hb", "expected_version": s.version(), "fence": b.fence(), "state": object{}}, "LeaseLost")
}

func TestL3LeaseExpiresInLongWork(t *testing.T) {
	k := start(t)
	k.create("a")
	c := k.claim("a", "A", 5)
	for range 20 {
		k.wait(2 * time.Second)
		k.refused("claim", object{"execution": "a", "owner": "B", "lease_seconds": 5}, "LeaseHeld")
		k.do("renew", object{"execution": "a", "owner": "A", "fence": c.fence(), "lease_seconds": 5})
	}
	v := k.version("a")
	for n := range 10 { // progress renews as well
		k.wait(4 * time.Second)
		v = k.apply("a", v, object{"fence": c.fence(), "state": object{"n": n}}).version()
		k.refused("claim", object{"execution": "a", "owner": "B", "lease_seconds": 5}, "LeaseHeld")
	}
	k.create("b")
	a := k.claim("b", "A", 5)
	pay := object{"name": "pay", "args": object{"n": 1}, "key": "K"}
	o := k.declare("b", a.fence(), pay)
	equal(t, o.str("disposition"), "go", "first")
	k.wait(6 * time.Second)
	b := k.claim("b", "B", 300)
	equal(t, b.str("operations", 0, "operation"), o.str("operation"), "the claim shows it")
	oneOf(t, k.op("b", o.str("operation")).str("status"), uncertain, "status")
	for range 3 {
		d := k.declare("b", b.fence(), pay)
		equal(t, []string{d.str("operation"), d.str("disposition"), d.str("provider_key")}, []string{o.str("operation"), "uncertain", o.str("provider_key")}, "declared again")
	}
	k.refused("apply", object{"execution": "b", "expected_version": k.version("b"), "fence": a.fence(), "state": object{"late": 1}, "outcomes": []any{object{"operation": o.str("operation"), "outcome": "succeeded"}}}, "LeaseLost")
	k.refused("complete", object{"execution": "b", "expected_version": k.version("b"), "fence": b.fence(), "outcome": "completed"}, "OperationsOpen")
	v = k.version("b")
	k.outcome("b", o.str("operation"), "succeeded", object{"provider_ref": "tx1", "result": object{"id": "tx1"}})
	equal(t, k.version("b"), v, "evidence moves no version")
	k.reconcile("b", b.fence())
	d := k.declare("b", b.fence(), pay)
	equal(t, []any{d.at("disposition"), d.at("outcome"), d.at("result")}, []any{"settled", "succeeded", object{"id": "tx1"}}, "after the evidence")
}

func TestL4CrashedHolderNotBlocking(t *testing.T) {
	k := start(t)
	for n := range 6 {
		execution := fmt.Sprintf("e%d", n)
		k.create(execution)
		a := k.claim(execution, "A", 10)
		k.wait(5 * time.Second)
		f := k.refused("claim", object{"execution": execution, "owner": "B", "lease_seconds": 10}, "LeaseHeld")
		if ms := f.facts.int("retry_after_ms"); ms < 4_000 || ms > 5_000 {
			t.Fatalf("retry_after_ms %d of 5 s", ms)
		}
		k.wait(5*time.Second + time.Millisecond)
		if n%2 == 1 { // nobody who has seen the record before
			k.faults(object{"on": "get", "effect": "crash_before"})
			k.try("claim", object{"execution": execution, "owner": "X", "lease_seconds": 10})
			k.faults()
		}
		began := time.Now()
		if n < 2 {
			b := k.claim(execution, "B", 10)
			equal(t, b.version(), a.version()+1, "version")
			if b.fence() <= a.fence() {
				t.Fatal("the fence did not grow")
			}
		} else {
			won, codes := winners(k.together(4, func(i int) (reply, *failure) {
				return k.try("claim", object{"execution": execution, "owner": fmt.Sprint("w", i), "lease_seconds": 10})
			}))
			equal(t, len(won), 1, "grants")
			for _, c := range codes {
				oneOf(t, c, []string{"LeaseHeld", "VersionConflict"}, "the losers")
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("a claim after the end took %v", took)
		}
	}
}

func TestL6DoubleResume(t *testing.T) {
	k := start(t)
	for n := range 50 {
		doubleResume(k, fmt.Sprintf("e%d", n), []string{"claim", "resume"}[n%2])
	}
	k.run("a sweep in its own millisecond", func(k *kit) {
		k.create("live", object{"claim": object{"owner": "w", "lease_seconds": 60}})
		before := k.get("live")
		for range 50 {
			k.do("recover.sweep", object{})
		}
		k.deliver()
		after := k.get("live")
		for _, f := range []string{"owner", "fence", "version", "status"} {
			equal(k, after.at(f), before.at(f), f)
		}
	})
	k.run("the same nonce", func(k *kit) {
		k.create("n")
		one := k.claim("n", "w", 60, object{"nonce": "N"})
		again := k.claim("n", "w", 60, object{"nonce": "N"})
		equal(k, []any{again.version(), again.fence(), again.at("replayed")}, []any{one.version(), one.fence(), any(true)}, "a replay")
		k.refused("claim", object{"execution": "n", "owner": "w", "lease_seconds": 60, "nonce": "M"}, "LeaseHeld")
		k.wait(61 * time.Second)
		k.claim("n", "w2", 60)
		k.refused("claim", object{"execution": "n", "owner": "w", "lease_seconds": 60, "nonce": "N"}, "LeaseLost", "LeaseHeld")
	})
	k.run("expected_version", func(k *kit) {
		v := k.create("ev").version()
		k.claim("ev", "w", 5, object{"expected_version": v})
		k.wait(6 * time.Second)
		k.refused("claim", object{"execution": "ev", "owner": "w2", "lease_seconds": 60, "expected_version": v}, "VersionConflict")
		k.refused("resume", object{"execution": "ev", "owner": "w2", "lease_seconds": 60, "expected_version": v}, "VersionConflict")
	})
}

// doubleResume resumes a waiting execution twice at once.
func doubleResume(k *kit, execution, verb string) {
	k.Helper()
	c := k.create(execution, object{"claim": object{"owner": "w0", "lease_seconds": 60}})
	k.do("suspend", object{"execution": execution, "expected_version": c.version(), "fence": c.fence(), "wait": object{"waiting_for": object{"approval": true}}})
	equal(k, k.get(execution).str("status"), "waiting", "status")
	answers := k.together(2, func(i int) (reply, *failure) {
		return k.try(verb, object{"execution": execution, "owner": fmt.Sprint("w", i), "lease_seconds": 60, "resume": object{"approvedBy": fmt.Sprint("person", i)}})
	})
	won, codes := winners(answers)
	equal(k, len(won), 1, verb+": winners")
	oneOf(k, codes[0], []string{"LeaseHeld", "VersionConflict", "LeaseLost"}, "the loser")
	lost := answers[1-won[0]].failure
	if lost.facts.version() < 0 && lost.facts.str("owner") == "" {
		k.Fatalf("the loser is not told who won: %s", lost)
	}
	var stored []any
	for _, e := range k.history(execution) {
		if r := e.(object)["resume"]; r != nil {
			stored = append(stored, r)
		}
	}
	if !slices.ContainsFunc(stored, func(v any) bool { return v.(object)["approvedBy"] == fmt.Sprint("person", won[0]) }) || len(stored) != 1 {
		k.Fatalf("%s: the history holds %v, person%d won", verb, stored, won[0])
	}
}
