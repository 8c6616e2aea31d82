package terminal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
)

// Sizes of the connection to a tab's server.
const (
	readBuffer     = 64 << 10
	writeBuffer    = 4 << 10
	handshakeBytes = 16 << 10 // a longer answer to the handshake is an attack
	guestMessage   = 1 << 20  // a longer message from the guest, too: ttyd's are at most 64 KiB
)

// writeBuffers are shared: a viewer that does not type needs none.
var writeBuffers sync.Pool

// dial connects to the tab's server and makes the websocket handshake, until ctx ends, which must have a deadline.
func dial(ctx context.Context, guest access.Guest, tab string) (*websocket.Conn, error) {
	raw, err := guest.DialTerminal(ctx, tab)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	conn, err := handshake(ctx, &strict{Conn: raw, left: handshakeBytes})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("dial terminal: %w", err)
	}
	return conn, nil
}

func handshake(ctx context.Context, raw *strict) (*websocket.Conn, error) {
	d := websocket.Dialer{
		Subprotocols:    []string{Subprotocol},
		ReadBufferSize:  readBuffer,
		WriteBufferSize: writeBuffer,
		WriteBufferPool: &writeBuffers,
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return raw, nil },
	}
	conn, resp, err := d.DialContext(ctx, "ws://terminal/ws", nil)
	if err != nil {
		return nil, err
	}
	// An extension that was not offered would be used all the same: a compressed message has no bound.
	if conn.Subprotocol() != Subprotocol || len(resp.Header.Values("Sec-Websocket-Extensions")) > 0 {
		return nil, errors.New("handshake is not a terminal's")
	}
	raw.open()
	conn.SetReadLimit(guestMessage)
	return conn, nil
}

// strict bounds what may be read until open, because the HTTP client bounds no header.
type strict struct {
	net.Conn
	left   int
	opened bool
}

var errTooLong = errors.New("handshake is too long")

// Read reads from the connection.
func (s *strict) Read(p []byte) (int, error) {
	if s.opened {
		return s.Conn.Read(p)
	}
	if s.left == 0 {
		return 0, errTooLong
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// open ends the bound. The caller is the only reader.
func (s *strict) open() { s.opened = true }
