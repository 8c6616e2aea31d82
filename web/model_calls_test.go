package web

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// outside is a world with a provider of the server's that programs outside ask.
type outside struct {
	*world
	provider *gatewaytest.Provider
	store    *gatewaytest.Store
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{world: newWorld(t), provider: gatewaytest.NewProvider(t), store: gatewaytest.NewStore()}
	models := openModels(t, o.store, nil)
	for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Gemini} {
		key := o.provider.Key()
		p := gateway.Provider{Name: string(kind), Kind: kind, BaseURL: o.provider.BaseURL(kind), Models: []string{"model-of-" + string(kind)}}
		if _, err := models.SetProvider(t.Context(), p, &key); err != nil {
			t.Fatal(err)
		}
	}
	o.server.cfg.Models = models
	o.tokens["models"] = o.token("ada", auth.NewToken{Name: "editor", Models: true})
	return o
}

const (
	chatBody     = `{"model":"model-of-openai","messages":[{"role":"user","content":"hello"}]}`
	messagesBody = `{"model":"model-of-anthropic","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`
	geminiBody   = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	geminiPath   = "/models/v1beta/models/model-of-gemini:generateContent"
)

// ask sends a request to /models with headers and nothing else.
func (o *outside) ask(path, body string, headers ...string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8080"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got := httptest.NewRecorder()
	o.server.ServeHTTP(got, r)
	return got
}

func TestModelsFromOutside_TokensComeWhereClientsPutThem(t *testing.T) {
	o := newOutside(t)
	secret := o.tokens["models"]
	for _, c := range [][]string{
		{"/models/v1/chat/completions", chatBody, "Authorization", "Bearer " + secret},
		{"/models/v1/messages", messagesBody, "X-Api-Key", secret},
		{geminiPath, geminiBody, "X-Goog-Api-Key", secret},
		{geminiPath + "?key=" + secret, geminiBody},
		{geminiPath + "?%6bey=" + secret + "&alt=json", geminiBody},
	} {
		if got := o.ask(c[0], c[1], append(c[2:], "Cookie", "a=b")...); got.Code != http.StatusOK {
			t.Errorf("%s with %q: %d %s", c[0], c[2:], got.Code, got.Body)
		}
	}
	for _, r := range o.provider.Requests() {
		if strings.Contains(r.Path, secret) || r.Header.Get("Cookie") != "" {
			t.Errorf("the provider gets %s %v", r.Path, r.Header)
		}
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), secret) {
				t.Errorf("the provider gets the token in %s", name)
			}
		}
	}
	if log := o.log.String(); strings.Contains(log, secret) || !strings.Contains(log, "/models/v1/messages") {
		t.Errorf("the log has the token, or nothing: %s", log)
	}
}

func TestModelsFromOutside_AreRefusedInTheClientsProtocol(t *testing.T) {
	o := newOutside(t)
	session, _, err := o.accounts.Login(t.Context(), "127.0.0.1", "ada", testPassword, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, body, want string }{
		{"/models/v1/messages", messagesBody, `"type":"authentication_error"`},
		{"/models/v1/chat/completions", chatBody, `"error":{`},
		{geminiPath, geminiBody, `"UNAUTHENTICATED"`},
	} {
		for _, header := range [][2]string{{"X-None", ""}, {"Authorization", "Bearer sbx_wrong"}, {"Authorization", "Bearer " + session}, {"Cookie", o.server.sessionCookie() + "=" + session}} {
			got := o.ask(c.path, c.body, header[0], header[1])
			if got.Code != http.StatusUnauthorized || !strings.Contains(got.Body.String(), c.want) {
				t.Errorf("%s with %s: %d %s", c.path, header[0], got.Code, got.Body)
			}
		}
	}
	if got := o.ask("/models/v1/messages", messagesBody, "X-Api-Key", o.tokens["models"], "Sec-Fetch-Site", "cross-site"); got.Code != http.StatusForbidden {
		t.Errorf("a page of another site: %d %s", got.Code, got.Body)
	}
	if n := len(o.provider.Requests()); n > 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	if len(o.ask("/models/v1/messages", messagesBody, "X-Api-Key", o.tokens["ada"]).Body.String()) == 0 || len(o.provider.Requests()) != 1 {
		t.Error("a token for everything is not taken")
	}
}

