//go:build e2e

package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAPI_WhatAProgramDoes is the main job over the API: create, run, stop, start, rename, delete.
func TestAPI_WhatAProgramDoes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	sb := s.create(map[string]any{"template": "base", "name": "lab", "label": "ML Experiments", "env": map[string]string{"GREETING": "hi"}})
	if sb.State != "running" || sb.Name != "lab" || sb.Label != "ML Experiments" || sb.Template != "base" || sb.Owner != "admin" {
		t.Errorf("created %+v", sb)
	}
	if out := s.exec("lab", map[string]any{"command": "echo $((6*7)); echo $GREETING; id -un; pwd; echo oops >&2; exit 3"}); out.Stdout != "42\nhi\nagent\n/home/agent\n" || out.Stderr != "oops\n" || out.ExitCode != 3 {
		t.Errorf("exec: %+v", out)
	}
	s.exec("lab", map[string]any{"command": "echo kept > ~/note"})
	if status := s.call("POST", "/sandboxes/lab/stop?wait=stopped", nil, &sb); status >= 300 {
		t.Errorf("stop: %d", status)
	}
	s.untilWithin(callLimit, "lab is stopped", func() bool { s.call("GET", "/sandboxes/lab", nil, &sb); return sb.State == "stopped" })
	if status, body := s.raw("POST", "/sandboxes/lab/exec", map[string]any{"command": "true"}); status != http.StatusConflict || !strings.Contains(string(body), "stopped") {
		t.Errorf("exec in a stopped one: %d %s", status, body)
	}
	s.call("POST", "/sandboxes/lab/start", nil, nil)
	s.untilWithin(callLimit, "lab runs", func() bool { s.call("GET", "/sandboxes/lab", nil, &sb); return sb.State == "running" })
	if out := s.exec("lab", map[string]any{"command": []string{"cat", "/home/agent/note"}}); out.Stdout != "kept\n" {
		t.Errorf("the home did not survive: %+v", out)
	}
	if s.call("PATCH", "/sandboxes/lab", map[string]any{"label": "Renamed"}, &sb); sb.Label != "Renamed" {
		t.Errorf("renamed to %q", sb.Label)
	}
	if status := s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	if status, _ := s.raw("GET", "/sandboxes/lab", nil); status != http.StatusGone {
		t.Errorf("after the delete: %d", status)
	}
	s.checkNothingLeft()
}

// TestAPI_CreateIsIdempotentByName also when eight ask at once.
func TestAPI_CreateIsIdempotentByName(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	want := map[string]any{"image": "debian:trixie-slim", "name": "one", "memory": "256MiB"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if status, body := s.raw("POST", "/sandboxes?wait=ready", want); status != http.StatusCreated && status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	wg.Wait()
	if n := len(strings.Fields(engine(t, "ps", "-q", "--filter", "label=sandboxd.instance="+s.instance()))); n != 1 {
		t.Errorf("%d containers", n)
	}
	want["memory"] = "512MiB"
	if status, body := s.raw("POST", "/sandboxes", want); status != http.StatusConflict {
		t.Errorf("another size: %d %s", status, body)
	}
}

// TestAPI_LimitsAndWallsHold looks from inside: limits, neighbours, the host's engine.
func TestAPI_LimitsAndWallsHold(t *testing.T) {
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "victim"})
	s.create(map[string]any{"template": "base", "name": "bad", "pids": 64, "cpus": 0.5})
	s.create(map[string]any{"template": "base", "name": "hog", "memory": "256MiB"})
	s.exec("victim", map[string]any{"command": "nohup python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & echo"})
	address := strings.TrimSpace(s.exec("victim", map[string]any{"command": "hostname -I"}).Stdout)
	if out := s.exec("bad", map[string]any{"command": "curl -s -m 3 http://" + address + ":8000/ && echo reached"}); strings.Contains(out.Stdout, "reached") {
		t.Error("one sandbox reaches another")
	}
	if out := s.exec("bad", map[string]any{"command": "for i in $(seq 200); do sleep 30 & done 2>/dev/null; jobs -p | wc -l", "timeout": 10}); strings.TrimSpace(out.Stdout) == "200" {
		t.Error("more processes than the limit")
	}
	if out := s.exec("hog", map[string]any{"command": `python3 -c 'x = b"x" * (1 << 30)'`, "timeout": 60}); out.ExitCode == 0 {
		t.Error("more memory than the limit")
	}
	if out := s.exec("victim", map[string]any{"command": "ls /var/run/docker.sock /run/docker.sock 2>/dev/null; true"}); out.Stdout != "" {
		t.Errorf("the engine's socket is inside: %s", out.Stdout)
	}
	if out := s.exec("victim", map[string]any{"command": "echo still here"}); out.Stdout != "still here\n" {
		t.Errorf("the neighbour suffers: %+v", out)
	}
}

