package awscall

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnstate/cairn/shared/store"
)

// Verdict is what one error means.
type Verdict struct {
	Kind store.ErrorKind
	Code string // the service's code; for other errors a word of ours
	// Unknown: if the request was a write and was sent, it may have happened.
	Unknown bool
}

// codes holds every code with a definite meaning: the service refused, so the
// request that it answered changed nothing.
var codes = map[string]store.ErrorKind{
	// Refused for load.
	"ProvisionedThroughputExceededException": store.Throttled,
	"RequestLimitExceeded":                   store.Throttled,
	"Throttling":                             store.Throttled,
	"ThrottlingException":                    store.Throttled,
	"ThrottlingError":                        store.Throttled,
	"ThrottledException":                     store.Throttled,
	"TooManyRequestsException":               store.Throttled,
	"LimitExceededException":                 store.Throttled,
	"BandwidthLimitExceeded":                 store.Throttled,
	"SlowDown":                               store.Throttled,
	"KMS.ThrottlingException":                store.Throttled,
	"KMSThrottlingException":                 store.Throttled,

	// Another writer was at work.
	"TransactionConflictException":     store.Conflict,
	"ReplicatedWriteConflictException": store.Conflict,
	"ConditionalRequestConflict":       store.Conflict,
	"OperationAborted":                 store.Conflict,

	// Credentials and rights.
	"AccessDenied":                        store.Denied,
	"AccessDeniedException":               store.Denied,
	"AllAccessDisabled":                   store.Denied,
	"AuthFailure":                         store.Denied,
	"ExpiredToken":                        store.Denied,
	"ExpiredTokenException":               store.Denied,
	"Forbidden":                           store.Denied, // HEAD has no body: the SDK makes the code from the status
	"IncompleteSignature":                 store.Denied,
	"IncompleteSignatureException":        store.Denied,
	"InvalidAccessKeyId":                  store.Denied,
	"InvalidClientTokenId":                store.Denied,
	"InvalidSignatureException":           store.Denied,
	"InvalidToken":                        store.Denied,
	"MissingAuthenticationToken":          store.Denied,
	"MissingAuthenticationTokenException": store.Denied,
	"NotAuthorized":                       store.Denied,
	"OptInRequired":                       store.Denied,
	"RequestExpired":                      store.Denied,
	"RequestTimeTooSkewed":                store.Denied,
	"SignatureDoesNotMatch":               store.Denied,
	"TokenRefreshRequired":                store.Denied,
	"UnrecognizedClientException":         store.Denied,

	// The encryption key (KMS itself; S3 and others prefix with "KMS").
	"DisabledException":                            store.KeyTrouble,
	"InvalidKeyUsageException":                     store.KeyTrouble,
	"NotFoundException":                            store.KeyTrouble,
	"CustomKeyStoreInvalidStateException":          store.KeyTrouble,
	"CloudHsmClusterInvalidConfigurationException": store.KeyTrouble,

	// Sizes.
	"EntityTooLarge": store.TooLarge,
	"ItemCollectionSizeLimitExceededException": store.TooLarge,
	"MaxMessageLengthExceeded":                 store.TooLarge,
	"RequestEntityTooLarge":                    store.TooLarge,

	// Objects.
	"NoSuchKey":          store.NotFound,
	"NoSuchVersion":      store.NotFound,
	"NoSuchUpload":       store.NotFound,
	"NotFound":           store.NotFound,
	"PreconditionFailed": store.Exists,

	// The request's form, or a table, index, bucket or setting that is not as
	// the deployment should have made it.
	"BadDigest":                            store.Invalid,
	"DuplicateItemException":               store.Invalid,
	"EntityTooSmall":                       store.Invalid,
	"IdempotentParameterMismatchException": store.Invalid,
	"IndexNotFoundException":               store.Invalid,
	"InvalidArgument":                      store.Invalid,
	"InvalidBucketName":                    store.Invalid,
	"InvalidDigest":                        store.Invalid,
	"InvalidPart":                          store.Invalid,
	"InvalidPartOrder":                     store.Invalid,
	"InvalidRange":                         store.Invalid,
	"InvalidRequest":                       store.Invalid,
	"InvalidObjectState":                   store.Invalid,
	"KeyTooLongError":                      store.Invalid,
	"MalformedXML":                         store.Invalid,
	"MetadataTooLarge":                     store.Invalid,
	"MethodNotAllowed":                     store.Invalid,
	"MissingContentLength":                 store.Invalid,
	"NoSuchBucket":                         store.Invalid,
	"NotImplemented":                       store.Invalid,
	"ResourceInUseException":               store.Invalid,
	"ResourceNotFoundException":            store.Invalid,
	"SerializationException":               store.Invalid,
	"TableNotFoundException":               store.Invalid,
	"UnknownOperationException":            store.Invalid,
	"ValidationError":                      store.Invalid,
	"ValidationException":                  store.Invalid,
	"XAmzContentSHA256Mismatch":            store.Invalid,
	"IncorrectKeyException":                store.Invalid,
	"InvalidCiphertextException":           store.Invalid,
	"InvalidArnException":                  store.Invalid,
	"InvalidGrantTokenException":           store.Invalid,
	"UnsupportedOperationException":        store.Invalid,
	"DryRunOperationException":             store.Invalid,
}

