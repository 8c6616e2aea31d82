package gatewaytest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"
)

// chat is OpenAI's Chat Completions, as others serve it too.
type chat struct{}

type chatRequest struct {
	Model   string `json:"model"`
	Stream  bool   `json:"stream"`
	Options struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name   string `json:"name"`
			Schema schema `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role  string `json:"role"`
		Call  string `json:"tool_call_id"`
		Calls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

// bearer is the token of a request.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func (chat) key(r *http.Request) string { return bearer(r) }

func (chat) read(_ *http.Request, body []byte) ask {
	var c chatRequest
	if err := json.Unmarshal(body, &c); err != nil {
		return ask{problem: "We could not parse the JSON body of your request: " + err.Error()}
	}
	a := ask{model: c.Model, stream: c.Stream, usage: c.Options.Usage}
	for _, t := range c.Tools {
		a.tools = append(a.tools, tool{t.Function.Name, t.Function.Schema})
	}
	for _, m := range c.Messages {
		a.result = m.Role == "tool" || a.result && m.Role != "assistant"
	}
	switch {
	case c.Model == "":
		a.problem = "you must provide a model parameter"
	case len(c.Messages) == 0:
		a.problem = "Missing required parameter: 'messages'."
	default:
		a.problem = c.unpaired()
	}
	return a
}

// unpaired says which call has no result right after it, or which result no call before.
func (c *chatRequest) unpaired() string {
	open := map[string]bool{}
	for _, m := range c.Messages {
		if m.Role == "tool" {
			if !open[m.Call] {
				return "messages with role 'tool' must be a response to a preceding message with 'tool_calls': " + m.Call
			}
			delete(open, m.Call)
			continue
		}
		if len(open) > 0 {
			break
		}
		for _, call := range m.Calls {
			open[call.ID] = true
		}
	}
	for id := range open {
		return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + id
	}
	return ""
}

func (chat) fault(status int, message string) any { return openAIFault(status, message) }

func openAIFault(status int, message string) any {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case status == http.StatusNotFound:
		code = "model_not_found"
	case status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}

func (c chat) broken(status int, message string) []byte { return data(c.fault(status, message)) }

func (chat) contentType(ask) string { return "text/event-stream; charset=utf-8" }

func (chat) usage(a answer) any {
	if a.usage == nil {
		return nil
	}
	input := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	return object{
		"prompt_tokens": input, "completion_tokens": a.usage.Output, "total_tokens": input + a.usage.Output,
		"prompt_tokens_details": object{"cached_tokens": a.usage.CacheRead}, "completion_tokens_details": object{"reasoning_tokens": a.thought()},
	}
}

func (chat) finish(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (c chat) whole(a answer) any {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if a.text != "" {
		message["content"] = a.text
	}
	if a.thinking != "" {
		message["reasoning_content"] = a.thinking
	}
	var calls []object
	for _, call := range a.calls {
		calls = append(calls, object{"id": call.id, "type": "function", "function": object{"name": call.name, "arguments": call.args}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	body := object{
		"id": fmt.Sprintf("chatcmpl-%d", a.number), "object": "chat.completion", "created": created, "model": a.model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": c.finish(a)}},
	}
	if u := c.usage(a); u != nil {
		body["usage"] = u
	}
	return body
}

// created is when all is created that says so.
const created = 1767225600

func (c chat) frames(a answer) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		out := sender{yield: yield}
		chunk := func(piece bool, choices ...object) bool {
			members := object{"id": fmt.Sprintf("chatcmpl-%d", a.number), "object": "chat.completion.chunk", "created": created, "model": a.model, "choices": choices}
			if choices == nil {
				members["choices"], members["usage"] = []any{}, c.usage(a)
			} else if a.asked.usage {
				members["usage"] = nil
			}
			return out.send(data(members), piece)
		}
		delta := func(piece bool, d object) bool {
			return chunk(piece, object{"index": 0, "delta": d, "logprobs": nil, "finish_reason": nil})
		}
		delta(false, object{"role": "assistant", "content": ""})
		for _, word := range pieces(a.thinking) {
			delta(true, object{"reasoning_content": word})
		}
		for word := range a.words() {
			if !delta(true, object{"content": word}) {
				return
			}
		}
		for i, call := range a.calls {
			delta(false, object{"tool_calls": []object{{"index": i, "id": call.id, "type": "function", "function": object{"name": call.name, "arguments": ""}}}})
			for _, part := range argumentParts(call.args) {
				if !delta(true, object{"tool_calls": []object{{"index": i, "function": object{"arguments": part}}}}) {
					return
				}
			}
		}
		chunk(false, object{"index": 0, "delta": object{}, "logprobs": nil, "finish_reason": c.finish(a)})
		if a.asked.usage && a.usage != nil {
			chunk(false)
		}
		out.send([]byte("data: [DONE]\n\n"), false)
	}
}

// listing is what all have in common that list models at /v1/models.
type listing struct{ messages }

func (listing) fault(status int, message string) any { return openAIFault(status, message) }

// models lists the models as the client's vendor does.
func (x *exchange) models() {
	names, _ := x.p.offered("")
	all := make([]object, len(names))
	for i, name := range names {
		all[i] = object{"id": name, "object": "model", "created": created, "owned_by": "scripts"}
		if x.r.Header.Get("Anthropic-Version") != "" {
			all[i] = object{"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
		}
	}
	body := object{"object": "list", "data": all}
	if x.r.Header.Get("Anthropic-Version") != "" {
		body = object{"data": all, "has_more": false, "first_id": nil, "last_id": nil}
		if len(names) > 0 {
			body["first_id"], body["last_id"] = names[0], names[len(names)-1]
		}
	}
	reply(x.w, http.StatusOK, body)
}

// embeddings gives each text the same vector.
func (x *exchange) embeddings() {
	var asked struct {
		Model  string `json:"model"`
		Input  any    `json:"input"`
		Format string `json:"encoding_format"`
	}
	if err := json.Unmarshal(x.body, &asked); err != nil || asked.Model == "" || asked.Input == nil {
		reply(x.w, http.StatusBadRequest, x.speak.fault(http.StatusBadRequest, "model and input are required"))
		return
	}
	texts, many := asked.Input.([]any)
	if !many {
		texts = []any{asked.Input}
	}
	all := make([]object, len(texts))
	for i := range texts {
		all[i] = object{"object": "embedding", "index": i, "embedding": vector}
		if asked.Format == "base64" {
			all[i]["embedding"] = packed(vector)
		}
	}
	reply(x.w, http.StatusOK, object{"object": "list", "model": asked.Model, "data": all, "usage": object{"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}})
}

var vector = []float32{0.25, -0.5, 1}

// packed is a vector as base64 of its numbers, the smallest byte first.
func packed(v []float32) string {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
