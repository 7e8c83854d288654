package fieldcases

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// stream hands records to a function: the numbers that it reports as failed.
func (k *kit) stream(function string, records ...any) []string {
	k.Helper()
	r, ok := k.tool("stream", object{"function": function, "event": object{"Records": records}}).(object)
	failures, is := r["batchItemFailures"].([]any)
	if !ok || !is {
		k.Fatalf("%s answers a batch with %v", function, r)
	}
	out := []string{}
	for _, f := range failures {
		out = append(out, f.(object)["itemIdentifier"].(string))
	}
	return out
}

// record is a stream record of one key.
func record(number, name, pk, sk string, more ...object) object {
	d := with(object{"SequenceNumber": number, "Keys": object{"pk": object{"S": pk}, "sk": object{"S": sk}}}, more...)
	return object{"eventID": "ev" + number, "eventName": name, "eventSource": "aws:dynamodb", "dynamodb": d}
}

// byTTL marks a record as made by the TTL worker.
func byTTL(r object) object {
	return with(r, object{"userIdentity": object{"type": "Service", "principalId": "dynamodb.amazonaws.com"}})
}

func TestT1PartialBatchAndPoison(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	for _, e := range []string{"e1", "e2"} {
		k.create(e, object{"policy": "p", "claim": object{"owner": "w", "lease_seconds": 60}})
	}
	k.create("bystander", object{"state": object{"b": 1}})
	raw := k.rest().raw(k.tenant, "bystander")
	poisons := []object{
		{"eventID": "b", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "101"}},
		{"eventID": "b", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "101", "Keys": object{"pk": object{"S": "no-separator"}, "sk": object{"S": "timer#lease"}}}},
		{"eventID": "b", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "101", "Keys": object{"pk": object{"N": "7"}, "sk": object{"S": "timer#lease"}}}},
		{"eventID": "b", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "101", "Keys": object{"pk": object{"S": k.tenant + "#../x"}, "sk": object{"S": "timer#retention"}}}},
		{"eventID": "b", "eventName": "REMOVE", "dynamodb": object{"SequenceNumber": "101", "Keys": object{}}},
	}
	for function, timer := range map[string]string{"retention": "timer#retention", "recover": "timer#lease"} {
		pk := []string{k.tenant + "#e1", k.tenant + "#e2"}
		for n, poison := range poisons {
			batch := []any{record("100", "REMOVE", pk[0], timer), poison, record("102", "REMOVE", pk[0], timer), record("103", "REMOVE", pk[1], timer)}
			got := k.stream(function, batch...)
			if n == 0 {
				equal(t, len(got) > 0, true, function+": the poison is reported")
			}
			if len(got) > 0 {
				equal(t, got[0], "101", fmt.Sprintf("%s, poison %d: the lowest failure", function, n))
				equal(t, k.stream(function, batch[1:]...)[0], "101", "again")
			}
			equal(t, k.stream(function, batch[0], batch[2], batch[3]), []string{}, "the good ones")
		}
		equal(t, k.stream(function), []string{}, "an empty batch")
	}
	equal(t, k.rest().raw(k.tenant, "bystander"), raw, "a bystander")
	for _, e := range []string{"e1", "e2"} {
		equal(t, k.get(e).str("owner"), "w", "a live lease after early timers")
	}
	k.run("through the mapping", func(k *kit) {
		// A stored timer of an execution whose records cannot be read ends in the
		// dead-letter queue, and what comes after it goes on.
		k.create("sick", object{"claim": object{"owner": "w", "lease_seconds": 30}})
		head := with(k.rest().item(k.tenant, "sick", "head"), object{"generation": object{"S": "damaged"}})
		k.load(object{"items": []any{head}})
		k.create("well", object{"claim": object{"owner": "w", "lease_seconds": 30}})
		k.wait(3 * time.Hour)
		k.sweeps(3)
		oneOf(k, k.get("well").str("status"), []string{"parked", "created", "running"}, "status of the well one")
		equal(k, k.get("well").str("owner"), "", "the well one is nobody's any more")
		for _, dead := range k.rest().all["dead_letters"].([]any) {
			if text := string(encode(dead)); len(text) > 20_000 {
				k.Fatalf("a dead letter of %d bytes", len(text))
			}
		}
	})
}

