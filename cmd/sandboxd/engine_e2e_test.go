//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// haltingRuntime starts nothing while the file beside it is there, and then fails.
const haltingRuntime = `#!/bin/sh
case " $* " in *" start "*)
	if [ -e "$0.halt" ]; then
		touch "$0.halts"
		while [ -e "$0.halt" ]; do sleep 0.05; done
		exit 1
	fi ;;
esac
exec runc "$@"
`

// TestStart_AfterAnEngineWasKilledInTheMiddleOfOne kills the engine when containerd has the container's first process and
// the engine does not know yet. Docker 20.10 refuses to start such a container for ever.
func TestStart_AfterAnEngineWasKilledInTheMiddleOfOne(t *testing.T) {
	for name, containerd := range map[string]bool{"dockerd": false, "containerd too": true} {
		t.Run(name, func(t *testing.T) { startsAfterAKill(t, containerd) })
	}
}

func startsAfterAKill(t *testing.T, containerd bool) {
	program := filepath.Join(t.TempDir(), "runtime")
	if err := os.WriteFile(program, []byte(haltingRuntime), 0o755); err != nil {
		t.Fatal(err)
	}
	e := newPrivateEngine(t, fmt.Sprintf(`{"default-runtime": "halting", "runtimes": {"halting": {"path": %q}}}`, program))
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	s.exec("lab", map[string]any{"command": "echo kept >~/file"})
	s.call("POST", "/sandboxes/lab/stop?wait=stopped", nil, nil)

	if err := os.WriteFile(program+".halt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := s.raw("POST", "/sandboxes/lab/start", nil); status != http.StatusAccepted {
		t.Fatalf("start: %d %s", status, text)
	}
	s.until("the start is under way", func() bool { _, err := os.Stat(program + ".halts"); return err == nil })
	e.kill(containerd)
	if err := os.Remove(program + ".halt"); err != nil {
		t.Fatal(err)
	}
	e.start()
	e.await()
	begun, restarted := time.Now(), false
	s.until("it runs after all", func() bool {
		_, text := s.raw("POST", "/sandboxes/lab/start?wait=ready", nil)
		if !restarted && time.Since(begun) > remainsLimit && strings.Contains(string(text), "file exists") { // containerd's, which only its restart removes
			t.Log("the engine keeps remains of the start: restart it, as its administrator would")
			e.kill(true)
			e.start()
			e.await()
			restarted = true
		}
		return s.rest("lab").State == "running"
	})
	if out := s.exec("lab", map[string]any{"command": "cat ~/file"}); out.Stdout != "kept\n" {
		t.Errorf("its file: %+v", out)
	}
}
