//go:build e2e

package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rootImages lists the images of a server's snapshots and of what it has restored.
func (s *server) rootImages() string {
	s.t.Helper()
	return engine(s.t, "images", "--format", "{{.Tag}}", "--filter", "reference=sandboxd/snapshot/"+s.instance())
}

// TestBackups_TheRootFileSystemComesBackIfAsked installs a package in a sandbox, and brings it to another server by way of a file, and back into
// the sandbox itself.
func TestBackups_TheRootFileSystemComesBackIfAsked(t *testing.T) {
	t.Parallel()
	here, there := newServer(t, "--prebuild", ""), newServer(t, "--prebuild", "")
	here.create(map[string]any{"name": "lab", "template": "base"})
	const look = "tool; stat -c '%a %U %h' /usr/local/bin/tool /srv/data; cat /etc/issue; ls /usr/share/doc/bash; dpkg -s sandboxd-tool | grep ^Version; cat ~/notes"
	here.asRoot("lab", `set -e; mkdir -p /tmp/p/DEBIAN /tmp/p/usr/local/bin; printf 'Package: sandboxd-tool\nVersion: 7\nArchitecture: all\nMaintainer: a <a@b>\nDescription: d\n' >/tmp/p/DEBIAN/control
printf '#!/bin/sh\necho installed\n' >/tmp/p/usr/local/bin/tool; chmod 755 /tmp/p/usr/local/bin/tool; dpkg-deb -b /tmp/p /tmp/p.deb; dpkg -i /tmp/p.deb; rm -r /tmp/p*
mkdir -m 2750 /srv/data; chown agent /srv/data; ln /usr/local/bin/tool /usr/local/bin/tool2; echo changed >/etc/issue; rm -rf /usr/share/doc/bash; echo 00000000000000000000000000000000 >/etc/machine-id`)
	here.exec("lab", map[string]any{"command": "echo home >~/notes"})
	want := here.exec("lab", map[string]any{"command": look}).Stdout
	if !strings.HasPrefix(want, "installed\n755 root 2\n2750 agent 2\nchanged\nVersion: 7\nhome") {
		t.Fatalf("it has %q", want)
	}

	file := filepath.Join(t.TempDir(), "lab.tar.zst")
	here.cli("backup", "lab", file, "--root", "--url", "http://"+here.addr, "--token", here.token)
	if info, err := os.Stat(file); err != nil || info.Size() > 8<<20 {
		t.Errorf("%+v, %v", info, err)
	}
	to := t.TempDir()
	if out, err := exec.Command("bash", "-c", `cd "$1" && tar --zstd -xf "$2" && mkdir root && tar -xf root.tar -C root && cat root/etc/issue && ls root/usr/share/doc/.wh.bash`, "-", to, file).CombinedOutput(); err != nil || string(out) != "changed\nroot/usr/share/doc/.wh.bash\n" {
		t.Errorf("GNU tar: %v %s", err, out)
	}

	there.cli("restore", file, "moved", "--new", "--url", "http://"+there.addr, "--token", there.token)
	if out := there.exec("moved", map[string]any{"command": look}); out.Stdout != want {
		t.Errorf("on another host: %+v, want %q", out, want)
	}
	if out := there.exec("moved", map[string]any{"command": "hostname; cat /etc/machine-id"}); len(out.Stdout) != len("moved\n")+33 || strings.Contains(out.Stdout, "00000000") {
		t.Errorf("its identity: %+v", out)
	}

	here.asRoot("lab", "rm /usr/local/bin/tool*; echo since >/etc/issue")
	here.exec("lab", map[string]any{"command": "echo since >~/notes"})
	if status, body := here.upload("PUT", "/sandboxes/lab/restore?home_only=true", file); status != http.StatusOK {
		t.Fatalf("restore the home: %d %s", status, body)
	}
	if out := here.exec("lab", map[string]any{"command": "cat ~/notes /etc/issue"}); out.Stdout != "home\nsince\n" {
		t.Errorf("only the home: %+v", out)
	}
	if status, body := here.upload("PUT", "/sandboxes/lab/restore?save_first=true", file); status != http.StatusOK {
		t.Fatalf("restore: %d %s", status, body)
	}
	if out := here.exec("lab", map[string]any{"command": look}); out.Stdout != want {
		t.Errorf("in place: %+v, want %q", out, want)
	}
	here.restoresWhatIsRestored(want, look)
}

