package link

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// lingering gives the descriptors of n sockets whose last close takes an hour, and those of their peers, which never read.
func lingering(t *testing.T, n int) (fds, peers []int) {
	t.Helper()
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(l)
	_ = syscall.SetsockoptInt(l, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048)
	_ = syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	_ = syscall.Listen(l, n)
	at, err := syscall.Getsockname(l)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, 4096)
		if err := syscall.Connect(fd, at); err != nil {
			t.Fatal(err)
		}
		peer, _, err := syscall.Accept(l)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = syscall.SendmsgN(fd, make([]byte, 64<<10), nil, nil, syscall.MSG_DONTWAIT)
		}
		_ = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 3600})
		fds, peers = append(fds, fd), append(peers, peer)
	}
	return fds, peers
}

// trap sends lingering sockets and their peers over conn, and keeps none: nothing but what has them can end them. Nobody may
// be there any more to send them to.
func trap(t *testing.T, conn net.Conn) {
	t.Helper()
	a, ends := lingering(t, 8)
	b, others := lingering(t, 8)
	var all []int
	for i := range a {
		all = append(all, a[i], ends[i], others[i], b[i])
	}
	_, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte{0, 0, 0, 0xee, 0, 0, 0, 0, 0}, syscall.UnixRights(all...), nil)
	for _, fd := range all {
		if err != nil { // then these are the last ones
			dropUnsent(fd)
		}
		_ = syscall.Close(fd)
	}
}

// prompt fails when f waits for what a guest has made linger, which is an hour.
func prompt(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s takes longer than a guest may make it", what)
	}
}

// open counts the files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// falls waits until no more files are open than there were.
func falls(t *testing.T, before int) {
	t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		now := openFiles(t)
		if now <= before {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d files are open, before it were %d", now, before)
		}
	}
}

func TestClose_WhatWaitsInTheBacklogHoldsUpNobody(t *testing.T) {
	h, socket := quick(t)
	h.pace.accepts, h.pace.acceptMax = 0.01, 1
	folder, err := h.Expect("slow", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	first := dialIn(t, filepath.Join(folder, wire.SocketName)) // the only one that is accepted for now
	second := dialIn(t, filepath.Join(folder, wire.SocketName))
	trap(t, second)
	second.Close()
	first.Close()
	prompt(t, "forgetting", func() { _ = h.Forget("slow") })
	prompt(t, "expecting another", func() { _, _ = h.Expect("third", wire.Setup{}) })
	_ = socket
	falls(t, before)
}

func TestClose_WhatWaitsInTheLinkHoldsUpNobody(t *testing.T) {
	h, socket := quick(t)
	before := openFiles(t)
	l, s := lieTo(t, h, socket)
	l.mu.Lock()
	trap(t, l.Conn) // begins with a frame of a strange kind: sandboxd hangs up
	trap(t, l.Conn)
	l.mu.Unlock()
	awaitEnd(t, s)
	l.Close()
	prompt(t, "the end of the session", s.wait)
	prompt(t, "expecting it anew", func() { _, _ = h.Expect("box", wire.Setup{}) })
	prompt(t, "expecting another", func() { _, _ = h.Expect("other", wire.Setup{}) })
	prompt(t, "forgetting", func() { _ = h.Forget("box"); _ = h.Forget("other") })
	falls(t, before)
}

func TestClose_AGuestThatComesAgainAndAgainLeavesNothing(t *testing.T) {
	_, socket := quick(t)
	before := openFiles(t)
	for range 20 {
		c := dialIn(t, socket)
		trap(t, c)
		c.Close()
	}
	falls(t, before)
}

func TestCloser_NothingNewComesWhileACloseIsHeldUp(t *testing.T) {
	h, socket := quick(t)
	b := h.box("box")
	held := make(chan struct{})
	b.closer.later(func() { <-held })
	for late := time.Now().Add(patience); !b.closer.stuck(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("it is not seen to be held up")
		}
	}
	_ = dialIn(t, socket) // accepted: the hub was waiting already
	l := lie(t, socket, nil, nil)
	prompt(t, "expecting another", func() { _, _ = h.Expect("other", wire.Setup{}) })
	b.mu.Lock()
	live := b.session != nil && b.session.alive()
	b.mu.Unlock()
	if live {
		t.Error("it has come")
	}
	close(held)
	if _, err := h.Session(within(t), "box"); err != nil {
		t.Error(err)
	}
	l.Close()
}

func TestBacklog_WhatAProgramHasLeftThereHoldsUpNobodyForLong(t *testing.T) {
	h, _ := quick(t)
	h.pace.accepts, h.pace.acceptMax = 20, 2
	folder, err := h.Expect("slow", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, wire.SocketName)
	for range 3000 {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
		}
	}
	conn, err := net.Dial("unix", socket)
	for late := time.Now().Add(patience); err != nil && time.Now().Before(late); conn, err = net.Dial("unix", socket) {
		<-time.After(50 * time.Millisecond) // as a guest does
	}
	if err != nil {
		t.Fatal(err)
	}
	lieOn(t, conn, nil, nil)
	if _, err := h.Session(within(t), "slow"); err != nil {
		t.Error(err)
	}
}
