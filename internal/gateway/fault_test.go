package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// told gives the message of an error in a protocol's own form, or fails.
func told(t *testing.T, kind gateway.Kind, body string) string {
	t.Helper()
	var shape struct {
		Type  string
		Error json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &shape); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	var plain string
	var object struct {
		Message, Type, Status string
		Code                  any
	}
	switch err := json.Unmarshal(shape.Error, &object); {
	case kind == gateway.Ollama && json.Unmarshal(shape.Error, &plain) == nil:
		return plain
	case err != nil:
	case kind == gateway.Anthropic && shape.Type == "error" && object.Type != "":
		return object.Message
	case kind == gateway.OpenAI && shape.Type == "" && object.Type != "" && object.Code != "":
		return object.Message
	case kind == gateway.Gemini && object.Status != "" && object.Code != 0:
		return object.Message
	}
	t.Errorf("no error of %s: %s", kind, body)
	return ""
}

// oneOfEach are requests that are not streamed, one of each dialect.
func oneOfEach() (out []protocolCase) {
	seen := map[gateway.Kind]bool{}
	for _, c := range protocolCases {
		if !c.stream && c.name != "chat at ollama" && !seen[c.kind] {
			seen[c.kind] = true
			out = append(out, c)
		}
	}
	return out
}

// refusal is a request that the gateway itself refuses.
type refusal struct {
	name   string
	setup  gateway.Setup
	at     string
	body   string
	header []string
	status int
	code   string // OpenAI's
	says   []string
}

// refusals are those of one protocol's requests.
func refusals(c protocolCase, p *gatewaytest.Provider) []refusal {
	other := map[gateway.Kind]gateway.Kind{gateway.Anthropic: gateway.OpenAI, gateway.OpenAI: gateway.Anthropic, gateway.Ollama: gateway.Gemini, gateway.Gemini: gateway.Ollama}[c.kind]
	own := gateway.Setup{Providers: []gateway.Provider{provider(p.BaseURL(c.kind), c.kind, "listed-1")}, Keys: map[string]string{string(c.kind): p.Key()}}
	foreign := gateway.Setup{Providers: []gateway.Provider{provider(p.URL(), other)}}
	off, spent := own, own
	off.Settings.Off = true
	spent.Budgets = []gateway.Budget{{Scope: gateway.PerUser, Period: gateway.Day, Requests: 1}}
	at, body := c.with("listed-1")
	unknownAt, unknown := c.with("nothing-7")
	return []refusal{
		{"kill switch", off, at, body, nil, 403, "forbidden", []string{"admin"}},
		{"budget", spent, at, body, nil, 402, "insufficient_quota", []string{"budget", "UTC"}},
		{"unknown model", own, unknownAt, unknown, nil, 404, "model_not_found", []string{`"nothing-7"`, "listed-1"}},
		{"no provider", gateway.Setup{}, at, body, nil, 400, "", []string{"Settings → Models"}},
		{"no fitting provider", foreign, at, body, nil, 400, "", []string{string(c.kind), string(other), "Settings → Models"}},
		{"bad JSON", own, at, `{"model":`, nil, 400, "", []string{"JSON"}},
		{"compressed", own, at, "x", []string{"Content-Encoding", "gzip"}, 415, "", []string{"Content-Encoding"}},
		{"too large", own, at, `{"x":"` + strings.Repeat("a", gateway.MaxBody) + `"}`, nil, 413, "request_too_large", []string{"64 MiB"}},
	}
}

func TestProblem_IsToldInTheClientsOwnProtocol(t *testing.T) {
	p := gatewaytest.NewProvider(t)
	for _, c := range oneOfEach() {
		for _, f := range refusals(c, p) {
			g, calls := serve(t, f.setup), 1
			if f.name == "budget" {
				g.do(f.at, f.body)
				calls++
			}
			res, answer := g.do(f.at, f.body, f.header...)
			message := told(t, c.kind, answer)
			if res.StatusCode != f.status || res.Header.Get("X-Should-Retry") != "false" || c.kind == gateway.OpenAI && !strings.Contains(answer, f.code) {
				t.Errorf("%s, %s: status %d, retry %q, %s", c.name, f.name, res.StatusCode, res.Header.Get("X-Should-Retry"), answer)
			}
			for _, want := range f.says {
				if !strings.Contains(message, want) {
					t.Errorf("%s, %s: %q does not say %q", c.name, f.name, message, want)
				}
			}
			if after := res.Header.Get("Retry-After"); after != "" { // agents wait until then without a word
				t.Errorf("%s, %s: Retry-After %q", c.name, f.name, after)
			}
			if call := g.recorded(calls); call.Status != f.status || call.Problem != message {
				t.Errorf("%s, %s: recorded %+v", c.name, f.name, call)
			}
		}
	}
}

