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
	// maxHanded bounds the connections of one sandbox that its guest has handed over to us. More go through the link.
	maxHanded = 256
	// handPause is how long nothing is asked to be handed over after it did not come.
	handPause = time.Minute
)

// hands is a guest's connection, beside whose bytes descriptors come: connections into the sandbox that the guest has made
// for us. They are known by the number that the kernel gives each socket. Safe for concurrent use, with one reader.
type hands struct {
	*net.UnixConn
	closer *closer
	beside []byte        // what came beside the bytes; touched by the one reader only
	room   chan struct{} // taken by each connection that is asked for, or handed over and open

	mu     sync.Mutex
	parked map[uint64]int // come and not claimed
	pause  time.Time      // until when no more are asked for
	over   bool
}

func newHands(conn *net.UnixConn, c *closer) *hands {
	return &hands{UnixConn: conn, closer: c, beside: make([]byte, syscall.CmsgSpace(wire.MaxHandover*4)),
		room: make(chan struct{}, maxHanded), parked: map[uint64]int{}}
}

// Read reads bytes, and keeps what came beside them.
func (h *hands) Read(p []byte) (int, error) {
	n, beside, _, _, err := h.ReadMsgUnix(p, h.beside)
	if beside > 0 {
		if strange := h.keep(h.beside[:beside]); strange != nil {
			return 0, strange
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF // bare, as every other reader gives it
	}
	return max(n, 0), err
}

// keep parks descriptors until they are claimed, or nobody wants them any more. Too many end the connection.
func (h *hands) keep(beside []byte) error {
	fds, err := rights(beside)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.parked)+len(fds) > maxHanded {
		err = errors.Join(err, errFlood)
	}
	for _, fd := range fds {
		cookie, cookieErr := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		if _, twice := h.parked[cookie]; twice || cookieErr != nil || err != nil || h.over {
			h.closer.discard(fd)
			continue
		}
		h.parked[cookie] = fd
		time.AfterFunc(linger, func() { // its dial has been given up
			if fd, ok := h.claim(cookie); ok {
				h.closer.discard(fd)
			}
		})
	}
	return err
}

// reserve takes the room of a connection that is to be handed over. It is false when there is none, or nothing gets here.
func (h *hands) reserve() bool {
	if h == nil || h.closer.stuck() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || time.Now().Before(h.pause) {
		return false
	}
	select {
	case h.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// release gives the room back.
func (h *hands) release() { <-h.room }

// errEmpty says that what was to be handed over has not come, or was something else.
var errEmpty = errors.New("no connection was handed over")

// claim gives a parked descriptor, once.
func (h *hands) claim(cookie uint64) (fd int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fd, ok = h.parked[cookie]
	delete(h.parked, cookie)
	return fd, ok
}

// rest asks for nothing to be handed over for a while.
func (h *hands) rest(why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pause = time.Now().Add(handPause)
	return errors.Join(errEmpty, why)
}

// Close ends the connection at once. What it takes to close it is done later.
func (h *hands) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	h.over = true
	for cookie, fd := range h.parked {
		delete(h.parked, cookie)
		h.closer.discard(fd)
	}
	h.closer.end(h.UnixConn)
	return nil
}