func TestModelsFromOutside_CountForTheTokensUserAndSandbox(t *testing.T) {
	o := newOutside(t)
	o.box("ada", "lab")
	o.tokens["lab"] = o.token("ada", auth.NewToken{Name: "lab only", Sandbox: "lab"})
	kept := make(chan error, 1)
	go func() { kept <- o.server.cfg.Models.Run(t.Context()) }()
	for _, who := range []string{"models", "lab"} {
		if got := o.ask("/models/v1/chat/completions", chatBody, "Authorization", "Bearer "+o.tokens[who]); got.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", who, got.Code, got.Body)
		}
	}
	var list callsShape
	for deadline := time.Now().Add(time.Minute); len(list.Calls) < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("the calls are not kept: %+v", list)
		}
		list = callsShape{}
		o.call("ada", "GET", modelsAPI+"/calls", "").into(&list)
	}
	for i, want := range []callShape{{Label: "lab", SandboxID: o.ref("lab").ID()}, {Label: "editor"}} {
		if got := list.Calls[i]; got.Label != want.Label || got.SandboxID != want.SandboxID || got.User != "ada" || got.Tokens.Output != 5 {
			t.Errorf("call %d is %+v", i, got)
		}
	}
}

func TestModelsFromOutside_StreamsComeAtOnceAndBodiesMayBeLarge(t *testing.T) {
	o := newOutside(t)
	gate := make(chan struct{})
	o.provider.Play(gatewaytest.Script{Text: "one two", Gate: gate})
	s := o.serve()
	large := strings.Replace(chatBody, "hello", strings.Repeat("hello ", 400_000), 1)
	large = strings.Replace(large, `"messages"`, `"stream":true,"messages"`, 1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/models/v1/chat/completions", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+o.tokens["models"])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept-Encoding", "gzip")
	got, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewReader(got.Body)
	first, err := lines.ReadString('\n')
	if err != nil || got.StatusCode != http.StatusOK || !strings.HasPrefix(first, "data: ") || got.Header.Get("Content-Encoding") != "" {
		t.Fatalf("%d, %q, %v, %v", got.StatusCode, first, got.Header, err)
	}
	close(gate)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "[DONE]") {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestModelToken_IsRefusedEverywhereElse asks every route that takes a token or a session for what it does.
func TestModelToken_IsRefusedEverywhereElse(t *testing.T) {
	o := newOutside(t)
	o.box("ada", "lab")
	secret := o.tokens["models"]
	asked := 0
	for _, r := range o.server.routes() {
		if r.access == public || r.access == visitor || r.access == modelToken {
			continue
		}
		asked++
		path := strings.NewReplacer(`\:`, ":", ":name", "lab", ":port", "3000", ":service", "web", ":id", "x", ":tab", "main").Replace(r.path)
		q := httptest.NewRequest(r.method, "http://localhost:8080"+path, nil)
		q.Header.Set("Authorization", "Bearer "+secret)
		got := httptest.NewRecorder()
		o.server.ServeHTTP(got, q)
		switch r.access {
		case token, tokenWide, tokenAdmin:
			if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "limited to models") {
				t.Errorf("%s %s: %d %.200s", r.method, path, got.Code, got.Body)
			}
		default:
			if got.Code != http.StatusSeeOther && got.Code != http.StatusUnauthorized || got.Code == http.StatusSeeOther && !strings.HasPrefix(got.Header().Get("Location"), loginPath) {
				t.Errorf("%s %s: %d %v", r.method, path, got.Code, got.Header())
			}
		}
	}
	if asked < 200 {
		t.Errorf("only %d routes were asked", asked)
	}
}
