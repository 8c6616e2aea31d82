package gateway

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"sandboxd/internal/text"
)

// The protocols, as the log of calls has them.
const (
	messages    = "messages"
	countTokens = "count_tokens"
	chat        = "chat"
	completions = "completions"
	responses   = "responses"
	embeddings  = "embeddings"
	ollama      = "ollama"
	gemini      = "gemini"
	models      = "models"
)

// route is what a request asks for.
type route struct {
	protocol string
	dialect  Kind                 // in which errors are told
	kinds    []Kind               // of the providers that serve it
	path     string               // at the provider, as the protocol's documentation has it; what comes before Gemini's model
	named    []string             // the fields of the body that name the model, the last one first; none when nothing names it
	model    string               // Gemini's, from the path
	verb     string               // Gemini's, behind the model
	own      func(*exchange) bool // answers without a provider, or says that one is needed; nil when one always is
}

var (
	anthropicOnly = []Kind{Anthropic}
	openaiOnly    = []Kind{OpenAI}
	ollamaOnly    = []Kind{Ollama}
	geminiOnly    = []Kind{Gemini}
	openaiLike    = []Kind{OpenAI, Ollama}
)

func post(protocol string, dialect Kind, kinds []Kind, path string) route {
	return route{protocol: protocol, dialect: dialect, kinds: kinds, path: path, named: []string{"model"}}
}

// fixed are the routes without parts that vary. The paths of Anthropic's and OpenAI's protocols are without /v1: clients are configured
// with it and without.
var fixed = map[string]route{
	"POST /messages":               post(messages, Anthropic, anthropicOnly, "/v1/messages"),
	"POST /messages/count_tokens":  post(countTokens, Anthropic, anthropicOnly, "/v1/messages/count_tokens"),
	"POST /chat/completions":       post(chat, OpenAI, openaiLike, "/v1/chat/completions"),
	"POST /completions":            post(completions, OpenAI, openaiLike, "/v1/completions"),
	"POST /embeddings":             post(embeddings, OpenAI, openaiLike, "/v1/embeddings"),
	"POST /responses":              post(responses, OpenAI, openaiOnly, "/v1/responses"),
	"POST /responses/compact":      post(responses, OpenAI, openaiOnly, "/v1/responses/compact"),
	"POST /responses/input_tokens": post(countTokens, OpenAI, openaiOnly, "/v1/responses/input_tokens"),
	"GET /models":                  {protocol: models, dialect: OpenAI, own: (*exchange).list},
	"POST /api/chat":               post(ollama, Ollama, ollamaOnly, "/api/chat"),
	"POST /api/generate":           post(ollama, Ollama, ollamaOnly, "/api/generate"),
	"POST /api/embed":              post(embeddings, Ollama, ollamaOnly, "/api/embed"),
	"POST /api/embeddings":         post(embeddings, Ollama, ollamaOnly, "/api/embeddings"),
	"POST /api/show":               {protocol: models, dialect: Ollama, kinds: ollamaOnly, path: "/api/show", named: []string{"model", "name"}},
	"GET /api/tags":                {protocol: models, dialect: Ollama, kinds: ollamaOnly, path: "/api/tags", own: (*exchange).listOllama},
	"GET /api/version":             {protocol: models, dialect: Ollama, kinds: ollamaOnly, path: "/api/version"},
	"GET /v1beta/models":           {protocol: models, dialect: Gemini, own: (*exchange).listGemini},
}

// geminiVerbs are what may be asked of Gemini's models.
var geminiVerbs = map[string]string{"generateContent": gemini, "streamGenerateContent": gemini, "countTokens": countTokens, "embedContent": embeddings}

var (
	// stored are the paths below /responses of one that a provider keeps.
	stored = regexp.MustCompile(`^(GET|DELETE) /responses/[\w-]{1,200}$|^GET /responses/[\w-]{1,200}/input_items$|^POST /responses/[\w-]{1,200}/cancel$`)
	// geminiCall has the version, the model and the verb.
	geminiCall = regexp.MustCompile(`^POST (/v1(?:beta)?)/models/([^:]{1,200}(?::[^:]{1,100})??):(\w+)$`)
)

// routeOf finds what a request asks for. A route that comes with a problem tells only how to word it.
func routeOf(r *http.Request) (route, *problem) {
	if m := geminiCall.FindStringSubmatch(r.Method + " " + r.URL.Path); m != nil && geminiVerbs[m[3]] != "" {
		return route{protocol: geminiVerbs[m[3]], dialect: Gemini, kinds: geminiOnly, path: m[1] + "/models/", named: []string{"model"}, model: m[2], verb: m[3]}, nil
	}
	path := r.URL.Path
	for strings.HasPrefix(path, "/v1/") {
		path = path[len("/v1"):]
	}
	switch at := r.Method + " " + path; {
	case fixed[at].protocol != "":
		rt := fixed[at]
		if rt.protocol == models && r.Header.Get("Anthropic-Version") != "" {
			rt.dialect = Anthropic
		}
		return rt, nil
	case at == "GET /responses" && r.Header.Get("Upgrade") != "": // Codex continues over plain HTTP at once after this status
		return route{protocol: responses, dialect: OpenAI}, refuse(http.StatusUpgradeRequired, "Responses are not served over WebSocket here. Send POST /v1/responses.")
	case stored.MatchString(at):
		return route{protocol: responses, dialect: OpenAI, kinds: openaiOnly, path: "/v1" + path}, nil
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/models/") && !strings.HasPrefix(r.URL.Path, "/v1beta/"):
		return route{protocol: models, dialect: dialectOf(r), model: path[len("/models/"):], own: (*exchange).one}, nil
	}
	return route{dialect: dialectOf(r)}, refuse(http.StatusNotFound, "The model gateway does not serve %s %s. It serves /v1/messages, /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, "+
		"/v1/models, Ollama's /api/chat, /api/generate, /api/embed, /api/tags and /api/show, and Gemini's /v1beta/models.", r.Method, text.OneLine(r.URL.Path, maxModel))
}

// dialectOf guesses what a client speaks whose path says nothing.
func dialectOf(r *http.Request) Kind {
	switch path := r.URL.Path; {
	case r.Header.Get("Anthropic-Version") != "" || strings.Contains(path, "/messages"):
		return Anthropic
	case strings.HasPrefix(path, "/v1beta/") || strings.HasPrefix(path, "/v1alpha/") || r.Header.Get("X-Goog-Api-Key") != "":
		return Gemini
	case strings.HasPrefix(path, "/api/"):
		return Ollama
	}
	return OpenAI
}

// at gives the path at the provider for a model.
func (r route) at(model string) string {
	if r.verb == "" {
		return r.path
	}
	return r.path + url.PathEscape(model) + ":" + r.verb
}

// endpoint gives the URL of a path at a provider. OpenAI's SDKs take a base URL with the version in it, the others' one without, and
// people mix that up: a version at the end of the others' is dropped, and one is added for OpenAI when the base URL has no path at all.
func (p Provider) endpoint(path string) string {
	base, version := p.base(), []string{"/v1"}
	switch p.Kind {
	case OpenAI:
		if _, rest, _ := strings.Cut(base, "://"); strings.Contains(rest, "/") {
			path = strings.TrimPrefix(path, "/v1")
		}
		return base + path
	case Ollama:
		version = []string{"/v1", "/api"}
	case Gemini:
		version = []string{"/v1beta", "/v1"}
	}
	for _, v := range version {
		if cut, ok := strings.CutSuffix(base, v); ok {
			return cut + path
		}
	}
	return base + path
}
