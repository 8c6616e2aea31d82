package gateway

import (
	"slices"
	"time"
)

// modelShape is a model in a list, for the clients of Anthropic and of OpenAI.
type modelShape struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Owner   string    `json:"owned_by"`
	Type    string    `json:"type"`
	Name    string    `json:"display_name"`
	Time    time.Time `json:"created_at"`
}

// shapeOf gives a model whose age is not known: both protocols have the beginning of 1970 for that.
func shapeOf(name string) modelShape {
	return modelShape{ID: name, Object: "model", Owner: "sandboxd", Type: "model", Name: name, Time: time.Unix(0, 0).UTC()}
}

// answer writes an answer of our own.
func (x *exchange) answer(shape any) bool {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = x.w.Write(encode(shape)) // a client that is gone needs no answer
	return true
}

// list answers with the names that can be asked for.
func (x *exchange) list() bool {
	names := x.t.names(x.caller.User, nil)
	type object = map[string]any
	list := object{"object": "list", "has_more": false, "first_id": nil, "last_id": nil,
		"models": []string{}} // Codex looks for models of another form there, and takes its own when there are none
	data := make([]modelShape, 0, len(names))
	for _, name := range names {
		data = append(data, shapeOf(name))
	}
	if list["data"] = data; len(names) > 0 {
		list["first_id"], list["last_id"] = names[0], names[len(names)-1]
	}
	return x.answer(list)
}

// one answers with one name.
func (x *exchange) one() bool {
	names := x.t.names(x.caller.User, nil)
	if slices.Contains(names, x.route.model) {
		return x.answer(shapeOf(x.route.model))
	}
	noModel("There is no model %s. %s", quoted(x.route.model), instead(names)).write(x.w, x.route.dialect)
	return true
}

// listOllama answers as Ollama lists its models. A provider that is asked for anything lists them itself.
func (x *exchange) listOllama() bool {
	for _, p := range x.t.offered(x.caller.User, ollamaOnly) {
		if len(p.Models) == 0 {
			return false
		}
	}
	type model struct {
		Name    string            `json:"name"`
		Model   string            `json:"model"`
		Changed time.Time         `json:"modified_at"`
		Size    int64             `json:"size"`
		Digest  string            `json:"digest"`
		Details map[string]string `json:"details"`
	}
	list := []model{}
	for _, name := range x.t.names(x.caller.User, ollamaOnly) {
		list = append(list, model{Name: name, Model: name, Changed: time.Unix(0, 0).UTC(), Details: map[string]string{}})
	}
	return x.answer(map[string]any{"models": list})
}

// listGemini answers as Gemini lists its models.
func (x *exchange) listGemini() bool {
	type model struct {
		Name    string   `json:"name"`
		Display string   `json:"displayName"`
		Methods []string `json:"supportedGenerationMethods"`
	}
	list := []model{}
	for _, name := range x.t.names(x.caller.User, geminiOnly) {
		list = append(list, model{"models/" + name, name, []string{"generateContent", "streamGenerateContent", "countTokens"}})
	}
	return x.answer(map[string]any{"models": list})
}
