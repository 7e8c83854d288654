package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/cairnstate/cairn/shared/api"
	"github.com/cairnstate/cairn/shared/execution"
	"github.com/cairnstate/cairn/shared/journal"
	"github.com/cairnstate/cairn/shared/store"
)

// Sort keys in a tenant's own partition.
const (
	WorkflowPrefix = "workflow#"
	PolicyPrefix   = "policy#"
	SettingsKey    = "settings"

	attrRecord = "record"
)

// Catalog reads and writes a tenant's records. Safe for concurrent use.
type Catalog struct {
	Table store.Table
	// Elapsed measures how long settings were remembered (Current); nil: they are
	// not.
	Elapsed func() time.Duration

	known  remembered
	parsed parsed
}

// Workflow gives a workflow, nil when it was never set. A record that cannot be
// read is Integrity naming it. What it holds is shared: it must not be changed.
func (c *Catalog) Workflow(ctx context.Context, t execution.TenantID, name string) (*api.Workflow, error) {
	text, found, err := c.record(ctx, t, WorkflowPrefix+name)
	if !found || err != nil {
		return nil, err
	}
	w := c.parsed.get(text)
	if w == nil {
		w = &api.Workflow{}
		if err := decode(text, WorkflowPrefix+name, w); err != nil {
			return nil, err
		}
		c.parsed.put(text, w)
	}
	own := *w
	return &own, nil
}

// SetWorkflow stores a workflow.
func (c *Catalog) SetWorkflow(ctx context.Context, t execution.TenantID, w *api.Workflow) error {
	return c.put(ctx, t, WorkflowPrefix+w.Name, w)
}

// Policy gives a retention policy, nil when there is none of that name.
func (c *Catalog) Policy(ctx context.Context, t execution.TenantID, name string) (*api.Policy, error) {
	var p api.Policy
	found, err := c.get(ctx, t, PolicyPrefix+name, &p)
	if !found || err != nil {
		return nil, err
	}
	return &p, nil
}

// SetPolicy stores a policy.
func (c *Catalog) SetPolicy(ctx context.Context, t execution.TenantID, p *api.Policy) error {
	return c.put(ctx, t, PolicyPrefix+p.Name, p)
}

// Settings gives a tenant's settings; the zero Settings when none were set.
func (c *Catalog) Settings(ctx context.Context, t execution.TenantID) (api.Settings, error) {
	var s api.Settings
	_, err := c.get(ctx, t, SettingsKey, &s)
	return s, err
}

// SetSettings stores a tenant's settings.
func (c *Catalog) SetSettings(ctx context.Context, t execution.TenantID, s api.Settings) error {
	defer c.forget(t) // also when the outcome is unknown
	return c.put(ctx, t, SettingsKey, s)
}

func (c *Catalog) get(ctx context.Context, t execution.TenantID, sk string, into any) (bool, error) {
	text, found, err := c.record(ctx, t, sk)
	if !found || err != nil {
		return false, err
	}
	return true, decode(text, sk, into)
}

func (c *Catalog) record(ctx context.Context, t execution.TenantID, sk string) (text string, found bool, err error) {
	it, _, err := c.Table.Get(ctx, store.Get{Key: store.Key{PK: string(t), SK: sk}, Consistent: true})
	if err != nil || it == nil {
		return "", false, journal.Fail(err, execution.Ref{Tenant: t})
	}
	return it.Str(attrRecord), true, nil
}

func decode(text, sk string, into any) error {
	if err := json.NewDecoder(strings.NewReader(text)).Decode(into); err != nil {
		return execution.Errorf(execution.Integrity, "the stored record %s cannot be read", sk).Because(err)
	}
	return nil
}

// put replaces a record. Lost: the old one stands. Landed, reply lost: a repeat
// writes the same again. Two writers: the last one stands, whole.
func (c *Catalog) put(ctx context.Context, t execution.TenantID, sk string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return execution.Errorf(execution.Internal, "a record cannot be encoded").Because(err)
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(text) > 300<<10 {
		return execution.Errorf(execution.TooLarge, "the record is too large").With("limit", 300<<10)
	}
	item := store.Item{store.AttrPK: store.S(string(t)), store.AttrSK: store.S(sk), attrRecord: store.S(string(text))}
	// A tenant that is being purged takes no new records.
	in := store.Transact{Writes: []store.Write{{Put: &store.Put{Item: item}}, {Check: &store.Check{Key: journal.ClosingKey(t), Cond: store.NotThere()}}}}
	_, err := c.Table.Transact(ctx, in)
	if err != nil {
		if _, refused := err.(*store.Cancelled); refused {
			return execution.Errorf(execution.Deleted, "the tenant is being purged").With("in_progress", true)
		}
		return journal.Fail(err, execution.Ref{Tenant: t})
	}
	return nil
}
