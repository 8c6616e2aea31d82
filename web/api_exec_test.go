package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/exec"
)

func (a answer) exec() (e execShape) {
	a.t.Helper()
	a.is(200).into(&e)
	e.DurationMS = 0
	return e
}

func TestExec_RunsAListAndALine(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	got := w.call("ada", "POST", "/api/v1/sandboxes/lab/exec",
		`{"command":["echo","a b","c"],"cwd":"/workspace","env":{"A":"1"},"user":"agent","stdin":"x","timeout":"5m"}`).exec()
	if d := cmp.Diff(execShape{Stdout: "a b c\n"}, got); d != "" {
		t.Error(d)
	}
	want := exec.Start{Command: []string{"echo", "a b", "c"}, Cwd: "/workspace", User: "agent", Env: map[string]string{"A": "1"}}
	if d := cmp.Diff(want, w.guests.lastAsked()); d != "" {
		t.Error(d)
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":"echo $((6*7))"}`).is(200)
	if c := w.guests.lastAsked().Command; c[0] != "/bin/sh" || c[len(c)-1] != "echo $((6*7))" {
		t.Errorf("asked %q", c)
	}
}

func TestExec_FailureTimeoutAndFloodAreAnswers(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	ask := func(body, query string) execShape {
		t.Helper()
		return w.call("ada", "POST", "/api/v1/sandboxes/lab/exec"+query, body).exec()
	}
	if d := cmp.Diff(execShape{ExitCode: 3, Stderr: "no\n"}, ask(`{"command":["fail"]}`, "")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(execShape{ExitCode: -1, TimedOut: true}, ask(`{"command":["hang"],"timeout":0.02}`, "")); d != "" {
		t.Error(d)
	}
	if got := ask(`{"command":["flood"]}`, ""); len(got.Stdout) != exec.DefaultOutput || !got.Truncated {
		t.Errorf("%d bytes, truncated %v", len(got.Stdout), got.Truncated)
	}
	if got := ask(`{"command":["flood"]}`, "?max_output=4000000"); len(got.Stdout) != 2000<<10 || got.Truncated {
		t.Errorf("%d bytes, truncated %v", len(got.Stdout), got.Truncated)
	}
	if d := cmp.Diff(execShape{Stdout: "a€!"}, ask(`{"command":["split"]}`, "")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(execShape{Stdout: "a", Truncated: true}, ask(`{"command":["split"]}`, "?max_output=3")); d != "" {
		t.Errorf("a cut through a character: %s", d)
	}
	if d := cmp.Diff(execShape{Stdout: "/wA=", StdoutBase64: true}, ask(`{"command":["bytes"]}`, "")); d != "" {
		t.Error(d)
	}
}

func TestExec_BadInputNamesTheField(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ body, field string }{
		{``, "command"}, {`{}`, "command"}, {`{"command":""}`, "command"}, {`{"command":"  "}`, "command"}, {`{"command":[]}`, "command"},
		{`{"command":7}`, "command"}, {`{"command":[7]}`, "command"}, {`{"command":null}`, "command"},
		{`{"command":["missing"]}`, "command"}, {`{"command":"` + strings.Repeat("x", 129<<10) + `"}`, "command"},
		{`{"command":["x"],"cwd":"rel"}`, "cwd"}, {`{"command":["x"],"env":{"":"x"}}`, "env"}, {`{"command":["x"],"user":"a b"}`, "user"},
		{`{"command":["x"],"timeout":"soon"}`, "timeout"}, {`{"command":["x"],"timeout":-1}`, "timeout"}, {`{"command":["x"],"timeout":"9999h"}`, "timeout"},
		{`{"command":["x"],"shell":"zsh"}`, "shell"},
	} {
		w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", c.body).problem(400, "invalid", c.field)
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec?max_output=99999999", `{"command":["x"]}`).problem(400, "invalid", "max_output")
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["x"],"stdin":"`+strings.Repeat("x", 2<<20)+`"}`).problem(413, "too_large", "")
}

// heard is a liveEvent as a client reads it.
type heard struct {
	Type     string
	Data     string
	Base64   bool
	ExitCode int  `json:"exit_code"`
	TimedOut bool `json:"timed_out"`
	Problem  *problem
}

// liveEvents gives the events of a live answer, each held against the document.
func liveEvents(t *testing.T, body []byte) (events []heard) {
	t.Helper()
	for scan := bufio.NewScanner(bytes.NewReader(body)); scan.Scan(); {
		checkSchema(t, "ExecEvent", scan.Bytes())
		var e heard
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			t.Fatalf("%v in %s", err, scan.Bytes())
		}
		events = append(events, e)
	}
	return events
}

func TestExecLive_TellsWhatHappensInOrder(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	live := func(command string) []heard {
		t.Helper()
		got := w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["`+command+`"],"timeout":0.05}`, "Accept", "application/x-ndjson").is(200)
		if ct := got.Header().Get("Content-Type"); ct != "application/x-ndjson" {
			t.Errorf("content type %q", ct)
		}
		return liveEvents(t, got.Body.Bytes())
	}
	for _, c := range []struct {
		command string
		want    []heard
	}{
		{"echo", []heard{{Type: "started"}, {Type: "stdout", Data: "\n"}, {Type: "exit"}}},
		{"fail", []heard{{Type: "started"}, {Type: "stderr", Data: "no\n"}, {Type: "exit", ExitCode: 3}}},
		{"split", []heard{{Type: "started"}, {Type: "stdout", Data: "a"}, {Type: "stdout", Data: "€!"}, {Type: "exit"}}},
		{"bytes", []heard{{Type: "started"}, {Type: "stdout", Data: "/wA=", Base64: true}, {Type: "exit"}}},
		{"hang", []heard{{Type: "started"}, {Type: "exit", ExitCode: -1, TimedOut: true}}},
	} {
		if d := cmp.Diff(c.want, live(c.command)); d != "" {
			t.Errorf("%s: %s", c.command, d)
		}
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["missing"]}`, "Accept", "application/x-ndjson").problem(400, "invalid", "command")
}

// serve serves the world over a real connection.
func (w *world) serve() *httptest.Server {
	s := httptest.NewServer(w.server)
	w.t.Cleanup(s.Close)
	return s
}

// open begins a request as user that is read while it lasts.
func (w *world) open(ctx context.Context, user, method, path, body, accept string) *http.Response {
	w.t.Helper()
	s := w.serve()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.tokens[user])
	r.Header.Set("Accept", accept)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := s.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { got.Body.Close() })
	return got
}

func TestExecLive_KeepsAliveWhileSilentAndDiesWithItsReader(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.beat, w.server.check = 5*time.Millisecond, 5*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := w.open(ctx, "ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["hang"]}`, "application/x-ndjson")
	scan := bufio.NewScanner(got.Body)
	for keepAlives := 0; keepAlives < 2; {
		if !scan.Scan() {
			t.Fatalf("the stream ended: %v", scan.Err())
		}
		if strings.Contains(scan.Text(), "heartbeat") {
			keepAlives++
		}
	}
	cancel()
	<-w.guests.lastCommand().ended
}

func TestExec_RevokedTokenEndsTheCommand(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.check = 5 * time.Millisecond
	got := w.open(t.Context(), "ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["hang"]}`, "application/x-ndjson")
	scan := bufio.NewScanner(got.Body)
	if !scan.Scan() {
		t.Fatal("nothing came")
	}
	tokens, err := w.accounts.Tokens(t.Context(), w.ids["ada"])
	if err != nil {
		t.Fatal(err)
	}
	if err := w.accounts.RevokeToken(t.Context(), w.ids["ada"], tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	<-w.guests.lastCommand().ended
}
