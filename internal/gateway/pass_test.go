package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// client asks a gateway that serves on loopback.
type client struct {
	t   testing.TB
	s   *gateway.Service
	url string
}

func serve(t testing.TB, setup gateway.Setup) *client {
	t.Helper()
	s := gateway.NewTestService(setup)
	server := httptest.NewServer(s.Handler(gateway.CallerInTest))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &client{t, s, server.URL}
}

// serveOne serves one provider, whose name is its kind.
func serveOne(t testing.TB, p *gatewaytest.Provider, kind gateway.Kind, models ...string) *client {
	t.Helper()
	return serve(t, gateway.Setup{Providers: []gateway.Provider{provider(p.BaseURL(kind), kind, models...)}, Keys: map[string]string{string(kind): p.Key()}})
}

func provider(url string, kind gateway.Kind, models ...string) gateway.Provider {
	return gateway.Provider{ID: string(kind), Name: string(kind), Kind: kind, BaseURL: url, Models: models}
}

// request makes a request of "METHOD /path" with headers as pairs.
func (c *client) request(at, body string, header ...string) *http.Request {
	c.t.Helper()
	method, path, _ := strings.Cut(at, " ")
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// do sends a request and reads the whole answer.
func (c *client) do(at, body string, header ...string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(c.request(at, body, header...))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s: %v after %q", at, err, answer)
	}
	return res, string(answer)
}

// recorded waits until n calls are recorded, and gives the last one.
func (c *client) recorded(n int) gateway.Call {
	c.t.Helper()
	limit := time.After(time.Minute)
	for {
		if calls := c.s.Recorded(); len(calls) >= n {
			return calls[n-1]
		}
		select {
		case <-time.After(time.Millisecond): // it is recorded once the client has its answer
		case <-limit:
			c.t.Fatalf("%d calls are recorded, want %d", len(c.s.Recorded()), n)
		}
	}
}

// protocolCase is a request of one protocol.
type protocolCase struct {
	name, at, body string // %s is the model, in both
	kind           gateway.Kind
	protocol       string
	stream         bool
}

