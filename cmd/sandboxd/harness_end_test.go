//go:build e2e || bench

package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"sandboxd/internal/fault"
)

// belongings are the kinds of things that an engine keeps for a server: how to list them, and how to remove them.
var belongings = []struct {
	what         string
	list, remove []string
}{
	{"containers", []string{"ps", "-aq"}, []string{"rm", "--force", "--volumes"}},
	{"volumes", []string{"volume", "ls", "-q"}, []string{"volume", "rm", "--force"}},
	{"networks", []string{"network", "ls", "-q"}, []string{"network", "rm"}},
}

// kill ends the process as a crash would; stop as a person would.
func (s *server) kill() { s.end(syscall.SIGKILL) }
func (s *server) stop() { s.end(syscall.SIGTERM) }

func (s *server) end(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	if !s.gone(eventLimit) {
		s.t.Fatalf("sandboxd did not end on %v; its log:\n%s", signal, s.tail())
	}
}

// runs says whether the process has been started and has not ended.
func (s *server) runs() bool { return s.cmd != nil && !s.gone(0) }

// gone waits for the process's end, and says whether it has come.
func (s *server) gone(limit time.Duration) bool {
	select {
	case <-s.ended:
		return true
	default:
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.ended:
		return true
	case <-late.C:
		return false
	}
}

// destroy deletes every sandbox as a person would, ends the process, and removes the data folder and whatever the engine
// still has for it: what was made in advance, and what a test that failed has left. It continues after a failure.
func (s *server) destroy() {
	if s.t.Failed() {
		s.t.Logf("log of sandboxd:\n%s", s.tail())
	}
	if s.runs() {
		s.deleteAll()
		s.finish()
	}
	s.removeBelongings()
	s.unmountPool()
	if err := os.RemoveAll(s.data); err != nil {
		s.t.Error(err)
	}
}

// deleteAll deletes every sandbox over the API.
func (s *server) deleteAll() {
	if s.token == "" { // it was never ready
		return
	}
	var list struct {
		Items []struct{ Name string } `json:"sandboxes"`
	}
	s.call("GET", "/sandboxes?limit=1000", nil, &list)
	for _, item := range list.Items {
		s.call("DELETE", "/sandboxes/"+item.Name+"?wait=gone", nil, nil)
	}
}

// finish ends the process, by force when it does not end when asked.
func (s *server) finish() {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = s.cmd.Process.Signal(signal) // it may have ended by now
		if s.gone(eventLimit) {
			return
		}
		s.t.Errorf("sandboxd did not end on %v; its log:\n%s", signal, s.tail())
	}
}

// removeBelongings removes what the engine has for this server, which does not run any more.
func (s *server) removeBelongings() {
	for _, label := range []string{"sandboxd.files", "sandboxd.instance", "sandboxd.snapshot", "sandboxd.volume"} {
		for _, b := range belongings {
			left := strings.Fields(s.docker(append(b.list, "--filter", "label="+label+"="+s.instance())...))
			if b.what == "networks" {
				for _, id := range left {
					s.removeNetwork(id)
				}
			} else if len(left) > 0 {
				s.docker(append(b.remove, left...)...)
			}
		}
	}
	images := strings.Fields(s.docker("images", "--filter", "reference=sandboxd/snapshot/"+s.instance(), "--format", "{{.Repository}}:{{.Tag}}"))
	if len(images) > 0 {
		s.docker(append([]string{"rmi"}, images...)...) // of snapshots; by name, as an image can have others
	}
}

// removeNetwork removes a network, unless the engine takes it for used though nothing is on it. Docker 20.10 may count one too many, until its
// own next start, when a call that starts a container is given up: then stuck is true.
func (s *server) removeNetwork(id string) (stuck bool) {
	on := strings.TrimSpace(s.docker("network", "inspect", "--format", "{{len .Containers}}", id))
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "network", "rm", id).CombinedOutput()
	if stuck = on == "0" && strings.Contains(string(out), "has active endpoints"); err != nil && !stuck {
		s.t.Errorf("remove network %s: %v\n%s", id, err, out)
	}
	return stuck
}

// unmountPool unmounts the storage pool, if there is one: its folder cannot be removed otherwise.
func (s *server) unmountPool() {
	disk, err := poolDisk(&Config{Data: s.data})
	if err == nil {
		err = disk.Unmount()
	}
	for end := time.Now().Add(time.Minute); fault.Is(err, fault.Conflict) && time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		err = disk.Unmount() // the engine may be ending the last container
	}
	if err != nil {
		s.t.Error(err)
	}
}

// docker runs the docker command for clean-up: a failure fails the test, which continues.
func (s *server) docker(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		s.t.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		return ""
	}
	return string(out)
}
