//go:build e2e

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/acp/install"
)

type agentInBox struct {
	ID, State, Line, Problem string
	Installed                string `json:"installed_version"`
	Version                  string
	Percent                  int
}

// agent gives what one agent is in the sandbox lab.
func (s *server) agent(id string) agentInBox {
	s.t.Helper()
	status, body := s.raw("GET", "/sandboxes/lab/agents", nil)
	var list struct{ Agents []agentInBox }
	if err := json.Unmarshal(body, &list); status != http.StatusOK || err != nil {
		s.t.Fatalf("%d %s, %v", status, body, err)
	}
	for _, a := range list.Agents {
		if a.ID == id {
			return a
		}
	}
	s.t.Fatalf("there is no %s in %s", id, body)
	return agentInBox{}
}

// installs installs an agent and waits for its end. It gives the percentages that were told on the way.
func (s *server) installs(id string) (end agentInBox, seen map[int]bool) {
	s.t.Helper()
	if status, body := s.raw("POST", "/sandboxes/lab/agents/"+id+"/install", nil); status != http.StatusAccepted {
		s.t.Fatalf("install: %d %s", status, body)
	}
	seen = map[int]bool{}
	s.untilWithin(5*time.Minute, "the end of the installation", func() bool {
		end = s.agent(id)
		seen[end.Percent] = true
		return end.State != "installing"
	})
	return end, seen
}

// TestPrograms_InstallsAnAgentFromNPMThatSpeaks installs Gemini CLI in a sandbox and says hello to it.
func TestPrograms_InstallsAnAgentFromNPMThatSpeaks(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	if a := s.agent("gemini"); a.State != "available" || a.Installed != "" {
		t.Fatalf("at first it is %+v", a)
	}
	a, seen := s.installs("gemini")
	if a.State != "installed" || a.Installed != a.Version || len(seen) < 2 {
		t.Fatalf("it is %+v; percentages %v", a, seen)
	}
	start, err := install.NewCatalog("", nil).Agent("gemini")
	if err != nil {
		t.Fatal(err)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	say := []string{"bash", "-c", `hello=$1; shift; { echo "$hello"; sleep 60; } | "$@" | head -n 1`, "say", hello}
	out := s.exec("lab", map[string]any{"command": append(say, start.Command...), "timeout": "2m"})
	if !strings.Contains(out.Stdout, `"protocolVersion":1`) || !strings.Contains(out.Stdout, `"id":1`) {
		t.Errorf("it says %q\n%s", out.Stdout, out.Stderr)
	}
	if status, body := s.raw("DELETE", "/sandboxes/lab/agents/gemini", nil); status != http.StatusNoContent {
		t.Fatalf("remove: %d %s", status, body)
	}
	if a := s.agent("gemini"); a.State != "available" || a.Installed != "" {
		t.Errorf("at the end it is %+v", a)
	}
}
