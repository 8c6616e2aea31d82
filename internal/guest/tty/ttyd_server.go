package tty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// ttydServer is an HTTP server that answers as ttyd does, for all tabs of the guest's own. Its connections are unix socket
// pairs: nothing in the file system for others in the sandbox to take hold of.
type ttydServer struct {
	tabs   *Tabs
	server *http.Server
	conns  chan net.Conn
	once   sync.Once
}

var upgrader = websocket.Upgrader{
	Subprotocols:     []string{"tty"},
	HandshakeTimeout: firstMessage,
	ReadBufferSize:   4 << 10,
	WriteBufferSize:  4 << 10,
	CheckOrigin:      func(*http.Request) bool { return true }, // sandboxd has checked it, and is the only one to come here
}

func newTTYDServer(t *Tabs) *ttydServer {
	l := &ttydServer{tabs: t, conns: make(chan net.Conn)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
		_, _ = io.WriteString(w, `{"token": ""}`) // a viewer that has left needs no token
	})
	mux.HandleFunc("GET /ws", l.serve)
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: firstMessage, IdleTimeout: silenceLimit,
		MaxHeaderBytes: 16 << 10, ConnContext: withTab, ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelDebug)}
	return l
}

// dial gives a connection to the server that is about one tab.
func (l *ttydServer) dial(tab string) (net.Conn, error) {
	if isClosed(l.tabs.ctx.Done()) {
		return nil, errEnded
	}
	l.once.Do(func() { l.tabs.child(func() { _ = l.server.Serve(l) }) }) // Serve ends with close
	near, far, err := pair()
	if err != nil {
		return nil, err
	}
	select {
	case l.conns <- &tabConn{Conn: thaw.NewConn(far), tab: tab}:
		return near, nil
	case <-l.tabs.ctx.Done():
		near.Close()
		far.Close()
		return nil, errEnded
	}
}

// close ends the server. The viewers' connections end with their sessions.
func (l *ttydServer) close() { _ = l.server.Close() } // its connections end even if it fails

// Accept, Close and Addr make a net.Listener of the dialled connections.
func (l *ttydServer) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.tabs.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *ttydServer) Close() error { return nil }

func (l *ttydServer) Addr() net.Addr { return &net.UnixAddr{Name: "terminals", Net: "unix"} }

type tabConn struct {
	net.Conn
	tab string
}

type tabKey struct{}

func withTab(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tabConn); ok {
		return context.WithValue(ctx, tabKey{}, t.tab)
	}
	return ctx
}

// serve is one viewer: the first message starts the shell or joins it, as with ttyd.
func (l *ttydServer) serve(w http.ResponseWriter, r *http.Request) {
	if !l.tabs.enter() {
		http.Error(w, "the terminals are ended", http.StatusServiceUnavailable)
		return
	}
	defer l.tabs.wg.Done()
	tab, _ := r.Context().Value(tabKey{}).(string)
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	conn.SetReadLimit(maxMessage)
	h, err := l.readFirst(conn)
	if err != nil {
		refuse(conn, closeAbuse, "The first message must be JSON with columns and rows.")
		return
	}
	l.view(tab, newViewer(conn, h))
}

func (l *ttydServer) readFirst(conn *websocket.Conn) (hello, error) {
	if err := conn.SetReadDeadline(time.Now().Add(firstMessage)); err != nil {
		return hello{}, err
	}
	stop := context.AfterFunc(l.tabs.ctx, func() { conn.NetConn().Close() })
	defer stop()
	_, p, err := conn.ReadMessage()
	if err != nil {
		return hello{}, err
	}
	return readHello(p)
}

// view attaches v to the tab's shell and stays until it leaves.
func (l *ttydServer) view(tab string, v *viewer) {
	s, err := l.join(tab, v)
	if err != nil {
		l.tabs.log.Warn("terminal cannot be opened", "tab", tab, "error", err)
		refuse(v.conn, closeProblem, reason(err))
		return
	}
	defer s.leave(v)
	go v.write() // it ends before view does
	v.read(s)
	v.finish(closeNormal, "")
	v.settle()
}

// join attaches v to the tab's session; when the shell ends just then, to a new one.
func (l *ttydServer) join(tab string, v *viewer) (*session, error) {
	for {
		s, err := l.tabs.session(tab, v.size)
		if err != nil {
			return nil, err
		}
		if err := greet(v.conn, s); err != nil {
			return nil, err
		}
		if err := s.attach(v); !errors.Is(err, errOver) {
			return s, err
		}
	}
}

// greet sends what ttyd sends first: a title and the preferences, of which we have none.
func greet(conn *websocket.Conn, s *session) error {
	host, _ := os.Hostname()
	title := fmt.Sprintf("%c%s (%s)", wire.TTYTitle, s.name, host)
	for _, m := range []string{title, string(rune(wire.TTYPrefs)) + "{ }"} {
		if err := conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
			return err
		}
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
			return fmt.Errorf("greet viewer: %w", err)
		}
	}
	return nil
}

// reason is a sentence that fits into a close frame.
func reason(err error) string {
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p.Message
	}
	return "No shell could be started."
}

func refuse(conn *websocket.Conn, code int, reason string) {
	until := time.Now().Add(closeLimit)
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), until)
}

// pair makes a connected pair of unix sockets.
func pair() (net.Conn, net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("pair sockets: %w", err)
	}
	a, err := fileConn(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	b, err := fileConn(fds[1])
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

func fileConn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "terminal")
	defer f.Close() // FileConn has a descriptor of its own
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("pair sockets: %w", err)
	}
	return c, nil
}
