package guest

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// unixPair gives both ends of a unix connection.
func unixPair(t *testing.T) (dialled, accepted *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err = l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// tcpPair gives both ends of a connection to l.
func tcpPair(t *testing.T, l net.Listener) (dialled, accepted net.Conn) {
	t.Helper()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// readBeside reads to the end: bytes, and the descriptors beside them.
func readBeside(t *testing.T, conn *net.UnixConn) (came []byte, fds []int) {
	t.Helper()
	for {
		b, beside := make([]byte, 64), make([]byte, syscall.CmsgSpace(4*wire.MaxDescriptors))
		n, nBeside, flags, _, err := conn.ReadMsgUnix(b, beside)
		if errors.Is(err, io.EOF) {
			return came, fds
		}
		if err != nil || flags&syscall.MSG_CTRUNC != 0 {
			t.Fatalf("read: %v, flags %x", err, flags)
		}
		came = append(came, b[:n]...)
		messages, err := syscall.ParseSocketControlMessage(beside[:nBeside])
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			some, err := syscall.ParseUnixRights(&messages[i])
			if err != nil {
				t.Fatal(err)
			}
			fds = append(fds, some...)
		}
	}
}

func TestDescriptors_PassesMoreThanOneMessageTakesAndKeepsTheBytes(t *testing.T) {
	ours, theirs := unixPair(t)
	c := newDescriptorConn(ours)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const many = wire.MaxDescriptors + 20
	var peers []net.Conn
	var cookies []uint64
	for i := range many {
		conn, peer := tcpPair(t, l)
		peers = append(peers, peer)
		cookie, ok := c.pass(conn, nil)
		if !ok {
			t.Fatalf("number %d is not passed", i)
		}
		cookies = append(cookies, cookie)
	}
	const text = "nine bytes and more"
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if _, err := c.Write([]byte(" and nothing beside")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	came, fds := readBeside(t, theirs)
	if string(came) != text+" and nothing beside" || len(fds) != many {
		t.Fatalf("%q came, and %d descriptors", came, len(fds))
	}
	for i, fd := range fds { // in their order, and the guest has kept none
		if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); cookie != cookies[i] || err != nil {
			t.Errorf("number %d is %d and not %d, %v", i, cookie, cookies[i], err)
		}
		if _, err := syscall.Write(fd, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		syscall.Close(fd)
		if b, err := io.ReadAll(peers[i]); len(b) != 1 || b[0] != byte(i) || err != nil {
			t.Fatalf("number %d: got %v, %v", i, b, err)
		}
	}
}

func TestDescriptors_ClosesWhatItDidNotPass(t *testing.T) {
	ours, _ := unixPair(t)
	c := newDescriptorConn(ours)
	near, far := net.Pipe()
	defer far.Close()
	if _, ok := c.pass(near, nil); ok {
		t.Error("a pipe is passed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, peer := tcpPair(t, l)
	if _, ok := c.pass(conn, nil); !ok {
		t.Fatal("it is not passed")
	}
	c.Close()
	if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("its other side got %v", err)
	}
	if _, ok := c.pass(conn, nil); ok {
		t.Error("a link that has ended takes connections")
	}
}

func TestDescriptors_WhoAsksHearsWhetherItWasPassedAndHasItBackWhenNot(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, theirs := unixPair(t)
	c := newDescriptorConn(ours)
	told := make(chan bool, 2)
	conn, _ := tcpPair(t, l)
	if _, ok := c.pass(conn, told); !ok {
		t.Fatal("it is not passed")
	}
	if _, err := c.Write([]byte("x")); err != nil || !<-told {
		t.Fatalf("it was not passed, %v", err)
	}
	kept, peer := tcpPair(t, l)
	if _, ok := c.pass(kept, told); !ok {
		t.Fatal("it is not passed")
	}
	c.Close()
	if <-told {
		t.Error("a link that has ended has passed it")
	}
	if _, err := kept.Write([]byte("y")); err != nil {
		t.Errorf("it is closed: %v", err)
	}
	if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	kept.Close()
	_, fds := readBeside(t, theirs)
	for _, fd := range fds {
		syscall.Close(fd)
	}
}
