//go:build e2e

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// webProgram serves on port 3000, and is unhealthy while there is a file /tmp/sick.
const webProgram = `echo begins; exec python3 -u -c '
import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sick = self.path == "/healthz" and os.path.exists("/tmp/sick")
        self.send_response(500 if sick else 200)
        self.end_headers()
        self.wfile.write(b"served by %d" % os.getpid())
http.server.HTTPServer(("127.0.0.1", 3000), H).serve_forever()'`

// webService is webProgram as it is declared.
func webService() map[string]any {
	return map[string]any{"command": webProgram, "port": 3000, "health": map[string]any{"path": "/healthz", "interval": "1s"}}
}

type serviceBody struct {
	Name   string
	URL    string
	Status struct {
		State    string
		Health   string
		PID      int
		Restarts int
		Problem  string
		RetryAt  *time.Time `json:"retry_at"`
	}
}

func (b serviceBody) healthy() bool {
	return b.Status.State == "running" && b.Status.Health == "healthy"
}

// declare declares a service of lab.
func (s *server) declare(name string, service map[string]any) {
	s.t.Helper()
	if status, text := s.raw("PUT", "/sandboxes/lab/services/"+name, service); status != http.StatusCreated && status != http.StatusOK {
		s.t.Fatalf("declare %s: %d %s", name, status, text)
	}
}

func (s *server) service(name string) serviceBody {
	s.t.Helper()
	var b serviceBody
	if status := s.call("GET", "/sandboxes/lab/services/"+name, nil, &b); status != http.StatusOK {
		s.t.Fatalf("service %s: %d", name, status)
	}
	return b
}

// reaches waits until a service is as wanted.
func (s *server) reaches(name, what string, as func(serviceBody) bool) (b serviceBody) {
	s.t.Helper()
	s.until(name+" "+what, func() bool { b = s.service(name); return as(b) })
	return b
}

// open gives the ports of lab on which something listens.
func (s *server) open() []int {
	s.t.Helper()
	var out struct {
		Ports []struct {
			Port      int
			Listening bool
		}
	}
	if status, text := s.raw("GET", "/sandboxes/lab/ports", nil); status != http.StatusOK {
		s.t.Fatalf("ports: %d %s", status, text)
	} else if err := json.Unmarshal(text, &out); err != nil {
		s.t.Fatal(err)
	}
	var open []int
	for _, p := range out.Ports {
		if p.Listening {
			open = append(open, p.Port)
		}
	}
	return open
}

// TestServices_RunComeBackAndEnd is a service's life: declared, killed, asleep with its sandbox, awake again, deleted.
func TestServices_RunComeBackAndEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "lab"})
	s.declare("web", webService())
	first := s.reaches("web", "is healthy", serviceBody.healthy)
	for _, host := range []string{"3000-lab", "web--lab"} {
		if status, text, _ := s.get(host, "/", nil); status != http.StatusOK || text != fmt.Sprintf("served by %d", first.Status.PID) {
			t.Errorf("%s: %d %q", host, status, text)
		}
	}
	pid := first.Status.PID
	for i := range 3 { // one pause is longer than the other
		s.exec("lab", map[string]any{"command": fmt.Sprintf("kill -9 %d", pid), "user": "root"})
		now := s.reaches("web", "was started again", func(b serviceBody) bool { return b.healthy() && b.Status.PID != pid })
		if now.Status.Restarts != i+1 {
			t.Errorf("after kill %d: %+v", i, now.Status)
		}
		pid = now.Status.PID
	}
	if status, text := s.raw("POST", "/sandboxes/lab/sleep?wait=asleep", map[string]any{}); status >= 300 {
		t.Fatalf("sleep: %d %s", status, text)
	}
	for range 3 {
		if b := s.service("web"); b.Status.State != "asleep" || b.URL == "" {
			t.Errorf("asleep it is %+v", b)
		}
		if open := s.open(); len(open) != 0 {
			t.Errorf("asleep its ports are %v", open)
		}
		if status, text := s.raw("GET", "/sandboxes/lab/services/web/log", nil); status != http.StatusOK || !strings.Contains(string(text), "has started as process") {
			t.Errorf("log while asleep: %d %s", status, text)
		}
	}
	if state := s.rest("lab").State; state != "asleep" {
		t.Errorf("reading has woken it: %s", state)
	}
	if status, text := s.raw("POST", "/sandboxes/lab/services/web/start", nil); status != http.StatusOK {
		t.Errorf("start wakes: %d %s", status, text)
	}
	back := s.reaches("web", "is back", serviceBody.healthy)
	if status, _ := s.raw("DELETE", "/sandboxes/lab/services/web", nil); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	s.until("its process has ended", func() bool {
		return s.exec("lab", map[string]any{"command": fmt.Sprintf("test -e /proc/%d || echo gone", back.Status.PID)}).Stdout == "gone\n"
	})
}

