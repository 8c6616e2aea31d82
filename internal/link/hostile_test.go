package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

const patience = time.Minute

// quick is a hub with short bounds, which a good guest keeps on a busy machine too.
func quick(t *testing.T) (h *Hub, socket string) {
	t.Helper()
	h = NewHub(filepath.Join(t.TempDir(), "link"), nil)
	h.pace = pace{hello: 2 * time.Second, reply: 2 * time.Second, accepts: 1000, acceptMax: 1000, calls: 1000, callMax: 1000, callPause: 10 * time.Millisecond}
	folder, err := h.Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the hub does not end")
		}
	})
	return h, filepath.Join(folder, wire.SocketName)
}

// dialIn connects as a guest does.
func dialIn(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// liar is a guest that answers the setup with hello and everything else as it likes. On its connection a test can
// write what it likes, too, and make it stop reading.
type liar struct {
	net.Conn
	paused chan struct{} // closed to stop reading
	beside chan []int    // descriptors for beside the next bytes
	mu     sync.Mutex    // of writing
}

func (l *liar) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	select {
	case <-l.paused:
		select {} // for ever: the goroutine is the test's loss
	default:
	}
	return n, err
}

func (l *liar) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case fds := <-l.beside:
		n, _, err := l.Conn.(*net.UnixConn).WriteMsgUnix(p, syscall.UnixRights(fds...), nil)
		return n, err
	default:
		return l.Conn.Write(p)
	}
}

// lieListener accepts what is sent to it.
type lieListener struct{ conns chan net.Conn }

func (l *lieListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *lieListener) Close() error   { return nil }
func (l *lieListener) Addr() net.Addr { return &net.UnixAddr{} }

func goodHello() wire.Hello { return wire.Hello{Protocol: wire.Protocol, Version: "test"} }

// lie lets a liar live.
func lie(t *testing.T, socket string, setup, rest http.HandlerFunc) *liar {
	t.Helper()
	return lieOn(t, dialIn(t, socket), setup, rest)
}

// lieOn is lie on a connection that there is.
func lieOn(t *testing.T, conn net.Conn, setup, rest http.HandlerFunc) *liar {
	t.Helper()
	l := &liar{Conn: conn, paused: make(chan struct{}), beside: make(chan []int, 1)}
	if setup == nil {
		setup = func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(goodHello()) }
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathSetup {
			setup(w, r)
			return
		}
		rest(w, r)
	}
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(handler), Protocols: &only, ErrorLog: log.New(io.Discard, "", 0)}
	conns := make(chan net.Conn, 1)
	conns <- l
	go server.Serve(&lieListener{conns})
	t.Cleanup(func() { close(conns) })
	return l
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// endless writes what it is given for ever.
func endless(w io.Writer, piece string) {
	for {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

func TestHello_WhoCannotSayItIsRefusedAndAGoodGuestStillComes(t *testing.T) {
	answer := func(f func(w io.Writer)) func(t *testing.T, socket string) {
		return func(t *testing.T, socket string) {
			lie(t, socket, func(w http.ResponseWriter, _ *http.Request) { f(w) }, nil)
		}
	}
	raw := func(f func(c net.Conn)) func(t *testing.T, socket string) {
		return func(t *testing.T, socket string) { go f(dialIn(t, socket)) }
	}
	for name, hostile := range map[string]func(t *testing.T, socket string){
		"silence":    raw(func(net.Conn) {}),
		"hangs up":   raw(func(c net.Conn) { c.Close() }),
		"garbage":    raw(func(c net.Conn) { endless(c, "\x00\xff garbage \x07") }),
		"HTTP/1":     raw(func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\n\r\n") }),
		"big frame":  raw(func(c net.Conn) { c.Write([]byte{0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0}); endless(c, "aaaa") }),
		"headers":    raw(endlessHeaders),
		"empty JSON": answer(func(io.Writer) {}),
		"not JSON":   answer(func(w io.Writer) { io.WriteString(w, "<html>") }),
		"endless":    answer(func(w io.Writer) { endless(w, strings.Repeat(" ", 1000)) }),
		"slow":       answer(func(w io.Writer) { io.WriteString(w, "{"); w.(http.Flusher).Flush(); select {} }),
		"deep":       answer(func(w io.Writer) { io.WriteString(w, strings.Repeat("[", 900000)) }),
		"long name":  answer(func(w io.Writer) { fmt.Fprintf(w, `{"protocol":1,"user":%q}`, strings.Repeat("u", 5000)) }),
		"bad status": answer(func(w io.Writer) { w.(http.ResponseWriter).WriteHeader(500); endless(w, "problem ") }),
	} {
		t.Run(name, func(t *testing.T) {
			h, socket := quick(t)
			hostile(t, socket)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := h.Ready(ctx, "box"); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("got %v", err)
			}
			lie(t, socket, nil, nil)
			if err := h.Ready(within(t), "box"); err != nil {
				t.Fatalf("a good guest is kept out: %v", err)
			}
		})
	}
}

// endlessHeaders answers the first request with headers that have no end.
func endlessHeaders(c net.Conn) {
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
	for f.WriteContinuation(1, false, bytes.Repeat([]byte{0x00, 0x01, 'a', 0x01, 'b'}, 1000)) == nil {
	}
}

func TestHello_AnotherProtocolIsRefusedWithAClearMessage(t *testing.T) {
	h, socket := quick(t)
	lie(t, socket, func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(wire.Hello{Protocol: wire.Protocol + 1})
	}, nil)
	deadline := within(t)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := h.Ready(ctx, "box")
		cancel()
		if strings.Contains(fault.Message(err), "speaks version 2 of the link and this sandboxd version 1") {
			return
		}
		if deadline.Err() != nil {
			t.Fatalf("got %v", err)
		}
	}
}

