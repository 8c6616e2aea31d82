package transport

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/text"
)

const (
	maxSaid = 400            // bytes of a provider's words that a person gets to see
	maxWait = 24 * time.Hour // more is nonsense
)

// Refusal makes an answer that is an error a *agent.ModelError. body is what the provider said, in any of the forms that are in use; wait
// is after how long it wants to be asked again, 0 when it did not say.
func Refusal(status int, body []byte, wait time.Duration) *agent.ModelError {
	return refusal(status, body, wait, false)
}

// refusal is Refusal, also of an answer whose words are sandboxd's own: they say all, and no provider is to blame.
func refusal(status int, body []byte, wait time.Duration, own bool) *agent.ModelError {
	said, codes := stated(body)
	code, words := classify(status, said, codes)
	message := fmt.Sprintf("%s (%d).", words, status)
	if said = text.Excerpt(said, maxSaid); said != "" {
		message = fmt.Sprintf("%s (%d): %s", words, status, said)
		if own {
			message = said
		}
		if !strings.HasSuffix(message, ".") && !strings.HasSuffix(message, "…") {
			message += "."
		}
	}
	switch {
	case own:
	case wait > 2*time.Hour:
		message += fmt.Sprintf(" It can be asked again in %.0f h.", wait.Hours())
	case wait > time.Minute:
		message += fmt.Sprintf(" It can be asked again in %.0f min.", wait.Minutes())
	}
	return agent.Failure(code, nil, message).With(status, wait)
}

func classify(status int, said string, codes []string) (agent.Code, string) {
	switch {
	case status == http.StatusTooManyRequests && has(codes, "insufficient_quota", "billing_error"):
		return agent.Rejected, "The provider wants to be paid"
	case status == http.StatusTooManyRequests:
		return agent.RateLimited, "Too many requests"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return agent.Unauthorized, "The provider refuses this request"
	case overflow(status, said, codes):
		return agent.Overflow, "The conversation is too long for the model"
	case status == http.StatusNotFound:
		return agent.NotThere, "The provider does not have this model, or its address is wrong"
	case status == http.StatusRequestTimeout:
		return agent.Overloaded, "The provider did not get the request in time"
	case status >= http.StatusInternalServerError && blind(said):
		return agent.Rejected, "The model does not take pictures"
	case status >= http.StatusInternalServerError:
		return agent.Overloaded, "The provider has a problem"
	}
	return agent.Rejected, "The provider does not take this request"
}

// overflow reports whether an error says that the request is longer than the model's window. Some providers have a code for it, others
// only words.
func overflow(status int, said string, codes []string) bool {
	if status == http.StatusRequestEntityTooLarge || has(codes, "context_length_exceeded", "exceed_context_size_error", "request_too_large") {
		return true
	}
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity && status != http.StatusInternalServerError {
		return false
	}
	said = strings.ToLower(said)
	for _, words := range []string{"prompt is too long", "maximum context length", "context length exceeded", "exceeds the context length", "exceeds the available context size",
		"exceed context limit", "context window"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// blind reports whether an error of the server is that its model cannot see, as those of llama.cpp and Ollama say it.
func blind(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "image input") && (strings.Contains(said, "not support") || strings.Contains(said, "missing data"))
}

func has(codes []string, any ...string) bool {
	for _, c := range codes {
		for _, a := range any {
			if c == a {
				return true
			}
		}
	}
	return false
}

// stated gives the words and the codes of an error's body: {"error":{"message","type","code"}}, {"error":"…"}, {"message":"…"},
// {"detail":"…"}, or text. A page says nothing.
func stated(body []byte) (said string, codes []string) {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if err := json.Unmarshal(body, &outer); err != nil {
		if said = strings.TrimSpace(string(body)); strings.HasPrefix(said, "<") || strings.HasPrefix(said, "{") {
			return "", nil
		}
		return said, nil
	}
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Detail} {
		var words string
		if json.Unmarshal(raw, &words) == nil && words != "" {
			return words, nil
		}
	}
	if json.Unmarshal(outer.Error, &inner) != nil || inner.Message == "" {
		return outer.Message, nil
	}
	return inner.Message, []string{inner.Type, fmt.Sprint(inner.Code)}
}

// retryAfter reads how long a provider wants to be left alone.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, float64(maxWait/time.Millisecond)) * float64(time.Millisecond))
	}
	said := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(said, 64); err == nil && s > 0 {
		return time.Duration(min(s, maxWait.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(said); err == nil {
		return min(max(time.Until(at), 0), maxWait)
	}
	return 0
}
