package gatewaytest

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
)

// responses is OpenAI's Responses.
type responses struct{ chat }

type responsesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Input  items  `json:"input"`
	Tools  []struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Schema schema `json:"parameters"`
	} `json:"tools"`
}

// items are what a request brings; text alone is one of them.
type items []item

type item struct {
	Type string `json:"type"`
	Role string `json:"role"`
	Call string `json:"call_id"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *items) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), `"`) {
		*i = items{{Type: "message"}}
		return nil
	}
	return json.Unmarshal(text, (*[]item)(i))
}

func (responses) read(_ *http.Request, body []byte) ask {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return ask{problem: "We could not parse the JSON body of your request: " + err.Error()}
	}
	a := ask{model: q.Model, stream: q.Stream}
	for _, t := range q.Tools {
		if t.Name == "" {
			t.Name = t.Type // the vendor's own tools have no name
		}
		a.tools = append(a.tools, tool{t.Name, t.Schema})
	}
	for _, i := range q.Input {
		a.result = strings.HasSuffix(i.Type, "_call_output") || a.result && i.Role != "assistant" && !strings.HasSuffix(i.Type, "_call")
	}
	switch {
	case q.Model == "":
		a.problem = "Missing required parameter: 'model'."
	case len(q.Input) == 0:
		a.problem = "Missing required parameter: 'input'."
	default:
		a.problem = q.unpaired()
	}
	return a
}

// unpaired says which call has no result, or which result no call.
func (q *responsesRequest) unpaired() string {
	open := map[string]bool{}
	for _, i := range q.Input {
		switch i.Type {
		case "function_call":
			open[i.Call] = true
		case "function_call_output":
			if !open[i.Call] {
				return "No tool call found for function call output with call_id " + i.Call + "."
			}
			delete(open, i.Call)
		}
	}
	for id := range open {
		return "No tool output found for function call " + id + "."
	}
	return ""
}

func (responses) broken(status int, message string) []byte {
	code := "server_error"
	if status == http.StatusTooManyRequests {
		code = "rate_limit_exceeded"
	}
	return event("error", object{"type": "error", "code": code, "message": message, "param": nil})
}

func (responses) usage(a answer) any {
	if a.usage == nil {
		return nil
	}
	input := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	return object{
		"input_tokens": input, "input_tokens_details": object{"cached_tokens": a.usage.CacheRead},
		"output_tokens": a.usage.Output, "output_tokens_details": object{"reasoning_tokens": a.thought()}, "total_tokens": input + a.usage.Output,
	}
}

// response is the whole of it, as it is at a status.
func (r responses) response(a answer, status string, output []object) object {
	if output == nil {
		output = []object{}
	}
	body := object{
		"id": fmt.Sprintf("resp_%d", a.number), "object": "response", "created_at": created, "status": status, "model": a.model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true, "previous_response_id": nil,
		"store": false, "temperature": 1, "text": object{"format": object{"type": "text"}}, "tool_choice": "auto", "tools": []any{}, "top_p": 1,
		"truncation": "disabled", "usage": nil,
	}
	if status == "completed" {
		body["usage"] = r.usage(a)
	}
	return body
}

// items are the finished ones of an answer.
func (responses) items(a answer) []object {
	var all []object
	if a.thinking != "" {
		all = append(all, object{"type": "reasoning", "id": fmt.Sprintf("rs_%d", a.number), "summary": []object{{"type": "summary_text", "text": a.thinking}}})
	}
	if a.text != "" || a.endless {
		all = append(all, object{
			"type": "message", "id": fmt.Sprintf("msg_%d", a.number), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.text, "annotations": []any{}}},
		})
	}
	for _, c := range a.calls {
		all = append(all, object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": c.args, "status": "completed"})
	}
	return all
}

func (r responses) whole(a answer) any { return r.response(a, "completed", r.items(a)) }

func (r responses) frames(a answer) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		s := responseStream{sender: sender{yield: yield}}
		s.emit("response.created", object{"response": r.response(a, "in_progress", nil)})
		s.emit("response.in_progress", object{"response": r.response(a, "in_progress", nil)})
		all := r.items(a)
		for i, finished := range all {
			s.index, s.id = i, finished["id"].(string)
			switch finished["type"] {
			case "reasoning":
				s.reasoning(a)
			case "message":
				s.message(a)
			case "function_call":
				s.call(finished)
			}
			s.emit("response.output_item.done", object{"output_index": i, "item": finished})
		}
		s.emit("response.completed", object{"response": r.response(a, "completed", all)})
	}
}

// responseStream sends the events of a response.
type responseStream struct {
	sender
	number int    // of the next event
	index  int    // of the item
	id     string // of the item
}

func (s *responseStream) emit(kind string, members object) bool {
	members["type"], members["sequence_number"] = kind, s.number
	s.number++
	return s.send(event(kind, members), strings.HasSuffix(kind, ".delta"))
}

// part adds the members that say which part of an item an event is about.
func (s *responseStream) part(kind string, members object) bool {
	members["item_id"], members["output_index"] = s.id, s.index
	return s.emit(kind, members)
}

func (s *responseStream) reasoning(a answer) {
	s.emit("response.output_item.added", object{"output_index": s.index, "item": object{"type": "reasoning", "id": s.id, "summary": []any{}}})
	s.part("response.reasoning_summary_part.added", object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
	for _, word := range pieces(a.thinking) {
		s.part("response.reasoning_summary_text.delta", object{"summary_index": 0, "delta": word})
	}
	s.part("response.reasoning_summary_text.done", object{"summary_index": 0, "text": a.thinking})
	s.part("response.reasoning_summary_part.done", object{"summary_index": 0, "part": object{"type": "summary_text", "text": a.thinking}})
}

func (s *responseStream) message(a answer) {
	s.emit("response.output_item.added", object{"output_index": s.index, "item": object{"type": "message", "id": s.id, "role": "assistant", "status": "in_progress", "content": []any{}}})
	s.part("response.content_part.added", object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
	for word := range a.words() {
		if !s.part("response.output_text.delta", object{"content_index": 0, "delta": word, "logprobs": []any{}}) {
			return
		}
	}
	s.part("response.output_text.done", object{"content_index": 0, "text": a.text, "logprobs": []any{}})
	s.part("response.content_part.done", object{"content_index": 0, "part": object{"type": "output_text", "text": a.text, "annotations": []any{}}})
}

func (s *responseStream) call(finished object) {
	args := finished["arguments"].(string)
	s.emit("response.output_item.added", object{"output_index": s.index, "item": object{
		"type": "function_call", "id": s.id, "call_id": finished["call_id"], "name": finished["name"], "arguments": "", "status": "in_progress",
	}})
	for _, part := range argumentParts(args) {
		if !s.part("response.function_call_arguments.delta", object{"delta": part}) {
			return
		}
	}
	s.part("response.function_call_arguments.done", object{"arguments": args})
}
