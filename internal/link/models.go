package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// maxCalls bounds the connections for models that one sandbox has at once. Further ones wait in the sandbox.
const maxCalls = 128

// Models gives the listener at which the connections come out that programs in sandboxes make to wire.ModelsPort: each a *ModelConn.
// It is the same one each time. Accept blocks; Close ends it, and then connections wait in their sandboxes, as they do while nobody
// accepts. A connection is the sandbox's own: nothing else comes by this way.
func (h *Hub) Models() net.Listener { return h.calls }

// modelCalls is the listener of all sandboxes.
type modelCalls struct {
	conns chan *ModelConn
	life  context.Context // until Close
	close context.CancelFunc
}

func newModelCalls() *modelCalls {
	life, cancel := context.WithCancel(context.Background())
	return &modelCalls{conns: make(chan *ModelConn), life: life, close: cancel}
}

// Accept implements net.Listener.
func (l *modelCalls) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.life.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *modelCalls) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *modelCalls) Addr() net.Addr { return address("models") }

// ModelConn is a connection of a program in a sandbox that asks for models. It obeys deadlines and has CloseWrite.
type ModelConn struct {
	net.Conn
	sandbox string
	release func()
}

// Sandbox gives the id of the sandbox.
func (c *ModelConn) Sandbox() string { return c.sandbox }

// RemoteAddr names the sandbox.
func (c *ModelConn) RemoteAddr() net.Addr { return address("sandbox:" + c.sandbox) }

// CloseWrite ends sending; reading continues.
func (c *ModelConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Close ends both directions. Written data still arrives.
func (c *ModelConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// takeCalls takes the connections for models of a session, one after another, until it ends. A guest that is older than models is
// asked for none.
func (b *box) takeCalls(s *Session) {
	if !s.greeting.hello.Models {
		return
	}
	l := b.hub.calls
	room := make(chan struct{}, maxCalls)
	for {
		select {
		case room <- struct{}{}:
		case <-s.done:
			return
		case <-l.life.Done():
			return
		}
		if !s.pause(l.life, b.calls.Reserve().Delay()) {
			return
		}
		conn, err := s.takeCall(l.life)
		if fault.Is(err, fault.NotFound) && !errors.Is(err, errCallGone) {
			return // it does not know of models after all
		}
		if err != nil {
			<-room
			if !s.pause(l.life, b.hub.pace.callPause) {
				return
			}
			continue
		}
		c := &ModelConn{Conn: conn, sandbox: b.id, release: sync.OnceFunc(func() { <-room })}
		select {
		case l.conns <- c:
		case <-s.done:
			c.Close()
		case <-l.life.Done():
			c.Close()
		}
	}
}

// pause waits; it is false when the session or ctx ends before.
func (s *transport) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return s.alive() && ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
	case <-ctx.Done():
	}
	return false
}

// errCallGone says that a connection ended before it was dialled.
var errCallGone = errors.New("the connection has gone")

// takeCall waits for the sandbox's next connection for models, for days if need be. A sandbox has such a request all the time, so it
// takes no part in anything else: it needs no slot and lets the guest send no more than its answer.
func (s *transport) takeCall(ctx context.Context) (net.Conn, error) {
	if s.client.InFlight() >= maxPending {
		return nil, s.failed(ctx, errSlow)
	}
	req, err := http.NewRequest(http.MethodPost, "http://guest"+wire.PathModels+"/accept", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	passed := s.descriptors.reserve()
	if passed {
		req.Header.Set(wire.DescriptorHeader, "1")
	}
	s.conn.invited()
	r, err := s.send(ctx, req, 0, func() {})
	var conn net.Conn
	if err == nil {
		defer r.close()
		conn, err = s.joinCall(ctx, r.Header, passed)
	}
	if _, adopted := conn.(*passedConn); passed && !adopted {
		s.descriptors.release()
	}
	return conn, err
}

// joinCall connects to what the guest has answered: by the descriptor, where that was asked for and has come, or else by a stream.
func (s *transport) joinCall(ctx context.Context, head http.Header, passed bool) (net.Conn, error) {
	const to = address("models")
	if cookie := head.Get(wire.DescriptorHeader); passed && cookie != "" {
		conn, err := s.adopt(cookie, to)
		if !errors.Is(err, errEmpty) {
			return conn, err
		}
	}
	number, err := strconv.ParseUint(head.Get(wire.ModelsHeader), 10, 64)
	if err != nil {
		return nil, s.failed(ctx, fmt.Errorf("number of a connection for models: %w", err))
	}
	req, err := http.NewRequest(http.MethodPost, "http://guest"+wire.PathModels+"/"+strconv.FormatUint(number, 10)+"/dial", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	conn, err := s.dial(ctx, req, string(to))
	if fault.Is(err, fault.NotFound) {
		err = errors.Join(errCallGone, err)
	}
	return conn, err
}
