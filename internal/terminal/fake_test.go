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

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const testLimit = time.Minute

// world is the sandbox "box", as far as terminals go: manager and guest in one.
type world struct {
	access.Guest
	dial   func(ctx context.Context) (net.Conn, error)
	opened sync.WaitGroup // viewers' uses that are not released

	mu      sync.Mutex
	thaw    chan struct{} // when not nil, an attended touch takes until it is closed
	refuse  error         // to a viewer who would wake it
	dead    error         // of an attended Touch
	state   sandbox.State
	viewers int
	gone    bool // the sandbox
	ended   bool // the shell
	closed  []string
	noted   []string // what counted as use, in order
}

func (w *world) row() sandbox.Sandbox {
	return sandbox.Sandbox{ID: "1", Name: "box", Owner: "ann", State: w.state, Problem: "out of memory"}
}

// handle is what the sandbox's owner gets.
func (w *world) handle() access.Handle {
	link := func(context.Context, string) (access.Guest, error) { return w, nil }
	h, err := access.New(w, link, access.Tracked(idle.New())).Resolve(context.Background(), "box", access.By(auth.Principal{User: auth.User{ID: "ann"}}))
	if err != nil {
		panic(err)
	}
	return h
}

func (w *world) Sandbox(context.Context, string) (sandbox.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.row(), nil
}

func (*world) Tombstone(context.Context, string) (sandbox.Tombstone, error) {
	return sandbox.Tombstone{}, fault.New(fault.NotFound, "There was none.")
}

func (w *world) Current(context.Context, sandbox.Ref) (sandbox.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "box has been deleted.")
	}
	return w.row(), nil
}

func (w *world) Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return w.Current(ctx, ref)
}

// Awake is asked to by a viewer who comes, and by one who types.
func (w *world) Awake(ctx context.Context, _ sandbox.Ref) (sandbox.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.viewers == 0 {
		w.noted = append(w.noted, "open")
		return w.running(), w.refuse
	}
	if thaw := w.thaw; thaw != nil {
		w.mu.Unlock()
		select {
		case <-thaw:
		case <-ctx.Done():
		}
		w.mu.Lock()
	}
	return w.running(), errors.Join(w.dead, ctx.Err())
}

func (w *world) running() sandbox.Sandbox {
	row := w.row()
	row.State = sandbox.Running
	return row
}

func (*world) Done() <-chan struct{} { return nil }

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

// watched is one viewer's use of a world.
type watched struct {
	use
	world   *world
	release func()
}

// watching notes what a's viewer does.
func (w *world) watching(a *Attachment) {
	if a.use == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.viewers++
	w.opened.Add(1)
	a.use = &watched{a.use, w, sync.OnceFunc(w.opened.Done)}
}

func (u *watched) Touch(ctx context.Context, unattended bool) error {
	if unattended {
		u.world.note("output")
	} else {
		u.world.note("typed")
	}
	return u.use.Touch(ctx, unattended)
}

func (u *watched) Attend(ctx context.Context) {
	u.world.note("watched")
	u.use.Attend(ctx)
}

func (u *watched) Release() {
	u.use.Release()
	u.release()
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
func watchBy(t *testing.T, w *world, ctx context.Context, attach func(s *Service, ctx context.Context, h access.Handle, tab string) (*Attachment, error)) *viewerEnd {
	t.Helper()
	service := New(w, slog.New(slog.DiscardHandler))
	pumped := make(chan error, 1)
	up := websocket.Upgrader{Subprotocols: []string{Subprotocol}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a, err := attach(service, ctx, w.handle(), "")
		if err != nil {
			http.Error(rw, fault.Message(err), http.StatusServiceUnavailable)
			pumped <- err
			return
		}
		w.watching(a)
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
