// Package socket gives a WebSocket as a connection of bytes, at both ends: binary messages are the bytes, in whatever pieces,
// and the text message {"type":"eof"} says that one direction is over.
//
// It opens no WebSocket, and knows nothing of the messages.
//
// Invariant: a piece is at most 32 KiB, and nothing is read that nobody waits for: who takes nothing is not sent more.
package socket

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	pieceSize  = 32 << 10
	maxMessage = 64 << 10
	closeLimit = time.Second // for the last word
	// stallLimit is how long the other end may take nothing: it may be suspended, or its output may be shown page by
	// page.
	stallLimit = 15 * time.Minute
)

// Conn is one end. Read belongs to one goroutine; the rest is safe for concurrent use.
type Conn struct {
	ws       *websocket.Conn
	silence  time.Duration
	message  io.Reader // the rest of the current one; nil between two
	over     bool      // the other end has said that no more comes
	close    func()
	answered func() // waits for the end of what answers pings

	mu sync.Mutex // held while a message is written
}

// note is a text message.
type note struct {
	Type string `json:"type"`
}

const noteEOF = "eof"

// New gives ws, which nobody else may read or write data of from now on. The other end is given up when it has not said
// anything for so long as silence while it was listened to, be it a ping or a pong, or when it takes nothing for 15 minutes.
func New(ws *websocket.Conn, silence time.Duration) *Conn {
	c := &Conn{ws: ws, silence: silence}
	c.close = sync.OnceFunc(c.end)
	ws.SetReadLimit(maxMessage)
	ws.SetPongHandler(func(string) error { return c.wait() })
	c.answered = AnswerPings(ws, silence)
	return c
}

// AnswerPings answers pings beside the reader and notes that something was heard: what this end has to say may be held up,
// and must hold up neither reading nor, by being late, the connection. Call wait when ws is closed.
func AnswerPings(ws *websocket.Conn, silence time.Duration) (wait func()) {
	pings, done := make(chan string, 1), make(chan struct{})
	ws.SetPingHandler(func(data string) error {
		select {
		case pings <- data:
		default: // one is still to be answered
		}
		return ws.SetReadDeadline(time.Now().Add(silence))
	})
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			select {
			case <-done:
				return
			case data := <-pings:
				_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(stallLimit)) // reading finds what is wrong
			}
		}
	})
	return sync.OnceFunc(func() { close(done); answering.Wait() })
}

func (c *Conn) wait() error { return c.ws.SetReadDeadline(time.Now().Add(c.silence)) }

// Read implements io.Reader: io.EOF when the other end has said that no more comes, or has closed in order.
func (c *Conn) Read(p []byte) (int, error) {
	for !c.over {
		if err := c.wait(); err != nil {
			return 0, err
		}
		if c.message == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.message.Read(p)
		if errors.Is(err, io.EOF) {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}

// next finds the next message.
func (c *Conn) next() error {
	kind, r, err := c.ws.NextReader()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		return io.EOF
	}
	if err != nil || kind == websocket.BinaryMessage {
		c.message = r
		return err
	}
	var n note
	if err := json.NewDecoder(r).Decode(&n); err != nil || n.Type != noteEOF {
		return errors.New("a text message that nobody understands")
	}
	c.over = true
	return nil
}

// Write implements io.Writer. It blocks while the other end takes nothing.
func (c *Conn) Write(p []byte) (written int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		piece := p[:min(len(p), pieceSize)]
		if err := c.send(websocket.BinaryMessage, piece); err != nil {
			return written, err
		}
		written, p = written+len(piece), p[len(piece):]
	}
	return written, nil
}

func (c *Conn) send(kind int, data []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(stallLimit)); err != nil {
		return err
	}
	return c.ws.WriteMessage(kind, data)
}

// CloseWrite says that no more comes.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := json.Marshal(note{noteEOF})
	if err != nil {
		return err
	}
	return c.send(websocket.TextMessage, text)
}

// Close ends the connection. It may be called more than once.
func (c *Conn) Close() error {
	c.close()
	return nil
}

func (c *Conn) end() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeLimit)) // a courtesy
	c.ws.Close()
	c.answered()
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.ws.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.ws.RemoteAddr() }

// SetDeadline implements net.Conn: it has its own.
func (*Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn: it has its own.
func (*Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn: it has its own.
func (*Conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