func TestProblem_OfAnUnknownPathIsToldTheLikelyWay(t *testing.T) {
	g := serve(t, gateway.Setup{})
	for at, kind := range map[string]gateway.Kind{
		"GET /v1/messages": gateway.Anthropic, "POST /v1/messages/batches": gateway.Anthropic, "POST /v1/audio/speech": gateway.OpenAI, "POST /nothing": gateway.OpenAI, "POST /api/pull": gateway.Ollama,
		"DELETE /api/delete": gateway.Ollama, "GET /v1alpha/models": gateway.Gemini, "POST /v1beta/models/m:other": gateway.Gemini, "POST /v1beta/models/m:batchEmbedContents": gateway.Gemini,
		"GET /v1/responses/../x": gateway.OpenAI, "GET /v1/responses/a%2F..%2Fb": gateway.OpenAI, "POST /": gateway.OpenAI, "GET /v1/responses": gateway.OpenAI,
	} {
		res, answer := g.do(at, "")
		if message := told(t, kind, answer); res.StatusCode != http.StatusNotFound || !strings.Contains(message, "/v1/messages") {
			t.Errorf("%s: %d %s", at, res.StatusCode, answer)
		}
	}
	res, answer := g.do("GET /v1/responses", "", "Connection", "Upgrade", "Upgrade", "websocket")
	if message := told(t, gateway.OpenAI, answer); res.StatusCode != http.StatusUpgradeRequired || !strings.Contains(message, "POST /v1/responses") {
		t.Errorf("a WebSocket: %d %s", res.StatusCode, answer)
	}
}

func TestProblem_OfAProviderIsTold(t *testing.T) {
	for _, c := range oneOfEach() {
		for _, f := range []struct {
			name   string
			script gatewaytest.Script
			status int
			says   string
		}{
			{"broken JSON", gatewaytest.Script{BrokenJSON: true}, 502, "broke off"},
			{"half an answer", gatewaytest.Script{CutAfter: 1}, 502, "broke off"},
			{"a page", gatewaytest.Script{WrongType: true}, 502, "text/html"},
			{"401", gatewaytest.Script{Status: 401, Body: `{"error":"sk-..."}`}, 403, "refused its key"},
			{"403", gatewaytest.Script{Status: 403}, 403, "refused its key"},
			{"redirect", gatewaytest.Script{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, 502, "307"},
			{"compressed", gatewaytest.Script{Header: http.Header{"Content-Encoding": {"br"}}}, 502, "compressed"},
			{"429", gatewaytest.Script{Status: 429, RetryAfter: 7 * time.Second}, 429, "the script says so"},
			{"500", gatewaytest.Script{Status: 500}, 500, "the script says so"},
		} {
			p := gatewaytest.NewProvider(t, c.kind)
			p.Play(f.script)
			g := serveOne(t, p, c.kind)
			res, answer := g.do(c.with("m"))
			message := told(t, c.kind, answer)
			if res.StatusCode != f.status || !strings.Contains(message, f.says) || strings.Contains(answer, "127.0.0.1") || res.Header.Get("Location") != "" {
				t.Errorf("%s, %s: %d %s", c.name, f.name, res.StatusCode, answer)
			}
			if call := g.recorded(1); call.Status != f.status || !strings.Contains(call.Problem, f.says) {
				t.Errorf("%s, %s: recorded %+v", c.name, f.name, call)
			}
			if want := f.script.RetryAfter > 0; (res.Header.Get("Retry-After") == "7") != want {
				t.Errorf("%s, %s: Retry-After %q", c.name, f.name, res.Header.Get("Retry-After"))
			}
			if f.status == 403 && (!strings.Contains(message, fmt.Sprintf("%q", c.kind)) || !strings.Contains(message, "An admin can replace it in the dashboard")) {
				t.Errorf("%s, %s: %s", c.name, f.name, message)
			}
		}
	}
}

func TestProblem_AKeyThatGeminiRefusesIsTold(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.Gemini)
	p.Play(gatewaytest.Script{Status: 400, Body: `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`})
	res, answer := serveOne(t, p, gateway.Gemini).do("POST /v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	if message := told(t, gateway.Gemini, answer); res.StatusCode != 403 || !strings.Contains(message, "refused its key") {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
}

// closedPort gives the address of a port on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String()
}

