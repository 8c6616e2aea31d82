package guest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"sandboxd/internal/wire"
)

const (
	// firstPause is short so that a restart of sandboxd is noticed at once; the longest is so that a sandbox stays idle
	// while sandboxd is away.
	firstPause   = 40 * time.Millisecond
	longestPause = time.Second
	// steady is how long a connection must have lived for the pauses to begin again.
	steady      = 5 * time.Second
	dialTimeout = 5 * time.Second
)

// Flow control. A stream whose reader stops (a command that does not read its input) must not stop the others,
// so the connection has room for every stream's window. Windows and frames are large, because an upload costs less in fewer
// pieces.
const (
	maxStreams   = 1000
	streamWindow = 1 << 20
	connWindow   = maxStreams * streamWindow
	frameSize    = 256 << 10
)

// link dials sandboxd for ever and serves each connection until it ends. After a good connection, and after a freeze in
// which a good one may have been lost, it dials at once: the thaw waits for it.
func (g *Guest) link(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		g.connect(ctx)
		if time.Since(began) > steady {
			pause = 0
		}
		began = time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(max(pause*3/2, firstPause), longestPause)
		if time.Since(began) > steady { // it was frozen in the pause
			pause = firstPause
		}
	}
}

func (g *Guest) connect(ctx context.Context) {
	d := net.Dialer{Timeout: dialTimeout}
	dialled, err := d.DialContext(ctx, "unix", g.cfg.Socket)
	if err != nil {
		return // sandboxd is not there now; a log line for every try would be too much
	}
	conn := newDescriptorConn(dialled)
	defer func() {
		conn.Close()
		g.models.lost(conn)
	}()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	closed := make(chan struct{})
	server := &http.Server{
		Handler: g.routes(conn), Protocols: &only, MaxHeaderBytes: wire.MaxHeader, IdleTimeout: -1,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReadFrameSize: frameSize,
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow},
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				close(closed)
			}
		},
	}
	server.Serve(&single{conn: conn, closed: closed})
}

// single is a listener that accepts one connection, and ends with it.
type single struct {
	conn   net.Conn
	closed <-chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if c := s.conn; c != nil {
		s.conn = nil
		return c, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }
