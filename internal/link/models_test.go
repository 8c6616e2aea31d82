package link_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// anyPort gives a port that nothing listens on.
func anyPort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// modelWorld is a hub and a guest whose programs find models at a port.
type modelWorld struct {
	hub     *link.Hub
	stop    func() // of the hub
	root    string
	folder  string
	session *link.Session
	port    int
}

func newModelWorld(t testing.TB) *modelWorld {
	t.Helper()
	port, err := anyPort()
	if err != nil {
		t.Fatal(err)
	}
	w := &modelWorld{root: filepath.Join(t.TempDir(), "link"), port: port}
	w.begin(t)
	runGuest(t, w.folder, guest.Config{Models: port})
	w.meet(t)
	return w
}

// begin lets a hub live, as sandboxd does when it starts.
func (w *modelWorld) begin(t testing.TB) {
	t.Helper()
	w.hub = link.NewHub(w.root, nil)
	if _, measures := t.(*testing.B); measures {
		w.hub.AllowCalls()
	}
	w.stop = runHub(t, w.hub)
	var err error
	if w.folder, err = w.hub.Expect("box", wire.Setup{Name: "box", Models: true}); err != nil {
		t.Fatal(err)
	}
}

func (w *modelWorld) meet(t testing.TB) {
	t.Helper()
	var err error
	if w.session, err = w.hub.Session(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
}

// call connects as a program in the sandbox does.
func (w *modelWorld) call(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", w.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// accept gives the other end of a call.
func (w *modelWorld) accept(t testing.TB) *link.ModelConn {
	t.Helper()
	type accepted struct {
		net.Conn
		error
	}
	one := make(chan accepted, 1)
	go func() {
		c, err := w.hub.Models().Accept()
		one <- accepted{c, err}
	}()
	select {
	case a := <-one:
		if a.error != nil {
			t.Fatal(a.error)
		}
		t.Cleanup(func() { a.Conn.Close() })
		return a.Conn.(*link.ModelConn)
	case <-time.After(patience):
		t.Fatal("no connection comes")
		return nil
	}
}

// eachWay runs f with connections that are passed, and with ones that go through the link.
func eachWay(t *testing.T, f func(t *testing.T, w *modelWorld)) {
	for name, passed := range map[string]bool{"passed": true, "through the link": false} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t)
			if !passed {
				w.session.TakeNothing()
				c := w.call(t) // the answer to what was asked before
				w.accept(t).Close()
				c.Close()
			}
			f(t, w)
		})
	}
}

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c io.Reader, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("got %q, %v", b, err)
	}
}

func TestModels_ACallComesOutAsItsSandboxs(t *testing.T) {
	eachWay(t, func(t *testing.T, w *modelWorld) {
		program := w.call(t)
		send(t, program, "question")
		ours := w.accept(t)
		if ours.Sandbox() != "box" || ours.RemoteAddr().String() != "sandbox:box" {
			t.Errorf("it is of %q, %v", ours.Sandbox(), ours.RemoteAddr())
		}
		expect(t, ours, "question")
		send(t, ours, "answer")
		expect(t, program, "answer")
		if err := program.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(ours); len(b) > 0 || err != nil {
			t.Fatalf("after its end: %q, %v", b, err)
		}
		send(t, ours, "late answer")
		if err := ours.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(program); string(b) != "late answer" || err != nil {
			t.Fatalf("got %q, %v", b, err)
		}
	})
}

func TestModels_CallsObeyDeadlines(t *testing.T) {
	eachWay(t, func(t *testing.T, w *modelWorld) {
		program := w.call(t)
		ours := w.accept(t)
		ours.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		var timeout net.Error
		if _, err := ours.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("got %v", err)
		}
		ours.SetReadDeadline(time.Time{})
		send(t, program, "late")
		expect(t, ours, "late")
		ours.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := ours.Write(make([]byte, 256<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d bytes that nobody reads, %v", n, err)
		}
	})
}

func TestModels_HTTPIsServedManyTimesOnOneConnectionAndOnMany(t *testing.T) {
	eachWay(t, func(t *testing.T, w *modelWorld) {
		server := &http.Server{
			Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				fmt.Fprintf(rw, "%s %s %d", r.Context().Value(sandboxKey{}), r.URL.Path, len(b))
			}),
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, sandboxKey{}, c.(*link.ModelConn).Sandbox())
			},
		}
		var serving sync.WaitGroup
		serving.Go(func() { server.Serve(w.hub.Models()) })
		defer serving.Wait()
		defer server.Close()
		body := strings.Repeat("x", 300<<10)
		for _, alive := range []bool{true, false} {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: !alive}, Timeout: patience}
			for range 40 {
				res, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/v1/messages", w.port), "text/plain", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if string(b) != fmt.Sprintf("box /v1/messages %d", len(body)) || err != nil {
					t.Fatalf("got %q, %v", b, err)
				}
			}
			client.CloseIdleConnections()
		}
	})
}

