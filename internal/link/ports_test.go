package link_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// bothWays runs a test with connections that the guest passes, and with streams of the link.
func bothWays(t *testing.T, test func(t *testing.T, s *link.Session)) {
	t.Helper()
	t.Run("passed", func(t *testing.T) { test(t, connect(t, wire.Setup{})) })
	t.Run("through the link", func(t *testing.T) {
		s := connect(t, wire.Setup{})
		s.TakeNothing()
		test(t, s)
	})
}

func TestDialPort_ReachesALoopbackListenerAndKeepsHalfOpen(t *testing.T) {
	bothWays(t, testReachesALoopbackListenerAndKeepsHalfOpen)
}

func testReachesALoopbackListenerAndKeepsHalfOpen(t *testing.T, s *link.Session) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(host, func(t *testing.T) {
			l, err := net.Listen("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() { // sends first, ends its side, and then reads to the end
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				c.Write([]byte("hello"))
				c.(*net.TCPConn).CloseWrite()
				b, _ := io.ReadAll(c)
				back, err := net.Dial("tcp", string(b))
				if err == nil {
					back.Close()
				}
			}()
			c, err := s.DialPort(testContext(t), l.Addr().(*net.TCPAddr).Port)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
				t.Fatalf("got %q, %v", b, err)
			}
			echo, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer echo.Close()
			c.Write([]byte(echo.Addr().String())) // after the end of the other direction, and closed at once
			c.Close()
			echo.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
			if _, err := echo.Accept(); err != nil {
				t.Fatalf("what was written after the other side's end got lost: %v", err)
			}
		})
	}
}

func TestDialPort_NothingListens(t *testing.T) {
	bothWays(t, testNothingListens)
}

func testNothingListens(t *testing.T, s *link.Session) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	_, err = s.DialPort(testContext(t), port)
	if !errors.Is(err, link.ErrNothingListens) || fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := s.DialPort(testContext(t), 70000); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestDialPort_DeadlinePassesAndTheConnectionGoesOn(t *testing.T) {
	bothWays(t, testDeadlinePassesAndTheConnectionGoesOn)
}

func testDeadlinePassesAndTheConnectionGoesOn(t *testing.T, s *link.Session) {
	c := dialEcho(t, s)
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	c.SetReadDeadline(time.Time{})
	c.Write([]byte("x"))
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil || b[0] != 'x' {
		t.Errorf("got %q, %v", b, err)
	}
}

// dialEcho connects through the link to a server that sends everything back.
func dialEcho(t *testing.T, s *link.Session) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serveEcho(l)
	c, err := s.DialPort(testContext(t), l.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func serveEcho(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.Copy(c, c)
		}()
	}
}

func TestDialPort_ManyConnectionsThatStandStillDoNotStopOthers(t *testing.T) {
	bothWays(t, testManyConnectionsThatStandStillDoNotStopOthers)
}

func testManyConnectionsThatStandStillDoNotStopOthers(t *testing.T, s *link.Session) {
	for range 40 {
		c := dialEcho(t, s)
		go c.Write(make([]byte, 8<<20)) // never read back; ends with the connection
	}
	c := dialEcho(t, s)
	c.Write([]byte("ping"))
	b := make([]byte, 4)
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
		t.Errorf("got %q, %v", b, err)
	}
}
