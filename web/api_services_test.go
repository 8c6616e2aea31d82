package web

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/exec"
	"sandboxd/internal/wire"
)

const labServices = lab + "/services"

func (a answer) services() servicesShape {
	a.t.Helper()
	var s servicesShape
	a.into(&s)
	return s
}

func (a answer) service() serviceShape {
	a.t.Helper()
	var s serviceShape
	a.into(&s)
	return s
}

// emptyLab makes ada's sandbox lab, in which nothing is declared.
func (w *world) emptyLab() {
	w.t.Helper()
	w.box("ada", "lab")
	w.call("ada", "PUT", labServices, `{"services":[]}`).is(http.StatusOK)
}

const webService = `{"command":"npm start","port":3000,"cwd":"/srv","env":{"MODE":"dev"},"health":{"path":"/healthz","interval":"5s"}}`

func TestServices_AreDeclaredReadAndDeletedOneByOne(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	made := w.call("ada", "PUT", labServices+"/web", webService).is(http.StatusCreated)
	if made.Header().Get("Location") != labServices+"/web" || made.Header().Get("ETag") == "" {
		t.Errorf("headers %v", made.Header())
	}
	one := made.service()
	if line, ok := exec.ShellLine(one.Command); !ok || line != "npm start" || !*one.Autostart || one.Health == nil ||
		one.URL != "http://web--lab.localhost:8080/" || one.PortURL != "http://3000-lab.localhost:8080/" {
		t.Errorf("made %+v", one)
	}
	if text := made.Body.String(); !strings.Contains(text, `"command":"npm start"`) || !strings.Contains(text, `"interval":"5s"`) {
		t.Errorf("answered %s", text)
	}
	again := w.call("ada", "PUT", labServices+"/web", `{"name":"web","command":["npm","run","a b"],"autostart":false}`).is(http.StatusOK).service()
	if !slices.Equal(again.Command, []string{"npm", "run", "a b"}) || *again.Autostart || again.Port != 0 || again.Health != nil || again.URL != "" {
		t.Errorf("changed to %+v", again)
	}
	w.call("ada", "PUT", labServices+"/worker", `{"command":["work"]}`).is(http.StatusCreated)
	all := w.call("ada", "GET", labServices, "").is(http.StatusOK).services()
	if len(all.Services) != 2 || !all.Overridden || all.Services[1].Name != "worker" {
		t.Errorf("listed %+v", all)
	}
	w.call("ada", "DELETE", labServices+"/web", "").is(http.StatusNoContent)
	w.call("ada", "GET", labServices+"/web", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "DELETE", labServices+"/web", "").problem(http.StatusNotFound, "not_found", "")
	if all := w.call("ada", "DELETE", labServices, "").is(http.StatusOK).services(); all.Overridden || len(all.Services) != 1 {
		t.Errorf("reset to %+v", all)
	}
}

func TestServices_AChangeIsBoundToWhatWasSeen(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	seen := w.call("ada", "GET", labServices, "").is(http.StatusOK).Header().Get("ETag")
	first := w.call("ada", "PUT", labServices, `{"services":[{"name":"a","command":["x"]}]}`, "If-Match", seen).is(http.StatusOK)
	for method, path := range map[string]string{"PUT": labServices + "/b", "DELETE": labServices + "/a"} {
		body := ""
		if method == "PUT" {
			body = `{"command":["y"]}`
		}
		w.call("ada", method, path, body, "If-Match", seen).problem(http.StatusPreconditionFailed, "precondition_failed", "")
		w.call("ada", method, path, body, "If-Match", "W/"+first.Header().Get("ETag")).problem(http.StatusPreconditionFailed, "precondition_failed", "")
	}
	w.call("ada", "DELETE", labServices, "", "If-Match", seen).problem(http.StatusPreconditionFailed, "precondition_failed", "")
	w.call("ada", "PUT", labServices, `{"services":[]}`, "If-Match", seen).problem(http.StatusPreconditionFailed, "precondition_failed", "")
	w.call("ada", "PUT", labServices+"/b", `{"command":["y"]}`, "If-None-Match", "*").problem(http.StatusBadRequest, "invalid", "")
	if all := w.call("ada", "GET", labServices, "").services(); len(all.Services) != 1 {
		t.Errorf("it was changed: %+v", all)
	}
	w.call("ada", "PUT", labServices+"/b", `{"command":["y"]}`, "If-Match", first.Header().Get("ETag")).is(http.StatusCreated)
	w.call("ada", "PUT", labServices+"/c", `{"command":["y"]}`, "If-Match", "*").is(http.StatusCreated)
}