func TestT3WhichRemoveWasIt(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	arts := map[string]string{}
	make := func(execution string, done bool) {
		t.Helper()
		k.create(execution, object{"policy": "p", "state": sized(60_000)})
		arts[execution] = k.put(execution, "a", []byte("art "+execution))
		k.apply(execution, 1, object{"artifacts": []any{arts[execution]}})
		if done {
			k.finish(execution)
		}
	}
	for _, e := range []string{"ttl", "replica", "explicit", "keysonly", "held", "gen"} {
		make(e, true)
	}
	for _, e := range []string{"live", "early", "control"} {
		make(e, false)
	}
	k.do("hold", object{"execution": "held", "hold": "h", "reason": "legal"})
	k.wait(2 * day)
	now, err := time.Parse(time.RFC3339, k.now())
	if err != nil {
		t.Fatal(err)
	}
	timer := func(number, name, execution string, ttl int64) object {
		image := object{}
		if item := k.rest().item(k.tenant, execution, "timer#retention"); item != nil {
			image = with(item)
		}
		if ttl != 0 {
			image = with(image, object{"ttl": object{"N": strconv.FormatInt(ttl, 10)}})
		}
		return record(number, name, k.tenant+"#"+execution, "timer#retention", object{"OldImage": image, "ApproximateCreationDateTime": number1(now.Unix())})
	}
	left := func(execution string) int { return len(keys(k.rest().objects(k.tenant, execution))) }
	past, future := now.Unix()-60, now.Unix()+1_000_000
	for execution, r := range map[string]object{
		"ttl": byTTL(timer("1", "REMOVE", "ttl", past)), "replica": timer("2", "REMOVE", "replica", past), "explicit": timer("3", "REMOVE", "explicit", future),
		"keysonly": byTTL(record("4", "REMOVE", k.tenant+"#keysonly", "timer#retention")),
	} {
		equal(t, k.stream("retention", r), []string{}, execution)
		k.refused("get", object{"execution": execution}, gone...)
		equal(t, left(execution), 0, "objects of "+execution)
		equal(t, k.do("get_receipt", object{"execution": execution}).str("receipt", "execution"), execution, "its receipt")
		equal(t, k.stream("retention", r), []string{}, execution+" again")
	}
	// Of a live one, a held one, and records that are no removals.
	for _, r := range []object{byTTL(timer("5", "REMOVE", "early", past)), timer("6", "REMOVE", "live", future), timer("7", "INSERT", "control", past), timer("8", "MODIFY", "control", past),
		byTTL(timer("9", "REMOVE", "held", past)), byTTL(record("10", "REMOVE", k.tenant+"#none", "timer#retention")), byTTL(record("11", "REMOVE", "nobody#none", "timer#retention"))} {
		equal(t, k.stream("retention", r), []string{}, fmt.Sprint(r["eventID"]))
	}
	for _, e := range []string{"early", "live", "control", "held"} {
		equal(t, string(k.artifact(e, object{"digest": arts[e]})), "art "+e, e+" keeps its content")
		k.version(e)
	}
	k.run("a late record of an older generation", func(k *kit) {
		late := byTTL(timer("12", "REMOVE", "gen", past))
		k.delete("gen")
		k.refused("create", object{"execution": "gen", "workflow": "wf", "policy": "p"}, "Deleted")
		r := k.create("gen", object{"policy": "p", "state": object{"gen": 2}, "reuse": "new_generation"})
		if r.version() < 2 {
			k.Fatalf("numbering began anew: %s", r.text)
		}
		art := k.put("gen", "a", []byte("second"))
		k.apply("gen", r.version(), object{"artifacts": []any{art}})
		for range 2 {
			equal(k, k.stream("retention", late), []string{}, "late")
			k.wait(2 * time.Hour)
			k.sweeps(1)
		}
		equal(k, k.state("gen"), any(object{"gen": number("2")}), "generation 2")
		equal(k, string(k.artifact("gen", object{"digest": art})), "second", "its artifact")
	})
}

func TestT4StreamGap(t *testing.T) {
	k := start(t)
	k.policy("p", 1)
	wf := k.workflow("wt", object{"resume_target": object{"kind": "sandbox", "arn": "target"}})
	for n := range 50 {
		execution := fmt.Sprintf("d%d", n)
		c := k.create(execution, object{"policy": "p", "state": sized(40_000), "claim": object{"owner": "w", "lease_seconds": 60}})
		art := k.put(execution, "a", []byte(execution), object{"fence": c.fence()})
		c2 := k.apply(execution, c.version(), object{"fence": c.fence(), "artifacts": []any{art}})
		k.put(execution, "orphan", []byte("never accepted "+execution), object{"fence": c.fence()})
		k.complete(execution, c2.version(), c.fence())
	}
	for n := range 5 {
		k.create(fmt.Sprintf("dead%d", n), wf, object{"claim": object{"owner": "w", "lease_seconds": 60}})
	}
	k.wait(26*time.Hour + day) // all due; nothing is delivered by the stream
	for range 30 {
		k.do("retention.sweep", object{"limit": 100})
		k.do("recover.sweep", object{"limit": 100})
		if len(keys(k.rest().objects(k.tenant, ""))) == 0 {
			break
		}
		k.wait(10 * time.Second)
	}
	equal(t, keys(k.rest().objects(k.tenant, "")), []string{}, "objects of expired executions, by sweeps alone")
	k.refused("get", object{"execution": "d0"}, gone...)
	offered := map[string]int{}
	for _, h := range k.rest().all["handovers"].([]any) {
		offered[string(encode(h.(object)["input"]))]++
	}
	for n := range 5 {
		seen := 0
		for input, times := range offered {
			var r reply
			r.object, _ = exactly(t, []byte(input)).(object)
			if r.str("execution") == fmt.Sprintf("dead%d", n) && r.int("handover") == 1 {
				seen += times
			}
		}
		equal(t, seen, 1, fmt.Sprintf("dead%d is offered", n))
	}
	k.run("and the stream afterwards finds nothing to do", func(k *kit) {
		before := k.rest().shape(k.tenant)
		k.deliver()
		k.deliver()
		for n := range 5 {
			equal(k, k.version(fmt.Sprintf("dead%d", n)), int64(1), "version")
		}
		after := k.rest().shape(k.tenant)
		if len(after) > len(before) {
			k.Fatalf("the late stream added: %d items, %d before", len(after), len(before))
		}
	})
}

func number1(n int64) number { return number(strconv.FormatInt(n, 10)) }
