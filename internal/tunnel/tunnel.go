// Package tunnel connects clients to TCP ports inside sandboxes: it opens the sandbox, which wakes it, and carries
// bytes both ways until one side ends.
//
// It does not decide who may come in (delivery does, before), and it knows nothing of the protocols inside.
//
// Invariant: an open connection is no use of a sandbox; what goes through it is. What a client sends wakes the sandbox before
// the bytes go in, unless it is the heartbeat of a program that waits.
package tunnel

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/semaphore"
)

const (
	openLimit = 60 * time.Second // until the sandbox is awake and the port has answered
	// beatBytes is below what a heartbeat may have: more in one piece is something that is said.
	beatBytes = 128
	maxAtOnce = 512 // connections into one sandbox
	carrySize = 32 << 10
)

// Service opens tunnels. Safe for concurrent use.
type Service struct {
	now semaphore.Keyed // open ones, by sandbox
}

// New makes a Service. It does no I/O.
func New() *Service { return &Service{} }

// Dial connects to a port of a sandbox, also one that is bound to its loopback, waking it when it is at rest. ctx is for connecting
// only. Kinds: NotFound (nothing listens: link.ErrNothingListens), Invalid, Conflict (it does not run), Limited, Unavailable,
// Timeout, Gone.
func (s *Service) Dial(ctx context.Context, h access.Handle, port int) (*Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fault.Field("port", "A port is a number between 1 and 65535.")
	}
	leave, err := s.enter(h)
	if err != nil {
		return nil, err
	}
	c, err := s.dial(ctx, h, port)
	if err != nil {
		leave()
		return nil, err
	}
	c.leave = leave
	return c, nil
}

func (s *Service) dial(ctx context.Context, h access.Handle, port int) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	session, err := h.OpenStream(ctx, idle.Use{Kind: idle.Stream, Detail: "port " + strconv.Itoa(port)})
	if err != nil {
		return nil, err
	}
	conn, err := session.Guest.DialPort(ctx, port)
	if err != nil {
		session.Release()
		return nil, err
	}
	c := &Conn{Conn: conn, use: session}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	return c, nil
}

func (s *Service) enter(h access.Handle) (leave func(), err error) {
	leave, err = h.Acquire(context.Background(), &s.now, maxAtOnce, 0)
	if err != nil {
		return nil, fault.New(fault.Limited, "%d connections are open to ports of %s. Close some first.", maxAtOnce, h.Name())
	}
	return leave, nil
}

// use is one client's use of a sandbox. Implemented by access.Session.
type use interface {
	Touch(ctx context.Context, unattended bool) error
	Release()
}

// Conn is a connection to a port of a sandbox. The caller must Close it. Write belongs to one goroutine, Read to one.
type Conn struct {
	net.Conn
	use    use
	leave  func()
	life   context.Context
	end    context.CancelFunc
	hearts idle.Heartbeats[int]
}

// Write sends what a client says, once the sandbox is awake; a heartbeat does not wake it.
func (c *Conn) Write(p []byte) (int, error) {
	unattended := len(p) < beatBytes && c.hearts.Is(len(p), time.Now())
	ctx, cancel := context.WithTimeout(c.life, openLimit)
	defer cancel()
	if err := c.use.Touch(ctx, unattended); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Read gives what the sandbox says.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		_ = c.use.Touch(c.life, true) // an unattended one cannot fail
	}
	return n, err
}

// CloseWrite tells the sandbox's program that no more comes.
func (c *Conn) CloseWrite() error {
	half, ok := c.Conn.(Peer)
	if !ok {
		return c.Conn.Close()
	}
	return half.CloseWrite()
}

// Close ends the connection and the use of the sandbox. It may be called more than once.
func (c *Conn) Close() error {
	c.end()
	err := c.Conn.Close()
	c.use.Release()
	c.leave()
	return err
}

// Peer is a connection of which one direction can be over before the other.
type Peer interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join carries bytes both ways until both directions are over or one has broken, and closes both.
func Join(a, b Peer) {
	var both sync.WaitGroup
	both.Go(func() { carry(a, b) })
	both.Go(func() { carry(b, a) })
	both.Wait()
	a.Close()
	b.Close()
}

// carry passes on what from gives, and its end. What breaks ends both.
func carry(to, from Peer) {
	buf := make([]byte, carrySize)
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buf)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}
