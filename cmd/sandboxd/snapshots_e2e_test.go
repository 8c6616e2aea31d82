//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSnapshots_ARestoreBringsHomeAndProgramsBack changes both, goes back, undoes that, and wants a home of every kind of file as it was.
func TestSnapshots_ARestoreBringsHomeAndProgramsBack(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "odd", "template": "base"})
	s.asRoot("odd", oddHome)
	oddAttributes(t, s.homeOf("odd"))
	before := filepath.Join(t.TempDir(), "before")
	if out, err := exec.Command("cp", "-a", s.homeOf("odd"), before).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	s.asRoot("odd", "echo one > /usr/local/bin/tool; chmod 4750 /usr/local/bin/tool")
	b := s.snapshot("odd", "odd files")
	if !b.Consistent || b.Files == 0 || b.Kind != "manual" {
		t.Errorf("%+v", b)
	}
	s.asRoot("odd", "cd /home/agent; chmod 755 locked; rm -rf deep hard soft .wh.deep pipe; echo two > after; echo two > /usr/local/bin/tool; touch /opt/new")
	var diff struct {
		Changes []struct{ Path, Change string }
		Diff    string
	}
	s.call("GET", "/sandboxes/odd/snapshots/"+b.ID+"/diff", nil, &diff)
	if got := fmt.Sprint(diff.Changes); !strings.HasPrefix(got, "[{.wh.deep deleted} {after added} {deep deleted} {deep/er deleted}") || !strings.Contains(got, "{locked changed}") {
		t.Errorf("changes: %s", got)
	}
	if s.call("GET", "/sandboxes/odd/snapshots/"+b.ID+"/diff/file?path=after", nil, &diff); !strings.HasSuffix(diff.Diff, "+two\n") {
		t.Errorf("lines: %q", diff.Diff)
	}
	s.reverts("odd", b.ID)
	wantSame(t, before, s.homeOf("odd"), "restored")
	if out := s.exec("odd", map[string]any{"command": "sudo stat -c %a /usr/local/bin/tool; sudo cat /usr/local/bin/tool; ls /opt; hostname"}); out.Stdout != "4750\none\nodd\n" {
		t.Errorf("its programs: %+v", out)
	}
	s.asRoot("odd", "echo spoilt > /usr/local/bin/tool; touch /opt/junk")
	s.reverts("odd", b.ID) // once more to the same one
	if out := s.exec("odd", map[string]any{"command": "sudo cat /usr/local/bin/tool; ls /opt"}); out.Stdout != "one\n" {
		t.Errorf("restored to the same one again: %+v", out)
	}
	list := s.snapshots("odd")
	if len(list) != 3 || list[0].Kind != "safety" || list[0].Parent != b.ID {
		t.Fatalf("%+v", list)
	}
	s.reverts("odd", list[1].ID) // of the first restore
	if out := s.exec("odd", map[string]any{"command": "cat after; sudo cat /usr/local/bin/tool; ls /opt"}); out.Stdout != "two\ntwo\nnew\n" {
		t.Errorf("undone: %+v", out)
	}
}

// TestSnapshots_ACloneIsItsOwn makes three clones of a running sandbox at once.
func TestSnapshots_ACloneIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "first", "template": "base", "env": map[string]string{"KEPT": "yes"}})
	s.asRoot("first", "echo 00000000000000000000000000000000 > /etc/machine-id; echo tool > /usr/local/bin/tool")
	s.exec("first", map[string]any{"command": "echo work > file"})
	names := s.clones("first", map[string]any{"name": "copy", "count": 3})
	if strings.Join(names, " ") != "copy-1 copy-2 copy-3" {
		t.Fatalf("%q", names)
	}
	machines := map[string]bool{}
	for _, name := range names {
		out := s.exec(name, map[string]any{"command": "cat file /usr/local/bin/tool; echo $KEPT; hostname; cat /etc/machine-id"})
		rest, ok := strings.CutPrefix(out.Stdout, "work\ntool\nyes\n"+name+"\n")
		if !ok || len(rest) != 33 || machines[rest] {
			t.Errorf("%s: %+v", name, out)
		}
		machines[rest] = true
		s.exec(name, map[string]any{"command": "echo " + name + " > file"})
	}
	if len(s.snapshots("first")) != 0 {
		t.Errorf("left over: %+v", s.snapshots("first"))
	}
	// The image is shared: it stays while a clone is there, and goes with the last one.
	s.raw("DELETE", "/sandboxes/first?wait=gone", nil)
	s.raw("POST", "/sandboxes/copy-1/stop?wait=stopped", nil)
	engine(t, "rm", "-f", s.docker("ps", "-aq", "--filter", "name=-"+s.sandboxID("copy-1")))
	s.raw("POST", "/sandboxes/copy-1/start?wait=ready", nil)
	if out := s.exec("copy-1", map[string]any{"command": "cat file /usr/local/bin/tool"}); out.Stdout != "copy-1\ntool\n" {
		t.Errorf("made anew after its container was lost: %+v", out)
	}
	for _, name := range names {
		s.raw("DELETE", "/sandboxes/"+name+"?wait=gone", nil)
	}
	s.until("the image has gone", func() bool { return s.snapshotParts() == "" })
}

