package ledger

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/cairnstate/cairn/shared/execution"
)

// CallbackTarget is what a callback stands for.
type CallbackTarget struct {
	execution.Ref
	Operation execution.OperationID
	Attempt   int
}

const (
	callbackFormat  = 1
	callbackPurpose = "callback"
	callbackMAC     = 32
)

// Callback makes the handle that authorises one record_outcome or signal about
// one attempt: base64url of a format byte, the target and a MAC of both under a
// tenant key that is never rotated.
func (l *Ledger) Callback(ctx context.Context, ref execution.Ref, op execution.OperationID, attempt int) (string, error) {
	b := []byte{callbackFormat}
	for _, f := range []string{string(ref.Tenant), string(ref.Execution), string(op)} {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	b = binary.AppendUvarint(b, uint64(ref.Generation))
	b = binary.AppendUvarint(b, uint64(attempt))
	mac, err := l.Journal.Sealer.MAC(ctx, string(ref.Tenant), callbackPurpose, b)
	if err != nil {
		return "", execution.AsError(err).With("execution", string(ref.Execution))
	}
	return base64.RawURLEncoding.EncodeToString(append(b, mac...)), nil
}

// ParseCallback verifies a handle for a tenant. Whatever is wrong with it
// (altered, another tenant's, none at all) is the same InvalidRequest: nothing
// about other tenants can be learned from it.
func (l *Ledger) ParseCallback(ctx context.Context, tenant execution.TenantID, handle string) (CallbackTarget, error) {
	no := execution.Invalid("callback", "is not a callback of this tenant")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(handle)
	if err != nil || len(raw) <= callbackMAC {
		return CallbackTarget{}, no
	}
	data, mac := raw[:len(raw)-callbackMAC], raw[len(raw)-callbackMAC:]
	want, ok := parseCallback(data)
	if !ok || want.Tenant != tenant {
		return CallbackTarget{}, no
	}
	ok, err = l.Journal.Sealer.Verify(ctx, string(tenant), callbackPurpose, data, mac)
	if err != nil {
		return CallbackTarget{}, err
	}
	if !ok {
		return CallbackTarget{}, no
	}
	return want, nil
}

// TargetOf reads what a handle stands for without verifying it: for a business
// tool that was given the handle by its own worker. Whoever takes handles from
// outside uses ParseCallback.
func TargetOf(handle string) (CallbackTarget, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(handle)
	if err == nil && len(raw) > callbackMAC {
		if t, ok := parseCallback(raw[:len(raw)-callbackMAC]); ok {
			return t, nil
		}
	}
	return CallbackTarget{}, execution.Invalid("callback", "is no callback")
}

// parseCallback reads a target; the MAC decides whether it is one of ours.
func parseCallback(b []byte) (t CallbackTarget, ok bool) {
	if len(b) == 0 || b[0] != callbackFormat {
		return t, false
	}
	b = b[1:]
	number := func() uint64 {
		n, used := binary.Uvarint(b)
		if used <= 0 {
			b = nil
			return 0
		}
		b = b[used:]
		return n
	}
	text := func() string {
		n := number()
		if n > uint64(len(b)) {
			b = nil
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	t.Tenant, t.Execution, t.Operation = execution.TenantID(text()), execution.ExecutionID(text()), execution.OperationID(text())
	t.Generation, t.Attempt = int64(number()), int(number())
	return t, len(b) == 0 && t.Generation > 0 && t.Attempt > 0 && t.Attempt < 1<<31
}
