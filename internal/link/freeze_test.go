package link

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// freezer stops one end of a connection, as the kernel stops a frozen guest: what is sent to it waits.
type freezer struct {
	mu     sync.Mutex
	change *sync.Cond
	frozen bool
}

func newFreezer() *freezer {
	f := &freezer{}
	f.change = sync.NewCond(&f.mu)
	return f
}

func (f *freezer) set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = frozen
	f.change.Broadcast()
}

// channel is one direction of a connection, with room for everything.
type channel struct {
	*freezer
	buf    []byte
	closed bool
}

// end is one end of a connection. It has no deadlines.
type end struct {
	in, out *channel
	guest   bool // stands still while frozen
}

func (e *end) Read(p []byte) (int, error) {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	for (e.guest && e.in.frozen || len(e.in.buf) == 0) && !e.in.closed {
		e.in.change.Wait()
	}
	if len(e.in.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.in.buf)
	e.in.buf = e.in.buf[n:]
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	for e.guest && e.out.frozen && !e.out.closed {
		e.out.change.Wait()
	}
	if e.out.closed {
		return 0, net.ErrClosed
	}
	e.out.buf = append(e.out.buf, p...)
	e.out.change.Broadcast()
	return len(p), nil
}

func (e *end) Close() error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.closed, e.out.closed = true, true
	e.in.change.Broadcast()
	return nil
}

func (e *end) LocalAddr() net.Addr              { return address("end") }
func (e *end) RemoteAddr() net.Addr             { return address("end") }
func (e *end) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (e *end) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (e *end) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// frozenWorld runs f with a session in fake time, and with what freezes its guest, which echoes what is dialled.
func frozenWorld(t *testing.T, f func(t *testing.T, s *Session, z *freezer)) {
	synctest.Test(t, func(t *testing.T) {
		z := newFreezer()
		one, other := &channel{freezer: z}, &channel{freezer: z}
		ours, theirs := &end{in: one, out: other}, &end{in: other, out: one, guest: true}
		var only http.Protocols
		only.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: http.HandlerFunc(echoGuest), Protocols: &only, IdleTimeout: -1,
			ErrorLog: log.New(io.Discard, "", 0)}
		conns := make(chan net.Conn, 1)
		conns <- theirs
		var serving sync.WaitGroup
		serving.Go(func() { server.Serve(&lieListener{conns}) })
		s, err := open(t.Context(), "box", ours, terms{text: []byte("{}")}, defaultPace)
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, z)
		s.drop(errDropped)
		s.wait()
		z.set(false)
		theirs.Close()
		close(conns)
		serving.Wait()
	})
}

func echoGuest(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == wire.PathSetup:
		json.NewEncoder(w).Encode(goodHello())
	case r.Method == http.MethodConnect:
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		buf := make([]byte, 1000)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				w.Write(wire.AppendFrame(nil, wire.FrameData, buf[:n]))
				w.(http.Flusher).Flush()
			}
			if err != nil {
				return
			}
		}
	default:
		io.WriteString(w, "[]")
	}
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("got %q, %v", b, err)
	}
}

func TestFreeze_OfDaysEndsNoConnection(t *testing.T) {
	frozenWorld(t, func(t *testing.T, s *Session, z *freezer) {
		c, err := s.DialPort(t.Context(), 80)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		say(t, c, "before")
		hear(t, c, "before")
		z.set(true)
		say(t, c, "in the freeze")
		<-time.After(48 * time.Hour)
		if !s.alive() {
			t.Fatalf("the connection was given up: %v", s.conn.why())
		}
		z.set(false)
		hear(t, c, "in the freeze")
		say(t, c, "after")
		hear(t, c, "after")
		if _, err := s.Terminals(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFreeze_CallsFailByTheirOwnDeadlinesAndAreForgotten(t *testing.T) {
	frozenWorld(t, func(t *testing.T, s *Session, z *freezer) {
		z.set(true)
		for range 3000 { // more than there may be streams
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			_, err := s.Terminals(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("got %v", err)
			}
			if d := time.Since(began); d > time.Second {
				t.Fatalf("took %v", d)
			}
		}
		if _, err := s.DialPort(t.Context(), 80); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a call without a deadline: %v", err)
		}
		if n := s.client.InFlight(); n > maxPending {
			t.Errorf("%d requests are kept for a guest that does not answer", n)
		}
		if !s.alive() {
			t.Fatalf("the connection was given up: %v", s.conn.why())
		}
		z.set(false)
		synctest.Wait()
		if _, err := s.Terminals(t.Context()); err != nil {
			t.Errorf("after the thaw: %v", err)
		}
		synctest.Wait()
		if n := s.client.InFlight(); n != 0 {
			t.Errorf("%d requests are in flight", n)
		}
	})
}
