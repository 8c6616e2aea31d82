//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway/gatewaytest"
)

const (
	askRandom     = `{"model":"random","messages":[{"role":"user","content":"good morning"}],"options":{"num_predict":8}}`
	askRandomChat = `{"model":"random","stream":true,"max_tokens":8,"messages":[{"role":"user","content":"good morning"}]}`
)

// TestLLM_ARealOllamaAnswersOtherSandboxes has the template llm, with a model of random weights. Another sandbox, which has no network, asks
// it in both protocols: when the model is loaded, when the sandbox is frozen, and when it is asleep.
func TestLLM_ARealOllamaAnswersOtherSandboxes(t *testing.T) {
	a := &asker{server: newServer(t, "--prebuild", "", "--settle", "1s", "--templates", closedTemplates(t))}
	a.create(map[string]any{"name": "models", "template": "llm"})
	a.create(map[string]any{"name": closedBox, "template": "closed"})
	a.addsRandomModel("models")
	a.puts(map[string]any{"kind": "ollama", "sandbox": "models", "port": 11434})
	var offer struct{ Models []string }
	if a.call("POST", "/providers/local/check", nil, &offer); len(offer.Models) != 1 || offer.Models[0] != "random:latest" {
		t.Fatalf("it offers %+v", offer)
	}
	a.asksRandom("as it was begun")
	a.asksRandom("loaded")
	a.sleeps("models", "frozen")
	a.asksRandom("frozen")
	a.sleeps("models", "asleep")
	a.asksRandom("asleep")
}

// addsRandomModel brings the weights as a file, as a person does.
func (a *asker) addsRandomModel(name string) {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "Random.gguf")
	if err := os.WriteFile(file, gatewaytest.RandomModel(), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if status, text := a.upload("PUT", "/sandboxes/"+name+"/files?path=Random.gguf", file); status >= 300 {
		a.t.Fatalf("upload: %d %s", status, text)
	}
	out := a.exec(name, map[string]any{"command": "add-model Random.gguf && rm Random.gguf && ollama list", "timeout": 120})
	if out.ExitCode != 0 || !strings.Contains(out.Stdout, "random:latest") {
		a.t.Fatalf("add-model: %+v", out)
	}
}

var (
	firstByteTaken = regexp.MustCompile(`first=([\d.]+)`)
	wordsOfRandom  = regexp.MustCompile(`w\d+`)
)

// asksRandom asks in both protocols, and says how long the first piece of the answer took.
func (a *asker) asksRandom(when string) {
	a.t.Helper()
	for _, ask := range []struct{ path, body, end string }{{"/api/chat", askRandom, `"done":true`}, {"/v1/chat/completions", askRandomChat, "data: [DONE]"}} {
		command := fmt.Sprintf(`curl -sN -m 120 -w '\nfirst=%%{time_starttransfer}\n%%{http_code}\n' -H 'content-type: application/json' -d '%s' http://127.0.0.1:7465%s`, ask.body, ask.path)
		out := a.exec(closedBox, map[string]any{"command": command, "timeout": 150}).Stdout
		words := wordsOfRandom.FindAllString(out, -1)
		if len(words) < 2 || !strings.Contains(out, ask.end) || !strings.HasSuffix(out, "\n200\n") {
			a.t.Errorf("%s, %s: %s", when, ask.path, out)
			continue
		}
		seconds, err := strconv.ParseFloat(firstByteTaken.FindStringSubmatch(out)[1], 64)
		if err != nil {
			a.t.Error(err)
		}
		a.t.Logf("%s, %s: the first token after %s; it says %v", when, ask.path, time.Duration(seconds*float64(time.Second)).Round(time.Millisecond), words)
	}
}