// TestSnapshots_FromTheCommandLine takes snapshots, goes back and forth, and clones, as people at a terminal do.
func TestSnapshots_FromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	l := newLaptop(s)
	do := func(args ...string) string { return l.must(l.run("", "sandboxd", args...)) }
	in := func(box, script string) string { return s.exec(box, map[string]any{"command": script}).Stdout }
	in("lab", "echo one > file")
	id := strings.TrimSpace(do("snapshot", "lab", "--name", "before the upgrade", "--note", "all works"))
	if list := s.snapshots("lab"); len(list) != 1 || list[0].ID != id {
		t.Fatalf("%q, %+v", id, list)
	}
	in("lab", "echo two > file; touch new")
	if out := do("snapshots", "diff", "lab", id); !strings.Contains(out, "changed   file") || !strings.Contains(out, "added     file") {
		t.Errorf("diff:\n%s", out)
	}
	if out := do("snapshots", "diff", "lab", "before the upgrade", "file"); !strings.HasSuffix(out, "-one\n+two\n") {
		t.Errorf("lines:\n%s", out)
	}
	do("snapshots", "restore", "lab", "before the upgrade")
	if out := in("lab", "cat file; ls"); out != "one\nfile\n" {
		t.Errorf("restored: %q", out)
	}
	if out := do("snapshots", "lab"); !strings.Contains(out, "\n*      "+id) || !strings.Contains(out, "safety   before the upgrade") || strings.Index(out, "safety") > strings.Index(out, id) {
		t.Errorf("list:\n%s", out)
	}
	do("snapshots", "undo", "lab")
	if out := in("lab", "cat file"); out != "two\n" {
		t.Errorf("undone: %q", out)
	}
	if out := do("clone", "lab", "fix", "--snapshot", "before the upgrade"); out != "fix\n" || in("fix", "cat file") != "one\n" {
		t.Errorf("cloned: %q", out)
	}
	do("snapshots", "set", "lab", id, "--name", "first")
	if got := l.run("", "sandboxd", "snapshots", "restore", "lab", "before the upgrade"); got.code != 1 || !strings.Contains(got.err, "lab has no snapshot") {
		t.Errorf("its old name: %+v", got)
	}
	do("snapshots", "delete", "lab", "first", "--yes")
	if out := do("snapshots", "lab", "-q"); strings.Contains(out, id) || strings.Count(out, "\n") != 2 {
		t.Errorf("left: %s", out)
	}
	if got := l.run("", "sandboxd", "clone", "lab", "fix"); got.code != 1 || !strings.Contains(got.err, "already") {
		t.Errorf("a name that is taken: %+v", got)
	}
}

// sandboxID gives the id of a sandbox.
func (s *server) sandboxID(name string) string {
	s.t.Helper()
	var b struct{ ID string }
	s.call("GET", "/sandboxes/"+name, nil, &b)
	return b.ID
}

// snapshotParts lists what the engine has of this server's snapshots.
func (s *server) snapshotParts() string {
	s.t.Helper()
	label := "label=sandboxd.snapshot=" + s.instance()
	return strings.TrimSpace(engine(s.t, "volume", "ls", "-q", "--filter", label) + s.rootImages())
}

// longEnv has the tests that do the same again and again do it as often as they should now and then: 50 restores, 200 operations, 20 kills
// of the engine. Otherwise it is an eighth of that.
const longEnv = "SNAPSHOTS_LONG"

