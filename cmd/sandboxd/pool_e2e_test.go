//go:build e2e

package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// warm are the names of this server's containers that are frozen.
func (s *server) warm() []string {
	return strings.Fields(engine(s.t, "ps", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "status=paused",
		"--format", `{{.Label "sandboxd.name"}}`))
}

// click makes a sandbox as the page does, with nothing but a template, and says whether it is one of the warm. Then it
// works; else it is deleted.
func (s *server) click(warm []string) bool {
	s.t.Helper()
	var made sandboxBody
	if status := s.call("POST", "/sandboxes?wait=ready", map[string]any{"template": "echo"}, &made); status != http.StatusCreated {
		s.t.Fatalf("create: %d", status)
	}
	if !slices.Contains(warm, made.Name) {
		s.call("DELETE", "/sandboxes/"+made.Name+"?wait=gone", nil, nil)
		return false
	}
	if made.State != "running" {
		s.t.Errorf("it is %+v", made)
	}
	if out := s.exec(made.Name, map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
		s.t.Errorf("a command in it gives %+v", out)
	}
	return true
}

// TestPool_AClickGetsASpareAlsoAfterTheEndOfSandboxd claims sandboxes that were made in advance, before and after sandboxd
// was killed.
func TestPool_AClickGetsASpareAlsoAfterTheEndOfSandboxd(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t, "pool: 2"))
	full := func() bool { return len(s.warm()) == 2 }
	s.until("the pool is full", full)
	var list struct{ Sandboxes []sandboxBody }
	if s.call("GET", "/sandboxes", nil, &list); len(list.Sandboxes) != 0 {
		t.Errorf("what is nobody's is shown: %+v", list.Sandboxes)
	}
	warm := s.warm()
	s.until("a warm sandbox is claimed", func() bool { return s.click(warm) })
	s.until("the pool is full again", full)
	warm = s.warm()
	s.kill()
	s.start()
	s.until("a warm sandbox is claimed after the restart", func() bool { return s.click(warm) })
	s.until("the pool is full after the restart", full)
	if now := s.warm(); !slices.ContainsFunc(now, func(name string) bool { return slices.Contains(warm, name) }) {
		t.Errorf("the warm sandbox that is left of %v was thrown away: %v", warm, now)
	}
}