// restoresWhatIsRestored backs up a sandbox that was restored with its root file system, and restores that once it is deleted. Then no image is
// left over.
func (s *server) restoresWhatIsRestored(want, look string) {
	s.t.Helper()
	var b backupBody
	if status := s.call("POST", "/sandboxes/lab/backups?wait=ready", map[string]any{"root": true}, &b); status != http.StatusCreated {
		s.t.Fatalf("back it up again: %d", status)
	}
	s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil)
	if status, body := s.raw("POST", "/restore?name=lab&backup="+b.ID, nil); status != http.StatusCreated {
		s.t.Fatalf("restore it once more: %d %s", status, body)
	}
	if out := s.exec("lab", map[string]any{"command": look}); out.Stdout != want {
		s.t.Errorf("the second time: %+v, want %q", out, want)
	}
	s.until("the deleted one's image is gone", func() bool { return len(strings.Fields(s.rootImages())) == 1 })
	s.sleeps("lab", "asleep")
	if out := s.exec("lab", map[string]any{"command": look}); out.Stdout != want {
		s.t.Errorf("after a sleep: %+v, want %q", out, want)
	}
	s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil)
	s.until("no image is left over", func() bool { return s.rootImages() == "" })
}

// TestBackups_ACrashWhileARootComesBack kills sandboxd at any moment of a restore in place: the sandbox is the old one or the restored one, or says
// which it cannot tell.
func TestBackups_ACrashWhileARootComesBack(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	mark := func(text string) {
		s.asRoot("lab", "echo "+text+" >/opt/mark")
		s.exec("lab", map[string]any{"command": "echo " + text + " >~/mark"})
	}
	mark("backed-up")
	var b backupBody
	if status := s.call("POST", "/sandboxes/lab/backups?wait=ready", map[string]any{"root": true}, &b); status != http.StatusCreated {
		t.Fatalf("back up: %d", status)
	}
	seen := map[string]int{}
	for round := range often(40) {
		mark("since")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.try("PUT", "/sandboxes/lab/restore?backup="+b.ID, nil) // may die under us
		}()
		pause := time.NewTimer(time.Duration(rand.IntN(2500)) * time.Millisecond)
		<-pause.C
		s.kill()
		<-ended
		s.start()
		s.until("it is settled", func() bool {
			var box sandboxBody
			s.call("GET", "/sandboxes/lab", nil, &box)
			return box.State == "running" || box.State == "failed"
		})
		var box sandboxBody
		s.call("GET", "/sandboxes/lab", nil, &box)
		got := s.exec("lab", map[string]any{"command": "cat /opt/mark ~/mark"}).Stdout
		seen[got]++
		if got != "since\nsince\n" && got != "backed-up\nbacked-up\n" && !strings.Contains(box.Problem, "Look at its home") {
			t.Errorf("round %d: it has %q, is %s and says %q", round, got, box.State, box.Problem)
		}
	}
	t.Logf("%v", seen)
	s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil)
	s.until("no image is left over", func() bool { return s.rootImages() == "" })
	if left := engine(t, "ps", "-aq", "--filter", "label=sandboxd.copy", "--filter", "name=sandboxd-copy-"); left != "" {
		for _, id := range strings.Fields(left) {
			if of := engine(t, "inspect", "--format", `{{index .Config.Labels "sandboxd.copy"}}`, id); strings.HasPrefix(of, s.instance()) {
				t.Errorf("left over: %s", of)
			}
		}
	}
}