// often gives how often something is done.
func often(long int) int {
	if os.Getenv(longEnv) != "" {
		return long
	}
	return (long + 7) / 8
}

// TestSnapshots_ManyTimesBackAndForth takes a snapshot and restores one, again and again, and looks at the data each time.
func TestSnapshots_ManyTimesBackAndForth(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "box", "image": "debian:trixie-slim", "memory": "128MiB"})
	was := ""
	for n := range often(50) {
		version := fmt.Sprintf("version %d", n)
		s.asRoot("box", fmt.Sprintf("echo %q | tee /opt/version > /home/agent/version; head -c 100000 /dev/urandom > /home/agent/noise; cd /home/agent && sha256sum noise > sum", version))
		b := s.snapshot("box", version)
		s.asRoot("box", "echo spoilt | tee /opt/version > /home/agent/version; echo spoilt >> /home/agent/noise")
		s.reverts("box", b.ID)
		if out := s.exec("box", map[string]any{"command": "cat version /opt/version; sha256sum -c --quiet sum"}); out.Stdout != version+"\n"+version+"\n" || out.Stderr != "" {
			t.Fatalf("after %d times: %+v", n+1, out)
		}
		if was != "" {
			if status, body := s.raw("DELETE", "/sandboxes/box/snapshots/"+was, nil); status != http.StatusNoContent {
				t.Fatalf("delete: %d %s", status, body)
			}
		}
		was = b.ID
	}
	if n, want := len(s.snapshots("box")), 1+min(often(50), 10); n != want { // the last one, and those that restores have taken
		t.Errorf("%d snapshots are left, want %d", n, want)
	}
}

// The size of the crash tests of snapshots.
const (
	takenNames    = 3
	takenVersions = 3
)

// TestSnapshots_StayWholeWhenSandboxdIsKilled kills sandboxd at random moments while snapshots are taken, restored, cloned and deleted. The home and
// the root file system of each sandbox are of the same version then, nothing is left frozen, and nothing is left over.
func TestSnapshots_StayWholeWhenSandboxdIsKilled(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) *server{
		"plain": func(t *testing.T) *server { return newServer(t, "--prebuild", "") },
		"pool":  func(t *testing.T) *server { return newPoolServer(t, "1GiB", "--prebuild", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			random := seeded(t)
			s.takesVersions()
			s.killedDuring(random, often(200), func() (method, path string, body any) { return s.takenOperation(random) })
			s.checkTaken()
		})
	}
}

// TestSnapshots_StayWholeWhenTheEngineIsKilled is the same with an engine that is killed, and sometimes its containerd with it.
func TestSnapshots_StayWholeWhenTheEngineIsKilled(t *testing.T) {
	e := newPrivateEngine(t, "{}")
	s := newServer(t, "--prebuild", "")
	random := seeded(t)
	s.takesVersions()
	for n := range often(20) {
		var ops sync.WaitGroup
		for range 3 {
			method, path, body := s.takenOperation(random)
			ops.Go(func() { s.try(method, path, body) }) // may fail
		}
		pause := time.NewTimer(time.Duration(random.IntN(2000)) * time.Millisecond)
		<-pause.C
		e.kill(n%3 == 2)
		e.start()
		e.await()
		ops.Wait()
		s.allRun()
	}
	s.checkTaken()
}

// allRun waits until every sandbox runs, and starts those that the end of the engine has put to sleep or has made fail.
func (s *server) allRun() {
	s.t.Helper()
	s.untilWithin(3*time.Minute, "every sandbox runs", func() bool {
		var list struct{ Sandboxes []sandboxBody }
		status := s.call("GET", "/sandboxes", nil, &list)
		run := status == http.StatusOK
		for _, b := range list.Sandboxes {
			if b.State == "asleep" || b.State == "failed" {
				s.raw("POST", "/sandboxes/"+b.Name+"/start?wait=ready", nil)
			}
			// One that has ended with the engine is listed as running until sandboxd has asked that.
			status, _, err := s.try("POST", "/sandboxes/"+b.Name+"/exec", map[string]any{"command": "true"})
			run = run && b.State == "running" && err == nil && status == http.StatusOK
		}
		return run
	})
}

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// takesVersions makes the sandboxes, each with a snapshot of every version.
func (s *server) takesVersions() {
	s.t.Helper()
	for i := range takenNames {
		name := fmt.Sprintf("taken%d", i)
		s.create(map[string]any{"name": name, "image": "debian:trixie-slim", "memory": "128MiB", "cpus": 1})
		for version := range takenVersions {
			s.asRoot(name, fmt.Sprintf("cd /home/agent; rm -rf v*; for i in $(seq 20); do mkdir -p v$i/d; yes %d | head -c 200000 > v$i/d/f; done; echo %d > /opt/version", version, version))
			s.snapshot(name, fmt.Sprint(version))
		}
	}
}

