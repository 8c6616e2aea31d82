package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/wire"
)

// maxHanded bounds the connections of one sandbox that its guest has handed over to us. More go through the link.
const maxHanded = 256

// hands is a guest's connection beside whose bytes descriptors come: connections into the sandbox that the guest has made
// for us. Safe for concurrent use, with one reader.
type hands struct {
	net.Conn
	unix    *net.UnixConn
	beside  []byte        // what came beside the bytes; touched by the one reader only
	room    chan struct{} // taken by each connection that is asked for, or handed over and open
	closing sync.Mutex    // of descriptors, one at a time; see later

	mu     sync.Mutex
	came   uint64         // descriptors so far
	parked map[uint64]int // come and not claimed
	lame   bool           // one got lost or was none, so that no more are wanted
	over   bool
}

// newHands gives nil for a connection beside which nothing can come.
func newHands(conn net.Conn) *hands {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	return &hands{Conn: conn, unix: unix, beside: make([]byte, syscall.CmsgSpace(wire.MaxHandover*4)),
		room: make(chan struct{}, maxHanded), parked: map[uint64]int{}}
}

// Read reads bytes, and keeps what came beside them.
func (h *hands) Read(p []byte) (int, error) {
	n, beside, flags, _, err := h.unix.ReadMsgUnix(p, h.beside)
	if beside > 0 || flags&syscall.MSG_CTRUNC != 0 {
		if strange := h.keep(h.beside[:beside], flags&syscall.MSG_CTRUNC != 0); strange != nil {
			return 0, strange
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF // bare, as every other reader gives it
	}
	return max(n, 0), err
}

// keep parks descriptors until they are claimed, or nobody wants them any more.
func (h *hands) keep(beside []byte, truncated bool) error {
	var fds []int
	messages, err := syscall.ParseSocketControlMessage(beside)
	for i := range messages {
		some, rightsErr := syscall.ParseUnixRights(&messages[i])
		fds, err = append(fds, some...), errors.Join(err, rightsErr)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lame = h.lame || truncated // out of descriptors, or a security module forbids it
	if len(h.parked)+len(fds) > maxHanded {
		err = errors.Join(err, errFlood)
	}
	for _, fd := range fds {
		if err != nil || h.lame || h.over {
			h.discard(fd)
			continue
		}
		number := h.came
		h.came++
		h.parked[number] = fd
		time.AfterFunc(linger, func() { // its dial has been given up
			if fd, ok := h.claim(number); ok {
				h.discard(fd)
			}
		})
	}
	return err
}

// reserve takes the room of a connection that is to be handed over. It is false when there is none, or nothing gets here.
func (h *hands) reserve() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lame || h.over {
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

// errLame says that what was to be handed over has not come, or was something else. Nothing is handed over any more then.
var errLame = errors.New("no connection was handed over")

// claim gives a parked descriptor, once.
func (h *hands) claim(number uint64) (fd int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fd, ok = h.parked[number]
	delete(h.parked, number)
	return fd, ok
}

// giveUp asks for nothing more to be handed over.
func (h *hands) giveUp(why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lame = true
	return errors.Join(errLame, why)
}

// discard closes a descriptor.
func (h *hands) discard(fd int) { h.later(func() { syscall.Close(fd) }) }

// later has something that a guest has given closed. Nobody waits for that: the guest may have it take its time (SO_LINGER),
// for which it gets one thread of ours, not more.
func (h *hands) later(end func()) {
	go func() {
		h.closing.Lock()
		defer h.closing.Unlock()
		end()
	}()
}

// Close ends the connection and discards what nobody has claimed.
func (h *hands) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for number, fd := range h.parked {
		delete(h.parked, number)
		h.discard(fd)
	}
	return h.Conn.Close()
}
