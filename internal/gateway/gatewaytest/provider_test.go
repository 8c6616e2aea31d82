package gatewaytest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// protocols are requests with one tool, "bash", as each protocol writes them, and what is in an answer.
var protocols = []struct {
	name, path, streamPath, body string
	call, done, result           string // in a streamed answer: of a call, at its end; and a request that brings its result
}{
	{
		"messages", "/v1/messages", "/v1/messages",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"bash","input_schema":{"properties":{"command":{"type":"string"}}}}]STREAM}`,
		`"type":"tool_use"`, `"type":"message_stop"`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"RESULT"}]}]}`,
	},
	{
		"chat", "/v1/chat/completions", "/v1/chat/completions",
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}}]STREAM}`,
		`"finish_reason":"tool_calls"`, "data: [DONE]",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"RESULT"}]}`,
	},
	{
		"responses", "/v1/responses", "/v1/responses",
		`{"model":"m","input":"hi","tools":[{"type":"function","name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}]STREAM}`,
		`"type":"function_call"`, `"type":"response.completed"`,
		`{"model":"m","input":[{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"RESULT"}]}`,
	},
	{
		"ollama", "/api/chat", "/api/chat",
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"function":{"name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}}]STREAM}`,
		`"tool_calls"`, `"done":true`, "",
	},
	{
		"gemini", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse",
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"bash","parametersJsonSchema":{"properties":{"command":{"type":"string"}}}}]}]}`,
		`"functionCall"`, `"finishReason":"STOP"`,
		`{"contents":[{"parts":[{"functionCall":{}}]},{"parts":[{"RESULT":{}}]}]}`,
	},
}

// body is a request's, streamed or not.
func body(pattern string, stream bool) string {
	value := `,"stream":false`
	if stream {
		value = `,"stream":true`
	}
	return strings.ReplaceAll(pattern, "STREAM", value)
}

// post sends a request with the provider's key in all the places where one is looked for.
func post(t *testing.T, p *gatewaytest.Provider, path, body string) *http.Response {
	t.Helper()
	return send(t.Context(), t, p, p.Key(), path, body)
}

func send(ctx context.Context, t *testing.T, p *gatewaytest.Provider, key, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Goog-Api-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() }) // read already, or left on purpose
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProvider_RunsACommandByTheClientsTool(t *testing.T) {
	for _, c := range protocols {
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t)
			p.Play(gatewaytest.Script{Thinking: "Let me see.", Text: "I list it.", Command: "ls && pwd", Repeat: 2})
			streamed := read(t, post(t, p, c.streamPath, body(c.body, true)))
			for _, want := range []string{c.call, c.done, `"bash"`} {
				if !strings.Contains(streamed, want) {
					t.Errorf("no %s in the stream:\n%s", want, streamed)
				}
			}
			whole := read(t, post(t, p, c.path, body(c.body, false)))
			if !json.Valid([]byte(whole)) || !strings.Contains(whole, "ls && pwd") || !strings.Contains(whole, "Let me see.") {
				t.Errorf("answer: %s", whole)
			}
			if last := read(t, post(t, p, c.path, body(c.body, false))); !strings.Contains(last, `"ok"`) {
				t.Errorf("played once more: %s", last)
			}
			if got := p.Requests(); len(got) != 3 || !got[0].Stream || got[1].Stream || got[0].Tools[0] != "bash" || got[0].Model != "m" {
				t.Errorf("requests: %+v", got)
			}
		})
	}
}

func TestProvider_RefusesWhatVendorsRefuse(t *testing.T) {
	for _, c := range protocols {
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t)
			if resp := send(t.Context(), t, p, "wrong", c.path, body(c.body, false)); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(read(t, resp), `"error"`) {
				t.Errorf("a wrong key: %s", resp.Status)
			}
			if resp := post(t, p, c.path, `{`); resp.StatusCode != http.StatusBadRequest {
				t.Errorf("broken JSON: %s", resp.Status)
			}
			if c.result != "" {
				good, bad := strings.ReplaceAll(c.result, "RESULT", "a"), strings.ReplaceAll(c.result, "RESULT", "b")
				if c.name == "gemini" {
					good, bad = strings.ReplaceAll(c.result, "RESULT", "functionResponse"), strings.ReplaceAll(c.result, "RESULT", "text")
					bad = strings.ReplaceAll(bad, "{}", `"x"`)
					bad = strings.ReplaceAll(bad, `"functionCall":"x"`, `"functionCall":{}`)
				}
				if resp := post(t, p, c.path, good); resp.StatusCode != http.StatusOK || !p.Requests()[2].Result {
					t.Errorf("a result: %s %s", resp.Status, read(t, resp))
				}
				if resp := post(t, p, c.path, bad); resp.StatusCode != http.StatusBadRequest {
					t.Errorf("a call without a result: %s", resp.Status)
				}
			}
			p.Offer("other")
			if resp := post(t, p, c.path, body(c.body, false)); resp.StatusCode != http.StatusNotFound {
				t.Errorf("a model that is not there: %s", resp.Status)
			}
		})
	}
}

func TestProvider_PlaysFaults(t *testing.T) {
	for _, c := range protocols {
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t)
			p.Play(
				gatewaytest.Script{Status: 429, RetryAfter: 7 * time.Second},
				gatewaytest.Script{WrongType: true},
				gatewaytest.Script{BrokenJSON: true},
				gatewaytest.Script{Text: "one two three", CutAfter: 2},
				gatewaytest.Script{Text: "one two three", CutAfter: 2, Status: 529},
				gatewaytest.Script{Command: "true", HugeArgument: true},
			)
			if resp := post(t, p, c.path, body(c.body, false)); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" {
				t.Errorf("429: %s", resp.Status)
			}
			if resp := post(t, p, c.path, body(c.body, false)); !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
				t.Errorf("type: %v", resp.Header)
			}
			if text := read(t, post(t, p, c.path, body(c.body, false))); json.Valid([]byte(text)) {
				t.Errorf("valid: %s", text)
			}
			if text, err := io.ReadAll(post(t, p, c.streamPath, body(c.body, true)).Body); err == nil || strings.Contains(string(text), "three") {
				t.Errorf("not cut: %v %s", err, text)
			}
			if text := read(t, post(t, p, c.streamPath, body(c.body, true))); !strings.Contains(text, "the script says so") || strings.Contains(text, "three") {
				t.Errorf("no error in the stream: %s", text)
			}
			if text := read(t, post(t, p, c.streamPath, body(c.body, true))); len(text) < 10<<20 {
				t.Errorf("an argument of %d bytes", len(text))
			}
		})
	}
}

func TestProvider_SeesItsClientLeave(t *testing.T) {
	for _, c := range protocols {
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t)
			p.Play(gatewaytest.Script{Endless: true}, gatewaytest.Script{Hang: true})
			ctx, leave := context.WithCancel(t.Context())
			resp := send(ctx, t, p, p.Key(), c.streamPath, body(c.body, true))
			if _, err := io.ReadFull(resp.Body, make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			leave()
			p.AwaitLeft(1)
			ctx, leave = context.WithCancel(t.Context())
			go func() {
				p.Await(2)
				leave()
			}()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL()+c.path+"?key="+p.Key(), strings.NewReader(body(c.body, false)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Anthropic-Version", "2023-06-01")
			r.Header.Set("Authorization", "Bearer "+p.Key())
			if _, err := http.DefaultClient.Do(r); err == nil {
				t.Error("answered")
			}
			p.AwaitLeft(2)
		})
	}
}

func TestProvider_WaitsAtItsGateAfterTheFirstPiece(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.OpenAI)
	gate := make(chan struct{})
	p.Play(gatewaytest.Script{Text: "one two", Gate: gate, Delay: time.Millisecond})
	lines := bufio.NewScanner(post(t, p, "/v1/chat/completions", body(protocols[1].body, true)).Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"one "`) {
	}
	close(gate)
	for lines.Scan() && !strings.Contains(lines.Text(), "[DONE]") {
	}
	if !strings.Contains(lines.Text(), "[DONE]") {
		t.Fatal("the stream ended too soon")
	}
}

func TestProvider_KeepsAScriptForTheRequestThatItIsFor(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.OpenAI)
	p.Play(gatewaytest.Script{Text: "done", For: gatewaytest.AfterResult}, gatewaytest.Script{Status: 500, For: gatewaytest.Listing})
	if text := read(t, post(t, p, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user"}]}`)); !strings.Contains(text, `"ok"`) {
		t.Errorf("a title: %s", text)
	}
	if text := read(t, post(t, p, "/v1/chat/completions", strings.ReplaceAll(protocols[1].result, "RESULT", "a"))); !strings.Contains(text, `"done"`) {
		t.Errorf("after a result: %s", text)
	}
	if resp := post(t, p, "/v1/embeddings", `{"model":"m","input":"x"}`); resp.StatusCode != 500 || p.Waiting() != 0 {
		t.Errorf("a list: %s, %d waiting", resp.Status, p.Waiting())
	}
}