func TestServices_MistakesNameTheField(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	for body, field := range map[string]string{
		`{}`:                                                      "command",
		`{"command":""}`:                                          "command",
		`{"command":[]}`:                                          "command",
		`{"command":7}`:                                           "command",
		`{"command":["x"],"port":70000}`:                          "port",
		`{"command":["x"],"port":"80"}`:                           "port",
		`{"command":["x"],"cwd":"srv"}`:                           "cwd",
		`{"command":["x"],"env":{"A=B":""}}`:                      "env.A=B",
		`{"command":["x"],"health":{}}`:                           "health",
		`{"command":["x"],"name":"other"}`:                        "name",
		`{"command":["x"],"restart":"always"}`:                    "restart",
		`{"command":["x"],"Port":80}`:                             "Port",
		`{"command":["x"],"port":1,"health":{"interval":"soon"}}`: "health.interval",
	} {
		w.call("ada", "PUT", labServices+"/web", body).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("ada", "PUT", labServices+"/Web", `{"command":["x"]}`).problem(http.StatusBadRequest, "invalid", "name")
	w.call("ada", "PUT", labServices+"/a--b", `{"command":["x"]}`).problem(http.StatusBadRequest, "invalid", "name")
	w.call("ada", "PUT", labServices, `{}`).problem(http.StatusBadRequest, "invalid", "services")
	p := w.call("ada", "PUT", labServices, `{"services":[{"name":"a","command":["x"]},{"name":"b","command":["x"],"cwd":".."}]}`).
		problem(http.StatusBadRequest, "invalid", "cwd")
	if !strings.Contains(p.Detail, "Service b:") {
		t.Errorf("got %q", p.Detail)
	}
}

func TestServices_AreTheirOwnersAlone(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	w.box("ada", "other")
	w.call("ada", "PUT", labServices+"/web", webService).is(http.StatusCreated)
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "one", Sandbox: "other"})
	for _, user := range []string{"bob", "limited"} {
		for _, c := range [][3]string{{"GET", ""}, {"PUT", "", `{"services":[]}`}, {"DELETE", ""}, {"GET", "/web"}, {"PUT", "/web", webService},
			{"DELETE", "/web"}, {"POST", "/web/start"}, {"POST", "/web/stop"}, {"POST", "/web/restart"}, {"GET", "/web/log"},
			{"GET", "/web/log?follow=true"}} {
			w.call(user, c[0], labServices+c[1], c[2]).problem(http.StatusNotFound, "not_found", "")
		}
	}
	if asked := w.rooms.asked(); len(asked) != 0 {
		t.Errorf("the guest was asked to %q", asked)
	}
	w.call("", "GET", labServices, "").problem(http.StatusUnauthorized, "unauthenticated", "")
}

func TestServices_StatesAreTheGuestsAndPowerWakes(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	w.call("ada", "PUT", labServices+"/web", webService).is(http.StatusCreated)
	w.rooms.runs("web", func(st *wire.ServiceStatus) {
		st.Health, st.Restarts, st.Problem = wire.HealthUnhealthy, 2, "GET /healthz gives 500."
	})
	st := w.call("ada", "GET", labServices+"/web", "").service().Status
	if st.State != "running" || st.Health != "unhealthy" || st.PID != 42 || st.Restarts != 2 || st.Problem == "" || st.Since == nil || st.RetryAt != nil {
		t.Errorf("stands %+v", st)
	}
	w.rooms.asleep = true
	if st := w.call("ada", "POST", labServices+"/web/restart", "").is(http.StatusOK).service().Status; st.State != "running" || st.PID != 43 {
		t.Errorf("restarted %+v", st)
	}
	if st := w.call("ada", "POST", labServices+"/web/stop", "").is(http.StatusOK).service().Status; st.State != "stopped" || st.ExitCode != 143 {
		t.Errorf("stopped %+v", st)
	}
	if st := w.call("ada", "POST", labServices+"/web/start", "").is(http.StatusOK).service().Status; st.State != "running" {
		t.Errorf("started %+v", st)
	}
	w.call("ada", "POST", labServices+"/none/start", "").problem(http.StatusNotFound, "not_found", "")
	if asked := w.rooms.asked(); !slices.Equal(asked, []string{"restart web", "stop web", "start web"}) {
		t.Errorf("the guest was asked to %q", asked)
	}
}

func TestServiceLog_IsTextThatNoBrowserTakesForAnythingElse(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	w.call("ada", "PUT", labServices+"/web", webService).is(http.StatusCreated)
	w.rooms.asleep = true
	w.say("lab", "other", "of another service")
	w.say("lab", "web", "<script>alert(1)</script>", "\x1b[31mred")
	got := w.call("ada", "GET", labServices+"/web/log", "").is(http.StatusOK)
	if got.Body.String() != "<script>alert(1)</script>\n\x1b[31mred\n" {
		t.Errorf("got %q", got.Body)
	}
	for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": sandboxPolicy} {
		if got := got.Header().Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	w.call("ada", "GET", labServices+"/web/log?follow=perhaps", "").problem(http.StatusBadRequest, "invalid", "follow")
	w.call("ada", "GET", labServices+"/none/log", "").problem(http.StatusNotFound, "not_found", "")
	if asked := w.rooms.asked(); len(asked) != 0 {
		t.Errorf("reading has woken it: %q", asked)
	}
}

func TestServiceLog_IsFollowedUntilTheServiceIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.emptyLab()
	w.call("ada", "PUT", labServices+"/web", webService).is(http.StatusCreated)
	w.say("lab", "web", "one", "two")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp := w.open(ctx, "ada", "GET", labServices+"/web/log?follow=true", "", "")
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
	}
	next("one")
	w.say("lab", "other", "of another service")
	w.say("lab", "web", "three")
	next("two")
	next("three")
	w.call("ada", "DELETE", labServices+"/web", "").is(http.StatusNoContent)
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("goes on with %q, %v", lines.Text(), lines.Err())
	}
}
