package gatewaytest

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// messages is Anthropic's protocol.
type messages struct{}

type messagesRequest struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Tools     []struct {
		Name   string `json:"name"`
		Schema schema `json:"input_schema"`
	} `json:"tools"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
}

// blocks are the blocks of a message; text alone is one of them.
type blocks []block

type block struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	ToolUse   string `json:"tool_use_id"`
	Signature string `json:"signature"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blocks) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), `"`) {
		*b = blocks{{Type: "text"}}
		return nil
	}
	return json.Unmarshal(text, (*[]block)(b))
}

func (messages) key(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(r)
}

func (messages) read(r *http.Request, body []byte) ask {
	var m messagesRequest
	if err := json.Unmarshal(body, &m); err != nil {
		return ask{problem: "the request is not valid JSON: " + err.Error()}
	}
	a := ask{model: m.Model, stream: m.Stream}
	for _, t := range m.Tools {
		a.tools = append(a.tools, tool{t.Name, t.Schema})
	}
	for _, message := range m.Messages {
		a.result = a.result && message.Role != "assistant"
		for _, b := range message.Content {
			a.result = a.result || b.Type == "tool_result"
		}
	}
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		a.problem = "anthropic-version: header is required"
	case m.Model == "":
		a.problem = "model: Field required"
	case m.MaxTokens < 1:
		a.problem = "max_tokens: Field required"
	case len(m.Messages) == 0:
		a.problem = "messages: at least one message is required"
	default:
		a.problem = m.unpaired()
	}
	return a
}

// unpaired says which call has no result in the next message, or which result no call in the one before.
func (m *messagesRequest) unpaired() string {
	open := map[string]bool{}
	for i, message := range m.Messages {
		for _, b := range message.Content {
			if b.Type == "tool_result" {
				if !open[b.ToolUse] {
					return fmt.Sprintf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, b.ToolUse)
				}
				delete(open, b.ToolUse)
			}
		}
		if message.Role == "user" && len(open) > 0 {
			for id := range open {
				return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i-1, id)
			}
		}
		for _, b := range message.Content {
			switch {
			case b.Type == "tool_use":
				open[b.ID] = true
			case b.Type == "thinking" && b.Signature == "":
				return fmt.Sprintf("messages.%d: signature: Field required", i)
			}
		}
	}
	for id := range open {
		return "`tool_use` ids were found without `tool_result` blocks immediately after: " + id
	}
	return ""
}

func (messages) fault(status int, message string) any {
	kind := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 529: "overloaded_error",
	}[status]
	if kind == "" {
		kind = "api_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_scripted"}
}

func (m messages) broken(status int, message string) []byte {
	return event("error", m.fault(status, message))
}

func (messages) contentType(ask) string { return "text/event-stream; charset=utf-8" }

func (messages) usage(a answer) object {
	if a.usage == nil {
		return object{"input_tokens": 0, "output_tokens": 0}
	}
	return object{
		"input_tokens": a.usage.Input, "cache_creation_input_tokens": a.usage.CacheWrite, "cache_read_input_tokens": a.usage.CacheRead,
		"output_tokens": a.usage.Output, "service_tier": "standard",
	}
}

func (messages) stopReason(a answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// id is of a call, as the vendor writes them.
func (messages) id(c called) string { return "toolu_" + c.id }

func (m messages) whole(a answer) any {
	var content []object
	if a.thinking != "" {
		content = append(content, object{"type": "thinking", "thinking": a.thinking, "signature": "scripted"})
	}
	if a.text != "" {
		content = append(content, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		content = append(content, object{"type": "tool_use", "id": m.id(c), "name": c.name, "input": c.value()})
	}
	return object{
		"id": fmt.Sprintf("msg_%d", a.number), "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": m.stopReason(a), "stop_sequence": nil, "usage": m.usage(a),
	}
}

func (m messages) frames(a answer) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		out := sender{yield: yield}
		send := func(kind string, members object) bool {
			members["type"] = kind
			return out.send(event(kind, members), kind == "content_block_delta")
		}
		usage := m.usage(a)
		usage["output_tokens"] = 1
		send("message_start", object{"message": object{
			"id": fmt.Sprintf("msg_%d", a.number), "type": "message", "role": "assistant", "model": a.model, "content": []any{},
			"stop_reason": nil, "stop_sequence": nil, "usage": usage,
		}})
		index := 0
		put := func(start object, deltas iter.Seq[object]) {
			send("content_block_start", object{"index": index, "content_block": start})
			if index == 0 {
				send("ping", object{})
			}
			for d := range deltas {
				if !send("content_block_delta", object{"index": index, "delta": d}) {
					return
				}
			}
			send("content_block_stop", object{"index": index})
			index++
		}
		m.blocks(a, put)
		usage["output_tokens"] = m.usage(a)["output_tokens"]
		send("message_delta", object{"delta": object{"stop_reason": m.stopReason(a), "stop_sequence": nil}, "usage": usage})
		send("message_stop", object{})
	}
}

// blocks puts the blocks of an answer, each as it begins and the deltas that follow.
func (m messages) blocks(a answer, put func(start object, deltas iter.Seq[object])) {
	if a.thinking != "" {
		put(object{"type": "thinking", "thinking": "", "signature": ""}, func(yield func(object) bool) {
			for _, word := range pieces(a.thinking) {
				if !yield(object{"type": "thinking_delta", "thinking": word}) {
					return
				}
			}
			yield(object{"type": "signature_delta", "signature": "scripted"})
		})
	}
	if a.text != "" || a.endless {
		put(object{"type": "text", "text": ""}, func(yield func(object) bool) {
			for word := range a.words() {
				if !yield(object{"type": "text_delta", "text": word}) {
					return
				}
			}
		})
	}
	for _, c := range a.calls {
		put(object{"type": "tool_use", "id": m.id(c), "name": c.name, "input": object{}}, func(yield func(object) bool) {
			for _, part := range argumentParts(c.args) {
				if !yield(object{"type": "input_json_delta", "partial_json": part}) {
					return
				}
			}
		})
	}
}

// countTokens counts a token for each four bytes.
func (x *exchange) countTokens() {
	reply(x.w, http.StatusOK, object{"input_tokens": len(x.body) / 4})
}
