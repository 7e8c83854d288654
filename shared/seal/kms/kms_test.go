package kms_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/cairnstate/cairn/shared/seal/kms"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
	"github.com/cairnstate/cairn/shared/store/enginetest"
)

func encCtx(tenant string) map[string]string {
	return map[string]string{"tenant": tenant, "purpose": "state", "generation": "1"}
}

func TestEngine(t *testing.T) {
	e := enginetest.Open(t)
	k, key, tenant := e.KMS, e.Config.DataKey, enginetest.Tenant(t)
	plain, wrapped, err := k.GenerateDataKey(t.Context(), key, encCtx(tenant))
	if err != nil || len(plain) != 32 || bytes.Contains(wrapped, plain) {
		t.Fatalf("%d bytes, %v", len(plain), err)
	}
	got, err := k.Decrypt(t.Context(), key, wrapped, encCtx(tenant))
	if err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("decrypt: %v", err)
	}
	again, err := k.Encrypt(t.Context(), key, plain, encCtx(tenant))
	if err != nil {
		t.Fatalf("encrypt: %v", err)
	}
	if got, err = k.Decrypt(t.Context(), key, again, encCtx(tenant)); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("decrypt what was encrypted: %v", err)
	}
	for name, bad := range map[string][]byte{"empty": nil, "short": wrapped[:8]} {
		if _, err := k.Decrypt(t.Context(), key, bad, encCtx(tenant)); store.KindOf(err) != store.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := k.Decrypt(t.Context(), key, wrapped, encCtx(tenant+"x")); store.KindOf(err) != store.Invalid {
		t.Errorf("another tenant's context: %v", err)
	}
	if _, _, err := k.GenerateDataKey(t.Context(), "11111111-2222-3333-4444-555555555555", encCtx(tenant)); store.KindOf(err) != store.KeyTrouble {
		t.Errorf("no such key: %v", err)
	}
}

// A key that is disabled or going away gives and takes nothing.
func TestEngineKeyStates(t *testing.T) {
	e := enginetest.Open(t)
	raw := kms.NewClient(e.AWS)
	key, err := kms.CreateKey(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	_, wrapped, err := e.KMS.GenerateDataKey(t.Context(), key, encCtx("t"))
	if err != nil {
		t.Fatal(err)
	}
	trouble := func(state string) {
		t.Helper()
		if _, _, err := e.KMS.GenerateDataKey(t.Context(), key, encCtx("t")); store.KindOf(err) != store.KeyTrouble {
			t.Errorf("%s: generate: %v", state, err)
		}
		if _, err := e.KMS.Decrypt(t.Context(), key, wrapped, encCtx("t")); store.KindOf(err) != store.KeyTrouble {
			t.Errorf("%s: decrypt: %v", state, err)
		}
	}
	if _, err := raw.DisableKey(t.Context(), &awskms.DisableKeyInput{KeyId: &key}); err != nil {
		t.Fatal(err)
	}
	trouble("disabled")
	if _, err := raw.EnableKey(t.Context(), &awskms.EnableKeyInput{KeyId: &key}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.KMS.Decrypt(t.Context(), key, wrapped, encCtx("t")); err != nil {
		t.Errorf("enabled again: %v", err)
	}
	if _, err := raw.ScheduleKeyDeletion(t.Context(), &awskms.ScheduleKeyDeletionInput{KeyId: &key, PendingWindowInDays: aws.Int32(7)}); err != nil {
		t.Fatal(err)
	}
	trouble("pending deletion")
}

func TestErrors(t *testing.T) {
	for _, r := range []struct {
		status   int
		code     string
		kind     store.ErrorKind
		requests int
	}{
		{400, "DisabledException", store.KeyTrouble, 1},
		{400, "KMSInvalidStateException", store.KeyTrouble, 1},
		{400, "NotFoundException", store.KeyTrouble, 1},
		{400, "AccessDeniedException", store.KeyTrouble, 1},
		{400, "InvalidKeyUsageException", store.KeyTrouble, 1},
		{400, "InvalidCiphertextException", store.Invalid, 1},
		{400, "IncorrectKeyException", store.Invalid, 1},
		{400, "ThrottlingException", store.Throttled, 3},
		{400, "LimitExceededException", store.Throttled, 3},
		{500, "KMSInternalException", store.Unavailable, 3},
		{503, "DependencyTimeoutException", store.Unavailable, 3},
		{500, "KeyUnavailableException", store.Unavailable, 3},
		{400, "UnrecognizedClientException", store.Denied, 1},
	} {
		t.Run(r.code, func(t *testing.T) {
			t.Parallel()
			n := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n++
				w.Header().Set("Content-Type", "application/x-amz-json-1.1")
				w.WriteHeader(r.status)
				_, _ = fmt.Fprintf(w, `{"__type":%q,"message":"secret text"}`, r.code)
			}))
			defer srv.Close()
			_, err := at(srv.URL).Decrypt(t.Context(), "key", []byte("blob"), nil)
			if store.KindOf(err) != r.kind || store.Ambiguous(err) || n != r.requests {
				t.Errorf("%v after %d requests, want %s after %d", err, n, r.kind, r.requests)
			}
		})
	}
}

// An answer without a whole key is no key.
func TestBadAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"CiphertextBlob":"YWJj","Plaintext":"YWJj"}`)
	}))
	defer srv.Close()
	if _, _, err := at(srv.URL).GenerateDataKey(t.Context(), "key", nil); store.KindOf(err) != store.Unavailable {
		t.Errorf("a key of 3 bytes: %v", err)
	}
}

func at(url string) *kms.KMS {
	return kms.New(kms.NewClient(aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}), awscall.NewClock(nil))
}
