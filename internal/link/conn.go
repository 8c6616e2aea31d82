package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// ErrNothingListens says that the sandbox refuses connections to a port. Its kind is NotFound.
var ErrNothingListens = fault.New(fault.NotFound, "Nothing is listening on that port in the sandbox.")

// linger is how long a closed connection may take to deliver its data.
const linger = 2 * time.Second

// DialPort connects to a TCP port of the sandbox, also one that is bound to its loopback. ctx is for connecting only.
// The connection has CloseWrite and obeys deadlines. Kinds: Invalid, Unavailable; ErrNothingListens when refused.
func (s *transport) DialPort(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fault.New(fault.Invalid, "There is no port %d.", port)
	}
	c, err := s.dialPort(ctx, fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, errEmpty) { // once: nothing is asked to be passed for a while after that
		c, err = s.dialPort(ctx, fmt.Sprintf("127.0.0.1:%d", port))
	}
	if errors.Is(err, ErrNothingListens) {
		return nil, fault.Wrap(ErrNothingListens, fault.NotFound, "Nothing is listening on port %d in the sandbox.", port)
	}
	return c, err
}

// dialPort connects to an address of the sandbox: by a connection that the guest passes, or else by a stream.
func (s *transport) dialPort(ctx context.Context, to string) (net.Conn, error) {
	req, err := http.NewRequest(http.MethodConnect, "http://"+to, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if !s.descriptors.reserve() {
		return s.dial(ctx, req, to)
	}
	req.Header.Set(wire.DescriptorHeader, "1")
	c, err := s.dial(ctx, req, to)
	if _, ok := c.(*passedConn); !ok {
		s.descriptors.release()
	}
	return c, err
}

// DialTerminal connects to the server of a terminal tab, which is started when needed. ctx is for connecting only.
// Kinds: Invalid, Conflict (there are as many as may be), Unavailable.
func (s *transport) DialTerminal(ctx context.Context, tab string) (net.Conn, error) {
	if err := wire.CheckTab(tab); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "A terminal cannot be called %q.", tab)
	}
	req, err := http.NewRequest(http.MethodPost, "http://guest"+wire.PathTerminals+"/"+tab+"/dial", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return s.dial(ctx, req, "terminal:"+tab)
}

// conn is a connection through the link. Both directions pass through an in-memory pipe, which gives it deadlines that
// do not spoil the stream.
type conn struct {
	session *transport
	address address
	in      net.Conn // Read's end
	out     net.Conn // Write's end
	reply   *reply
	sent    chan struct{} // closed when HTTP/2 has taken everything that was written

	mu   sync.Mutex
	lost error // why reading ended before its end
}

func (s *transport) dial(ctx context.Context, req *http.Request, to string) (net.Conn, error) {
	out, taken := net.Pipe()
	in, given := net.Pipe()
	c := &conn{session: s, address: address(to), in: in, out: out, sent: make(chan struct{})}
	req.Body = &upload{Conn: taken, end: sync.OnceFunc(func() { close(c.sent) })}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	r, err := s.ask(life, req)
	if err == nil && !stop() {
		r.close()
		err = fmt.Errorf("dial the sandbox: %w", context.Cause(ctx))
	}
	if err != nil {
		cancel(nil)
		out.Close()
		return nil, err
	}
	if number := r.Header.Get(wire.DescriptorHeader); number != "" && req.Header.Get(wire.DescriptorHeader) != "" {
		defer cancel(nil)
		defer out.Close()
		defer r.close()
		return s.adopt(number, c.address)
	}
	c.reply = r
	if !s.begin(func() { defer cancel(nil); c.pump(given) }) {
		cancel(nil)
		return nil, s.failed(ctx, errDropped)
	}
	return c, nil
}

// upload is the request body from which HTTP/2 reads a conn's writes.
type upload struct {
	net.Conn
	end func()
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	if err != nil {
		u.end()
	}
	return n, err
}

func (u *upload) Close() error {
	u.end()
	return u.Conn.Close()
}

// pump passes on what the guest sends until the stream ends or Close.
func (c *conn) pump(to net.Conn) {
	defer c.reply.close()
	defer to.Close()
	frames := wire.NewFrameReader(c.reply.Body)
	done := false
	for {
		kind, n, err := frames.Head()
		switch {
		case err == io.EOF && done:
			return
		case err == nil && kind == wire.FrameData && !done:
			err = c.pass(to, n)
		case err == nil && kind == wire.FrameDataDone && !done:
			done = true
			to.Close()
		case err == nil || err == io.EOF:
			err = wire.ErrFrame
		}
		if errors.Is(err, io.ErrClosedPipe) { // closed by our side: let it be heard out
			select {
			case <-c.sent:
			case <-c.reply.ctx.Done():
			}
			return
		}
		if err != nil {
			c.lose(err)
			return
		}
	}
}

// pass gives n bytes to the reader. A buffer is taken only now, so that a connection that waits holds none.
func (c *conn) pass(to net.Conn, n int) error {
	buf := frameBuffers.Get().(*[wire.FrameHead + wire.MaxFrame]byte)
	defer frameBuffers.Put(buf)
	if _, err := io.ReadFull(c.reply.Body, buf[:n]); err != nil {
		return err
	}
	_, err := to.Write(buf[:n])
	return err
}

// lose remembers why the connection broke: because the link did, or because the other side in the sandbox reset it.
func (c *conn) lose(err error) {
	if c.session.alive() && !errors.Is(err, wire.ErrFrame) {
		err = fmt.Errorf("%w in the sandbox", syscall.ECONNRESET)
	} else {
		err = c.session.failed(context.Background(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// Read reads what the other side sent. After its end it gives io.EOF, after a break of the link an Unavailable fault.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err == io.EOF {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lost != nil {
			err = c.lost
		}
	}
	return n, err
}

// Write writes; it blocks while the other side does not read.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lost != nil {
			err = c.lost
		}
	}
	return n, err
}

// CloseWrite ends sending; reading continues.
func (c *conn) CloseWrite() error { return c.out.Close() }

// Close ends both directions. Written data still arrives.
func (c *conn) Close() error {
	c.out.Close()
	c.in.Close()
	late := time.AfterFunc(linger, c.reply.close)
	context.AfterFunc(c.reply.ctx, func() { late.Stop() })
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return address("sandboxd") }
func (c *conn) RemoteAddr() net.Addr { return c.address }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.SetDeadline(t), c.out.SetDeadline(t))
}
func (c *conn) SetReadDeadline(t time.Time) error  { return c.in.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

// address names an end of a connection through the link.
type address string

func (a address) Network() string { return "guest-link" }
func (a address) String() string  { return string(a) }
