//go:build e2e

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/acp/acptest"
)

func (k *talk) text() string {
	var b strings.Builder
	for n := range int64(len(k.items)) * 3 {
		if it := k.items[n]; it != nil && it.Kind == "text" {
			b.WriteString(it.Text)
		}
	}
	return b.String()
}

// asks gives the open question.
func (k *talk) asks() (id, text string) {
	for _, it := range k.items {
		var ask struct{ ID, Text string }
		if it.Kind == "question" && it.Open && json.Unmarshal(it.Data, &ask) == nil {
			return ask.ID, ask.Text
		}
	}
	return "", ""
}

func (k *talk) idle() bool { return k.state != "working" && k.state != "asking" }

// TestPrograms_AnAgentWorksInASandboxOverARestart has an agent that is a program in the sandbox write a file and run it, with leave and
// without, and restarts sandboxd while it speaks and while it asks.
func TestPrograms_AnAgentWorksInASandboxOverARestart(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.hasScriptedAgent(closedBox)
	all := "/sandboxes/" + closedBox + "/conversations"
	if status, _ := a.raw("POST", all, map[string]any{"agent": "nobody"}); status != http.StatusNotFound {
		t.Errorf("an unknown agent: %d", status)
	}
	var c struct{ ID string }
	if status := a.call("POST", all, map[string]any{"agent": "scripted", "mode": "ask"}, &c); status != http.StatusCreated {
		t.Fatalf("create: %d", status)
	}
	k := &talk{a: a, path: all + "/" + c.ID, items: map[int64]*talkItem{}}

	k.post("/messages", map[string]any{"text": "run printf 'echo made it' > made.sh && sh made.sh"})
	k.until("it asks", func() bool { id, _ := k.asks(); return id != "" })
	id, what := k.asks()
	if what != "printf 'echo made it' > made.sh && sh made.sh" {
		t.Errorf("it asks for %q", what)
	}
	a.stop()
	a.start()
	k.until("it still asks", func() bool { id, _ := k.asks(); return id != "" && k.state == "asking" })
	if again, _ := k.asks(); again != id {
		t.Errorf("the question %s is now %s", id, again)
	}
	k.post("/approvals/"+id, map[string]any{"answer": "o0"})
	k.until("it is done", k.idle)
	if got := k.String(); k.state != "idle" || !strings.Contains(got, "made it\n") || k.text() != "(selectedonce completed) " {
		t.Errorf("it is %s\n%s", k.state, got)
	}
	if got := a.exec(closedBox, map[string]any{"command": "cat made.sh"}).Stdout; got != "echo made it" {
		t.Errorf("the file has %q", got)
	}

	k.post("/messages", map[string]any{"text": "run rm made.sh"})
	k.until("it asks", func() bool { id, _ := k.asks(); return id != "" })
	id, _ = k.asks()
	k.post("/approvals/"+id, map[string]any{"answer": "o1"})
	k.until("it is refused", k.idle)
	if got := a.exec(closedBox, map[string]any{"command": "ls made.sh"}); got.ExitCode != 0 || !strings.HasSuffix(k.text(), "(selectedno failed) ") {
		t.Errorf("after a refusal: %+v\n%s", got, k)
	}

	k.speaksOverRestarts()
	if status, text := a.raw("DELETE", k.path, nil); status != http.StatusNoContent {
		t.Fatalf("delete: %d %s", status, text)
	}
	a.until("the program has ended", func() bool {
		return a.exec(closedBox, map[string]any{"command": "pgrep -f /home/agent/agent | grep -v $$ | wc -l"}).Stdout == "0\n"
	})
}

// speaksOverRestarts has the agent say 400 words, and sandboxd restarted twice meanwhile.
func (k *talk) speaksOverRestarts() {
	a := k.a
	before := len(k.text())
	k.post("/messages", map[string]any{"text": "slowly 400"})
	for part := range 2 {
		k.until("it speaks", func() bool { return len(k.text())-before > (part+1)*700 })
		a.stop()
		a.start()
	}
	k.until("it has spoken", k.idle)
	want := ""
	for i := range 400 {
		want += acptest.Word(i)
	}
	if got := k.text()[before:]; got != want {
		a.t.Errorf("it said %d bytes, want %d: %.200q", len(got), len(want), got)
	}
}
