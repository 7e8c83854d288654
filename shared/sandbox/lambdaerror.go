package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// lambdaError is a refusal by the service itself, before any function runs, in
// Lambda's REST form.
type lambdaError struct {
	Status  int
	Code    string // X-Amzn-ErrorType
	Kind    string // User or Service
	Message string
}

func badRequest(code, message string) *lambdaError {
	return &lambdaError{http.StatusBadRequest, code, "User", message}
}

func notFound(in invoked) *lambdaError {
	return &lambdaError{http.StatusNotFound, "ResourceNotFoundException", "User", "Function not found: " + in.ARN()}
}

func tooLarge(kind string, limit int64) *lambdaError {
	return &lambdaError{http.StatusRequestEntityTooLarge, "RequestTooLargeException", "User",
		fmt.Sprintf("the payload is too large for the %s invocation type (limit %d bytes)", kind, limit)}
}

func (e *lambdaError) write(w http.ResponseWriter) {
	body, _ := json.Marshal(struct {
		Type    string `json:"Type"`
		Message string `json:"Message"`
		Lower   string `json:"message"` // where the SDKs look first
	}{e.Kind, e.Message, e.Message})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", e.Code)
	w.WriteHeader(e.Status)
	_, _ = w.Write(body)
}