var protocolCases = []protocolCase{
	{"messages", "POST /v1/messages", `{"model":"%s","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, gateway.Anthropic, "messages", false},
	{"messages, streamed", "POST /v1/messages?beta=true", `{"model":"%s","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, gateway.Anthropic, "messages", true},
	{"chat", "POST /v1/chat/completions", `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`, gateway.OpenAI, "chat", false},
	{"chat, streamed", "POST /v1/chat/completions", `{"model":"%s","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`, gateway.OpenAI, "chat", true},
	{"chat at ollama", "POST /v1/chat/completions", `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`, gateway.Ollama, "chat", false},
	{"responses", "POST /v1/responses", `{"model":"%s","input":"hi"}`, gateway.OpenAI, "responses", false},
	{"responses, streamed", "POST /v1/responses", `{"model":"%s","stream":true,"input":"hi"}`, gateway.OpenAI, "responses", true},
	{"ollama", "POST /api/chat", `{"model":"%s","stream":false,"messages":[{"role":"user","content":"hi"}]}`, gateway.Ollama, "ollama", false},
	{"ollama, streamed", "POST /api/chat", `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`, gateway.Ollama, "ollama", true},
	{"ollama generate", "POST /api/generate", `{"model":"%s","prompt":"hi"}`, gateway.Ollama, "ollama", true},
	{"gemini", "POST /v1beta/models/%s:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, gateway.Gemini, "gemini", false},
	{"gemini, events", "POST /v1beta/models/%s:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, gateway.Gemini, "gemini", true},
	{"gemini, array", "POST /v1beta/models/%s:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, gateway.Gemini, "gemini", true},
}

// with gives the path and the body with a model in one of them.
func (p protocolCase) with(model string) (at, body string) {
	if strings.Contains(p.at, "%s") {
		return fmt.Sprintf(p.at, model), p.body
	}
	return p.at, fmt.Sprintf(p.body, model)
}

func TestHandler_EachProtocolPassesAndIsCounted(t *testing.T) {
	for _, c := range protocolCases {
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t, c.kind)
			p.Play(gatewaytest.Script{Text: "Hello there, this is an answer.", Thinking: "hm", Usage: &gateway.Tokens{Input: 1000, Output: 70, CacheRead: 50}})
			g := serve(t, gateway.Setup{
				Providers: []gateway.Provider{provider(p.BaseURL(c.kind), c.kind)}, Keys: map[string]string{string(c.kind): p.Key()}, Settings: gateway.Settings{LogContent: true},
				Aliases: []gateway.Alias{{Owner: "u1", Name: "mine", Targets: []gateway.Target{{Provider: string(c.kind), Model: "priced-1"}}}},
			})
			at, body := c.with("mine")
			res, answer := g.do(at, body, "Authorization", "Bearer none", "Test-Sandbox", "s1")
			if res.StatusCode != http.StatusOK || !strings.Contains(answer, "there") {
				t.Fatalf("%d %s", res.StatusCode, answer)
			}
			sent := p.Requests()[0]
			if sent.Model != "priced-1" || sent.Stream != c.stream {
				t.Errorf("the provider was asked for %q, stream %t", sent.Model, sent.Stream)
			}
			call := g.recorded(1)
			if call.Status != 200 || call.Protocol != c.protocol || call.Asked != "mine" || call.Model != "priced-1" || call.Provider != string(c.kind) || call.Stream != c.stream ||
				call.User != "u1" || call.Sandbox != "s1" || call.Label != "box" || call.FirstByte <= 0 || call.Took < call.FirstByte || call.Problem != "" {
				t.Errorf("recorded %+v", call)
			}
			if c.kind != gateway.Ollama && (call.Tokens != gateway.Tokens{Input: 1000, Output: 70, CacheRead: 50} || !call.Priced || call.Cost != 1000+2*70+3*50) {
				t.Errorf("counted %+v, %d", call.Tokens, call.Cost)
			}
			if call.Tokens.Output != 70 || call.Request != body || call.Answer != answer {
				t.Errorf("counted %+v, logged %q and %q", call.Tokens, call.Request, call.Answer)
			}
		})
	}
}

func TestHandler_AnswersAreAsTheProviderSentThem(t *testing.T) {
	for _, c := range protocolCases {
		var sent bytes.Buffer // by the provider
		p := gatewaytest.NewProvider(t, c.kind)
		p.Keyless()
		copied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r2 := r.Clone(r.Context())
			r2.RequestURI, r2.URL.Scheme, r2.URL.Host = "", "http", strings.TrimPrefix(p.URL(), "http://")
			res, err := http.DefaultTransport.RoundTrip(r2)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			_, _ = io.Copy(io.MultiWriter(w, &sent), res.Body) // compared below
		}))
		defer copied.Close()
		p.Play(gatewaytest.Script{Text: "It says \"ok\" – twice.", Thinking: "hm", Calls: []gatewaytest.Call{{Name: "run", Args: `{"a":1}`}}})
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(copied.URL, c.kind)}})
		at, body := c.with("m")
		if _, answer := g.do(at, body); answer != sent.String() {
			t.Errorf("%s: got\n%s\nwas sent\n%s", c.name, answer, sent.String())
		}
		g.recorded(1)
	}
}

func TestHandler_UsageThatTheClientDidNotAskForIsCountedAndNotShown(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.OpenAI)
	p.Play(gatewaytest.Script{Text: "a b c"}, gatewaytest.Script{Text: "a b c"})
	g := serveOne(t, p, gateway.OpenAI)
	const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	_, answer := g.do("POST /v1/chat/completions", body)
	if call := g.recorded(1); call.Tokens != (gateway.Tokens{Input: 10, Output: 5}) {
		t.Errorf("counted %+v", call.Tokens)
	}
	if strings.Contains(answer, `"choices":[]`) || !strings.HasSuffix(answer, "\n\ndata: [DONE]\n\n") || strings.Contains(answer, "\n\n\n") {
		t.Errorf("the client got %q", answer)
	}
	if sent := p.Requests()[0].Body; !bytes.Contains(sent, []byte(`"include_usage":true`)) {
		t.Errorf("the provider got %s", sent)
	}
	_, answer = g.do("POST /v1/chat/completions", strings.Replace(body, "{", `{"stream_options":{"include_usage":true},`, 1))
	if !strings.Contains(answer, `"choices":[]`) {
		t.Errorf("a client that asks gets %q", answer)
	}
}

