package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

const soon = 5 * time.Millisecond

// TestWelcome_LockedOutUsersStreamsEnd without a heartbeat's having come.
func TestWelcome_LockedOutUsersStreamsEnd(t *testing.T) {
	hang := `{"command":["hang"]}`
	for name, c := range map[string]struct{ method, path, body, accept string }{
		"events":    {"GET", "/api/v1/events", "", "text/event-stream"},
		"live exec": {"POST", "/api/v1/sandboxes/lab/exec", hang, lineType},
		"build log": {"GET", "/api/v1/templates/base/build", "", lineType},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.box("ada", "lab")
			w.images.status = catalog.ImageStatus{State: catalog.ImageBuilding}
			w.server.beat, w.server.check = time.Hour, soon
			got := w.open(t.Context(), "ada", c.method, c.path, c.body, c.accept)
			w.lockOut("ada")
			if _, err := io.Copy(io.Discard, got.Body); err != nil {
				t.Error(err)
			}
		})
	}
}

func (w *world) lockOut(user string) {
	w.t.Helper()
	if err := w.accounts.SetDisabled(w.t.Context(), w.ids[user], true); err != nil {
		w.t.Fatal(err)
	}
}

func TestWelcome_LockedOutUsersExecSocketEnds(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.beat, w.server.check = time.Hour, soon
	conn := w.execSocket(`{"type":"start","command":["hang"]}`)
	said(t, conn)
	w.lockOut("ada")
	<-w.guests.lastCommand().ended
	untilClosed(t, conn, websocket.ClosePolicyViolation, websocket.CloseInternalServerErr)
}

// untilClosed reads until the other side has ended the conversation, with one of codes.
func untilClosed(t *testing.T, conn *websocket.Conn, codes ...int) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, codes...) {
				t.Errorf("ended with %v", err)
			}
			return
		}
	}
}

func TestWelcome_LockedOutUsersTerminalEnds(t *testing.T) {
	s := newStage(t)
	s.server.beat, s.server.check = time.Hour, soon
	s.put("ada", "mine", nil)
	server := httptest.NewServer(s.server)
	defer server.Close()
	conn, _, err := s.viewer(server, "ada", "/sandboxes/mine/terminals/main/ws", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := s.accounts.SetDisabled(t.Context(), s.users["ada"].ID, true); err != nil {
		t.Fatal(err)
	}
	untilClosed(t, conn, websocket.ClosePolicyViolation)
}

func TestWelcome_CommandThatIsWaitedForSaysWhyItEnded(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.check = soon
	started := w.guests.onStart()
	got := make(chan answer, 1)
	go func() { got <- w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["hang"]}`) }()
	<-started
	w.lockOut("ada")
	(<-got).problem(http.StatusUnauthorized, "unauthenticated", "")
}

// moody is a store of accounts that fails now and then.
type moody struct {
	auth.Store
	asked chan struct{} // takes each question while it fails

	mu  sync.Mutex
	err error
}

func (m *moody) TokenByKey(ctx context.Context, key auth.Key) (auth.Token, auth.Account, error) {
	m.mu.Lock()
	err := m.err
	m.mu.Unlock()
	if err == nil {
		return m.Store.TokenByKey(ctx, key)
	}
	select {
	case m.asked <- struct{}{}:
	case <-ctx.Done():
	}
	return auth.Token{}, auth.Account{}, err
}

func (m *moody) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func TestWelcome_StoreThatDoesNotAnswerCutsNothing(t *testing.T) {
	w := newWorld(t)
	accounts := &moody{Store: w.users, asked: make(chan struct{})}
	w.server.cfg.Accounts = auth.New(accounts, auth.Options{Log: slog.New(slog.DiscardHandler)})
	w.server.check = soon
	s := w.listen("ada")
	s.snapshot()
	accounts.fail(fault.New(fault.Unavailable, "The database is busy."))
	for range 3 {
		<-accounts.asked
	}
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageFailed}})
	if kind, _ := s.next(); kind != "template" {
		t.Errorf("got %q", kind)
	}
}

func TestWelcome_IsAskedEveryTwoSeconds(t *testing.T) {
	if s := newWorld(t).server; s.check != 2*time.Second {
		t.Errorf("every %s", s.check)
	}
}
