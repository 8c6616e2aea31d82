package link

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// pair is a TCP connection: the end that a guest passes, which it has a descriptor of, and its peer's.
type pair struct {
	ours *os.File
	peer *net.TCPConn
}

func newPair(t *testing.T) pair {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	file, err := ours.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close(); peer.Close() })
	return pair{file, peer.(*net.TCPConn)}
}

func (p pair) fd() int { return int(p.ours.Fd()) }

// cookie is the number by which the kernel knows the guest's end.
func (p pair) cookie(t *testing.T) string {
	t.Helper()
	n, err := unix.GetsockoptUint64(p.fd(), unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(n, 10)
}

// passing is a session with a guest that answers each CONNECT with the next of replies.
func passing(t *testing.T) (l *liar, s *Session, replies chan func(w http.ResponseWriter)) {
	t.Helper()
	replies = make(chan func(http.ResponseWriter), 1)
	l, s = liarSession(t, func(w http.ResponseWriter, _ *http.Request) { (<-replies)(w) })
	return l, s, replies
}

func numbered(number string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.Header().Set(wire.DescriptorHeader, number) }
}

// handedOver gives a connection whose socket the guest has kept, too.
func handedOver(t *testing.T) (*Session, net.Conn, pair) {
	t.Helper()
	p := newPair(t)
	l, s, replies := passing(t)
	l.beside <- []int{p.fd()}
	replies <- numbered(p.cookie(t))
	c, err := s.DialPort(within(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.(*passedConn); !ok {
		t.Fatalf("the connection is a %T", c)
	}
	return s, c, p
}

func TestDescriptors_IsTheConnectionItself(t *testing.T) {
	_, c, p := handedOver(t)
	say(t, c, "ping")
	hear(t, p.peer, "ping")
	say(t, p.peer, "pong")
	hear(t, c, "pong")
	if err := c.(*passedConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(p.peer); len(b) > 0 || err != nil {
		t.Fatalf("got %q, %v", b, err)
	}
	say(t, p.peer, "last")
	p.peer.Close()
	if b, err := io.ReadAll(c); string(b) != "last" || err != nil {
		t.Fatalf("got %q, %v", b, err)
	}
	c.Close()
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestDescriptors_WhatIsNoTCPConnectionIsRefused(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { r.Close(); w.Close() }()
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{sockets[0], sockets[1], udp} {
		defer syscall.Close(fd)
	}
	good := newPair(t)
	number := func(fd int) string {
		n, _ := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		return strconv.FormatUint(n, 10)
	}
	for name, lied := range map[string]struct {
		fds    []int
		number string
	}{
		"a pipe":           {[]int{int(r.Fd())}, "0"},
		"a unix socket":    {[]int{sockets[0]}, number(sockets[0])},
		"a UDP socket":     {[]int{udp}, number(udp)},
		"another one":      {[]int{good.fd()}, "1"},
		"nothing":          {nil, good.cookie(t)},
		"a negative one":   {nil, "-1"},
		"no number at all": {nil, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			l, s, replies := passing(t)
			if lied.fds != nil {
				l.beside <- lied.fds
			}
			replies <- func(w http.ResponseWriter) {
				replies <- func(http.ResponseWriter) {} // the next one is a stream
				numbered(lied.number)(w)
			}
			c, err := s.DialPort(within(t), 80)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, ok := c.(*passedConn); ok {
				t.Error("it is taken over")
			}
			if s.descriptors.reserve() {
				t.Error("more is asked for at once")
			}
			if n := len(s.descriptors.room); n > 0 {
				t.Errorf("room is taken: %d", n)
			}
		})
	}
}

// The guest shares the socket. It may have calls block that do not block otherwise.
func TestDescriptors_NothingBlocksOnWhatTheGuestDoesToTheSocket(t *testing.T) {
	s, c, p := handedOver(t)
	fd := p.fd()
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 3600}); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read gave %v", err)
	}
	c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) { // the peer does not read
		t.Errorf("a write gave %v", err)
	}
	p.ours.Close() // ours is the last descriptor now, of a socket that lingers
	began := time.Now()
	c.Close()
	s.drop(errDropped)
	s.wait()
	if took := time.Since(began); took > patience {
		t.Errorf("to close it took %v", took)
	}
}

func TestDescriptors_EndsWithTheLink(t *testing.T) {
	s, c, p := handedOver(t)
	p.ours.Close()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		failed <- err
	}()
	s.drop(errDropped)
	if err := <-failed; !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Write([]byte("x")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	p.peer.SetReadDeadline(time.Now().Add(patience))
	if _, err := p.peer.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("its other side got %v", err)
	}
}

func TestDescriptors_WhatNobodyClaimsIsClosed(t *testing.T) {
	p := newPair(t)
	l, s, _ := passing(t)
	l.beside <- []int{p.fd()}
	p.peer.SetReadDeadline(time.Now().Add(patience))
	// Any bytes of the guest's carry it; the head of its reply comes with them.
	if _, err := s.Terminals(within(t)); err == nil {
		t.Error("nonsense is believed")
	}
	p.ours.Close()
	if _, err := p.peer.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // closed, or reset
		t.Errorf("its other side got %v", err)
	}
}

func TestDescriptors_FloodEndsTheLink(t *testing.T) {
	l, s, replies := passing(t)
	for range 2 {
		fds := make([]int, wire.MaxDescriptors)
		for i := range fds {
			fds[i] = newPair(t).fd()
		}
		l.beside <- fds
		replies <- func(http.ResponseWriter) {}
		s.Terminals(within(t)) // any bytes of the guest's carry them
	}
	awaitEnd(t, s)
	s.descriptors.mu.Lock()
	defer s.descriptors.mu.Unlock()
	if n := len(s.descriptors.parked); n > 0 {
		t.Errorf("%d descriptors are kept", n)
	}
}

// TestDescriptors_ThatComeFasterThanTheyAreClosedEndTheLink passes one that nobody keeps again and again.
func TestDescriptors_ThatComeFasterThanTheyAreClosedEndTheLink(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { r.Close(); w.Close() }()
	before := openFiles(t)
	l, s, replies := passing(t)
	held := make(chan struct{})
	s.descriptors.closer.later(func() { <-held })
	for range maxClosing/wire.MaxDescriptors + 1 {
		l.beside <- slices.Repeat([]int{int(r.Fd())}, wire.MaxDescriptors)
		replies <- func(http.ResponseWriter) {}
		s.Terminals(within(t)) // any bytes of the guest's carry them
	}
	awaitEnd(t, s)
	if n := openFiles(t) - before; n > maxClosing+2*wire.MaxDescriptors {
		t.Errorf("%d descriptors are kept", n)
	}
	close(held)
	falls(t, before+20) // the link's own, which other tests see to
}