func TestProblem_AProviderThatCannotBeReachedKeepsItsAddressSecret(t *testing.T) {
	var log bytes.Buffer
	for url, says := range map[string]string{closedPort(t): "nothing accepts connections", "http://nothing.invalid": "name", "http://169.254.169.254": "private or local"} {
		p := provider(url, gateway.OpenAI)
		if strings.Contains(url, "169.254") {
			p.Owner = "u1"
		}
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{p}, Keys: map[string]string{"openai": secretKey}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		res, answer := g.do("POST /v1/responses", `{"model":"m"}`)
		message := told(t, gateway.OpenAI, answer)
		if res.StatusCode != 502 || !strings.Contains(message, says) || strings.Contains(message, strings.TrimPrefix(url, "http://")) || res.Header.Get("X-Should-Retry") != "true" {
			t.Errorf("%s: %d %s", url, res.StatusCode, answer)
		}
		g.recorded(1)
	}
	if text := log.String(); strings.Contains(text, secretKey) || !strings.Contains(text, "provider=openai") {
		t.Errorf("logged %s", text)
	}
}

func TestProblem_InAStreamThatHasBegunIsAnEventOfTheProtocol(t *testing.T) {
	for _, c := range protocolCases {
		if !c.stream {
			continue
		}
		for name, script := range map[string]gatewaytest.Script{"cut": {Text: "a b c d", CutAfter: 2}, "half JSON, then its end": {Text: "a b c d", BrokenJSON: true}} {
			p := gatewaytest.NewProvider(t, c.kind)
			p.Play(script)
			g := serveOne(t, p, c.kind)
			at, body := c.with("m")
			res, err := http.DefaultTransport.RoundTrip(g.request(at, body))
			if err != nil {
				t.Fatal(err)
			}
			read, err := io.ReadAll(res.Body)
			_ = res.Body.Close() // it was read
			answer := string(read)
			if strings.HasPrefix(answer, "[") { // there is no way to tell within an array
				if name == "cut" && err == nil {
					t.Errorf("%s, %s: %s ends well", c.name, name, answer)
				}
				g.recorded(1)
				continue
			}
			end := strings.TrimSpace(answer)
			end = strings.TrimPrefix(end[strings.LastIndexByte(end, '\n')+1:], "data: ")
			if c.protocol == "responses" {
				var event struct{ Type, Message string }
				if json.Unmarshal([]byte(end), &event) != nil || event.Type != "error" || !strings.Contains(answer, "\nevent: error\n") {
					t.Errorf("%s, %s: %s", c.name, name, answer)
				}
				end = fmt.Sprintf(`{"error":{"message":%q,"type":"x"}}`, event.Message)
			}
			if message := told(t, c.kind, end); err != nil || !strings.Contains(message, "broke off") {
				t.Errorf("%s, %s: %v %s", c.name, name, err, answer)
			}
			if c.kind == gateway.Anthropic && !strings.Contains(answer, "\n\nevent: error\n") {
				t.Errorf("%s, %s: %s", c.name, name, answer)
			}
			if name == "cut" {
				for line := range strings.Lines(answer) {
					text, data := strings.CutPrefix(line, "data: ")
					if (data || strings.HasPrefix(line, "{")) && strings.TrimSpace(text) != "[DONE]" && !json.Valid([]byte(text)) {
						t.Errorf("%s: half a line: %q", c.name, line)
					}
				}
			}
			if call := g.recorded(1); call.Status != 502 || !strings.Contains(call.Problem, "broke off") || call.FirstByte == 0 {
				t.Errorf("%s, %s: recorded %+v", c.name, name, call)
			}
		}
	}
}

