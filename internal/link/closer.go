package link

import (
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Bounds of closing what a guest has had a descriptor of.
const (
	closeSlow = time.Second // a close that takes longer is the guest's doing
	drainMost = 1024        // messages of one socket that are looked at for descriptors
)

// closer closes what a guest can make take its time: its sockets, and the descriptors that wait in them. The last close of
// a TCP socket may take hours (SO_LINGER), in whatever thread it happens, also when it is one that nobody has received
// yet. So nobody waits for it, a sandbox gets one thread for all of it, and while that is held up it gets nothing new. What
// is done before a close may fail without a word: then the close is held up, or there is nothing to hold it up. Safe for
// concurrent use; the zero value is ready.
type closer struct {
	mu      sync.Mutex
	queue   []func()
	working bool
	since   time.Time // when the work under way began
}

// later queues f.
func (c *closer) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.working {
		c.working = true
		c.since = time.Now()
		go c.work()
	}
}

func (c *closer) work() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.working, c.queue = false, nil
			c.mu.Unlock()
			return
		}
		f := c.queue[0]
		c.queue = c.queue[1:]
		c.since = time.Now()
		c.mu.Unlock()
		f()
	}
}

// stuck reports whether a close is held up.
func (c *closer) stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working && time.Since(c.since) > closeSlow
}

// waiting gives how much there is still to close.
func (c *closer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// discard has a descriptor closed that nobody wants.
func (c *closer) discard(fd int) {
	c.later(func() {
		dropUnsent(fd)
		drain(fd)
		_ = syscall.Close(fd)
	})
}

// guestSocket is a unix socket that a guest can reach.
type guestSocket interface {
	syscall.Conn
	io.Closer
	SetDeadline(t time.Time) error
}

// end ends a socket at once: calls that wait for it fail. It has it closed later.
func (c *closer) end(s guestSocket) {
	_ = s.SetDeadline(time.Unix(1, 0))
	raw, err := s.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
	c.later(func() {
		if err == nil {
			_ = raw.Control(func(fd uintptr) { drain(int(fd)) })
		}
		_ = s.Close()
	})
}

// dropUnsent makes the close of a TCP socket drop unsent data at once. Only a guest that sets it anew in the moment before
// the close undoes that.
func dropUnsent(fd int) {
	_ = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
}

// dropIfLingering is dropUnsent for a socket that would linger. It leaves others alone: their data still arrives.
func dropIfLingering(fd int) {
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err != nil || l.Onoff != 0 {
		dropUnsent(fd)
	}
}

// drain closes the descriptors that wait in a unix socket, and the connections that wait in a listening one: the kernel
// would close them with it, as they are. It does not block.
func drain(fd int) {
	_ = syscall.Shutdown(fd, syscall.SHUT_RD) // nothing more comes
	_ = syscall.SetNonblock(fd, true)
	beside := make([]byte, syscall.CmsgSpace(wire.MaxDescriptors*4))
	var piece [4096]byte
	for range drainMost {
		conn, _, err := syscall.Accept4(fd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			break
		}
		drain(conn)
		_ = syscall.Close(conn)
	}
	for range drainMost {
		n, oob, _, _, err := syscall.Recvmsg(fd, piece[:], beside, syscall.MSG_DONTWAIT|syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		fds, _ := rights(beside[:max(oob, 0)])
		for _, fd := range fds {
			dropUnsent(fd)
		}
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
		if err != nil || n == 0 && len(fds) == 0 {
			return
		}
	}
}

// rights gives the descriptors in what came beside bytes, also when it gives an error.
func rights(beside []byte) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(beside)
	for i := range messages {
		some, rightsErr := syscall.ParseUnixRights(&messages[i])
		fds = append(fds, some...)
		if err == nil {
			err = rightsErr
		}
	}
	return fds, err
}
