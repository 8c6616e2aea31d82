package terminal

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const testLimit = 20 * time.Second

// world is a sandbox, as far as terminals go: doors, guest, use and state in one.
type world struct {
	dial   func(ctx context.Context) (net.Conn, error)
	opened sync.WaitGroup // uses that are not released

	mu     sync.Mutex
	thaw   chan struct{} // when not nil, an attended touch takes until it is closed
	refuse error         // of OpenStream and JoinStream
	dead   error         // of an attended Touch
	state  sandbox.State
	gone   bool // the sandbox
	ended  bool // the shell
	closed []string
	noted  []string // what counted as use, in order
}

func (w *world) OpenStream(_ context.Context, _, tab string) (Entry, error) {
	return w.enter("open " + tab)
}

func (w *world) JoinStream(_ context.Context, _, tab string) (Entry, error) {
	return w.enter("join " + tab)
}

func (w *world) enter(how string) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, how)
	if w.refuse != nil {
		return Entry{}, w.refuse
	}
	w.opened.Add(1)
	return Entry{Guest: w, Use: &worldUse{world: w, release: sync.OnceFunc(w.opened.Done)}}, nil
}

func (w *world) Look(context.Context, string) (Guest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w, w.refuse
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, what)
}

// used gives what counted as use, without the pieces in which output came.
func (w *world) used() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(slices.Compact(slices.Clone(w.noted)), ", ")
}

// worldUse is one viewer's use of a world.
type worldUse struct {
	*world
	release func()
}

func (u *worldUse) Touch(ctx context.Context, unattended bool) error {
	if unattended {
		u.note("output")
		return nil
	}
	u.note("typed")
	u.mu.Lock()
	thaw := u.thaw
	u.mu.Unlock()
	if thaw != nil {
		select {
		case <-thaw:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dead
}

func (u *worldUse) Attend(context.Context) { u.note("watched") }

func (u *worldUse) Release() { u.release() }

func (w *world) Wait(context.Context, string) (sandbox.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return sandbox.Sandbox{}, fault.New(fault.NotFound, "There is no such sandbox.")
	}
	return sandbox.Sandbox{Name: "box", State: w.state, Problem: "out of memory"}, nil
}

func (w *world) DialTerminal(ctx context.Context, _ string) (net.Conn, error) { return w.dial(ctx) }

func (w *world) Terminals(context.Context) ([]wire.Terminal, error) {
	if w.ended {
		return nil, nil
	}
	return []wire.Terminal{{Name: "main", Viewers: 2}}, nil
}

func (w *world) CloseTerminal(_ context.Context, tab string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, tab)
	return nil
}

func (w *world) TerminalText(_ context.Context, tab string) ([]byte, error) {
	if tab != "main" {
		return nil, fault.New(fault.NotFound, "There is no such terminal.")
	}
	return []byte("\x1b[1mshown\n"), nil
}

// dialler connects to a listener.
func dialler(l net.Listener) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}
}

// ttydWorld has a terminal whose server does what talk says after the handshake.
func ttydWorld(t *testing.T, talk func(conn *websocket.Conn)) *world {
	t.Helper()
	up := websocket.Upgrader{Subprotocols: []string{Subprotocol}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" {
			http.NotFound(w, r)
			return
		}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		talk(conn)
	}))
	t.Cleanup(server.Close)
	return &world{dial: dialler(server.Listener), state: sandbox.Running}
}

// rawWorld has a terminal whose server does what talk says with the bare connection.
func rawWorld(t *testing.T, talk func(conn net.Conn)) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return &world{dial: dialler(l), state: sandbox.Running}
}

// watch attaches a viewer to w through a real websocket, and gives its end. At the end of the test everything must
// have been released.
func watch(t *testing.T, w *world) *viewerEnd {
	t.Helper()
	return watchUntil(t, w, t.Context())
}

func watchUntil(t *testing.T, w *world, ctx context.Context) *viewerEnd {
	t.Helper()
	return watchBy(t, w, ctx, (*Service).Attach)
}

// watchBy attaches with Attach or Join.
func watchBy(t *testing.T, w *world, ctx context.Context, attach func(s *Service, ctx context.Context, name, tab string) (*Attachment, error)) *viewerEnd {
	t.Helper()
	service := New(w, w, slog.New(slog.DiscardHandler))
	pumped := make(chan error, 1)
	up := websocket.Upgrader{Subprotocols: []string{Subprotocol}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a, err := attach(service, ctx, "box", "")
		if err != nil {
			http.Error(rw, fault.Message(err), http.StatusServiceUnavailable)
			pumped <- err
			return
		}
		defer a.Close()
		conn, err := up.Upgrade(rw, r, nil)
		if err != nil {
			pumped <- err
			return
		}
		pumped <- a.Pump(ctx, conn)
	}))
	d := websocket.Dialer{Subprotocols: []string{Subprotocol}, HandshakeTimeout: testLimit}
	conn, _, err := d.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		server.Close()
		t.Fatalf("attach: %v, %v", err, <-pumped)
	}
	v := &viewerEnd{t: t, conn: conn, pumped: pumped}
	t.Cleanup(func() {
		conn.Close()
		server.Close()
		w.opened.Wait()
	})
	return v
}

// viewerEnd is a viewer under test.
type viewerEnd struct {
	t      *testing.T
	conn   *websocket.Conn
	pumped chan error
}

func (v *viewerEnd) send(m string) {
	v.t.Helper()
	if err := v.conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
		v.t.Fatalf("send: %v", err)
	}
}

func (v *viewerEnd) next() (string, error) {
	_ = v.conn.SetReadDeadline(time.Now().Add(testLimit))
	_, p, err := v.conn.ReadMessage()
	return string(p), err
}

// end reads to the end and gives all output and the close frame.
func (v *viewerEnd) end() (output string, code int, reason string) {
	v.t.Helper()
	var b strings.Builder
	for {
		m, err := v.next()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return b.String(), closed.Code, closed.Text
		}
		if err != nil {
			v.t.Fatalf("end: %v", err)
		}
		if m[0] == wire.TTYOutput {
			b.WriteString(m[1:])
		}
	}
}

// result is what Pump gave.
func (v *viewerEnd) result() error {
	v.t.Helper()
	select {
	case err := <-v.pumped:
		return err
	case <-time.After(testLimit):
		v.t.Fatal("Pump does not return")
		return nil
	}
}

// say sends messages as ttyd does.
func say(conn *websocket.Conn, messages ...string) error {
	for _, m := range messages {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
			return err
		}
	}
	return nil
}

func goodbye(conn *websocket.Conn, code int, text string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_, _, _ = conn.ReadMessage()
}