// TestServices_AnEditAppliesAtOnceAndTouchesNoOther changes one of two that run, and lets a sandbox sleep over an edit.
func TestServices_AnEditAppliesAtOnceAndTouchesNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "lab"})
	running := func(b serviceBody) bool { return b.Status.State == "running" }
	s.declare("steady", map[string]any{"command": []string{"sleep", "100000"}})
	s.declare("web", webService())
	steady := s.reaches("steady", "runs", running)
	web := s.reaches("web", "is healthy", serviceBody.healthy)
	changed := webService()
	changed["env"] = map[string]string{"MODE": "other"}
	s.declare("web", changed)
	now := s.reaches("web", "runs as changed", func(b serviceBody) bool { return b.healthy() && b.Status.PID != web.Status.PID })
	mode := fmt.Sprintf("tr '\\0' '\\n' < /proc/%d/environ | grep ^MODE=", now.Status.PID)
	if out := s.exec("lab", map[string]any{"command": mode}); out.Stdout != "MODE=other\n" {
		t.Errorf("its environment: %+v", out)
	}
	s.declare("manual", map[string]any{"command": []string{"sleep", "100000"}, "autostart": false})
	if b := s.service("manual"); b.Status.State != "stopped" {
		t.Errorf("manual is %+v", b)
	}
	if b := s.service("steady"); b.Status.PID != steady.Status.PID || b.Status.Restarts != 0 {
		t.Errorf("the other was touched: %+v, before %+v", b, steady)
	}
	for _, rest := range []string{"frozen", "asleep"} {
		if status, text := s.raw("POST", "/sandboxes/lab/sleep?wait="+rest, map[string]any{"frozen": rest == "frozen"}); status >= 300 {
			t.Fatalf("%s: %d %s", rest, status, text)
		}
		name := "late-" + rest
		s.declare(name, map[string]any{"command": []string{"sleep", "100000"}})
		if b := s.service(name); b.Status.State != "asleep" {
			t.Errorf("declared at rest it is %+v", b)
		}
		s.exec("lab", map[string]any{"command": "true"}) // wakes
		s.reaches(name, "runs", running)
	}
	if b := s.service("web"); b.Status.State == "stopped" {
		t.Errorf("web is %+v", b)
	}
}

// TestServices_AnUnhealthyOneIsRestarted makes a service answer with errors for a while.
func TestServices_AnUnhealthyOneIsRestarted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "lab"})
	s.declare("web", webService())
	first := s.reaches("web", "is healthy", serviceBody.healthy)
	s.exec("lab", map[string]any{"command": "touch /tmp/sick"})
	s.reaches("web", "is unhealthy", func(b serviceBody) bool {
		return b.Status.Health == "unhealthy" && strings.Contains(b.Status.Problem, "/healthz") && strings.Contains(b.Status.Problem, "500")
	})
	s.reaches("web", "was restarted", func(b serviceBody) bool { return b.Status.Restarts > 0 && b.Status.PID != first.Status.PID })
	s.exec("lab", map[string]any{"command": "rm /tmp/sick"})
	s.reaches("web", "is healthy again", serviceBody.healthy)
}

// TestServices_TheirLogsAreFollowed reads a log while the service writes and is restarted.
func TestServices_TheirLogsAreFollowed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "lab"})
	s.declare("ticks", map[string]any{"command": "echo begin; i=0; while sleep 0.1; do i=$((i+1)); echo tick $i; done"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+"/api/v1/sandboxes/lab/services/ticks/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("%q does not come: %v", want, lines.Err())
	}
	await("begin")
	await("tick 5")
	if status, text := s.raw("POST", "/sandboxes/lab/services/ticks/restart", nil); status != http.StatusOK {
		t.Errorf("restart: %d %s", status, text)
	}
	await("begin")
	await("tick 3")
	if _, text := s.raw("GET", "/sandboxes/lab/services/ticks/log", nil); !strings.Contains(string(text), "tick 3\n") {
		t.Errorf("log %q", text)
	}
	if status, _ := s.raw("DELETE", "/sandboxes/lab/services/ticks", nil); status != http.StatusNoContent {
		t.Errorf("delete: %d", status)
	}
	for lines.Scan() { // it ends with the service
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the log ends with %v", err)
	}
}

// TestServices_ListeningPortsAreFound also those that nobody has declared, and not the guest's own.
func TestServices_ListeningPortsAreFound(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(map[string]any{"template": "base", "name": "lab"})
	if open := s.open(); len(open) != 0 {
		t.Errorf("a fresh one listens on %v", open)
	}
	s.exec("lab", map[string]any{"command": "nohup python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & echo $! > ~/pid"})
	s.until("port 8123 is found", func() bool { return slices.Contains(s.open(), 8123) })
	_, text := s.raw("GET", "/sandboxes/lab/ports", nil)
	if !strings.Contains(string(text), `"python3"`) {
		t.Errorf("whose it is, is not told: %s", text)
	}
	s.exec("lab", map[string]any{"command": "kill $(cat ~/pid)"})
	s.until("port 8123 is gone", func() bool { return len(s.open()) == 0 })
}

// TestServices_OfTheBuiltInTemplatesAreHealthy starts each template that declares services.
func TestServices_OfTheBuiltInTemplatesAreHealthy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for template, service := range map[string]string{"node-api": "api", "data-analysis": "notebook", "python-ml": "notebook"} {
		s.create(map[string]any{"template": template, "name": "lab"})
		s.reaches(service, "of "+template+" is healthy", serviceBody.healthy)
		if status := s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil); status != http.StatusNoContent {
			t.Errorf("delete: %d", status)
		}
	}
}

// TestServices_NeitherChecksNorLookingKeepASandboxAwake lets one with a service that is checked every second go unused.
func TestServices_NeitherChecksNorLookingKeepASandboxAwake(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--settle", "1s")
	s.create(map[string]any{"template": "base", "name": "lab"})
	s.declare("web", webService())
	s.reaches("web", "is healthy", serviceBody.healthy)
	if status, text := s.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "3s", "stop_after": "8s"}); status != http.StatusOK {
		t.Fatalf("patch: %d %s", status, text)
	}
	looks := 0
	for _, state := range []string{"frozen", "asleep"} {
		s.until("lab is "+state, func() bool {
			if looks++; looks%10 == 0 { // as often as several pages would
				s.open()
				s.service("web")
			}
			return s.rest("lab").State == state
		})
	}
	s.exec("lab", map[string]any{"command": "true"})
	s.reaches("web", "is back", serviceBody.healthy)
}
