package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"sandboxd/internal/exec"
)

// dial opens a websocket as user.
func (w *world) dial(s *httptest.Server, user, path string, headers ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Authorization": {"Bearer " + w.tokens[user]}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, res, err := websocket.DefaultDialer.DialContext(w.t.Context(), "ws"+strings.TrimPrefix(s.URL, "http")+path, h)
	if err == nil {
		w.t.Cleanup(func() { conn.Close() })
	}
	return conn, res, err
}

// execSocket opens a dialogue with lab and says start.
func (w *world) execSocket(start string) *websocket.Conn {
	w.t.Helper()
	conn, _, err := w.dial(w.serve(), "ada", "/api/v1/sandboxes/lab/exec")
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, conn, websocket.TextMessage, start)
	return conn
}

func write(t *testing.T, conn *websocket.Conn, kind int, text string) {
	t.Helper()
	if err := conn.WriteMessage(kind, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// said reads a text message.
func said(t *testing.T, conn *websocket.Conn) heard {
	t.Helper()
	kind, b, err := conn.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		t.Fatalf("message of kind %d, %q: %v", kind, b, err)
	}
	checkSchema(t, "ExecEvent", b)
	var e heard
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// output reads binary messages of one stream until they add up to want.
func output(t *testing.T, conn *websocket.Conn, stream byte, want string) {
	t.Helper()
	got := ""
	for len(got) < len(want) {
		kind, b, err := conn.ReadMessage()
		if err != nil || kind != websocket.BinaryMessage || b[0] != stream {
			t.Fatalf("after %q: message of kind %d, %q: %v", got, kind, b, err)
		}
		got += string(b[1:])
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func ended(t *testing.T, conn *websocket.Conn, code int) {
	t.Helper()
	if _, b, err := conn.ReadMessage(); !websocket.IsCloseError(err, code) {
		t.Errorf("got %q, %v; want a close with %d", b, err, code)
	}
}

func TestExecSocket_CarriesADialogue(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	conn := w.execSocket(`{"type":"start","command":["cat"],"tty":true,"cols":100,"rows":30,"cwd":"/"}`)
	if e := said(t, conn); e.Type != "started" {
		t.Errorf("got %+v", e)
	}
	want := exec.Start{Command: []string{"cat"}, Cwd: "/", TTY: true, Cols: 100, Rows: 30}
	if d := cmp.Diff(want, w.guests.lastAsked()); d != "" {
		t.Error(d)
	}
	write(t, conn, websocket.BinaryMessage, "\xff raw")
	output(t, conn, streamStdout, "\xff raw")
	write(t, conn, websocket.TextMessage, `{"type":"stdin","data":"text"}`)
	output(t, conn, streamStdout, "text")
	write(t, conn, websocket.TextMessage, `{"type":"resize","cols":3,"rows":2}`)
	output(t, conn, streamStdout, "wide ===")
	write(t, conn, websocket.TextMessage, `{"type":"signal","signal":"INT"}`)
	output(t, conn, streamStdout, "signal INT")
	write(t, conn, websocket.TextMessage, `{"type":"eof"}`)
	if d := cmp.Diff(heard{Type: "exit"}, said(t, conn)); d != "" {
		t.Error(d)
	}
	ended(t, conn, websocket.CloseNormalClosure)
}

func TestExecSocket_TellsStderrApartAndTheExitCode(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	conn := w.execSocket(`{"type":"start","command":["fail"]}`)
	said(t, conn)
	output(t, conn, streamStderr, "no\n")
	if e := said(t, conn); e.Type != "exit" || e.ExitCode != 3 {
		t.Errorf("got %+v", e)
	}
}

func TestExecSocket_TimeoutIsAnExit(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	conn := w.execSocket(`{"type":"start","command":["hang"],"timeout":0.02}`)
	said(t, conn)
	if e := said(t, conn); e.Type != "exit" || !e.TimedOut || e.ExitCode != -1 {
		t.Errorf("got %+v", e)
	}
	ended(t, conn, websocket.CloseNormalClosure)
}

func TestExecSocket_ClosingKillsTheCommand(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, hangUp := range []func(*websocket.Conn) error{
		func(c *websocket.Conn) error { return c.Close() },
		func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		},
	} {
		conn := w.execSocket(`{"type":"start","command":["hang"]}`)
		said(t, conn)
		if err := hangUp(conn); err != nil {
			t.Fatal(err)
		}
		<-w.guests.lastCommand().ended
	}
}

func TestExecSocket_BadMessagesAreTold(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ start, then, code, field string }{
		{`{"type":"hello"}`, "", "invalid", "type"},
		{`{"type":"start"}`, "", "invalid", "command"},
		{`{"type":"start","command":["missing"]}`, "", "invalid", "command"},
		{`{"type":"start","command":["cat"],"tty":true,"cols":-1}`, "", "invalid", "cols"},
		{`no JSON`, "", "invalid", ""},
		{`{"type":"start","command":["cat"]}`, `{"type":"dance"}`, "invalid", "type"},
		{`{"type":"start","command":["cat"]}`, `[]`, "invalid", ""},
	} {
		conn := w.execSocket(c.start)
		if c.then != "" {
			said(t, conn)
			write(t, conn, websocket.TextMessage, c.then)
		}
		if e := said(t, conn); e.Type != "error" || e.Problem == nil || e.Problem.Code != c.code || e.Problem.Field != c.field {
			t.Errorf("%s %s: got %+v", c.start, c.then, e)
		}
	}
}

func TestExecSocket_IsRefusedBeforeTheUpgrade(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("ada", "idle")
	w.call("ada", "POST", "/api/v1/sandboxes/idle/stop?wait=stopped", "").is(200)
	s := w.serve()
	for _, c := range []struct {
		what, user, path string
		headers          []string
		status           int
	}{
		{"another website", "ada", "/api/v1/sandboxes/lab/exec", []string{"Origin", "https://evil.example"}, 403},
		{"a sandbox's page", "ada", "/api/v1/sandboxes/lab/exec", []string{"Origin", "http://lab.localhost:8080"}, 403},
		{"another scheme", "ada", "/api/v1/sandboxes/lab/exec", []string{"Origin", "https://localhost:8080"}, 403},
		{"no page", "ada", "/api/v1/sandboxes/lab/exec", []string{"Origin", "null"}, 403},
		{"no token", "nobody", "/api/v1/sandboxes/lab/exec", nil, 401},
		{"another's", "bob", "/api/v1/sandboxes/lab/exec", nil, 404},
		{"stopped", "ada", "/api/v1/sandboxes/idle/exec", nil, 409},
	} {
		_, res, err := w.dial(s, c.user, c.path, c.headers...)
		if err == nil || res == nil || res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %v %v", c.what, res, err)
		}
	}
	if _, _, err := w.dial(s, "ada", "/api/v1/sandboxes/lab/exec", "Origin", "http://localhost:8080"); err != nil {
		t.Errorf("the dashboard's own page: %v", err)
	}
	w.call("ada", "GET", "/api/v1/sandboxes/lab/exec", "").problem(426, "upgrade_required", "")
}
