package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

const (
	// maxPassed bounds the connections of one sandbox that its guest has passed to us. More go through the link.
	maxPassed = 256
	// maxClosing bounds what of one sandbox waits to be closed, before its guest may pass more.
	maxClosing = 2 * maxPassed
	// passPause is how long nothing is asked to be passed after it did not come.
	passPause = time.Minute
)

// descriptorConn is a guest's connection, beside whose bytes descriptors come: connections into the sandbox that the guest has made
// for us. They are known by the number that the kernel gives each socket. Safe for concurrent use, with one reader.
type descriptorConn struct {
	*net.UnixConn
	closer *closer
	beside []byte        // what came beside the bytes; touched by the one reader only
	room   chan struct{} // taken by each connection that is asked for, or passed and open

	mu     sync.Mutex
	parked map[uint64]int // come and not claimed
	pause  time.Time      // until when no more are asked for
	over   bool
}

func newDescriptorConn(conn *net.UnixConn, c *closer) *descriptorConn {
	return &descriptorConn{UnixConn: conn, closer: c, beside: make([]byte, syscall.CmsgSpace(wire.MaxDescriptors*4)),
		room: make(chan struct{}, maxPassed), parked: map[uint64]int{}}
}

// Read reads bytes, and keeps what came beside them.
func (d *descriptorConn) Read(p []byte) (int, error) {
	n, beside, _, _, err := d.ReadMsgUnix(p, d.beside)
	if beside > 0 {
		if strange := d.keep(d.beside[:beside]); strange != nil {
			return 0, strange
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF // bare, as every other reader gives it
	}
	return max(n, 0), err
}

// keep parks descriptors until they are claimed, or nobody wants them any more. Too many end the connection, also when they
// come faster than they can be closed.
func (d *descriptorConn) keep(beside []byte) error {
	fds, err := rights(beside)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.parked)+len(fds) > maxPassed || d.closer.waiting()+len(fds) > maxClosing {
		err = errors.Join(err, errFlood)
	}
	for _, fd := range fds {
		cookie, cookieErr := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		if _, twice := d.parked[cookie]; twice || cookieErr != nil || err != nil || d.over {
			d.closer.discard(fd)
			continue
		}
		d.parked[cookie] = fd
		time.AfterFunc(linger, func() { // its dial has been given up
			if fd, ok := d.claim(cookie); ok {
				d.closer.discard(fd)
			}
		})
	}
	return err
}

// reserve takes the room of a connection that is to be passed. It is false when there is none, or nothing gets here.
func (d *descriptorConn) reserve() bool {
	if d == nil || d.closer.stuck() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || time.Now().Before(d.pause) {
		return false
	}
	select {
	case d.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// release gives the room back.
func (d *descriptorConn) release() { <-d.room }

// errEmpty says that the descriptor did not come, or was something else.
var errEmpty = errors.New("no connection was passed")

// claim gives a parked descriptor, once.
func (d *descriptorConn) claim(cookie uint64) (fd int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fd, ok = d.parked[cookie]
	delete(d.parked, cookie)
	return fd, ok
}

// rest asks for nothing to be passed for a while.
func (d *descriptorConn) rest(why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pause = time.Now().Add(passPause)
	return errors.Join(errEmpty, why)
}

// Close ends the connection at once. What it takes to close it is done later.
func (d *descriptorConn) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil
	}
	d.over = true
	for cookie, fd := range d.parked {
		delete(d.parked, cookie)
		d.closer.discard(fd)
	}
	d.closer.end(d.UnixConn)
	return nil
}
