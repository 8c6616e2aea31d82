//go:build e2e

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// updateBody is the API's update, as far as the tests look at it.
type updateBody struct {
	State, Problem, Image string
	Items                 []struct {
		Sandbox, State, Problem, Snapshot string
		Log                               []string
		TakenBack                         bool `json:"taken_back"`
	}
}

// how says in a line how an update went.
func (u updateBody) how() string {
	out := u.State + ":"
	for _, i := range u.Items {
		out += " " + i.Sandbox + " " + i.State
	}
	return out
}

// versions is a template whose image the test changes. Its service writes which version it is of.
type versions struct {
	t      testing.TB
	folder string
	name   string
}

// newVersions makes the template, of version 1. Its images go at the end of the test.
func newVersions(t testing.TB, name string) *versions {
	t.Helper()
	v := &versions{t, t.TempDir(), name}
	writeTemplate(t, v.folder, name, fmt.Sprintf(`name: %s
title: Small
description: A small image with a version.
icon: flask
profile: dev
size: {cpus: 1, memory: 256MiB, pids: 256, disk: 1GiB}
services:
  - name: web
    command: [/usr/local/bin/web]
    autostart: true
`, name))
	v.makes(1, "exec sleep 1000000")
	t.Cleanup(func() {
		for _, id := range strings.Fields(engine(t, "images", "-q", "sandboxd/"+name)) {
			engine(t, "rmi", "-f", id)
		}
	})
	return v
}

