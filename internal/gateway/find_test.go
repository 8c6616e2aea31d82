package gateway

import (
	"slices"
	"strings"
	"testing"
)

func TestEndpoint_BaseURLWithAndWithoutVersion(t *testing.T) {
	for _, c := range []struct {
		kind             Kind
		base, path, want string
	}{
		{OpenAI, "https://h", "/v1/chat/completions", "https://h/v1/chat/completions"},
		{OpenAI, "https://h/v1", "/v1/chat/completions", "https://h/v1/chat/completions"},
		{OpenAI, "https://h/v1beta/openai", "/v1/chat/completions", "https://h/v1beta/openai/chat/completions"},
		{OpenAI, "https://h/api/paas/v4", "/v1/models", "https://h/api/paas/v4/models"},
		{Anthropic, "https://h", "/v1/messages", "https://h/v1/messages"},
		{Anthropic, "https://h/v1", "/v1/messages", "https://h/v1/messages"},
		{Anthropic, "https://h/anthropic", "/v1/messages", "https://h/anthropic/v1/messages"},
		{Ollama, "http://h:11434", "/api/chat", "http://h:11434/api/chat"},
		{Ollama, "http://h:11434/v1", "/api/chat", "http://h:11434/api/chat"},
		{Ollama, "http://h:11434/api", "/v1/embeddings", "http://h:11434/v1/embeddings"},
		{Gemini, "https://h/v1beta", "/v1beta/models/m:x", "https://h/v1beta/models/m:x"},
		{Gemini, "https://h", "/v1/models/m:x", "https://h/v1/models/m:x"},
	} {
		if got := (Provider{Kind: c.kind, BaseURL: c.base}).endpoint(c.path); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.base, got, c.want)
		}
	}
}

// findTable has providers of the server, of u1 and of u2.
func findTable() *table {
	p := func(owner, name string, kind Kind, models ...string) configured {
		return configured{Provider: Provider{Owner: owner, Name: name, Kind: kind, Models: models}}
	}
	return &table{
		providers: []configured{
			p("", "any", OpenAI), p("", "claude", Anthropic, "opus", "haiku"), p("", "local", Ollama, "llama3:latest", "qwen:7b"), p("", "open", OpenAI, "gpt", "mini"),
			p("u1", "claude", Anthropic, "opus", "mine"), p("u2", "secret", OpenAI, "theirs"),
		},
		aliases: []Alias{
			{Name: "house", Targets: []Target{{"gone", "x"}, {"claude", "haiku"}, {"open", "gpt"}, {"local", "qwen:7b"}}},
			{Name: "fast", Targets: []Target{{"local", "llama3"}}},
			{Owner: "u1", Name: "house", Targets: []Target{{"claude", "mine"}, {"secret", "theirs"}}},
			{Owner: "u2", Name: "private", Targets: []Target{{"secret", "theirs"}}},
			{Owner: "u2", Name: "sly", Targets: []Target{{"open", "not-listed"}}},
		},
	}
}

func TestFind_AliasThenListThenAny(t *testing.T) {
	messages, chat := fixed["POST /messages"], fixed["POST /chat/completions"]
	for _, c := range []struct {
		user, asked string
		route       route
		want        string // candidates, or a part of the problem
	}{
		{"u3", "house", messages, "/claude=haiku"},
		{"u2", "sly", chat, "leads to no provider"},
		{"u3", "house", chat, "/open=gpt /local=qwen:7b"},
		{"u1", "house", messages, "u1/claude=mine"},
		{"u1", "house", chat, "The alias \"house\" leads to no provider of the kind openai or ollama"},
		{"u1", "opus", messages, "u1/claude=opus"},
		{"u3", "opus", messages, "/claude=opus"},
		{"u3", "mine", messages, "There is no model \"mine\". These can be asked for: house, best, fast, opus, haiku."},
		{"u3", "gpt", chat, "/open=gpt"},
		{"u3", "new", chat, "/any=new"},
		{"u3", "llama3", fixed["POST /api/chat"], "/local=llama3:latest"},
		{"u3", "qwen", fixed["POST /api/chat"], "There is no model"},
		{"u3", "gpt", messages, "The model \"gpt\" is one of the provider \"open\" (openai)"},
		{"u2", "theirs", chat, "u2/secret=theirs"},
		{"u1", "private", chat, "/any=private"},
		{"u3", "best", messages, "/claude=opus"},
		{"u3", "fast", messages, "The alias \"fast\" leads to no provider of the kind anthropic"},
		{"u3", "fast", chat, "/local=llama3"},
		{"u3", "best", chat, "/local=llama3:latest"},
		{"u1", "best", messages, "u1/claude=opus"},
		{"u3", "m", route{kinds: geminiOnly}, "kind gemini. There are only: any (openai), claude (anthropic), local (ollama), open (openai)."},
		{"u3", "", route{kinds: openaiOnly}, "/any= /open="},
	} {
		found, wrong := findTable().find(c.user, c.asked, c.route)
		var got []string
		for _, f := range found {
			got = append(got, f.Owner+"/"+f.Name+"="+f.model)
		}
		if text := strings.Join(got, " "); wrong == nil && text != c.want || wrong != nil && (len(found) > 0 || !strings.Contains(wrong.message, c.want)) {
			t.Errorf("%s asks for %q: %s, %v", c.user, c.asked, text, wrong)
		}
	}
	empty := &table{providers: []configured{{Provider: Provider{Name: "any", Kind: OpenAI}}}}
	if _, wrong := empty.find("u", "best", chat); wrong == nil || wrong.status != 404 || !strings.Contains(wrong.message, "lists no models") {
		t.Errorf("best of a provider without a list: %v", wrong)
	}
}

func TestModels_AliasesThenWhatIsListed(t *testing.T) {
	s := &Service{}
	s.at.Store(findTable())
	for user, want := range map[string]string{
		"u1": "house fast best opus mine haiku llama3:latest qwen:7b gpt mini",
		"u2": "house fast private best theirs opus haiku llama3:latest qwen:7b gpt mini",
	} {
		if got := s.Models(user); strings.Join(got, " ") != want {
			t.Errorf("%s: %s", user, got)
		}
	}
	if got := (&Service{}).Models("u1"); got == nil || !slices.Equal(got, []string{}) {
		t.Errorf("without providers: %v", got)
	}
}
