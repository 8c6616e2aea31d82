//go:build e2e

package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServerBackup_MovesTheServerToAnotherMachine loses a server with its sandboxes, restores it from its backup into another data folder,
// and then the homes from theirs: from a repository, and from the folder of backups.
func TestServerBackup_MovesTheServerToAnotherMachine(t *testing.T) {
	t.Setenv(passphraseEnv, "correct horse battery")
	s := newServer(t, "--prebuild", "")
	where := []string{"--url", "http://" + s.addr, "--token", s.token}
	place := filepath.Join(t.TempDir(), "repository")
	s.cli(append([]string{"repository", "add", "nas", "--folder", place}, where...)...)
	s.addUser("ada")
	s.create(map[string]any{"name": "lab", "template": "base", "env": map[string]string{"KEPT": "yes"}})
	s.create(map[string]any{"name": "plain", "image": "debian:trixie-slim"})
	s.create(map[string]any{"name": "bare", "image": "debian:trixie-slim"})
	s.asRoot("lab", oddHome)
	s.exec("plain", map[string]any{"command": "echo here >file"})
	was := filepath.Join(t.TempDir(), "was")
	if out, err := exec.Command("cp", "-a", s.homeOf("lab"), was).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	s.cli(append([]string{"backup", "lab", "--repository", "nas"}, where...)...)
	s.cli(append([]string{"backup", "plain", filepath.Join(t.TempDir(), "plain.tar.zst")}, where...)...)
	s.cli(append([]string{"schedule", "create", "nightly", "--sandbox", "lab", "--repository", "nas"}, where...)...)
	s.knowsAllOfItsFolder()
	file := filepath.Join(t.TempDir(), "box.tar.zst.age")
	s.exec2("backup", "--server", file)
	if out := s.cli("doctor", "--only", "server-backup"); !strings.Contains(out, file) {
		t.Errorf("doctor says %s", out)
	}
	if status, text := s.raw("DELETE", "/sandboxes/bare?wait=gone", nil); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	if out, err := exec.Command(binary, s.args("restore", "--server", file, "--replace")...).CombinedOutput(); err == nil || !strings.Contains(string(out), "Another sandboxd serves") {
		t.Errorf("restore under a server: %v %s", err, out)
	}
	s.stop()
	s.removeBelongings() // the machine is lost

	moved := &server{t: t, data: filepath.Join(t.TempDir(), "data"), addr: freeAddr(t), extra: s.extra, http: s.http, token: s.token, log: s.log}
	t.Cleanup(moved.destroy)
	said := moved.exec2("restore", "--server", file)
	if !strings.Contains(said, "Now start sandboxd") {
		t.Errorf("it says %s", said)
	}
	if out, err := exec.Command("cp", "-a", filepath.Join(s.data, "backups"), filepath.Join(moved.data, "backups")).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	moved.start()
	moved.isTheSameServer(s)
	moved.restoresHomes(was)
}

// knowsAllOfItsFolder wants everything in the data folder to be in the list of what there is.
func (s *server) knowsAllOfItsFolder() {
	s.t.Helper()
	found, err := os.ReadDir(s.data)
	if err != nil || len(found) < 12 {
		s.t.Fatalf("%d things in the data folder, %v", len(found), err)
	}
	for _, f := range found {
		if _, known := entryOf(f.Name()); !known {
			s.t.Errorf("%q in the data folder is not in dataEntries", f.Name())
		}
	}
}

// isTheSameServer looks that users, tokens, schedules, repositories and records are those of the former one.
func (s *server) isTheSameServer(former *server) {
	s.t.Helper()
	if s.instance() != former.instance() {
		s.t.Error("its instance is another one")
	}
	s.login("ada", "a-long-test-password")
	var schedules struct{ Schedules []scheduleBody }
	if status := s.call("GET", "/schedules", nil, &schedules); status != http.StatusOK || len(schedules.Schedules) != 1 { // by the former token
		s.t.Errorf("%d %+v", status, schedules)
	}
	s.cli("repository", "check", "nas", "--url", "http://"+s.addr, "--token", s.token) // whose password is sealed
	for _, name := range []string{"lab", "plain", "bare"} {
		s.until(name+" says that its home is lost", func() bool {
			status, text := s.raw("GET", "/sandboxes/"+name, nil)
			return status == http.StatusOK && strings.Contains(string(text), "Restore its home from a backup")
		})
	}
}

func (s *server) restoresHomes(was string) {
	s.t.Helper()
	for _, name := range []string{"lab", "plain"} {
		var list struct{ Backups []backupBody }
		s.call("GET", "/backups?sandbox="+name, nil, &list)
		if len(list.Backups) != 1 {
			s.t.Fatalf("backups of %s: %+v", name, list)
		}
		s.cli("restore", list.Backups[0].ID, name, "--yes", "--url", "http://"+s.addr, "--token", s.token)
		if name == "lab" {
			wantSame(s.t.(*testing.T), was, s.homeOf("lab"), "restored on another machine")
		}
		s.call("POST", "/sandboxes/"+name+"/start?wait=ready", nil, nil)
	}
	if out := s.exec("lab", map[string]any{"command": "echo $KEPT"}); out.Stdout != "yes\n" {
		s.t.Errorf("its environment: %+v", out)
	}
	if out := s.exec("plain", map[string]any{"command": "cat file"}); out.Stdout != "here\n" {
		s.t.Errorf("its home: %+v", out)
	}
	s.call("POST", "/sandboxes/bare/start?wait=ready", nil, nil)
	if out := s.exec("bare", map[string]any{"command": "ls"}); out.ExitCode != 0 || out.Stdout != "" {
		s.t.Errorf("started without its home: %+v", out)
	}
}