// makes makes the template's image another one, whose service runs some lines of shell.
func (v *versions) makes(version int, service string, steps ...string) {
	v.t.Helper()
	lines := []string{"FROM debian:trixie-slim", fmt.Sprintf("RUN echo %d >/opt/version", version),
		fmt.Sprintf(`RUN printf '#!/bin/sh\necho this is version %d\n%s\n' >/usr/local/bin/web && chmod 755 /usr/local/bin/web`, version, service)}
	text := strings.Join(append(lines, steps...), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(v.folder, v.name, "Dockerfile"), []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

// version gives which version a sandbox is of, and what is in its home.
func (s *server) version(name string) string {
	s.t.Helper()
	return strings.Join(strings.Fields(s.exec(name, map[string]any{"command": "cat /opt/version; cat mark; ls /opt/installed 2>/dev/null; grep -qs '^sleep$' /proc/[0-9]*/comm && echo runs"}).Stdout), " ")
}

// marked makes a sandbox of a template, with a file in its home.
func (s *server) marked(name, template string) {
	s.t.Helper()
	s.create(map[string]any{"name": name, "template": template})
	s.exec(name, map[string]any{"command": "echo " + name + " >mark"})
	s.until("the service runs in "+name, func() bool { return strings.HasSuffix(s.version(name), "runs") })
}

// older says whether a sandbox is on an older image.
func (s *server) older(name string) bool {
	s.t.Helper()
	var b struct{ Update struct{ Available bool } }
	s.call("GET", "/sandboxes/"+name, nil, &b)
	return b.Update.Available
}

// updates updates a sandbox and gives how that went.
func (s *server) updates(path string, in map[string]any) (u updateBody) {
	s.t.Helper()
	if status := s.call("POST", path+"/update?wait=done&timeout=600", in, &u); status != http.StatusOK {
		s.t.Fatalf("update %s: %d", path, status)
	}
	return u
}

// TestUpdates_ANewImageKeepsTheHomeAndABrokenOneIsPutBack updates a sandbox, to images that work and to images that do not.
func TestUpdates_ANewImageKeepsTheHomeAndABrokenOneIsPutBack(t *testing.T) {
	t.Parallel()
	v := newVersions(t, "versions")
	s := newServer(t, "--prebuild", "", "--templates", v.folder)
	s.marked("lab", "versions")
	if s.older("lab") {
		t.Error("a new one counts as older")
	}
	if status, body := s.raw("POST", "/sandboxes/lab/update", map[string]any{"force": true}); status != http.StatusConflict {
		t.Errorf("an update to nothing: %d %s", status, body)
	}
	engine(t, "exec", "-u", "0", s.container("lab"), "touch", "/opt/installed")
	v.makes(2, "exec sleep 1000000")
	s.until("it counts as older", func() bool { return s.older("lab") })
	u := s.updates("/sandboxes/lab", map[string]any{"force": true})
	if got := s.version("lab"); u.how() != "done: lab updated" || got != "2 lab runs" || s.older("lab") {
		t.Fatalf("%s, version %q; %+v", u.how(), got, u)
	}
	s.reverts("lab", u.Items[0].Snapshot)
	if got := s.version("lab"); got != "1 lab /opt/installed runs" || !s.older("lab") {
		t.Errorf("undone: %q", got)
	}
	for what, c := range map[string]struct {
		service, problem string
		steps            []string
	}{
		"a service that ends":     {"echo it is broken; exit 3", "The service web does not work on the new image: It ends by itself (exit code 3).", nil},
		"one that does not start": {"exec sleep 1000000", "", []string{"RUN rm -rf /home/agent && touch /home/agent"}},
		"one that is not built":   {"exec sleep 1000000", "", []string{"RUN exit 7"}},
	} {
		v.makes(3, c.service, c.steps...)
		u := s.updates("/sandboxes/lab", map[string]any{"force": true})
		built := what != "one that is not built"
		if built && (len(u.Items) != 1 || u.how() != "stopped: lab failed" || !u.Items[0].TakenBack || !strings.Contains(u.Items[0].Problem, c.problem)) {
			t.Errorf("%s: %+v", what, u)
		}
		if !built && (u.how() != "failed: lab skipped" || u.Problem == "") {
			t.Errorf("%s: %+v", what, u)
		}
		if c.problem != "" && !strings.Contains(strings.Join(u.Items[0].Log, "\n"), "it is broken") {
			t.Errorf("%s: its log is %q", what, u.Items[0].Log)
		}
		if got := s.version("lab"); got != "1 lab /opt/installed runs" || !s.older("lab") {
			t.Errorf("%s: %q", what, got)
		}
		t.Logf("%s: %s", what, u.Items[0].Problem+u.Problem)
	}
}

// TestUpdates_OneThatIsStoppedOrRebuilt updates a stopped sandbox, and one whose image was built again from the same folder.
func TestUpdates_OneThatIsStoppedOrRebuilt(t *testing.T) {
	t.Parallel()
	v := newVersions(t, "versions-rebuilt")
	s := newServer(t, "--prebuild", "", "--templates", v.folder)
	s.marked("lab", "versions-rebuilt")
	s.raw("POST", "/sandboxes/lab/stop?wait=stopped", nil)
	v.makes(4, "exec sleep 1000000")
	if u := s.updates("/sandboxes/lab", nil); u.how() != "done: lab updated" || s.state("lab") != "stopped" {
		t.Errorf("stopped: %s, then %s", u.how(), s.state("lab"))
	}
	s.raw("POST", "/sandboxes/lab/start?wait=ready", nil)
	s.until("the service runs", func() bool { return s.version("lab") == "4 lab runs" })
	// The same folder built again, as with newer packages: the name of the image is the same.
	ref := strings.Fields(engine(t, "inspect", "--format", "{{.Config.Image}}", s.container("lab")))[0]
	cmd := "FROM " + ref + "\nRUN echo 5 >/opt/version\n"
	file := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(file, []byte(cmd), 0o644); err != nil {
		t.Fatal(err)
	}
	engine(t, "build", "-q", "-t", ref, filepath.Dir(file))
	s.untilWithin(90*time.Second, "it counts as older", func() bool { return s.older("lab") })
	if u := s.updates("/sandboxes/lab", map[string]any{"force": true}); u.how() != "done: lab updated" || s.version("lab") != "5 lab runs" {
		t.Errorf("rebuilt: %+v, %q", u, s.version("lab"))
	}
}

// state gives the state of a sandbox.
func (s *server) state(name string) string {
	s.t.Helper()
	var b sandboxBody
	s.call("GET", "/sandboxes/"+name, nil, &b)
	return b.State
}

// TestUpdates_OneInUseIsLeftAlone holds one of two sandboxes.
func TestUpdates_OneInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	v := newVersions(t, "versions-used")
	s := newServer(t, "--prebuild", "", "--templates", v.folder)
	s.marked("held", "versions-used")
	s.marked("free", "versions-used")
	s.raw("POST", "/sandboxes/held/holds", map[string]any{"reason": "a demonstration", "ttl": "1h"})
	v.makes(2, "exec sleep 1000000")
	status, body := s.raw("POST", "/sandboxes/held/update", nil)
	if status != http.StatusConflict || !strings.Contains(string(body), "a demonstration") {
		t.Errorf("%d %s", status, body)
	}
	s.untilWithin(time.Minute, "the commands of the test are over", func() bool {
		var b struct {
			AwakeBecause []any `json:"awake_because"`
		}
		s.call("GET", "/sandboxes/free", nil, &b)
		return len(b.AwakeBecause) == 0
	})
	u := s.updates("/templates/versions-used", map[string]any{})
	if how := u.how(); !strings.Contains(how, "free updated") || !strings.Contains(how, "held in-use") || u.State != "done" {
		t.Errorf("%s: %+v", how, u)
	}
	if out := s.cli("template", "list", "--templates", v.folder); !strings.Contains(out, "versions-used") {
		t.Errorf("listed: %s", out)
	}
}

// updateKills is how often sandboxd is killed during updates.
const updateKills = 24

// TestUpdates_KilledAtRandomNothingIsHalf kills sandboxd with SIGKILL at random moments of updates of three sandboxes, some of which fail:
// each is wholly the old or wholly the new one afterwards, with its home, and the record of the update says which.
func TestUpdates_KilledAtRandomNothingIsHalf(t *testing.T) {
	t.Parallel()
	v := newVersions(t, "versions-killed")
	s := newServer(t, "--prebuild", "", "--templates", v.folder)
	names := []string{"one", "two", "three"}
	for _, name := range names {
		s.marked(name, "versions-killed")
	}
	s.raw("POST", "/sandboxes/three/stop?wait=stopped", nil)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for n := range often(updateKills) {
		version, service := n+2, "exec sleep 1000000"
		if n%3 == 2 {
			service = "exit 3"
		}
		v.makes(version, service)
		if status, body := s.raw("POST", "/templates/versions-killed/update", map[string]any{"force": true, "max_failures": 3}); status != http.StatusAccepted {
			t.Fatalf("begin: %d %s", status, body)
		}
		pause := time.NewTimer(time.Duration(random.IntN(20_000)) * time.Millisecond)
		<-pause.C
		s.kill()
		s.start()
		s.settle()
		var u updateBody
		s.untilWithin(2*time.Minute, "the record says what has become of each", func() bool {
			u = updateBody{}
			s.call("GET", "/templates/versions-killed/update", nil, &u)
			return u.State != "running" && !strings.Contains(u.how(), "updating")
		})
		s.settle()
		seen[u.State]++
		for _, i := range u.Items {
			seen[i.State]++
			if (i.State == "updated") == s.older(i.Sandbox) {
				t.Errorf("%s is %s, and older is %t: %+v", i.Sandbox, i.State, s.older(i.Sandbox), u)
			}
		}
		if s.state("one") != "running" || s.state("two") != "running" || s.state("three") != "stopped" {
			t.Errorf("after kill %d: %s, %s, %s", n, s.state("one"), s.state("two"), s.state("three"))
		}
		for _, name := range names[:2] {
			if got := s.version(name); !strings.HasSuffix(got, " "+name+" runs") || n%3 == 2 && strings.HasPrefix(got, fmt.Sprint(version)+" ") {
				t.Errorf("after kill %d %s is %q", n, name, got)
			}
		}
		t.Logf("kill %d: %s", n, u.how())
	}
	t.Logf("seen %v", seen)
	s.checkTrue(s.settle())
	for _, name := range names {
		s.raw("DELETE", "/sandboxes/"+name+"?wait=gone", nil)
	}
	s.checkNothingLeft()
	s.until("nothing is left of snapshots", func() bool { return s.snapshotParts() == "" })
}
