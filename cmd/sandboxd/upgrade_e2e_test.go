//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sandboxd/internal/sqlite"
)

// nextVersion builds sandboxd as its next version could be: with one more migration, and another guest. It gives the path.
func nextVersion(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), mustAbs(t, "../..")
	number := sqlite.Known() + 1
	script := filepath.Join(dir, "next.sql")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "internal", "sqlite", "migrations", fmt.Sprintf("%04d_next.sql", number)): script,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{script: []byte("CREATE TABLE next (a TEXT NOT NULL) STRICT;\nALTER TABLE users ADD COLUMN next TEXT NOT NULL DEFAULT '';\n"), script + ".json": overlay} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"build", "-trimpath", "-overlay", script + ".json", "-ldflags", "-s -w -X main.version=next-2.0", "-o", filepath.Join(dir, "sandboxd"), "./cmd/sandboxd"},
		{"build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "guest"), "./cmd/guest"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(dir, "sandboxd")
}

// guestOf gives the file of the guest that a sandbox runs.
func (s *server) guestOf(name string) string {
	s.t.Helper()
	return engine(s.t, "inspect", "-f", `{{range .Mounts}}{{if eq .Destination "/.sandboxd/guest"}}{{.Source}}{{end}}{{end}}`, s.container(name))
}

// counting starts a program that counts for as long as it runs.
const counting = `nohup setsid sh -c 'n=0; while :; do n=$((n+1)); echo $n >/tmp/n; sleep 0.1; done' >/dev/null 2>&1 & echo $! >/tmp/pid`

// TestUpgrade_SandboxesKeepRunningThereAndBack replaces sandboxd by a newer one, with a newer database and another guest, and goes back.
func TestUpgrade_SandboxesKeepRunningThereAndBack(t *testing.T) {
	next := nextVersion(t)
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	s.create(map[string]any{"name": "plain", "image": "debian:trixie-slim"})
	for _, name := range []string{"lab", "plain"} {
		s.exec(name, map[string]any{"command": counting})
	}
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	p.does("open a terminal", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("a prompt", `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`)
	p.types("MARK=kept\r")
	old := s.guestOf("lab")
	before := s.runSince("lab", "plain")

	s.stop()
	s.other = next
	s.start()
	s.keptRunning(before)
	p.types("clear; echo $MARK-$((40+2))\r")
	p.sees("the same shell in the terminal", showsLine("kept-42"))
	copies, err := filepath.Glob(filepath.Join(s.data, sqlite.UpgradeFolder, "*.db"))
	if err != nil || len(copies) != 1 || !strings.Contains(s.tail(), copies[0]) {
		t.Errorf("copies %v, %v", copies, err)
	}
	s.create(map[string]any{"name": "since", "image": "debian:trixie-slim"})
	if now := s.guestOf("since"); now == old || s.guestOf("lab") != old {
		t.Errorf("guests: %s before, %s of a new one", old, now)
	}
	s.call("POST", "/sandboxes/plain/restart?wait=ready", nil, nil)
	if out := s.exec("plain", map[string]any{"command": "echo here"}); out.Stdout != "here\n" || s.guestOf("plain") != old {
		t.Errorf("with the older guest, started again: %+v", out)
	}

	s.stop()
	s.other = ""
	s.refusesTheNewer(next)
	s.exec2("rollback", "--yes")
	s.start()
	s.keptRunning(map[string]string{"lab": before["lab"]})
	if out := s.exec("plain", map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
		t.Errorf("after the way back: %+v", out)
	}
	s.adopts(s.orphans(1)["since"].ID, nil, http.StatusCreated)
	s.until("the adopted one is ready", func() bool { return s.rest("since").State == "running" })
	if out := s.exec("since", map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
		t.Errorf("made by the newer one, after the way back: %+v", out)
	}
}

// exec2 runs a command of the binary and gives all that it says.
func (s *server) exec2(args ...string) string {
	s.t.Helper()
	out, err := exec.Command(binary, s.args(args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("sandboxd %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// refusesTheNewer has the older binary look at a database of the newer one.
func (s *server) refusesTheNewer(next string) {
	s.t.Helper()
	for _, args := range [][]string{{"serve", "--listen", s.addr, "--prebuild", ""}, {"token", "list"}, {"doctor", "--only", "database"}, {"backup", "--server", filepath.Join(s.t.TempDir(), "f")}} {
		out, err := exec.Command(binary, s.args(args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "newer sandboxd, next-2.0") || !strings.Contains(string(out), "sandboxd rollback --data "+s.data) {
			s.t.Errorf("sandboxd %q: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.Command(next, s.args("rollback", "--yes")...).CombinedOutput(); err == nil || !strings.Contains(string(out), "with the older sandboxd") {
		s.t.Errorf("rollback by the newer one: %v\n%s", err, out)
	}
	out, err := exec.Command(binary, s.args("rollback")...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Sandboxes added since: since") {
		s.t.Errorf("rollback says: %v\n%s", err, out)
	}
}

// runSince gives since when the containers run, and what counts in them.
func (s *server) runSince(names ...string) map[string]string {
	s.t.Helper()
	since := map[string]string{}
	for _, name := range names {
		pid := s.exec(name, map[string]any{"command": "cat /tmp/pid"})
		since[name] = engine(s.t, "inspect", "-f", "{{.State.StartedAt}} {{.State.Pid}}", s.container(name)) + " " + pid.Stdout
	}
	return since
}

// keptRunning wants the containers and the programs in them to be those that they were, and the programs to have counted all the while.
func (s *server) keptRunning(before map[string]string) {
	s.t.Helper()
	for name, was := range before {
		if now := s.runSince(name)[name]; now != was {
			s.t.Errorf("%s ran since %q, now since %q", name, was, now)
		}
		count := func() string { return s.exec(name, map[string]any{"command": "cat /tmp/n"}).Stdout }
		first := count()
		s.until(name+" counts", func() bool { return count() != first })
	}
}