type sandboxKey struct{}

// mostCalls is as many as one sandbox may have.
const mostCalls = 128

func TestModels_MoreCallsThanMayBeAtOnceWaitInTheSandbox(t *testing.T) {
	w := newModelWorld(t)
	var programs []*net.TCPConn
	for range mostCalls + 20 {
		programs = append(programs, w.call(t))
	}
	var ours []*link.ModelConn
	for range mostCalls {
		ours = append(ours, w.accept(t))
	}
	next := make(chan net.Conn, 1)
	go func() {
		c, err := w.hub.Models().Accept()
		if err == nil {
			next <- c
		}
	}()
	select {
	case <-next:
		t.Fatal("one more than may be came out")
	case <-time.After(200 * time.Millisecond):
	}
	ours[5].Close()
	ours[5].Close() // counts once
	select {
	case c := <-next:
		c.Close()
	case <-time.After(patience):
		t.Fatal("the end of one does not let another come")
	}
	if _, err := programs[5].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the program got %v", err)
	}
	if r := run(t, w.session, sh("echo fine")); r.stdout.String() != "fine\n" {
		t.Errorf("the link is held up: %q", r.stdout.String())
	}
}

func TestModels_CallsWaitWhileNobodyAccepts(t *testing.T) {
	w := newModelWorld(t)
	var programs []*net.TCPConn
	for i := range 5 {
		programs = append(programs, w.call(t))
		send(t, programs[i], "hello")
	}
	if r := run(t, w.session, sh("echo fine")); r.stdout.String() != "fine\n" {
		t.Errorf("the link is held up: %q", r.stdout.String())
	}
	for range 5 {
		expect(t, w.accept(t), "hello")
	}
	w.hub.Models().Close()
	if _, err := w.hub.Models().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestModels_LossOfTheLinkEndsCallsAndTheNextSandboxdTakesNewOnes(t *testing.T) {
	eachWay(t, func(t *testing.T, w *modelWorld) {
		program := w.call(t)
		send(t, program, "question")
		ours := w.accept(t)
		expect(t, ours, "question")
		w.stop()
		if _, err := ours.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("got %v", err)
		}
		ours.Close()
		if _, err := program.Read(make([]byte, 1)); err == nil {
			t.Error("the program does not see the end")
		}
		done := make(chan struct{})
		go func() { // waits; what the old sandboxd was given in its last moment is reset, and a client tries again
			defer close(done)
			for t.Context().Err() == nil {
				between := w.call(t)
				io.WriteString(between, "again")
				if _, err := between.Read(make([]byte, 1)); err == nil {
					return
				}
			}
		}()
		w.begin(t)
		w.meet(t)
		next := w.accept(t)
		expect(t, next, "again")
		send(t, next, "x")
		<-done
	})
}

func TestModels_ArePartOfASetupAndCanBeTakenBack(t *testing.T) {
	w := newModelWorld(t)
	w.call(t).Close()
	if _, err := w.hub.Expect("box", wire.Setup{Name: "box"}); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Ready(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
	for late := time.After(patience); ; {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", w.port))
		if err != nil {
			break
		}
		c.Close()
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("the guest still listens")
		}
	}
}

// A user who may reach the ports of a sandbox may not use its models by that.
func TestModels_AreNoPortOfTheSandbox(t *testing.T) {
	w := newModelWorld(t)
	w.call(t)
	if _, err := w.session.DialPort(testContext(t), w.port); !errors.Is(err, link.ErrNothingListens) {
		t.Errorf("got %v", err)
	}
	ports, err := w.session.Ports(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ports {
		if p.Port == w.port {
			t.Errorf("listed: %+v", p)
		}
	}
}

// The programs of a sandbox are frozen with it, so a call that comes in the freeze is one that was on its way.
func TestModels_CallsSurviveAFreezeAndNoneHindersIt(t *testing.T) {
	f := freezable(t)
	w := &modelWorld{hub: f.hub, stop: f.stop, root: f.root, session: f.session, port: f.port(t, modelsPort)}
	program := w.call(t)
	ours := w.accept(t)
	send(t, program, "before")
	expect(t, ours, "before")
	f.guest.freeze(t)
	send(t, ours, "in the freeze")
	waiting := w.call(t)
	send(t, waiting, "on its way")
	f.guest.thaw(t)
	expect(t, program, "in the freeze")
	expect(t, w.accept(t), "on its way")
	f.guest.freeze(t)
	f.stop() // an accept that the guest does not hear of does not hold sandboxd up
	f.guest.thaw(t)
}
