package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sandboxd/internal/fault"
)

// statusGone is recorded for a client that did not wait for its answer. No client reads it.
const statusGone = 499

// OwnHeader is a header of the gateway's own errors. What a provider says does not have it.
const OwnHeader = "Sandboxd-Error"

// longestRetry is how far off a retry can be for clients to wait for it by themselves.
const longestRetry = time.Minute

// problem is why a request is not answered by a provider. The client reads it in its own protocol.
type problem struct {
	status  int
	message string        // whole sentences: what happened, and what to do
	wait    time.Duration // after which a retry can succeed; 0 when that is not known
	final   bool          // a retry cannot succeed, though the status says so
	again   bool          // another provider may do better
	code    string        // OpenAI's, where the status says too little
	err     error         // for the log
}

// Error gives the message and the cause: text for a log.
func (p *problem) Error() string {
	if p.err == nil {
		return p.message
	}
	return p.message + ": " + p.err.Error()
}

// Unwrap gives the cause.
func (p *problem) Unwrap() error { return p.err }

func refuse(status int, format string, args ...any) *problem {
	return &problem{status: status, message: fmt.Sprintf(format, args...)}
}

// statusOf are the statuses of the kinds of errors. Others are 500.
var statusOf = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.TooLarge: http.StatusRequestEntityTooLarge,
	fault.Limited: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable, fault.Timeout: http.StatusGatewayTimeout,
	fault.Gone: http.StatusGone,
}

// problemOf gives an error as a problem. What is not classified keeps its text to the log. A spent budget is no 429: opencode, Gemini CLI and
// Qwen Code try again after one for minutes, and Codex waits until Retry-After, all of it without a word. After a 402 each shows the message.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	status := statusOf[fault.KindOf(err)]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	p = &problem{status: status, message: fault.Message(err), wait: fault.RetryAfter(err), err: err}
	if spent := (*Spent)(nil); errors.As(err, &spent) {
		p.status, p.wait, p.code = http.StatusPaymentRequired, 0, "insufficient_quota"
	}
	return p
}

// retry reports whether a client should try again by itself.
func (p *problem) retry() bool {
	return !p.final && p.wait <= longestRetry && (p.status == http.StatusTooManyRequests || p.status >= http.StatusInternalServerError)
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter, dialect Kind) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(OwnHeader, "1")
	h.Set("X-Should-Retry", strconv.FormatBool(p.retry())) // the SDKs of Anthropic and OpenAI ask for it
	if p.wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.wait+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body(dialect)) // a client that is gone needs no answer
}

// body is the problem as a protocol has it.
func (p *problem) body(dialect Kind) []byte {
	type object = map[string]any
	var shape object
	switch dialect {
	case Anthropic:
		shape = object{"type": "error", "error": object{"type": named(anthropicErrors, p.status), "message": p.message}}
	case Ollama:
		shape = object{"error": p.message}
	case Gemini:
		shape = object{"error": object{"code": p.status, "message": p.message, "status": named(geminiErrors, p.status)}}
	default:
		shape = object{"error": object{"message": p.message, "type": named(openaiErrors, p.status), "param": nil, "code": p.openaiCode()}}
	}
	return encode(shape)
}

// event is the problem in a stream that has begun.
func (p *problem) event(r route, form form) []byte {
	switch {
	case form == lines:
		return append(p.body(r.dialect), '\n')
	case r.dialect == Anthropic:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", p.body(Anthropic))
	case r.protocol == responses:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", encode(map[string]any{
			"type": "error", "code": p.openaiCode(), "message": p.message, "param": nil, "sequence_number": 0}))
	default:
		return fmt.Appendf(nil, "data: %s\n\n", p.body(r.dialect))
	}
}

func (p *problem) openaiCode() string { return cmp.Or(p.code, named(openaiCodes, p.status)) }

// encode gives JSON of what always has one.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gateway: encode %T: %v", v, err))
	}
	return text
}

// named gives the protocol's name of a status, or that of the first of its class that has one.
func named(names map[int]string, status int) string {
	if name := names[status]; name != "" {
		return name
	}
	if status < http.StatusInternalServerError {
		return names[http.StatusBadRequest]
	}
	return names[http.StatusInternalServerError]
}

var anthropicErrors = map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error"}

var openaiErrors = map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error", 500: "server_error"}

var openaiCodes = map[int]string{400: "invalid_request", 401: "invalid_api_key", 403: "forbidden", 404: "not_found", 413: "request_too_large",
	429: "rate_limit_exceeded", 500: "server_error", 504: "timeout"}

var geminiErrors = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
	500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