func TestHello_SilenceIsToldAsSuch(t *testing.T) {
	h, socket := quick(t)
	dialIn(t, socket)
	deadline := within(t)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := h.Ready(ctx, "box")
		cancel()
		if strings.Contains(fault.Message(err), "did not answer in time") {
			return
		}
		if deadline.Err() != nil {
			t.Fatalf("got %v", err)
		}
	}
}

// session gives a live session with a liar.
func liarSession(t *testing.T, rest http.HandlerFunc) (*liar, *Session) {
	t.Helper()
	h, socket := quick(t)
	l := lie(t, socket, nil, rest)
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// lieTo is liarSession for a hub that there is, and a guest that has nothing to say.
func lieTo(t *testing.T, h *Hub, socket string) (*liar, *Session) {
	t.Helper()
	l := lie(t, socket, nil, func(http.ResponseWriter, *http.Request) {})
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

func awaitEnd(t *testing.T, s *Session) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the connection is kept")
	}
}

func TestSession_FloodingGuestIsDropped(t *testing.T) {
	frame := func(kind http2.FrameType, payload int) string {
		return string([]byte{byte(payload >> 16), byte(payload >> 8), byte(payload), byte(kind), 0, 0, 0, 0, 0}) +
			strings.Repeat("\x00", payload)
	}
	for name, flood := range map[string]string{
		"pings":          frame(http2.FramePing, 8),
		"settings":       frame(http2.FrameSettings, 0),
		"window updates": string([]byte{0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
		"unknown frames": frame(0xee, 16<<10),
	} {
		t.Run(name, func(t *testing.T) {
			l, s := liarSession(t, nil)
			go endless(l, flood)
			awaitEnd(t, s)
			if _, err := s.Terminals(within(t)); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSession_PingFloodIsDroppedWhileARequestIsInFlight(t *testing.T) {
	l, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c, err := s.DialPort(within(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go endless(l, string([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}))
	awaitEnd(t, s)
	if _, err := c.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestSession_GoodbyeEndsIt(t *testing.T) {
	l, s := liarSession(t, nil)
	http2.NewFramer(l, nil).WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
	awaitEnd(t, s)
}

func TestSession_SilenceCostsCallersTheirTimeAndNothingElse(t *testing.T) {
	h, socket := quick(t)
	l := lie(t, socket, nil, nil)
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	close(l.paused)
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			if _, err := s.Terminals(within(t)); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
		})
	}
	asking.Wait()
	if !s.alive() {
		t.Error("a guest that may just be frozen is dropped")
	}
	lie(t, socket, nil, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]") })
	awaitEnd(t, s)
	next, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Terminals(within(t)); err != nil {
		t.Error(err)
	}
}

func TestSession_WhatAnOlderGuestDoesNotKnowIsNotFound(t *testing.T) {
	_, s := liarSession(t, http.NotFound)
	if _, err := s.Terminals(within(t)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestExec_NonsenseFromTheGuestIsUnavailable(t *testing.T) {
	giant := []byte{byte(wire.FrameStdout), 0xff, 0xff, 0xff}
	for name, out := range map[string][]byte{
		"giant frame":    append(giant, bytes.Repeat([]byte{'x'}, 100)...),
		"unknown frame":  wire.AppendFrame(nil, 99, nil),
		"start frame":    wire.AppendFrame(nil, wire.FrameStart, []byte("{}")),
		"bad exit":       wire.AppendFrame(nil, wire.FrameExit, []byte{1, 2, 3, 4}),
		"no exit":        wire.AppendFrame(nil, wire.FrameStdout, []byte("x")),
		"half a frame":   {byte(wire.FrameStdout), 0, 0, 9, 'x'},
		"half a head":    {byte(wire.FrameStdout), 0},
		"nothing at all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { w.Write(out) })
			p, err := s.Exec(within(t), wire.ExecStart{Command: []string{"true"}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for err == nil {
				_, err = p.Next()
			}
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
			if !s.alive() {
				t.Error("one bad reply has cost the whole connection")
			}
		})
	}
}

func TestCall_NonsenseFromTheGuestIsUnavailable(t *testing.T) {
	tabs := func(n int) string { return "[" + strings.Repeat(`{"name":"a"},`, n-1) + `{"name":"a"}]` }
	for name, answer := range map[string]http.HandlerFunc{
		"never":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"not JSON":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") },
		"endless":       func(w http.ResponseWriter, _ *http.Request) { endless(w, "[[[[[[[[") },
		"too many":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tabs(wire.MaxTabs+1)) },
		"bad name":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[{"name":"../x"}]`) },
		"endless error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); endless(w, `{"code":`) },
		"odd error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302); io.WriteString(w, `{"code":"x"}`) },
		"big header":    func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) },
		"reset":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			_, s := liarSession(t, answer)
			_, err := s.Terminals(within(t))
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCall_TextFromTheGuestIsCleaned(t *testing.T) {
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(400)
			io.WriteString(w, `{"code":"invalid","message":"a\u001b[31m\u202eb\nc"}`)
			return
		}
		io.WriteString(w, `[{"name":"a","title":"\u001b]0;x\u0007y"}]`)
	})
	tabs, err := s.Terminals(within(t))
	if err != nil || tabs[0].Title != "]0;xy" {
		t.Errorf("got %+v, %v", tabs, err)
	}
	if err := s.CloseTerminal(within(t), "a"); fault.KindOf(err) != fault.Invalid || fault.Message(err) != "a[31mb c" {
		t.Errorf("got %v", err)
	}
}

func TestDialPort_NonsenseFromTheGuestBreaksTheConnection(t *testing.T) {
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(wire.AppendFrame(nil, wire.FrameData, []byte("ok")))
		w.Write(wire.AppendFrame(nil, wire.FrameExit, []byte{0, 0, 0, 0}))
	})
	c, err := s.DialPort(within(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if string(b) != "ok" || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestLinkDrop_BreaksEverythingInFlightAsUnavailable(t *testing.T) {
	l, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	p, err := s.Exec(within(t), wire.ExecStart{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.DialPort(within(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	l.Conn.Close()
	_, err = p.Next()
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Message(err), "was lost") {
		t.Errorf("exec: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("port: %v", err)
	}
	if _, err := s.Exec(within(t), wire.ExecStart{Command: []string{"true"}}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("new exec: %v", err)
	}
	if err := p.Signal("TERM"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("signal: %v", err)
	}
}

func TestSession_ManyStreamsWaitForRoomAndTheirCallersMayLeave(t *testing.T) {
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for range maxStreams {
		s.slots <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Terminals(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