func TestHandler_WhatAProviderDoesNotCountIsEstimated(t *testing.T) {
	types := map[bool]string{true: "text/event-stream", false: "application/json"}
	streams, said := false, ""
	url, _ := echo(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", types[streams])
		_, _ = io.WriteString(w, said) // counted by the gateway
	})
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.OpenAI)}, Keys: map[string]string{"openai": "k"}})
	piece := func(text string) string {
		return "data: {\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n"
	}
	const end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for i, c := range []struct {
		streams     bool
		said        string
		least, most int64
	}{
		{true, piece("a") + piece("b") + end, 4, 4},
		{true, piece(strings.Repeat("long ", 20_000)) + end, 390, 400},
		{false, `{"choices":[{"message":{"content":"` + strings.Repeat("word ", 100) + `"}}]}`, 125, 140},
	} {
		streams, said = c.streams, c.said
		g.do("POST /v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hi"}]}`, c.streams))
		if got := g.recorded(i + 1).Tokens; got.Output < c.least || got.Output > c.most || got.Input < 15 || got.Input > 30 {
			t.Errorf("%.60q counts as %+v", c.said, got)
		}
	}
}

// echo is a provider that notes requests and answers with a function.
func echo(t testing.TB, answer http.HandlerFunc) (url string, seen chan *http.Request) {
	t.Helper()
	seen = make(chan *http.Request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen <- r
		answer(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, seen
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"ok":true}`) // looked at by the client
}

const secretKey = "sk-secret-0123456789abcdef"

func TestHandler_HeadersSurviveAndCredentialsDoNot(t *testing.T) {
	url, seen := echo(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Anthropic-Ratelimit-Requests-Remaining", "7")
		h.Set("Request-Id", "req_1")
		h.Set("Set-Cookie", "a=b")
		h.Set("Strict-Transport-Security", "max-age=1")
		h.Set("X-Echo", r.Header.Get("X-Api-Key"))
		ok(w, r)
	})
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.Anthropic)}, Keys: map[string]string{"anthropic": secretKey}})
	res, _ := g.do("POST /v1/messages?beta=true&key=k&Key=k&%6bey=k&api_key=k&x=%2F", `{"model":"m"}`,
		"Anthropic-Beta", "a", "Anthropic-Beta", "b", "Anthropic-Version", "2099-01-01", "X-Stainless-Lang", "js", "Openai-Project", "p", "X-Unknown", "u", "User-Agent", "claude",
		"Authorization", "Bearer guest", "X-Api-Key", "guest", "X-Goog-Api-Key", "guest", "Cookie", "c=guest", "Connection", "X-Hop", "X-Hop", "1", "Accept-Encoding", "gzip, br",
		"X-Forwarded-For", "10.0.0.1", "Proxy-Authorization", "guest", "Te", "trailers")
	r := <-seen
	for name, want := range map[string]string{
		"Anthropic-Version": "2099-01-01", "X-Stainless-Lang": "js", "Openai-Project": "p", "X-Unknown": "u", "User-Agent": "claude", "X-Api-Key": secretKey, "Accept-Encoding": "identity",
		"Authorization": "", "X-Goog-Api-Key": "", "Cookie": "", "X-Hop": "", "X-Forwarded-For": "", "Proxy-Authorization": "", "Te": "", "X-Idempotency-Key": "",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q reaches the provider, want %q", name, got, want)
		}
	}
	if got := r.Header["Anthropic-Beta"]; len(got) != 2 || r.URL.RequestURI() != "/v1/messages?beta=true&x=%2F" {
		t.Errorf("the provider got %q at %s", got, r.URL.RequestURI())
	}
	for name, want := range map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "7", "Request-Id": "req_1", "Set-Cookie": "", "Strict-Transport-Security": "", "X-Echo": ""} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q reaches the client, want %q", name, got, want)
		}
	}
}

func TestHandler_TheKeyIsWhereTheProtocolHasIt(t *testing.T) {
	url, seen := echo(t, ok)
	for kind, header := range map[gateway.Kind]string{gateway.OpenAI: "Authorization", gateway.Ollama: "Authorization", gateway.Gemini: "X-Goog-Api-Key", gateway.Anthropic: "X-Api-Key"} {
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, kind)}, Keys: map[string]string{string(kind): secretKey}})
		for _, c := range protocolCases {
			if c.kind == kind && !c.stream {
				g.do(c.with("m"))
				if r := <-seen; strings.TrimPrefix(r.Header.Get(header), "Bearer ") != secretKey {
					t.Errorf("%s: %v", c.name, r.Header)
				}
				break
			}
		}
	}
	serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.Ollama)}}).do("POST /api/chat", `{"model":"m"}`, "Authorization", "Bearer guest")
	if r := <-seen; r.Header.Get("Authorization") != "" {
		t.Errorf("without a key the provider gets %q", r.Header.Get("Authorization"))
	}
}

