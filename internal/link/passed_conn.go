package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedConn is a connection that the guest has made and passed: a TCP socket in the sandbox's own network. The guest may
// have kept a descriptor of it, by which it can do whatever a socket's owner can; so nothing here relies on the socket not
// to block.
type passedConn struct {
	session *transport
	address address
	tcp     *net.TCPConn
	raw     syscall.RawConn

	mu    sync.Mutex
	calls int           // in progress
	over  error         // what calls give from then on; nil while it is open
	left  chan struct{} // closed when it is over and no call is in progress
}

// adopt makes a connection of the descriptor whose socket has that number, which must be a TCP connection; errEmpty when
// it is not. The room that is reserved for it is the connection's then.
func (s *transport) adopt(number string, to address) (net.Conn, error) {
	cookie, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, s.descriptors.rest(err)
	}
	fd, ok := s.descriptors.claim(cookie)
	if !ok {
		return nil, s.descriptors.rest(fmt.Errorf("number %d has not come", cookie))
	}
	tcp, err := s.descriptors.connection(fd)
	if err != nil {
		return nil, s.descriptors.rest(err)
	}
	c := &passedConn{session: s, address: to, tcp: tcp, left: make(chan struct{})}
	if c.raw, err = tcp.SyscallConn(); err == nil && !s.begin(c.last) {
		err = s.failed(context.Background(), errDropped)
	}
	if err != nil {
		s.descriptors.closer.later(func() { tcp.Close() })
		return nil, err
	}
	return c, nil
}

// connection makes one of a descriptor, which is its own or discarded then.
func (d *descriptorConn) connection(fd int) (*net.TCPConn, error) {
	if err := checkTCP(fd); err != nil {
		d.closer.discard(fd)
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "passed")
	conn, err := net.FileConn(file) // has a descriptor of its own
	d.closer.later(func() { file.Close() })
	if err != nil {
		return nil, fmt.Errorf("take over connection: %w", err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		d.closer.later(func() { conn.Close() })
		return nil, fmt.Errorf("take over connection: it is a %T", conn)
	}
	return tcp, nil
}

// checkTCP refuses a descriptor that is no TCP socket.
func checkTCP(fd int) error {
	domain, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_DOMAIN)
	if err == nil && domain != syscall.AF_INET && domain != syscall.AF_INET6 {
		err = fmt.Errorf("it is of family %d", domain)
	}
	for option, want := range map[int]int{syscall.SO_TYPE: syscall.SOCK_STREAM, syscall.SO_PROTOCOL: syscall.IPPROTO_TCP} {
		have, optErr := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, option)
		if optErr == nil && have != want {
			optErr = fmt.Errorf("its option %d is %d", option, have)
		}
		err = errors.Join(err, optErr)
	}
	// A protocol on top of TCP (kernel TLS) has locks that its other owner can hold for as long as it likes.
	if above, ulpErr := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP); ulpErr == nil && above != "" {
		err = errors.Join(err, fmt.Errorf("it speaks %q", above))
	}
	if err != nil {
		return fmt.Errorf("the guest has passed something else than a TCP connection: %w", err)
	}
	return nil
}

// last lets the connection live until it is closed or the session ends.
func (c *passedConn) last() {
	select {
	case <-c.left:
	case <-c.session.done:
		c.finish(c.session.failed(context.Background(), errDropped))
	}
	c.session.descriptors.closer.later(func() {
		<-c.left
		_ = c.raw.Control(func(fd uintptr) { dropIfLingering(int(fd)) }) // fails only on a closed socket
		c.tcp.Close()
		c.session.descriptors.release()
	})
}

// begin begins a call that uses the socket; end ends it.
func (c *passedConn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.calls++
	}
	return c.over
}

func (c *passedConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.over != nil && c.calls == 0 {
		close(c.left)
	}
}

// move calls f whenever the socket may be ready, until it does not say EAGAIN.
func (c *passedConn) move(when func(func(uintptr) bool) error, f func(fd int) (int, error)) (n int, err error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	defer c.end()
	if waitErr := when(func(fd uintptr) bool {
		for {
			if n, err = f(int(fd)); err != syscall.EINTR {
				return err != syscall.EAGAIN
			}
		}
	}); waitErr != nil {
		return 0, c.why(waitErr)
	}
	if err != nil {
		return 0, c.why(err)
	}
	return n, nil
}

// Read reads what the other side sent. After its end it gives io.EOF, after a break of the link an Unavailable fault.
func (c *passedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.move(c.raw.Read, func(fd int) (int, error) {
		n, _, err := syscall.Recvfrom(fd, p, syscall.MSG_DONTWAIT)
		return n, err
	})
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write writes; it blocks while the other side does not read.
func (c *passedConn) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := c.move(c.raw.Write, func(fd int) (int, error) {
			return syscall.SendmsgN(fd, p[written:], nil, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		})
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// why gives the cause of an error: the end of the link comes before what followed from it.
func (c *passedConn) why(err error) error {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	var number syscall.Errno
	switch {
	case over != nil:
		return over
	case !c.session.alive():
		return c.session.failed(context.Background(), err)
	case errors.As(err, &number):
		return fmt.Errorf("%w in the sandbox", number)
	}
	return err
}

// finish ends both directions. Calls give err from then on.
func (c *passedConn) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return
	}
	c.over = err
	if c.calls == 0 {
		close(c.left)
	}
	_ = c.tcp.SetDeadline(time.Unix(1, 0)) // ends the calls in progress
}

// Close ends both directions. Written data still arrives.
func (c *passedConn) Close() error {
	c.finish(net.ErrClosed)
	return nil
}

// CloseWrite ends sending; reading continues.
func (c *passedConn) CloseWrite() error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.end()
	var err error
	if ctlErr := c.raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); ctlErr != nil {
		err = ctlErr
	}
	if err != nil {
		return c.why(err)
	}
	return nil
}

func (c *passedConn) LocalAddr() net.Addr  { return address("sandboxd") }
func (c *passedConn) RemoteAddr() net.Addr { return c.address }

func (c *passedConn) SetDeadline(t time.Time) error      { return c.until(c.tcp.SetDeadline, t) }
func (c *passedConn) SetReadDeadline(t time.Time) error  { return c.until(c.tcp.SetReadDeadline, t) }
func (c *passedConn) SetWriteDeadline(t time.Time) error { return c.until(c.tcp.SetWriteDeadline, t) }

// until sets a deadline, unless the one of Close is set.
func (c *passedConn) until(set func(time.Time) error, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return c.over
	}
	return set(t)
}
