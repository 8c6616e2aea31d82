//go:build e2e || bench

package main

import (
	"bytes"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
)

// scriptedInstallation has the scripted agent be where an installation would put it.
const scriptedInstallation = `set -e; chmod +x agent; at=.local/share/sandboxd/agents/scripted; mkdir -p $at; echo 1.0.0 >$at/version
printf '#!/bin/sh\nexec /home/agent/agent\n' >$at/run; chmod +x $at/run`

// hasScriptedAgent puts the scripted agent into a sandbox, as a static program, and adds it to the agents of the server.
func (s *server) hasScriptedAgent(box string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "agent")
	build := osexec.CommandContext(s.t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "sandboxd/internal/acp/acptest/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build the agent: %v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	const agents = `{"agents": [{"id": "scripted", "name": "Scripted", "summary": "Follows a script.", "licence": "MIT", "licence_url": "https://example.test/licence",
		"package": "scripted", "version": "1.0.0", "node": 1, "size_mb": 1, "command": ["scripted"], "env": {"ACPTEST_LOADS": "1"}}]}`
	if err := os.WriteFile(filepath.Join(s.data, "agents.json"), []byte(agents), 0o600); err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, "http://"+s.addr+"/api/v1/sandboxes/"+box+"/files?path=agent", bytes.NewReader(program))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		s.t.Fatalf("put the agent into %s: %s", box, answer.Status)
	}
	if out := s.exec(box, map[string]any{"command": scriptedInstallation}); out.ExitCode != 0 {
		s.t.Fatalf("make it a program: %s", out.Stderr)
	}
}
