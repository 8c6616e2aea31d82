//go:build e2e

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

type orphanBody struct {
	ID, Name, Image  string
	Running, Partial bool
}

// orphans waits until that many sandboxes without a record are offered, and gives them by name.
func (s *server) orphans(want int) map[string]orphanBody {
	s.t.Helper()
	byName := map[string]orphanBody{}
	s.until("the orphans are offered", func() bool {
		var list struct{ Orphans []orphanBody }
		s.call("GET", "/orphans", nil, &list)
		clear(byName)
		for _, o := range list.Orphans {
			byName[o.Name] = o
		}
		return len(byName) == want
	})
	return byName
}

// loses ends sandboxd, lets do lose what the database had, and starts it again, with a new token.
func (s *server) loses(do func(database string)) {
	s.t.Helper()
	s.stop()
	do(filepath.Join(s.data, "sandboxd.db"))
	s.start()
	s.token = strings.TrimSpace(s.cli("token", "create", "again"))
}

// TestOrphans_AfterTheDatabaseIsMovedAway begins with an empty database while sandboxes run.
func TestOrphans_AfterTheDatabaseIsMovedAway(t *testing.T) {
	t.Parallel()
	s := newUnclaimedServer(t, "--prebuild", "")
	for _, name := range []string{"works", "rests", "taken", "unwanted"} {
		s.create(map[string]any{"name": name, "image": "debian:trixie-slim"})
		s.exec(name, map[string]any{"command": "echo " + name + " >~/file; (sleep 1000 & echo $! >/tmp/pid)"})
	}
	s.call("POST", "/sandboxes/rests/stop?wait=stopped", nil, nil)
	s.loses(func(database string) {
		for _, part := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(database+part, database+part+".away"); err != nil && part == "" {
				t.Fatal(err)
			}
		}
	})
	found := s.orphans(4)
	if !found["works"].Running || found["rests"].Running || found["works"].Image == "" {
		t.Errorf("offered: %+v", found)
	}
	if out := s.cli("doctor", "--only", "orphans"); !strings.Contains(out, "unwanted ("+found["unwanted"].ID+")") {
		t.Errorf("doctor says: %s", out)
	}
	s.create(map[string]any{"name": "taken", "image": "debian:trixie-slim"})
	s.seesOrphans()

	s.adopts(found["works"].ID, nil, http.StatusCreated)
	s.until("the adopted one is ready", func() bool { return s.rest("works").State == "running" })
	if out := s.exec("works", map[string]any{"command": "cat ~/file; kill -0 $(cat /tmp/pid) && echo alive"}); out.Stdout != "works\nalive\n" {
		t.Errorf("the adopted one answers %+v", out)
	}
	s.adopts(found["rests"].ID, nil, http.StatusCreated)
	s.call("POST", "/sandboxes/rests/start?wait=ready", nil, nil)
	if out := s.exec("rests", map[string]any{"command": "cat ~/file"}); out.Stdout != "rests\n" {
		t.Errorf("the adopted one that was stopped answers %+v", out)
	}
	s.adopts(found["taken"].ID, nil, http.StatusConflict)
	s.adopts(found["taken"].ID, map[string]any{"name": "other"}, http.StatusCreated)
	s.until("it is ready under another name", func() bool { return s.rest("other").State == "running" })
	if out := s.exec("other", map[string]any{"command": "cat ~/file"}); out.Stdout != "taken\n" {
		t.Errorf("under another name it answers %+v", out)
	}
	engine(t, "restart", "sandboxd-"+s.instance()+"-"+found["taken"].ID) // is seen although the label has the old name
	if status, text := s.raw("DELETE", "/orphans/"+found["unwanted"].ID, nil); status != http.StatusNoContent {
		t.Errorf("remove: %d %s", status, text)
	}
	s.orphans(0)
	for _, name := range []string{"works", "rests", "other", "taken"} {
		s.until(name+" is gone", func() bool {
			status, _ := s.raw("DELETE", "/sandboxes/"+name+"?wait=gone", nil)
			return status == http.StatusNoContent || status == http.StatusGone
		})
	}
	s.checkNothingLeft()
}