// unknownCodes are answers after which the request may still have happened.
var unknownCodes = map[string]bool{
	"InternalServerError":            true,
	"InternalServerErrorException":   true,
	"InternalFailure":                true,
	"InternalError":                  true,
	"ServiceUnavailable":             true,
	"ServiceUnavailableException":    true,
	"RequestTimeout":                 true,
	"RequestTimeoutException":        true,
	"TransactionInProgressException": true, // an earlier attempt with this token is still at work
	"KMSInternalException":           true,
	"DependencyTimeoutException":     true,
	"KeyUnavailableException":        true,
	"KMS.InternalException":          true,
}

// signatureRefused are the codes for a signature that is too old, among other
// reasons.
var signatureRefused = map[string]bool{
	"InvalidSignatureException": true,
	"RequestTimeTooSkewed":      true,
	"RequestExpired":            true,
	"SignatureDoesNotMatch":     true,
}

// Classify says what an error of an SDK call means. The order matters: the
// service's own code is the most definite, then the context, then the status,
// then the transport; whatever is left never left this process.
func Classify(err error) Verdict {
	var api smithy.APIError
	if errors.As(err, &api) {
		if v, ok := byCode(api.ErrorCode()); ok {
			return v
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Verdict{store.Stopped, "Canceled", true}
	case errors.Is(err, context.DeadlineExceeded) && !isTransport(err):
		return Verdict{store.Stopped, "DeadlineExceeded", true}
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.HTTPStatusCode() != 0 {
		code := ""
		if api != nil {
			code = api.ErrorCode()
		}
		return byStatus(resp.HTTPStatusCode(), code)
	}
	if isTransport(err) {
		return Verdict{store.Unavailable, "NoAnswer", true}
	}
	return Verdict{store.Unavailable, "NotSent", false}
}

func byCode(code string) (Verdict, bool) {
	if unknownCodes[code] {
		return Verdict{store.Unavailable, code, true}, true
	}
	if kind, ok := codes[code]; ok {
		return Verdict{kind, code, false}, true
	}
	if strings.HasPrefix(code, "KMS") { // KMSInvalidStateException, KMS.DisabledException ...
		return Verdict{store.KeyTrouble, code, false}, true
	}
	return Verdict{}, false
}

// byStatus judges an answer whose code is unknown or could not be read. A 2xx
// with an error is an answer that broke off: the request was carried out.
func byStatus(status int, code string) Verdict {
	if code == "" {
		code = http.StatusText(status)
	}
	switch {
	case status == http.StatusTooManyRequests:
		return Verdict{store.Throttled, code, false}
	case status == http.StatusRequestTimeout, status < 400, status >= 500:
		return Verdict{store.Unavailable, code, true}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Verdict{store.Denied, code, false}
	case status == http.StatusNotFound:
		return Verdict{store.NotFound, code, false}
	case status == http.StatusConflict:
		return Verdict{store.Conflict, code, false}
	case status == http.StatusPreconditionFailed:
		return Verdict{store.Exists, code, false}
	case status == http.StatusRequestEntityTooLarge:
		return Verdict{store.TooLarge, code, false}
	}
	return Verdict{store.Invalid, code, false}
}

// isTransport reports whether the HTTP client failed: no connection, a broken
// one, or no answer in the time an attempt has. (An attempt's own timeout is a
// context.DeadlineExceeded too, but inside a RequestSendError; the caller's is
// not, the SDK replaces it.)
func isTransport(err error) bool {
	var send *smithyhttp.RequestSendError
	return errors.As(err, &send)
}

// kmsKind is the kind for a call to KMS itself: not being allowed to use a key
// is trouble with the key. (Credentials that are no good stay Denied.)
func kmsKind(v Verdict) store.ErrorKind {
	if v.Code == "AccessDeniedException" {
		return store.KeyTrouble
	}
	return v.Kind
}
