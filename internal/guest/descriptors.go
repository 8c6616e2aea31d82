package guest

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// maxWaiting bounds the connections that wait for the link's next bytes. HTTP/2 writes nine at least at once, which carry
// nine times wire.MaxDescriptors.
const maxWaiting = maxStreams

// passPause is how long nothing is passed after that has failed.
const passPause = time.Minute

// descriptorConn is the link's connection, which carries descriptors beside its bytes: a connection into the sandbox
// whose descriptor sandboxd has costs the guest nothing any more. Safe for concurrent use.
type descriptorConn struct {
	net.Conn
	link *net.UnixConn // the same; nil when it cannot carry

	mu      sync.Mutex
	waiting []passing
	over    bool
	pause   time.Time // until when nothing is passed
}

// passing is a connection that is to be passed.
type passing struct {
	conn *net.TCPConn
	told chan<- bool // hears, without waiting, whether it was passed; nil when a connection that was not is closed
}

// over ends the passing of all in l.
func over(l []passing, passed bool) {
	for _, p := range l {
		if passed || p.told == nil {
			p.conn.Close()
		}
		if p.told != nil {
			p.told <- passed
		}
	}
}

func newDescriptorConn(conn net.Conn) *descriptorConn {
	link, _ := conn.(*net.UnixConn)
	return &descriptorConn{Conn: conn, link: link}
}

// pass passes conn with the next bytes, and gives the number by which the kernel knows it. conn is c's then.
// It is false when that cannot be done. With told, which has room for it, the caller hears whether conn was passed, and
// has it back when it was not.
func (c *descriptorConn) pass(conn net.Conn, told chan<- bool) (cookie uint64, ok bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok || c.link == nil {
		return 0, false
	}
	cookie, err := cookieOf(tcp)
	if err != nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || len(c.waiting) >= maxWaiting || time.Now().Before(c.pause) {
		return 0, false
	}
	c.waiting = append(c.waiting, passing{tcp, told})
	return cookie, true
}

func cookieOf(conn *net.TCPConn) (cookie uint64, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	ctlErr := raw.Control(func(fd uintptr) { cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE) })
	return cookie, errors.Join(ctlErr, err)
}

// Write writes p, and beside it the descriptors in the queue.
func (c *descriptorConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	conns := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	rest := conns
	defer func() {
		over(conns[:len(conns)-len(rest)], true)
		over(rest, false)
	}()
	written := 0
	for len(rest) > 0 {
		n := min(len(rest), wire.MaxDescriptors)
		piece := p[written:]
		if n < len(rest) {
			piece = piece[:1]
		}
		sent, err := c.send(piece, rest[:n])
		written += sent
		if err != nil && sent == 0 {
			c.rest()
			break
		}
		if err != nil {
			return written, err
		}
		rest = rest[n:]
	}
	if written == len(p) && written > 0 {
		return written, nil
	}
	n, err := c.Conn.Write(p[written:])
	return written + n, err
}

// rest passes nothing for a while: sandboxd sees that something has not come, and does without. The kernel takes no more
// descriptors for now, or one that emulates Linux takes none at all.
func (c *descriptorConn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = time.Now().Add(passPause)
}

// send writes some of p, and the descriptors of conns beside its first byte.
func (c *descriptorConn) send(p []byte, conns []passing) (int, error) {
	fds := make([]int, 0, len(conns))
	for _, p := range conns {
		raw, err := p.conn.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }) // open until it has been sent
		}
		if err != nil {
			return 0, err
		}
	}
	n, _, err := c.link.WriteMsgUnix(p, syscall.UnixRights(fds...), nil)
	if err == nil && n == 0 {
		err = errors.New("nothing was written")
	}
	return max(n, 0), err
}

// ended reports whether the link has ended.
func (c *descriptorConn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Close ends the link and the connections that it did not pass.
func (c *descriptorConn) Close() error {
	c.mu.Lock()
	conns := c.waiting
	c.waiting, c.over = nil, true
	c.mu.Unlock()
	over(conns, false)
	return c.Conn.Close()
}
