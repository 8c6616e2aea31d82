package gatewaytest

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
)

// gemini is Gemini's generateContent and streamGenerateContent.
type gemini struct{}

type geminiRequest struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Call   *struct{} `json:"functionCall"`
			Result *struct{} `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		Functions []struct {
			Name   string `json:"name"`
			Schema schema `json:"parameters"`
			JSON   schema `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

// geminiRoute finds what is asked for after the colon.
func (p *Provider) geminiRoute(w http.ResponseWriter, r *http.Request) {
	_, verb, _ := strings.Cut(r.PathValue("call"), ":")
	switch verb {
	case "generateContent", "streamGenerateContent":
		p.handle(gemini{}, false, (*exchange).turn)(w, r)
	case "countTokens":
		p.handle(gemini{}, true, func(x *exchange) { reply(w, http.StatusOK, object{"totalTokens": len(x.body) / 4}) })(w, r)
	default:
		reply(w, http.StatusNotFound, gemini{}.fault(http.StatusNotFound, "there is no method "+verb))
	}
}

func (gemini) key(r *http.Request) string {
	if key := r.Header.Get("X-Goog-Api-Key"); key != "" {
		return key
	}
	return r.URL.Query().Get("key")
}

func (gemini) read(r *http.Request, body []byte) ask {
	model, verb, _ := strings.Cut(r.PathValue("call"), ":")
	a := ask{model: model, stream: verb == "streamGenerateContent", events: r.URL.Query().Get("alt") == "sse"}
	var q geminiRequest
	if err := json.Unmarshal(body, &q); err != nil {
		a.problem = "Invalid JSON payload received: " + err.Error()
		return a
	}
	for _, t := range q.Tools {
		for _, f := range t.Functions {
			if f.JSON.Properties != nil {
				f.Schema = f.JSON
			}
			a.tools = append(a.tools, tool{f.Name, f.Schema})
		}
	}
	for _, c := range q.Contents {
		a.result = a.result && c.Role != "model"
		for _, part := range c.Parts {
			a.result = a.result || part.Result != nil
		}
	}
	if a.problem = q.unpaired(); len(q.Contents) == 0 {
		a.problem = "* GenerateContentRequest.contents: contents is not specified"
	}
	return a
}

// unpaired says that a turn with calls is not followed by one with as many results.
func (q *geminiRequest) unpaired() string {
	calls := 0
	for _, c := range q.Contents {
		results, next := 0, 0
		for _, part := range c.Parts {
			if part.Result != nil {
				results++
			}
			if part.Call != nil {
				next++
			}
		}
		if results != calls {
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		calls = next
	}
	return ""
}

func (gemini) fault(status int, message string) any {
	name := map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}[status]
	if name == "" {
		name = "INTERNAL"
	}
	return object{"error": object{"code": status, "message": message, "status": name}}
}

func (g gemini) broken(status int, message string) []byte { return data(g.fault(status, message)) }

func (gemini) contentType(a ask) string {
	if a.events {
		return "text/event-stream"
	}
	return "application/json; charset=UTF-8"
}

func (g gemini) body(a answer, last bool, parts ...object) object {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	body := object{"candidates": []object{candidate}, "modelVersion": a.model, "responseId": fmt.Sprintf("scripted-%d", a.number)}
	if last {
		candidate["finishReason"] = "STOP"
	}
	if a.usage != nil {
		input := a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
		usage := object{"promptTokenCount": input, "totalTokenCount": input}
		if last {
			usage["candidatesTokenCount"], usage["totalTokenCount"] = a.usage.Output-a.thought(), input+a.usage.Output
			if n := a.thought(); n > 0 {
				usage["thoughtsTokenCount"] = n
			}
		}
		if a.usage.CacheRead > 0 {
			usage["cachedContentTokenCount"] = a.usage.CacheRead
		}
		body["usageMetadata"] = usage
	}
	return body
}

func (gemini) calls(a answer) []object {
	var all []object
	for _, c := range a.calls {
		all = append(all, object{"functionCall": object{"id": c.id, "name": c.name, "args": c.value()}, "thoughtSignature": "c2NyaXB0ZWQ="})
	}
	return all
}

func (g gemini) whole(a answer) any {
	var parts []object
	if a.thinking != "" {
		parts = append(parts, object{"text": a.thinking, "thought": true})
	}
	if a.text != "" {
		parts = append(parts, object{"text": a.text})
	}
	return g.body(a, true, append(parts, g.calls(a)...)...)
}

func (g gemini) frames(a answer) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		out := sender{yield: yield}
		first := true
		put := func(piece, last bool, parts ...object) bool {
			body := g.body(a, last, parts...)
			if a.asked.events {
				return out.send(fmt.Appendf(nil, "data: %s\r\n\r\n", encode(body)), piece)
			}
			open, end := ",\r\n", ""
			if first {
				open = "["
			}
			if first = false; last {
				end = "]"
			}
			return out.send(fmt.Appendf(nil, "%s%s%s", open, encode(body), end), piece)
		}
		for _, word := range pieces(a.thinking) {
			put(true, false, object{"text": word, "thought": true})
		}
		for word := range a.words() {
			if !put(true, false, object{"text": word}) {
				return
			}
		}
		for _, call := range g.calls(a) {
			put(true, false, call)
		}
		put(false, true, object{"text": ""})
	}
}

func (x *exchange) geminiModels() {
	names, _ := x.p.offered("")
	all := make([]object, len(names))
	for i, name := range names {
		all[i] = object{"name": "models/" + name, "displayName": name, "inputTokenLimit": 32768, "outputTokenLimit": 8192, "supportedGenerationMethods": []string{"generateContent", "countTokens"}}
	}
	reply(x.w, http.StatusOK, object{"models": all})
}