func TestHandler_AKeyThatAProviderRepeatsIsCutOut(t *testing.T) {
	pieces := func(w http.ResponseWriter, r *http.Request) {
		kind := r.URL.Query().Get("type")
		w.Header().Set("Content-Type", kind)
		if r.URL.Query().Has("bad") {
			w.WriteHeader(http.StatusBadRequest)
		}
		text := `{"error":{"message":"bad key: ` + secretKey + `."}}`
		if kind == "text/event-stream" {
			text = "data: " + text + "\n\n"
		}
		if kind == "application/x-ndjson" {
			text = strings.Repeat(" ", 70<<10) + text + "\n"
		}
		for piece := range strings.SplitSeq(text, "") {
			_, _ = io.WriteString(w, piece) // the client looks at it
			_ = http.NewResponseController(w).Flush()
		}
	}
	url, _ := echo(t, pieces)
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.OpenAI)}, Keys: map[string]string{"openai": secretKey}})
	for i, query := range []string{"type=application/json", "type=application/json&bad", "type=text/event-stream", "type=application/x-ndjson", "type=text/html", "type=text/html&bad"} {
		res, answer := g.do("POST /v1/chat/completions?"+query, `{"model":"m","stream":true}`)
		if strings.Contains(answer, "sk-secret") || !strings.Contains(answer, "key") && res.StatusCode == 200 || strings.Contains(g.recorded(i+1).Problem, "sk-secret") {
			t.Errorf("%s: %d %q", query, res.StatusCode, answer)
		}
	}
}

func TestHandler_NamesThatCanBeAskedForAreListedForEveryClient(t *testing.T) {
	p := gatewaytest.NewProvider(t)
	g := serve(t, gateway.Setup{
		Providers: []gateway.Provider{provider(p.URL(), gateway.Anthropic, "claude-1", "claude-2"), provider(p.URL(), gateway.Gemini, "gemini-1"), provider(p.URL(), gateway.Ollama)},
		Keys:      map[string]string{"ollama": p.Key()}, Aliases: []gateway.Alias{{Name: "house", Targets: []gateway.Target{{Provider: "anthropic", Model: "claude-1"}}}},
	})
	for at, want := range map[string]string{
		"GET /v1/models":             `"id":"house"`,
		"GET /models":                `"first_id":"house"`,
		"GET /v1/v1/models?limit=20": `"object":"list"`,
		"GET /v1/models/claude-2":    `"created":0`,
		"GET /v1beta/models":         `"name":"models/gemini-1"`,
		"GET /api/tags":              `scripted-1`,
		"GET /":                      "gateway",
	} {
		if res, answer := g.do(at, ""); res.StatusCode != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", at, res.StatusCode, answer)
		}
	}
	if res, err := http.Head(g.url); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
	}
	if n := len(g.s.Recorded()); n != 1 { // the provider's own list
		t.Errorf("%d calls are recorded", n)
	}
}

func TestHandler_CountsAndEmbeddingsPass(t *testing.T) {
	p := gatewaytest.NewProvider(t)
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(p.URL(), gateway.Anthropic), provider(p.URL(), gateway.OpenAI), provider(p.URL(), gateway.Ollama), provider(p.URL(), gateway.Gemini)},
		Keys: map[string]string{"anthropic": p.Key(), "openai": p.Key(), "ollama": p.Key(), "gemini": p.Key()}})
	for i, c := range []struct{ at, body, protocol, want string }{
		{"POST /v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "count_tokens", "input_tokens"},
		{"POST /v1beta/models/m:countTokens", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "count_tokens", "totalTokens"},
		{"POST /v1/embeddings", `{"model":"m","input":"hi"}`, "embeddings", "embedding"},
		{"POST /api/embed", `{"model":"m","input":"hi"}`, "embeddings", "embeddings"},
		{"POST /api/show", `{"model":"m"}`, "models", "{"},
		{"GET /api/version", "", "models", "version"},
	} {
		res, answer := g.do(c.at, c.body)
		if call := g.recorded(i + 1); res.StatusCode != http.StatusOK || !strings.Contains(answer, c.want) || call.Protocol != c.protocol || call.Status != 200 {
			t.Errorf("%s: %d %s, recorded %+v", c.at, res.StatusCode, answer, call)
		}
	}
}