func TestProblem_OfTheProvidersOwnInAStreamIsPassedAndNoted(t *testing.T) {
	for _, c := range protocolCases {
		if !c.stream || c.name == "gemini, array" {
			continue
		}
		p := gatewaytest.NewProvider(t, c.kind)
		p.Play(gatewaytest.Script{Text: "a b c d", CutAfter: 2, Status: 529})
		g := serveOne(t, p, c.kind)
		_, answer := g.do(c.with("m"))
		if call := g.recorded(1); !strings.Contains(answer, "the script says so") || strings.Contains(answer, "broke off") || !strings.Contains(call.Problem, "the script says so") && c.protocol != "responses" || call.Problem == "" {
			t.Errorf("%s: %s, recorded %+v", c.name, answer, call)
		}
	}
}

func TestFallBack_TheNextTargetAnswers(t *testing.T) {
	for name, script := range map[string]gatewaytest.Script{
		"429": {Status: 429, RetryAfter: time.Hour}, "500": {Status: 500}, "503": {Status: 503, Body: "<html>"}, "a page": {WrongType: true}, "broken": {CutAfter: 1}, "": {},
	} {
		first, second := gatewaytest.NewProvider(t, gateway.OpenAI), gatewaytest.NewProvider(t, gateway.OpenAI)
		first.Play(script)
		second.Play(gatewaytest.Script{Text: "second"})
		a, b := provider(first.BaseURL(gateway.OpenAI), gateway.OpenAI), provider(second.BaseURL(gateway.OpenAI), gateway.OpenAI)
		if a.Name, b.Name = "a", "b"; name == "" {
			a.BaseURL = closedPort(t)
		}
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{a, b}, Keys: map[string]string{"a": first.Key(), "b": second.Key()},
			Aliases: []gateway.Alias{{Name: "fast", Targets: []gateway.Target{{Provider: "gone", Model: "m0"}, {Provider: "a", Model: "m1"}, {Provider: "b", Model: "m2"}}}}})
		res, answer := g.do("POST /v1/chat/completions", `{"model":"fast","messages":[{"role":"user","content":"hi"}]}`)
		if call := g.recorded(1); res.StatusCode != 200 || !strings.Contains(answer, "second") || call.Provider != "b" || call.Model != "m2" || call.Status != 200 || call.Problem != "" || res.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %s, recorded %+v", name, res.StatusCode, answer, call)
		}
	}
}

func TestFallBack_EndsWithTheLastAnswer(t *testing.T) {
	first, second := gatewaytest.NewProvider(t, gateway.OpenAI), gatewaytest.NewProvider(t, gateway.OpenAI)
	a, b := provider(first.BaseURL(gateway.OpenAI), gateway.OpenAI), provider(second.BaseURL(gateway.OpenAI), gateway.OpenAI)
	a.Name, b.Name = "a", "b"
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{a, b}, Keys: map[string]string{"a": first.Key(), "b": second.Key()},
		Aliases: []gateway.Alias{{Name: "fast", Targets: []gateway.Target{{Provider: "a", Model: "m1"}, {Provider: "b", Model: "m2"}}}}})
	first.Play(gatewaytest.Script{Status: 500}, gatewaytest.Script{Status: 400})
	second.Play(gatewaytest.Script{Status: 429, RetryAfter: 9 * time.Second})
	const body = `{"model":"fast","messages":[{"role":"user","content":"hi"}]}`
	if res, answer := g.do("POST /v1/chat/completions", body); res.StatusCode != 429 || res.Header.Get("Retry-After") != "9" || !strings.Contains(answer, "the script says so") {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
	if res, answer := g.do("POST /v1/chat/completions", body); res.StatusCode != 400 || len(second.Requests()) != 1 {
		t.Errorf("what is the client's fault is tried again: %d %s", res.StatusCode, answer)
	}
}