func (s *server) adopts(id string, body any, want int) {
	s.t.Helper()
	if status, text := s.raw("POST", "/orphans/"+id+"/adopt", body); status != want {
		s.t.Errorf("adopt %s as %v: %d %s, want %d", id, body, status, text, want)
	}
}

// seesOrphans looks at the notice in a browser, and removes nothing.
func (s *server) seesOrphans() {
	p := newPerson(s.t.(*testing.T))
	p.does("open the printed link", chromedp.Navigate(s.setup))
	p.does("make the admin", chromedp.SetValue(`[name="name"]`, "ann"), chromedp.SendKeys(`[name="password"]`, journeyPassword))
	p.does("submit", chromedp.Submit(`[name="password"]`))
	p.sees("the notice", at("/")+` && document.querySelectorAll("#orphans li").length === 4`)
	p.pictures("orphans")
	p.does("remove one", chromedp.Click(`#orphans [aria-label="Remove unwanted"]`))
	p.sees("the question", `document.querySelector("#sheet h2")?.textContent === "Remove unwanted?"`)
	p.pictures("orphans-remove")
	p.does("leave it", chromedp.Click(`#sheet [data-sheet-close]`))
	p.does("adopt one whose name is taken", chromedp.Click(`#orphans [aria-label="Adopt taken"]`))
	p.sees("the form", `document.querySelector("#adopt-name-fault") !== null`)
	p.pictures("orphans-adopt")
}

// TestRecover_ADatabaseThatIsDamaged overwrites its head: nothing of it can be read, and the sandboxes are offered.
func TestRecover_ADatabaseThatIsDamaged(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	s.loses(func(database string) {
		f, err := os.OpenFile(database, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte(strings.Repeat("damage", 1000)), 0)
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	})
	if aside, err := filepath.Glob(filepath.Join(s.data, "sandboxd.db.damaged-*")); err != nil || len(aside) == 0 {
		t.Errorf("the damaged file is not kept: %v", err)
	}
	s.adopts(s.orphans(1)["lab"].ID, nil, http.StatusCreated)
	s.until("the adopted one is ready", func() bool { return s.rest("lab").State == "running" })
	if out := s.exec("lab", map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
		t.Errorf("the adopted one answers %+v", out)
	}
}

// TestOutside_WhatIsDoneOnTheEngineIsFollowed restarts a sandbox, takes it off its network and kills its guest, by the
// engine's own means.
func TestOutside_WhatIsDoneOnTheEngineIsFollowed(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	box := s.container("lab")
	s.answers("before")

	engine(t, "restart", box)
	s.answers("after docker restart")
	if state := engine(t, "inspect", "-f", "{{.State.Status}}", box); state != "running" {
		t.Errorf("after docker restart the engine says %s", state)
	}

	networks := []string{"inspect", "-f", "{{range $n, $e := .NetworkSettings.Networks}}{{$n}} {{$e.IPAddress}}{{end}}", box}
	had := engine(t, networks...)
	network, _, _ := strings.Cut(had, " ")
	engine(t, "network", "disconnect", network, box)
	s.untilWithin(2*time.Minute, "it has its network again", func() bool { return engine(t, networks...) == had })
	s.answers("after docker network disconnect")

	engine(t, "kill", "-s", "KILL", box)
	s.answers("after its guest was killed")
	if !strings.Contains(s.tail(), "sandbox is started again") {
		t.Error("the log does not say why it was started again")
	}
	engine(t, "kill", "-s", "KILL", box)
	s.until("it has failed", func() bool { return s.rest("lab").State == "failed" })
	engine(t, "start", box)
	s.answers("after docker start")
}

// answers waits until the sandbox lab runs a command.
func (s *server) answers(when string) {
	s.t.Helper()
	s.until("it answers "+when, func() bool {
		status, text := s.raw("POST", "/sandboxes/lab/exec", map[string]any{"command": "echo here"})
		return status == http.StatusOK && strings.Contains(string(text), `here\n`)
	})
}

