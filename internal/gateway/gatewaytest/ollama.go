package gatewaytest

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"

	"sandboxd/internal/gateway"
)

// ollama is Ollama's /api/chat, and with prompt its /api/generate.
type ollama struct{ prompt bool }

type ollamaRequest struct {
	Model    string `json:"model"`
	Stream   *bool  `json:"stream"` // true unless it says otherwise
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name   string `json:"name"`
			Schema schema `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

// ollamaRoutes adds its paths, and those of OpenAI's protocol that it speaks too.
func (p *Provider) ollamaRoutes(mux *http.ServeMux, kinds []gateway.Kind) {
	mux.HandleFunc("POST /api/chat", p.handle(ollama{}, false, (*exchange).turn))
	mux.HandleFunc("POST /api/generate", p.handle(ollama{prompt: true}, false, (*exchange).turn))
	mux.HandleFunc("GET /api/tags", p.handle(ollama{}, true, (*exchange).ollamaTags))
	mux.HandleFunc("POST /api/show", p.handle(ollama{}, true, (*exchange).ollamaShow))
	mux.HandleFunc("POST /api/embed", p.handle(ollama{}, true, (*exchange).ollamaEmbed))
	mux.HandleFunc("GET /api/version", p.handle(ollama{}, true, func(x *exchange) { reply(x.w, http.StatusOK, object{"version": "0.17.4"}) }))
	if !slices.Contains(kinds, gateway.OpenAI) {
		mux.HandleFunc("POST /v1/chat/completions", p.handle(chat{}, false, (*exchange).turn))
		mux.HandleFunc("POST /v1/embeddings", p.handle(chat{}, true, (*exchange).embeddings))
	}
}

func (ollama) key(r *http.Request) string { return bearer(r) }

func (o ollama) read(_ *http.Request, body []byte) ask {
	var q ollamaRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return ask{problem: err.Error()}
	}
	a := ask{model: q.Model, stream: q.Stream == nil || *q.Stream}
	for _, t := range q.Tools {
		a.tools = append(a.tools, tool{t.Function.Name, t.Function.Schema})
	}
	for _, m := range q.Messages {
		a.result = m.Role == "tool" || a.result && m.Role != "assistant"
	}
	if q.Model == "" {
		a.problem = "model is required"
	}
	return a
}

func (ollama) fault(_ int, message string) any { return object{"error": message} }

func (o ollama) broken(status int, message string) []byte { return line(o.fault(status, message)) }

func (ollama) contentType(ask) string { return "application/x-ndjson" }

// line is one of a stream of lines.
func line(members any) []byte { return append(encode(members), '\n') }

// chunk is an answer or a part of one.
func (o ollama) chunk(a answer, said object) object {
	body := object{"model": a.model, "created_at": "2026-01-01T00:00:00.123456789Z", "done": false}
	if !o.prompt {
		said["role"] = "assistant"
		if said["content"] == nil {
			said["content"] = ""
		}
		body["message"] = said
		return body
	}
	body["response"] = ""
	if text := said["content"]; text != nil {
		body["response"] = text
	}
	if thinking := said["thinking"]; thinking != nil {
		body["thinking"] = thinking
	}
	return body
}

// end makes a part the last one.
func (ollama) end(a answer, body object) object {
	body["done"], body["done_reason"] = true, "stop"
	body["total_duration"], body["load_duration"] = 5_000_000, 1_000_000
	if a.usage != nil {
		body["prompt_eval_count"], body["prompt_eval_duration"] = a.usage.Input+a.usage.CacheRead+a.usage.CacheWrite, 1_000_000
		body["eval_count"], body["eval_duration"] = a.usage.Output, 3_000_000
	}
	return body
}

func (ollama) calls(a answer) []object {
	var all []object
	for i, c := range a.calls {
		all = append(all, object{"id": c.id, "function": object{"index": i, "name": c.name, "arguments": c.value()}})
	}
	return all
}

func (o ollama) whole(a answer) any {
	said := object{"content": a.text}
	if a.thinking != "" {
		said["thinking"] = a.thinking
	}
	if calls := o.calls(a); calls != nil && !o.prompt {
		said["tool_calls"] = calls
	}
	return o.end(a, o.chunk(a, said))
}

func (o ollama) frames(a answer) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		out := sender{yield: yield}
		for _, word := range pieces(a.thinking) {
			out.send(line(o.chunk(a, object{"thinking": word})), true)
		}
		for word := range a.words() {
			if !out.send(line(o.chunk(a, object{"content": word})), true) {
				return
			}
		}
		for _, call := range o.calls(a) {
			out.send(line(o.chunk(a, object{"tool_calls": []object{call}})), true)
		}
		out.send(line(o.end(a, o.chunk(a, object{}))), false)
	}
}

// ollamaDetails say what a model is.
var ollamaDetails = object{"parent_model": "", "format": "gguf", "family": "llama", "families": []string{"llama"}, "parameter_size": "1.2B", "quantization_level": "Q4_K_M"}

func (x *exchange) ollamaTags() {
	names, _ := x.p.offered("")
	all := make([]object, len(names))
	for i, name := range names {
		all[i] = object{"name": name, "model": name, "modified_at": "2026-01-01T00:00:00Z", "size": 1_300_000_000, "digest": "scripted", "details": ollamaDetails}
	}
	reply(x.w, http.StatusOK, object{"models": all})
}

// named gives the model that a request is about, and refuses the request when it is not served.
func (x *exchange) named() (string, bool) {
	if x.ask.problem != "" {
		reply(x.w, http.StatusBadRequest, x.speak.fault(http.StatusBadRequest, x.ask.problem))
		return "", false
	}
	_, ok := x.p.offered(x.ask.model)
	if !ok {
		reply(x.w, http.StatusNotFound, x.speak.fault(http.StatusNotFound, "model '"+x.ask.model+"' not found"))
	}
	return x.ask.model, ok
}

func (x *exchange) ollamaShow() {
	if _, ok := x.named(); ok {
		reply(x.w, http.StatusOK, object{
			"modelfile": "", "parameters": "", "template": "", "details": ollamaDetails, "capabilities": []string{"completion", "tools", "thinking"},
			"model_info": object{"general.architecture": "llama", "llama.context_length": 32768},
		})
	}
}

func (x *exchange) ollamaEmbed() {
	if model, ok := x.named(); ok {
		reply(x.w, http.StatusOK, object{"model": model, "embeddings": [][]float32{vector}, "prompt_eval_count": 5})
	}
}
