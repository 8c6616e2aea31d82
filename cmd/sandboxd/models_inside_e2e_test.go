//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// askEcho asks a model in a sandbox, in both protocols that it speaks.
const askEcho = `{"model":"echo","messages":[{"role":"user","content":"good morning"}]}`

// TestModels_OneInASandboxAnswersTheOwnersOthers has a server in one sandbox, without a model, which speaks Ollama's protocol. Another
// sandbox of its owner, which has no network, asks it: while it runs, frozen, asleep, from itself, stopped and deleted. Another user's
// sandbox does not reach it.
func TestModels_OneInASandboxAnswersTheOwnersOthers(t *testing.T) {
	t.Parallel()
	a := &asker{server: newServer(t, "--prebuild", "", "--settle", "1s", "--templates", closedTemplates(t))}
	a.addUser("mia")
	admins, mias := a.token, strings.TrimSpace(a.cli("token", "create", "mias", "--user", "mia"))
	a.token = mias
	a.create(map[string]any{"name": closedBox, "template": "closed"})
	a.serves("models")
	a.puts(map[string]any{"kind": "ollama", "sandbox": "models", "port": 11434, "models": []string{"echo"}})
	a.answers("while it runs")
	for _, state := range []string{"frozen", "asleep"} {
		a.sleeps("models", state)
		if status, text := a.raw("GET", "/models", nil); status != http.StatusOK || a.rest("models").State != state {
			t.Errorf("a list of models: %d %s, and the sandbox is %s", status, text, a.rest("models").State)
		}
		a.answers("once it was " + state)
		if now := a.rest("models").State; now != "running" && now != "frozen" {
			t.Errorf("it was %s and is %s", state, now)
		}
	}
	a.sleeps("models", "asleep")
	var offer struct{ Models []string }
	if status := a.call("POST", "/providers/local/check", nil, &offer); status != http.StatusOK || len(offer.Models) != 1 {
		t.Errorf("check: %d %+v", status, offer)
	}
	if out := a.asksIn("models", "/api/chat", askEcho); !strings.Contains(out, `"morning"`) || !strings.HasSuffix(out, "\n200\n") {
		t.Errorf("from itself: %s", out)
	}

	a.token = admins
	a.create(map[string]any{"name": "theirs", "template": "closed"})
	if out := a.asksIn("theirs", "/api/chat", askEcho); !strings.Contains(out, "No model provider is configured") {
		t.Errorf("another user: %s", out)
	}
	if status, text := a.raw("PUT", "/providers/stolen", map[string]any{"kind": "ollama", "own": true, "sandbox": "models", "port": 11434}); status != http.StatusBadRequest {
		t.Errorf("another user's provider: %d %s", status, text)
	}

	a.token = mias
	if status, text := a.raw("POST", "/sandboxes/models/stop?wait=stopped", nil); status != http.StatusOK {
		t.Fatalf("stop: %d %s", status, text)
	}
	a.refused("stopped", "which is stopped or has failed")
	if status, text := a.raw("DELETE", "/sandboxes/models?wait=gone", nil); status >= 300 {
		t.Fatalf("delete: %d %s", status, text)
	}
	a.serves("models") // has the name, and is another one
	a.refused("deleted", "which has been deleted")
	a.puts(map[string]any{"kind": "ollama", "sandbox": "models", "port": 11435, "models": []string{"echo"}})
	a.refused("without a server", "where nothing listens on port 11435")
	a.puts(map[string]any{"kind": "ollama", "sandbox": "models", "port": 11434, "models": []string{"echo"}})
	a.answers("anew")
}

// serves makes a sandbox with a server of models as its service.
func (a *asker) serves(name string) {
	a.t.Helper()
	a.create(map[string]any{"name": name, "template": "closed"})
	program, err := os.ReadFile("testdata/ollama.py")
	if err != nil {
		a.t.Fatal(err)
	}
	if out := a.exec(name, map[string]any{"command": "cat > server.py <<'END'\n" + string(program) + "END"}); out.ExitCode != 0 {
		a.t.Fatalf("%+v", out)
	}
	services := map[string]any{"services": []any{map[string]any{"name": "ollama", "command": []string{"python3", "/home/agent/server.py"}, "port": 11434}}}
	if status, text := a.raw("PUT", "/sandboxes/"+name+"/services", services); status >= 300 {
		a.t.Fatalf("services: %d %s", status, text)
	}
}

func (a *asker) puts(provider map[string]any) {
	a.t.Helper()
	if status, text := a.raw("PUT", "/providers/local", provider); status >= 300 {
		a.t.Fatalf("provider: %d %s", status, text)
	}
}

// asksIn runs curl in a sandbox, as asks does.
func (a *asker) asksIn(name, path, body string) string {
	a.t.Helper()
	out := a.exec(name, map[string]any{"command": fmt.Sprintf(`curl -sN -m 90 -w '\n%%{http_code}\n' -H 'content-type: application/json' -d '%s' http://127.0.0.1:7465%s`, body, path)})
	return out.Stdout + out.Stderr
}

// answers has the sandbox without a network ask in both protocols.
func (a *asker) answers(when string) {
	a.t.Helper()
	begun := time.Now()
	got := a.asks("/api/chat", askEcho)
	a.t.Logf("%s: the first answer after %s", when, time.Since(begun).Round(time.Millisecond))
	if !strings.Contains(got, `"content": "morning"`) || !strings.Contains(got, `"done": true`) || !strings.HasSuffix(got, "\n200\n") {
		a.t.Errorf("%s, ollama: %s", when, got)
	}
	if got := a.asks("/v1/chat/completions", askEcho); !strings.Contains(got, `"good morning"`) || !strings.HasSuffix(got, "\n200\n") {
		a.t.Errorf("%s, openai: %s", when, got)
	}
}

// refused has it ask in vain.
func (a *asker) refused(when, says string) {
	a.t.Helper()
	if got := a.asks("/api/chat", askEcho); !strings.HasPrefix(got, `{"error":"The model provider`) || !strings.Contains(got, says) || !strings.HasSuffix(got, "\n502\n") {
		a.t.Errorf("%s, ollama: %s", when, got)
	}
	if got := a.asks("/v1/chat/completions", askEcho); !strings.HasPrefix(got, `{"error":{`) || !strings.Contains(got, says) {
		a.t.Errorf("%s, openai: %s", when, got)
	}
}