// TestAPI_ExecKillsWholeTreesAndBoundsOutput plays commands that do not want to end.
func TestAPI_ExecKillsWholeTreesAndBoundsOutput(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"image": "debian:trixie-slim", "name": "lab"})
	start := time.Now() // its sleeps take 500 s
	out := s.exec("lab", map[string]any{"command": "trap '' TERM; (setsid sh -c \"trap '' TERM; exec -a lingers sleep 500\" &); sh -c 'sleep 500'", "timeout": 1})
	if !out.TimedOut || time.Since(start) > eventLimit {
		t.Errorf("%+v after %s", out, time.Since(start))
	}
	s.until("its whole tree is gone", func() bool {
		return s.exec("lab", map[string]any{"command": "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 50[0]'; true"}).Stdout == "0\n"
	})
	out = s.exec("lab", map[string]any{"command": "head -c 1073741824 /dev/zero | tr '\\0' x; echo done >&2"})
	if !out.Truncated || out.ExitCode != 0 || out.Stderr != "done\n" || len(out.Stdout) > 8<<20 {
		t.Errorf("a GiB of output: %d bytes, truncated %v, exit %d", len(out.Stdout), out.Truncated, out.ExitCode)
	}
	out = s.exec("lab", map[string]any{"command": "cat", "stdin": "through\n"})
	if out.Stdout != "through\n" {
		t.Errorf("stdin: %+v", out)
	}
}

// TestEngine_StoppedUnderIt puts a wire between sandboxd and the engine, and cuts it.
func TestEngine_StoppedUnderIt(t *testing.T) {
	cable := newCable(t)
	t.Setenv("DOCKER_HOST", "unix://"+cable.path)
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"image": "debian:trixie-slim", "name": "lab"})
	cable.cut()
	s.until("it says that the engine is away", func() bool {
		resp, err := http.Get("http://" + s.addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	if status, body := s.raw("GET", "/sandboxes/lab", nil); status != http.StatusOK {
		t.Errorf("the list is gone with the engine: %d %s", status, body)
	}
	if out := s.exec("lab", map[string]any{"command": "echo on"}); out.Stdout != "on\n" {
		t.Errorf("the link does not need the engine, but: %+v", out)
	}
	if status, body := s.raw("POST", "/sandboxes?wait=ready", map[string]any{"image": "debian:trixie-slim", "name": "fresh"}); status < 400 || !strings.Contains(string(body), "engine does not answer") {
		t.Errorf("create without an engine: %d %s", status, body)
	}
	cable.mend()
	s.until("it is ready again", func() bool {
		status, _, err := s.try("POST", "/sandboxes/fresh/start", nil)
		var sb sandboxBody
		s.call("GET", "/sandboxes/fresh", nil, &sb)
		return err == nil && status < 300 && sb.State == "running"
	})
}

// cable is a unix socket that leads to the real engine until it is cut.
type cable struct {
	t    *testing.T
	path string

	mu    sync.Mutex
	l     net.Listener
	conns []net.Conn
}

func newCable(t *testing.T) *cable {
	dir, err := os.MkdirTemp("", "sbx-cable-")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{t: t, path: filepath.Join(dir, "engine.sock")}
	c.mend()
	t.Cleanup(func() { c.cut(); os.RemoveAll(dir) })
	return c
}

func (c *cable) mend() {
	l, err := net.Listen("unix", c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.l = l
	c.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", "/var/run/docker.sock")
			if err != nil {
				in.Close()
				return
			}
			c.mu.Lock()
			c.conns = append(c.conns, in, out)
			c.mu.Unlock()
			go func() { io.Copy(out, in); out.(*net.UnixConn).CloseWrite() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.l != nil {
		c.l.Close()
	}
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns, c.l = nil, nil
}

// TestTwoServers_LiveSideBySideOnOneEngine and never see each other's sandboxes.
func TestTwoServers_LiveSideBySideOnOneEngine(t *testing.T) {
	t.Parallel()
	one, two := newServer(t, "--prebuild", ""), newServer(t, "--prebuild", "")
	body := map[string]any{"image": "debian:trixie-slim", "name": "same"}
	one.create(body)
	two.create(body)
	one.exec("same", map[string]any{"command": "echo one > /tmp/who"})
	two.exec("same", map[string]any{"command": "echo two > /tmp/who"})
	if out := one.exec("same", map[string]any{"command": "cat /tmp/who"}); out.Stdout != "one\n" {
		t.Errorf("they share a sandbox: %+v", out)
	}
	two.call("DELETE", "/sandboxes/same?wait=gone", nil, nil)
	two.checkNothingLeft()
	two.kill()
	two.start()
	one.kill()
	one.start()
	if out := one.exec("same", map[string]any{"command": "cat /tmp/who"}); out.Stdout != "one\n" {
		t.Errorf("the other's delete took it along: %+v", out)
	}
}

// TestCLI_WhatAnOperatorDoes beside the running server.
func TestCLI_WhatAnOperatorDoes(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	if out := s.cli("token", "create", "second"); !strings.HasPrefix(out, "sbx_") || strings.Count(out, "\n") != 1 {
		t.Errorf("token create printed %q", out)
	}
	if out := s.cli("version"); !strings.HasPrefix(out, "sandboxd ") {
		t.Errorf("version printed %q", out)
	}
	for _, name := range []string{"base", "python-ml", "node-api", "data-analysis"} {
		if out := s.cli("template", "list"); !strings.Contains(out, name) {
			t.Errorf("template list has no %s:\n%s", name, out)
		}
	}
	s.cli("template", "build", "base")
	var found []finding
	if err := json.Unmarshal([]byte(s.cli("doctor", "--json", "--only", "engine,storage,cgroups,disk,data")), &found); err != nil || len(found) != 5 {
		t.Errorf("doctor found %+v, %v", found, err)
	}
}
