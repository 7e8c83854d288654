package awscall

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnstate/cairn/shared/store"
)

// answered is an error as the SDK makes it of an answer: "" for an answer
// whose code could not be read.
func answered(status int, code string) error {
	var err error = errors.New("deserialization failed")
	if code != "" {
		err = &smithy.GenericAPIError{Code: code, Message: "a text that must not matter: timeout, throttled, not found"}
	}
	return &smithy.OperationError{ServiceID: "X", OperationName: "Y", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

func TestClassifyAnswers(t *testing.T) {
	const definite, unknown = false, true
	for _, r := range []struct {
		status  int
		code    string
		kind    store.ErrorKind
		unknown bool
	}{
		// DynamoDB, data plane.
		{400, "ProvisionedThroughputExceededException", store.Throttled, definite},
		{400, "RequestLimitExceeded", store.Throttled, definite},
		{400, "ThrottlingException", store.Throttled, definite},
		{400, "LimitExceededException", store.Throttled, definite},
		{400, "TransactionConflictException", store.Conflict, definite},
		{400, "ReplicatedWriteConflictException", store.Conflict, definite},
		{400, "TransactionInProgressException", store.Unavailable, unknown},
		{400, "IdempotentParameterMismatchException", store.Invalid, definite},
		{400, "ItemCollectionSizeLimitExceededException", store.TooLarge, definite},
		{400, "ResourceNotFoundException", store.Invalid, definite},
		{400, "ResourceInUseException", store.Invalid, definite},
		{400, "TableNotFoundException", store.Invalid, definite},
		{400, "IndexNotFoundException", store.Invalid, definite},
		{400, "DuplicateItemException", store.Invalid, definite},
		{400, "ValidationException", store.Invalid, definite},
		{400, "SerializationException", store.Invalid, definite},
		{400, "UnknownOperationException", store.Invalid, definite},
		{500, "InternalServerError", store.Unavailable, unknown},
		{503, "ServiceUnavailable", store.Unavailable, unknown},
		{400, "AccessDeniedException", store.Denied, definite},
		{400, "UnrecognizedClientException", store.Denied, definite},
		{400, "MissingAuthenticationTokenException", store.Denied, definite},
		{400, "IncompleteSignatureException", store.Denied, definite},
		{400, "InvalidSignatureException", store.Denied, definite},
		{400, "ExpiredTokenException", store.Denied, definite},
		{400, "OptInRequired", store.Denied, definite},
		{400, "KMSAccessDeniedException", store.KeyTrouble, definite},
		// DynamoDB, control plane: bad requests like any other.
		{400, "BackupInUseException", store.Invalid, definite},
		{400, "BackupNotFoundException", store.Invalid, definite},
		{400, "ContinuousBackupsUnavailableException", store.Invalid, definite},
		{400, "ExportConflictException", store.Invalid, definite},
		{400, "GlobalTableNotFoundException", store.Invalid, definite},
		{400, "PolicyNotFoundException", store.Invalid, definite},
		{400, "ReplicaNotFoundException", store.Invalid, definite},
		{400, "TableInUseException", store.Invalid, definite},
		// S3.
		{404, "NoSuchKey", store.NotFound, definite},
		{404, "NotFound", store.NotFound, definite},
		{404, "NoSuchVersion", store.NotFound, definite},
		{404, "NoSuchUpload", store.NotFound, definite},
		{404, "NoSuchBucket", store.Invalid, definite},
		{412, "PreconditionFailed", store.Exists, definite},
		{409, "ConditionalRequestConflict", store.Conflict, definite},
		{409, "OperationAborted", store.Conflict, definite},
		{503, "SlowDown", store.Throttled, definite},
		{400, "RequestTimeout", store.Unavailable, unknown},
		{200, "InternalError", store.Unavailable, unknown}, // inside a 200, as CompleteMultipartUpload does
		{500, "InternalError", store.Unavailable, unknown},
		{403, "AccessDenied", store.Denied, definite},
		{403, "Forbidden", store.Denied, definite},
		{403, "SignatureDoesNotMatch", store.Denied, definite},
		{403, "RequestTimeTooSkewed", store.Denied, definite},
		{400, "ExpiredToken", store.Denied, definite},
		{400, "EntityTooLarge", store.TooLarge, definite},
		{400, "BadDigest", store.Invalid, definite},
		{416, "InvalidRange", store.Invalid, definite},
		{400, "KMS.DisabledException", store.KeyTrouble, definite},
		{400, "KMS.NotFoundException", store.KeyTrouble, definite},
		{400, "KMS.KMSInvalidStateException", store.KeyTrouble, definite},
		{400, "KMS.ThrottlingException", store.Throttled, definite},
		// KMS.
		{400, "DisabledException", store.KeyTrouble, definite},
		{400, "KMSInvalidStateException", store.KeyTrouble, definite},
		{400, "NotFoundException", store.KeyTrouble, definite},
		{400, "InvalidKeyUsageException", store.KeyTrouble, definite},
		{400, "InvalidCiphertextException", store.Invalid, definite},
		{400, "IncorrectKeyException", store.Invalid, definite},
		{500, "KMSInternalException", store.Unavailable, unknown},
		{503, "DependencyTimeoutException", store.Unavailable, unknown},
		{500, "KeyUnavailableException", store.Unavailable, unknown},
		// Codes that nobody knows, or that could not be read: by status.
		{400, "BrandNewException", store.Invalid, definite},
		{500, "BrandNewException", store.Unavailable, unknown},
		{502, "", store.Unavailable, unknown},
		{504, "", store.Unavailable, unknown},
		{200, "", store.Unavailable, unknown}, // an answer that broke off: it was carried out
		{400, "", store.Invalid, definite},
		{401, "", store.Denied, definite},
		{403, "", store.Denied, definite},
		{404, "", store.NotFound, definite},
		{408, "", store.Unavailable, unknown},
		{409, "", store.Conflict, definite},
		{412, "", store.Exists, definite},
		{413, "", store.TooLarge, definite},
		{429, "", store.Throttled, definite},
	} {
		t.Run(fmt.Sprintf("%d %s", r.status, r.code), func(t *testing.T) {
			v := Classify(answered(r.status, r.code))
			if v.Kind != r.kind || v.Unknown != r.unknown {
				t.Errorf("got %s, unknown %v; want %s, unknown %v", v.Kind, v.Unknown, r.kind, r.unknown)
			}
			if r.code != "" && v.Code != r.code {
				t.Errorf("code %q", v.Code)
			}
		})
	}
}

func TestClassifyWithoutAnswer(t *testing.T) {
	for name, r := range map[string]struct {
		err     error
		kind    store.ErrorKind
		unknown bool
	}{
		"broken connection": {&smithyhttp.RequestSendError{Err: errors.New("EOF")}, store.Unavailable, true},
		"attempt timed out": {&smithyhttp.RequestSendError{Err: context.DeadlineExceeded}, store.Unavailable, true},
		"caller's deadline": {&smithy.CanceledError{Err: context.DeadlineExceeded}, store.Stopped, true},
		"caller cancelled":  {&smithy.CanceledError{Err: context.Canceled}, store.Stopped, true},
		"cancelled while the answer was read": {&smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 200}}, Err: context.Canceled}, store.Stopped, true},
		"no credentials": {errors.New("failed to refresh cached credentials"), store.Unavailable, false},
	} {
		v := Classify(fmt.Errorf("wrapped: %w", r.err))
		if v.Kind != r.kind || v.Unknown != r.unknown {
			t.Errorf("%s: got %s, unknown %v; want %s, unknown %v", name, v.Kind, v.Unknown, r.kind, r.unknown)
		}
	}
}

// Every code has one meaning.
func TestCodesDisjoint(t *testing.T) {
	for code := range unknownCodes {
		if _, ok := codes[code]; ok {
			t.Errorf("%s is definite and unknown at once", code)
		}
	}
	for code := range signatureRefused {
		if codes[code] != store.Denied {
			t.Errorf("%s is no refusal", code)
		}
	}
}
