package link_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/guest/tty"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// guestSocket makes the test's program a guest on that socket. Beside it, in a file with echoPort at its end, it tells the
// port of its own echo server.
const (
	guestSocket = "LINK_TEST_GUEST"
	echoPort    = ".echo"
	modelsPort  = ".models" // and, likewise, the port for models
)

func init() {
	if socket := os.Getenv(guestSocket); socket != "" {
		os.Exit(beGuest(socket))
	}
}

func beGuest(socket string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "sbxguest-")
	if err != nil {
		return 1
	}
	defer os.RemoveAll(dir)
	cfg := guest.Config{Socket: socket, Home: dir, Terminals: func(sh guest.Shell) (guest.Terminals, func(context.Context) error) {
		tabs := tty.New(tty.Config{Dir: dir, Shell: "/bin/sh", Home: dir, Env: sh.Env}, slog.New(slog.DiscardHandler))
		return tabs, tabs.Run
	}}
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	go serveEcho(echo)
	port := fmt.Sprint(echo.Addr().(*net.TCPAddr).Port)
	if os.WriteFile(socket+echoPort, []byte(port), 0o600) != nil {
		return 1
	}
	if cfg.Models, err = anyPort(); err != nil || os.WriteFile(socket+modelsPort, []byte(fmt.Sprint(cfg.Models)), 0o600) != nil {
		return 1
	}
	if guest.New(cfg).Run(ctx) != nil {
		return 1
	}
	return 0
}

// guestProcess is a guest that can be frozen.
type guestProcess struct{ *os.Process }

func startGuest(t *testing.T, folder string) guestProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), guestSocket+"="+filepath.Join(folder, wire.SocketName))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := guestProcess{cmd.Process}
	t.Cleanup(func() {
		g.thaw(t)
		g.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	return g
}

func (g guestProcess) freeze(t *testing.T) {
	t.Helper()
	if err := g.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.Pid))
		if err == nil && bytes.Contains(b, []byte(") T ")) {
			return
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("it is not stopped: %s, %v", b, err)
		}
	}
}

func (g guestProcess) thaw(t *testing.T) {
	t.Helper()
	if err := g.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
}

// frozenWorld is a hub, a guest that can be frozen, and their session.
type frozenWorld struct {
	hub     *link.Hub
	stop    func() // of the hub
	root    string
	guest   guestProcess
	session *link.Session
}