// checkTaken wants all to be as it should, deletes it, and wants nothing to be left.
func (s *server) checkTaken() {
	s.t.Helper()
	list := s.settle()
	s.checkTrue(list)
	s.checkVersions(list)
	for _, b := range list {
		s.raw("DELETE", "/sandboxes/"+b.Name+"?wait=gone", nil)
	}
	s.until("nothing of a snapshot is left", func() bool { return s.snapshotParts() == "" && len(s.pooled()) == 0 })
	s.checkNothingLeft()
}

// takenOperation is one on a sandbox or a clone.
func (s *server) takenOperation(random *rand.Rand) (method, path string, body any) {
	name := fmt.Sprintf("taken%d", random.IntN(takenNames))
	clone := fmt.Sprintf("clone%d", random.IntN(3))
	var list struct{ Snapshots []snapshotBody }
	if _, text, err := s.try("GET", "/sandboxes/"+name+"/snapshots", nil); err != nil || json.Unmarshal(text, &list) != nil || len(list.Snapshots) == 0 {
		return "GET", "/version", nil
	}
	b := list.Snapshots[random.IntN(len(list.Snapshots))]
	switch random.IntN(8) {
	case 0, 1:
		return "POST", "/sandboxes/" + name + "/snapshots?wait=ready", map[string]any{"automatic": true}
	case 2:
		return "POST", "/sandboxes/" + name + "/clone", map[string]any{"name": clone}
	case 3:
		return "POST", "/sandboxes/" + name + "/clone", map[string]any{"name": clone, "snapshot": b.ID}
	case 4:
		return "DELETE", "/sandboxes/" + clone, nil
	case 5:
		if b.Kind == "manual" { // of each version one is to be left
			return "POST", "/sandboxes/" + name + "/snapshots/" + b.ID + "/restore", nil
		}
		return "DELETE", "/sandboxes/" + name + "/snapshots/" + b.ID, nil
	}
	return "POST", "/sandboxes/" + name + "/snapshots/" + b.ID + "/restore", nil
}

// checkVersions wants home and root file system of each sandbox to be of one version, and each snapshot to be one that can be restored.
func (s *server) checkVersions(list []sandboxBody) {
	t := s.t
	t.Helper()
	versions := func(name string) string {
		out := s.exec(name, map[string]any{"command": "cat v*/d/f | sort | uniq -c | awk '{print $1, $2}'; cat /opt/version; ls -d .sandboxd* 2>/dev/null"})
		return out.Stdout + out.Stderr
	}
	whole := func(said string) bool {
		for version := range takenVersions {
			if said == fmt.Sprintf("2000000 %d\n%d\n", version, version) {
				return true
			}
		}
		return false
	}
	for _, b := range list {
		if said := versions(b.Name); !whole(said) {
			t.Errorf("%s is of no version:\n%s", b.Name, said)
		}
	}
	n := 0
	for i := range takenNames {
		name := fmt.Sprintf("taken%d", i)
		for _, b := range s.snapshots(name) {
			if n++; b.State == "failed" || b.Kind == "safety" { // of these there are more after each restore
				continue
			}
			if b.State != "ready" {
				t.Errorf("%s of %s is %s", b.ID, name, b.State)
			}
			s.reverts(name, b.ID)
			if said := versions(name); !whole(said) {
				t.Errorf("%s as %s %s is of no version:\n%s", name, b.Kind, b.ID, said)
			}
		}
	}
	if left := engine(t, "ps", "-aq", "--filter", "label=sandboxd.mover="+s.instance()); left != "" {
		t.Errorf("left over: %s", left)
	}
	t.Logf("%d sandboxes, %d snapshots", len(list), n)
}
