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

// mostCarried bounds the connections that wait for the link's next bytes. HTTP/2 writes nine at least at once, which carry
// nine times wire.MaxHandover.
const mostCarried = maxStreams

// carryPause is how long nothing is handed over after that has failed.
const carryPause = time.Minute

// carrier is the link's connection, which carries descriptors beside its bytes: a connection into the sandbox that
// sandboxd has itself costs nobody in here anything any more. Safe for concurrent use.
type carrier struct {
	net.Conn
	link *net.UnixConn // the same; nil when it cannot carry

	mu      sync.Mutex
	waiting []*net.TCPConn
	over    bool
	pause   time.Time // until when nothing is handed over
}

func newCarrier(conn net.Conn) *carrier {
	link, _ := conn.(*net.UnixConn)
	return &carrier{Conn: conn, link: link}
}

// hand hands conn over with the next bytes, and gives the number by which the kernel knows it. conn is the carrier's then.
// It is false when that cannot be done.
func (c *carrier) hand(conn net.Conn) (cookie uint64, ok bool) {
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
	if c.over || len(c.waiting) >= mostCarried || time.Now().Before(c.pause) {
		return 0, false
	}
	c.waiting = append(c.waiting, tcp)
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

// Write writes p, and beside it whatever is to be handed over.
func (c *carrier) Write(p []byte) (int, error) {
	c.mu.Lock()
	conns := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	defer closeAll(conns)
	written := 0
	for rest := conns; len(rest) > 0; {
		n := min(len(rest), wire.MaxHandover)
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

// rest hands nothing over for a while: sandboxd sees that something has not come, and does without. The kernel takes no more
// descriptors for now, or what poses as one takes none at all.
func (c *carrier) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = time.Now().Add(carryPause)
}

// send writes some of p, and the descriptors of conns beside its first byte.
func (c *carrier) send(p []byte, conns []*net.TCPConn) (int, error) {
	fds := make([]int, 0, len(conns))
	for _, conn := range conns {
		raw, err := conn.SyscallConn()
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

// Close ends the link and the connections that it did not hand over.
func (c *carrier) Close() error {
	c.mu.Lock()
	conns := c.waiting
	c.waiting, c.over = nil, true
	c.mu.Unlock()
	closeAll(conns)
	return c.Conn.Close()
}

func closeAll(conns []*net.TCPConn) {
	for _, conn := range conns {
		conn.Close()
	}
}