func freezable(t *testing.T) (w frozenWorld) {
	t.Helper()
	w.root = filepath.Join(t.TempDir(), "link")
	w.hub = link.NewHub(w.root, nil)
	folder, err := w.hub.Expect("box", wire.Setup{Models: true})
	if err != nil {
		t.Fatal(err)
	}
	w.guest = startGuest(t, folder)
	w.stop = runHub(t, w.hub)
	if w.session, err = w.hub.Session(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
	return w
}

// port gives a port that the guest's program has told.
func (w frozenWorld) port(t *testing.T, which string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "box", wire.SocketName+which)) // written before the guest came
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// dialEcho connects to the echo server that is frozen with the guest.
func (w frozenWorld) dialEcho(t *testing.T) net.Conn {
	t.Helper()
	c, err := w.session.DialPort(testContext(t), w.port(t, echoPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// through sends data into w while it reads as much from r, and gives what came, later.
func through(w io.Writer, r io.Reader, data []byte) <-chan []byte {
	came := make(chan []byte, 1)
	go w.Write(data)
	go func() {
		b := make([]byte, len(data))
		n, _ := io.ReadFull(r, b)
		came <- b[:n]
	}()
	return came
}

// output reads what a process writes.
type output struct {
	p    *link.Process
	rest []byte
}

func (o *output) Read(b []byte) (int, error) {
	for len(o.rest) == 0 {
		f, err := o.p.Next()
		if err != nil {
			return 0, err
		}
		o.rest = f.Data
	}
	n := copy(b, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// openTerminal joins the tab main as a browser does.
func openTerminal(t *testing.T, s *link.Session) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"tty"},
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.DialTerminal(ctx, "main") }}
	ws, res, err := d.DialContext(testContext(t), "ws://terminal/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	t.Cleanup(func() { ws.Close() })
	if err := ws.WriteMessage(websocket.BinaryMessage, []byte(`{"columns":80,"rows":24}`)); err != nil {
		t.Fatal(err)
	}
	return ws
}

// read waits until the terminal shows text.
func read(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	seen := ""
	ws.SetReadDeadline(time.Now().Add(patience))
	for !strings.Contains(seen, text) {
		_, m, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("want %q, got %q, %v", text, seen, err)
		}
		if m[0] == wire.TTYOutput {
			seen += string(m[1:])
		}
	}
}

func typed(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	if err := ws.WriteMessage(websocket.BinaryMessage, append([]byte{wire.TTYInput}, text...)); err != nil {
		t.Fatal(err)
	}
}

func TestFreeze_StreamsGoOnAndNoByteIsLost(t *testing.T) {
	w := freezable(t)
	g, s := w.guest, w.session
	tunnel := w.dialEcho(t)
	cat, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	ws := openTerminal(t, s)
	typed(t, ws, "echo awa''ke\n")
	read(t, ws, "awake\r\n")

	data := make([]byte, 8<<20) // far more than windows and sockets hold
	rand.Read(data)
	g.freeze(t)
	tunnelled, catted := through(tunnel, tunnel, data), through(cat.Stdin, &output{p: cat}, data)
	typed(t, ws, "echo tha''wed\n")
	for range 10 { // in the meantime callers come and go
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Services(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := s.DialPort(ctx, 80); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	select {
	case <-s.Done():
		t.Fatal("the connection was given up")
	case <-tunnelled:
		t.Fatal("it is not frozen")
	default:
	}
	g.thaw(t)
	for name, came := range map[string]<-chan []byte{"a port": tunnelled, "a command": catted} {
		select {
		case b := <-came:
			if !bytes.Equal(b, data) {
				t.Errorf("%s: %d bytes of %d came, or others", name, len(b), len(data))
			}
		case <-time.After(patience):
			t.Errorf("%s: not all bytes come", name)
		}
	}
	read(t, ws, "thawed\r\n")
	typed(t, ws, "echo a''gain\n")
	read(t, ws, "again\r\n")
	if _, err := s.Services(testContext(t)); err != nil {
		t.Error(err)
	}
}

// What fills the socket is one command's input. No one else may wait for it, and its caller may give up.
func TestFreeze_HoldsUpNobodyLongerThanTheyWant(t *testing.T) {
	w := freezable(t)
	g, s := w.guest, w.session
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	said := filepath.Join(t.TempDir(), "said")
	zeros, err := s.Exec(ctx, sh("head -c 300000 /dev/zero; echo >"+said+"; sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; { // until what may come unasked, a stream's window, has come
		if _, err := os.Stat(said); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the command does not get on")
		}
	}
	tunnel := w.dialEcho(t)
	g.freeze(t)
	go tunnel.Write(make([]byte, 8<<20)) // ends with the connection
	stuck, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := s.Exec(stuck, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	left := make(chan error, 2)
	go func() { // reads on until there is room to be made, which takes writing
		for {
			if _, err := zeros.Next(); err != nil {
				left <- err
				return
			}
		}
	}()
	time.AfterFunc(100*time.Millisecond, cancel)
	go func() { left <- tunnel.Close() }()
	for range 2 {
		select {
		case err := <-left:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		case <-time.After(patience):
			t.Fatal("a caller waits for a frozen guest")
		}
	}
	g.thaw(t)
	if r := run(t, s, sh("echo here")); r.stdout.String() != "here\n" {
		t.Errorf("got %q", r.stdout.String())
	}
}

func TestFreeze_AnotherHubIsFoundAfterTheThaw(t *testing.T) {
	w := freezable(t)
	w.guest.freeze(t)
	w.stop()
	next := link.NewHub(w.root, nil)
	if _, err := next.Expect("box", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	runHub(t, next)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := next.Ready(ctx, "box"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a frozen guest dials: %v", err)
	}
	w.guest.thaw(t)
	if err := next.Ready(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
}

func TestFreeze_GuestThatHangsIsReplacedByANewerConnection(t *testing.T) {
	w := freezable(t)
	g, s := w.guest, w.session
	g.freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Services(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	runGuest(t, filepath.Join(w.root, "box"), guest.Config{})
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the connection of the one that hangs is kept")
	}
	next, err := w.hub.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Services(testContext(t)); err != nil {
		t.Error(err)
	}
}