// engineProxy is a socket that leads to the engine, and can stop to pass anything on.
type engineProxy struct {
	path string
	gate sync.RWMutex // held for writing while it is hung
}

func newEngineProxy(t *testing.T) *engineProxy {
	p := &engineProxy{path: filepath.Join(t.TempDir(), "engine.sock")}
	listener, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	target := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if target == "" {
		target = "/var/run/docker.sock"
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", target)
			if err != nil {
				in.Close()
				continue
			}
			go p.pass(in, out)
			go p.pass(out, in)
		}
	}()
	return p
}

// wait returns once the gate is open.
func (p *engineProxy) wait() {
	p.gate.RLock()
	defer p.gate.RUnlock()
}

func (p *engineProxy) pass(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hearsOfHungEngine makes a call that needs the engine.
func (s *server) hearsOfHungEngine(name, call string) {
	begun := time.Now()
	method, path, _ := strings.Cut(call, " ")
	var body any
	if strings.HasSuffix(path, "/exec") {
		body = map[string]any{"command": "echo here"}
	}
	status, text, err := s.try(method, path, body)
	var problem struct{ Detail string }
	if err == nil {
		err = json.Unmarshal(text, &problem)
	}
	if took := time.Since(begun); err != nil || took > eventLimit || status != http.StatusServiceUnavailable ||
		!strings.Contains(problem.Detail, "engine does not answer") {
		s.t.Errorf("%s: %d %s after %s, %v", name, status, text, took, err)
	}
}

// showsTemplates asks for what can be answered without the engine, but for the state of images.
func (s *server) showsTemplates(path string) {
	begun := time.Now()
	if status, text, err := s.try("GET", path, nil); err != nil || status != http.StatusOK || time.Since(begun) > hungTemplates {
		s.t.Errorf("%s: %d %s after %s, %v", path, status, text, time.Since(begun), err)
	}
}

// hungTemplates is far less than the engine's own deadlines.
const hungTemplates = 15 * time.Second

// TestHungEngine_PageAndAPIHearOfItAndTheWorkGoesOn stops the engine's answers under every change of power.
func TestHungEngine_PageAndAPIHearOfItAndTheWorkGoesOn(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	s := prepare(t, "", "--prebuild", "")
	s.place.enter = func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+proxy.path)
		return cmd
	}
	s.begin()
	calls := map[string]string{
		"stops": "POST /sandboxes/stops/stop?wait=stopped", "starts": "POST /sandboxes/starts/start?wait=ready",
		"sleeps": "POST /sandboxes/sleeps/sleep?wait=asleep", "goes": "DELETE /sandboxes/goes?wait=gone",
		"wakes": "POST /sandboxes/wakes/exec",
	}
	for name := range calls {
		s.create(map[string]any{"name": name, "image": "debian:trixie-slim"})
	}
	s.call("POST", "/sandboxes/starts/stop?wait=stopped", nil, nil)
	s.sleeps("wakes", "asleep")
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	proxy.gate.Lock()
	hung := time.Now()
	var asking sync.WaitGroup
	for name, call := range calls {
		asking.Go(func() { s.hearsOfHungEngine(name, call) })
	}
	for _, path := range []string{"/templates", "/templates/base"} {
		asking.Go(func() { s.showsTemplates(path) })
	}
	p.sees("that the engine does not answer", `document.getElementById("alarm")?.textContent.includes("engine does not answer")`)
	t.Logf("the page said so after %s", time.Since(hung).Round(time.Millisecond))
	asking.Wait()
	proxy.gate.Unlock()
	p.sees("that it does again", `document.getElementById("alarm")?.textContent.trim() === ""`)
	for name, want := range map[string]string{"stops": "stopped", "starts": "running", "sleeps": "asleep", "wakes": "running"} {
		s.untilWithin(3*time.Minute, name+" is "+want, func() bool {
			if name == "wakes" {
				s.raw("POST", "/sandboxes/wakes/exec", map[string]any{"command": "true"})
			}
			return s.rest(name).State == want
		})
	}
	s.untilWithin(3*time.Minute, "the deleted one is gone", func() bool { return s.container("goes") == "" })
}
