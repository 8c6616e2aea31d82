package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
	"sandboxd/internal/wire"
)

// fakeTerminals is the real terminal service over a guest whose terminals greet and echo.
type fakeTerminals struct {
	*terminal.Service
	listener net.Listener

	mu     sync.Mutex
	tabs   []wire.Terminal
	asked  int
	closed []string
	err    error // what opening the sandbox gives
}

const greeting = "\x1b[1;32magent@brave-otter\x1b[0m:\x1b[1;34m~\x1b[0m$ "

func newFakeTerminals(t *testing.T) *fakeTerminals {
	t.Helper()
	up := websocket.Upgrader{Subprotocols: []string{terminal.Subprotocol}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			_, message, err := conn.ReadMessage()
			switch {
			case err != nil:
				return
			case message[0] == '{':
				err = conn.WriteMessage(websocket.BinaryMessage, []byte("0"+greeting))
			case message[0] == '0':
				err = conn.WriteMessage(websocket.BinaryMessage, append([]byte("0"), message[1:]...))
			}
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return &fakeTerminals{listener: server.Listener}
}

func (f *fakeTerminals) DialTerminal(ctx context.Context, _ string) (net.Conn, error) {
	f.note()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", f.listener.Addr().String())
}

// note counts what the guest is asked.
func (f *fakeTerminals) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
}

func (f *fakeTerminals) Terminals(context.Context) ([]wire.Terminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.tabs, nil
}

func (f *fakeTerminals) TerminalText(_ context.Context, tab string) ([]byte, error) {
	if tab != "main" {
		return nil, fault.New(fault.NotFound, "There is no such terminal.")
	}
	return []byte(greeting), nil
}

func (f *fakeTerminals) CloseTerminal(_ context.Context, tab string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	f.closed = append(f.closed, tab)
	return nil
}

// viewer opens a terminal's websocket as user, from a page of origin.
func (s *stage) viewer(server *httptest.Server, user, path, origin string) (*websocket.Conn, *http.Response, error) {
	s.t.Helper()
	h := http.Header{"Origin": {origin}}
	h.Set("Cookie", s.server.sessionCookie()+"="+s.sessions[user])
	d := websocket.Dialer{Subprotocols: []string{terminal.Subprotocol}, HandshakeTimeout: time.Minute}
	return d.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+path, h)
}

func TestTerminal_CarriesWhatIsTypedAndShown(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	server := httptest.NewServer(s.server)
	defer server.Close()
	conn, _, err := s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.Subprotocol() != terminal.Subprotocol {
		t.Errorf("speaks %q", conn.Subprotocol())
	}
	say := func(message string) {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"AuthToken":"","columns":80,"rows":24}`)
	say("0ls\r")
	var shown strings.Builder
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for shown.String() != greeting+"ls\r" {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("%v after %q", err, shown.String())
		}
		if message[0] == '0' {
			shown.Write(message[1:])
		}
	}
}

func TestTerminal_APageThatComesBackByItselfWakesNothing(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	server := httptest.NewServer(s.server)
	defer server.Close()
	conn, _, err := s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws?wake=0", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, _, err = conn.ReadMessage()
	if !websocket.IsCloseError(err, terminal.CloseAsleep) || s.terminals.asked != 0 {
		t.Errorf("%v; opened %d times", err, s.terminals.asked)
	}
	conn, _, err = s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws", server.URL)
	if err != nil || s.terminals.asked != 1 {
		t.Fatalf("%v; opened %d times", err, s.terminals.asked)
	}
	conn.Close()
}

func TestTerminal_ClosingATabWakesOnlyWhatStillHasIt(t *testing.T) {
	for state, closes := range map[sandbox.State]int{sandbox.Frozen: 1, sandbox.Asleep: 0} {
		s := newStage(t)
		s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = state })
		s.post("ada", "/sandboxes/mine/terminals/2/close", nil).leads("/sandboxes/mine")
		if len(s.terminals.closed) != closes || s.terminals.asked != closes {
			t.Errorf("%s: closed %v, opened %d times", state, s.terminals.closed, s.terminals.asked)
		}
	}
}

func TestTerminal_RefusesBeforeTheUpgrade(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	server := httptest.NewServer(s.server)
	defer server.Close()
	for _, c := range []struct {
		user, path, origin string
		status             int
	}{
		{"ada", "/sandboxes/mine/terminals/main/ws", "http://mine.localhost:8080", http.StatusForbidden},
		{"ada", "/sandboxes/mine/terminals/main/ws", "null", http.StatusForbidden},
		{"ada", "/sandboxes/mine/terminals/main/ws", "", http.StatusForbidden},
		{"bob", "/sandboxes/mine/terminals/main/ws", server.URL, http.StatusNotFound},
		{"ada", "/sandboxes/mine/terminals/No!/ws", server.URL, http.StatusBadRequest},
	} {
		conn, answer, err := s.viewer(server, c.user, c.path, c.origin)
		if err == nil {
			conn.Close()
			t.Errorf("%+v: accepted", c)
			continue
		}
		if answer == nil || answer.StatusCode != c.status {
			t.Errorf("%+v: %v", c, answer)
		}
	}
	if s.terminals.asked != 0 {
		t.Errorf("the sandbox was opened %d times", s.terminals.asked)
	}
}

func TestTerminal_TellsAScriptWhyItWasRefused(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
	s.put("ada", "open", nil)
	for path, status := range map[string]int{"mine": http.StatusConflict, "none": http.StatusNotFound, "open": http.StatusUpgradeRequired} {
		got := s.get("ada", "/sandboxes/"+path+"/terminals/main/ws", "Accept", problemType).is(status)
		var p problem
		answer{got.ResponseRecorder, t}.into(&p)
		if p.Detail == "" || got.Header().Get("Content-Type") != problemType {
			t.Errorf("%s: %+v", path, p)
		}
	}
	s.get("", "/sandboxes/mine/terminals/main/ws", "Accept", problemType).is(http.StatusUnauthorized)
	if s.terminals.asked != 0 {
		t.Error("asking why wakes the sandbox")
	}
}

func TestTerminal_SaysWhenTheSandboxCannotBeReached(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.terminals.err = fault.New(fault.Unavailable, "The sandbox does not answer.")
	server := httptest.NewServer(s.server)
	defer server.Close()
	_, answer, err := s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws", server.URL)
	if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v, %v", answer, err)
	}
	if names := attr(s.get("ada", "/sandboxes/mine").is(http.StatusOK).need("sandbox-terminals"), "data-names"); names != "main" {
		t.Errorf("terminals %q", names)
	}
}
