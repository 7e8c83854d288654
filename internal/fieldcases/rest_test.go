package fieldcases

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// rest is what lies at rest in the sandbox: everything, as the dump says it.
type rest struct {
	k    *kit
	all  object
	text []byte
}

func (k *kit) rest() rest {
	k.Helper()
	_, _, text := k.http("GET", k.sandbox+"/sandbox/dump", nil)
	return rest{k, exactly(k, text).(object), text}
}

// attr gives an attribute's plain value out of DynamoDB's JSON.
func attr(item any, name string) string {
	v, _ := item.(object)[name].(object)
	for _, plain := range v {
		return fmt.Sprint(plain)
	}
	if s, ok := item.(object)[name].(string); ok {
		return s
	}
	return ""
}

// items are those of a tenant, or of one execution of it.
func (r rest) items(tenant, execution string) []any {
	var out []any
	for _, i := range r.all["items"].([]any) {
		pk := attr(i, "pk")
		if execution == "" && (pk == tenant || strings.HasPrefix(pk, tenant+"#")) || execution != "" && pk == tenant+"#"+execution {
			out = append(out, i)
		}
	}
	return out
}

func (r rest) item(tenant, execution, sk string) object {
	for _, i := range r.items(tenant, execution) {
		if attr(i, "sk") == sk {
			return i.(object)
		}
	}
	return nil
}

// objects are those of a tenant that are no receipts, or of one execution.
func (r rest) objects(tenant, execution string) []object {
	var out []object
	for _, o := range r.all["objects"].([]any) {
		key := o.(object)["key"].(string)
		if strings.HasPrefix(key, tenant+"/") && !strings.HasPrefix(key, tenant+"/receipts/") && (execution == "" || strings.Contains(key, "/"+execution+"/")) {
			out = append(out, o.(object))
		}
	}
	return out
}

func keys(objects []object) []string {
	out := []string{}
	for _, o := range objects {
		if o["delete_marker"] != true {
			out = append(out, o["key"].(string))
		}
	}
	slices.Sort(out)
	return out
}

// shape lists the keys of a tenant's items and objects.
func (r rest) shape(tenant string) []string {
	out := []string{}
	for _, i := range r.items(tenant, "") {
		out = append(out, attr(i, "pk")+" "+attr(i, "sk"))
	}
	for _, o := range r.objects(tenant, "") {
		out = append(out, o["key"].(string))
	}
	slices.Sort(out)
	return out
}

// raw gives an execution's items as text.
func (r rest) raw(tenant, execution string) []string {
	out := []string{}
	for _, i := range r.items(tenant, execution) {
		out = append(out, string(encode(i)))
	}
	slices.Sort(out)
	return out
}

// finds reports whether a canary stands anywhere, in the clear or in base64.
func (r rest) finds(canary string) bool {
	if bytes.Contains(r.text, []byte(canary)) {
		return true
	}
	found := false
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		case string:
			if b, err := base64.StdEncoding.DecodeString(v); err == nil && bytes.Contains(b, []byte(canary)) {
				found = true
			}
		}
	}
	walk(r.all)
	return found
}

func objectBody(o object) []byte {
	b, _ := base64.StdEncoding.DecodeString(o["body"].(string))
	return b
}

// withBody is the same object with another body.
func withBody(o object, body []byte) object {
	return with(o, object{"body": base64.StdEncoding.EncodeToString(body)})
}

// restart starts the functions anew, with nothing in memory.
func (k *kit) restart() { k.Helper(); k.load(object{}) }

func (k *kit) load(what object) { k.Helper(); k.tool("load", what) }
