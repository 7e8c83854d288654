package api

import (
	"strings"

	"github.com/cairnstate/cairn/shared/execution"
)

// What several fields decide together.

// setField is a field and whether it was given.
type setField struct {
	name string
	set  bool
}

// exactlyOne is InvalidRequest unless one of the fields is given: at the first
// when none is, at the second given one otherwise.
func exactlyOne(at string, fields ...setField) error {
	return count(at, 1, fields)
}

// atMostOne is InvalidRequest at the second given field.
func atMostOne(at string, fields ...setField) error {
	return count(at, 0, fields)
}

func count(at string, least int, fields []setField) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	n := 0
	for _, f := range fields {
		if f.set {
			if n++; n > 1 {
				return execution.Invalid(join(at, f.name), "only one of %s may be given", strings.Join(names, ", "))
			}
		}
	}
	if n < least {
		return execution.Invalid(join(at, names[0]), "one of %s is required", strings.Join(names, ", "))
	}
	return nil
}

func required(at, name string, set bool, why string) error {
	if set {
		return nil
	}
	return execution.Invalid(join(at, name), "is required %s", why)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSelectors holds subjects and labels together to their limit.
func checkSelectors(at string, labels map[string]string, subjects []string) error {
	if len(labels)+len(subjects) > execution.MaxLabels {
		return execution.Invalid(join(at, "labels"), "labels and subjects may be at most %d together", execution.MaxLabels).With("limit", execution.MaxLabels)
	}
	return nil
}

func checkLabel(at string, label map[string]string) error {
	if label != nil && len(label) != 1 {
		return execution.Invalid(join(at, "label"), "must have exactly one pair")
	}
	return nil
}

func (r *CreateRequest) check(at string) error {
	if r.Parent != nil && r.Execution != "" {
		return execution.Invalid(join(at, "execution"), "is derived from parent where that is given")
	}
	if r.Execution == "" && r.RequestID == "" {
		return execution.Invalid(join(at, "request_id"), "is required without execution")
	}
	return checkSelectors(at, r.Labels, r.Subjects)
}

func (r *Changes) check(at string) error {
	err := atMostOne(at, setField{"state", r.State != nil}, setField{"patch", r.Patch != nil}, setField{"merge", r.Merge != nil})
	if err != nil {
		return err
	}
	if r.FirstVersion > r.ExpectedVersion {
		return execution.Invalid(join(at, "first_version"), "must not be above expected_version")
	}
	return checkSelectors(at, r.Labels, r.Subjects)
}

func (t *Then) check(at string) error {
	return exactlyOne(at, setField{"suspend", t.Suspend != nil}, setField{"complete", t.Complete != nil}, setField{"continue", t.Continue != nil})
}

func (o *OutcomeReport) check(at string) error {
	if o.Outcome == "" && (o.Result != nil || o.ProviderRef != "" || o.Reason != "") {
		return execution.Invalid(join(at, "outcome"), "is required with result, provider_ref or reason")
	}
	return nil
}

func (o *OperationDeclaration) check(at string) error {
	return required(at, "dedup_seconds", o.OnUncertain != execution.SameKey || o.DedupSeconds > 0, "with on_uncertain same_key")
}

func (r *ListRequest) check(at string) error {
	return firstError(checkLabel(at, r.Label),
		exactlyOne(at, setField{"status", r.Status != ""}, setField{"thread", r.Thread != ""}, setField{"workflow", r.Workflow != ""},
			setField{"label", r.Label != nil}, setField{"subject", r.Subject != ""}))
}

func (r *PutArtifactRequest) check(at string) error {
	return firstError(
		exactlyOne(at, setField{"body", r.Body != nil}, setField{"upload", r.Upload != nil}, setField{"uploaded", r.Uploaded != ""}),
		required(at, "name", r.Name != "" || r.Uploaded != "", "with body or upload"),
		required(at, "media_type", r.MediaType != "" || r.Uploaded != "", "with body or upload"))
}

func (r *GetArtifactRequest) check(at string) error {
	return exactlyOne(at, setField{"digest", r.Digest != ""}, setField{"name", r.Name != ""})
}

func (r *RecordOutcomeRequest) check(at string) error {
	return firstError(
		required(at, "execution", r.Execution != "" || r.Callback != "", "without callback"),
		required(at, "operation", r.Operation != "" || r.Callback != "", "without callback"))
}

func (r *SignalRequest) check(at string) error {
	return required(at, "execution", r.Execution != "" || r.Callback != "", "without callback")
}

func (r *ForkRequest) check(at string) error {
	return required(at, "request_id", r.RequestID != "", "for fork")
}

func (r *Claiming) check(at string) error {
	if r.Supports != nil && r.Supports.Min > r.Supports.Max {
		return execution.Invalid(join(at, "supports.min"), "must not be above max")
	}
	return nil
}

func (e *Evidence) check(at string) error {
	decided := e.Finding == execution.Decided
	if decided {
		if e.Outcome != "" && !e.Outcome.Final() {
			return execution.Invalid(join(at, "outcome"), "must be final in a verdict")
		}
		return firstError(required(at, "attempt", e.Attempt > 0, "in a verdict"), required(at, "outcome", e.Outcome != "", "in a verdict"),
			required(at, "reason", e.Reason != "", "in a verdict"))
	}
	switch {
	case e.Force:
		return execution.Invalid(join(at, "force"), "goes with the finding decided only")
	case e.Count != nil && !execution.Counted(e.Finding, *e.Count):
		return execution.Invalid(join(at, "count"), "contradicts the finding")
	case e.Outcome == "":
		return nil
	case e.Finding != execution.Found:
		return execution.Invalid(join(at, "outcome"), "goes with the findings found and decided only")
	case e.Outcome != execution.OutcomeSucceeded && e.Outcome != execution.OutcomeFailed && e.Outcome != execution.OutcomeRejected:
		return execution.Invalid(join(at, "outcome"), "of what was found must be one of succeeded, failed, rejected")
	}
	return nil
}

func (m *Migration) check(at string) error {
	if m.To <= m.From {
		return execution.Invalid(join(at, "to"), "must be above from")
	}
	return exactlyOne(at, setField{"patch", m.Patch != nil}, setField{"lambda", m.Lambda != ""})
}

func (r *Resolver) check(at string) error {
	if r.Kind == "https" && !strings.HasPrefix(r.Target, "https://") {
		return execution.Invalid(join(at, "target"), "must begin with https://")
	}
	return nil
}

func (h *HistoryRule) check(at string) error {
	switch {
	case h.Keep == "all" && h.N > 0:
		return execution.Invalid(join(at, "n"), "goes with keep versions or days only")
	case h.Keep != "all":
		return required(at, "n", h.N > 0, "with keep versions or days")
	}
	return nil
}

func (s *Selector) fields() []setField {
	return []setField{{"execution", s.Execution != ""}, {"thread", s.Thread != ""}, {"subject", s.Subject != ""}}
}

func (s *Selector) check(at string) error { return exactlyOne(at, s.fields()...) }

func (r *DeleteRequest) check(at string) error {
	return firstError(checkLabel(at, r.Label), exactlyOne(at, append(r.fields(), setField{"label", r.Label != nil})...))
}

func (r *VerifyRequest) check(at string) error {
	return atMostOne(at, setField{"execution", r.Execution != ""}, setField{"cursor", r.Cursor != ""})
}
