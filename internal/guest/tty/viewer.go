package tty

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/wire"
)

// Bounds of one viewer.
const (
	outputMessage = 64 << 10  // the largest output message
	highWater     = 256 << 10 // queued output at which the program waits for the viewer
	keepBuffer    = 64 << 10  // the largest buffer that an idle viewer keeps

	firstMessage = 10 * time.Second // a viewer that says nothing is let go
	writeLimit   = 30 * time.Second // one message may take so long to send
	pingEvery    = 30 * time.Second
	silenceLimit = 90 * time.Second // a viewer that answers no ping is gone
	inputLimit   = 10 * time.Second // a program that takes no input for so long loses it
	closeLimit   = 2 * time.Second  // the last output and the close frame may take so long
)

// Close codes beyond those of RFC 6455's use here: normal (the shell ended) and internal error.
const (
	closeNormal  = websocket.CloseNormalClosure
	closeSlow    = websocket.CloseTryAgainLater
	closeProblem = websocket.CloseInternalServerErr
	closeAbuse   = websocket.ClosePolicyViolation
)

// ending is how a viewer's connection is to be closed.
type ending struct {
	code   int
	reason string
}

// signals wake those who work for a viewer, or wait for it.
type signals struct {
	wake chan struct{} // something changed for the writer
	room chan struct{} // the queue was taken
	gone chan struct{} // the writer has ended
}

func newSignals() signals {
	return signals{wake: make(chan struct{}, 1), room: make(chan struct{}, 1), gone: make(chan struct{})}
}

// viewer is one websocket that watches a session. Its own goroutine (write) is the only one that sends messages.
type viewer struct {
	conn   *websocket.Conn
	window int // bytes that may be unacknowledged; 0 for any number
	size   wire.TTYSize

	signals
	stalled time.Duration // what the program has waited for it since it had caught up; the session's output only

	mu      sync.Mutex
	queue   []byte // output to send, after one spare byte for the message's type
	unacked int
	end     *ending
	dropped bool // nothing more is to be sent
	current bool // the writer has had nothing to do since caughtUp asked
}

func newViewer(conn *websocket.Conn, h hello) *viewer {
	return &viewer{conn: conn, window: h.Window, size: h.TTYSize, signals: newSignals()}
}

// push queues output; it never blocks. It tells whether the program should wait for this viewer.
func (v *viewer) push(p []byte) (full bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.end != nil {
		return false
	}
	if len(v.queue) == 0 {
		v.queue = append(v.queue, wire.TTYOutput)
	}
	v.queue = append(v.queue, p...)
	signal(v.wake)
	return len(v.queue) > highWater
}

// finish makes the writer send its queue, say goodbye and end. Only the first call counts.
func (v *viewer) finish(code int, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.end == nil {
		v.end = &ending{code, reason}
	}
	signal(v.wake)
}

// drop is finish without the queue: the viewer is too slow and gets a replay when it comes again.
func (v *viewer) drop(code int, reason string) {
	v.mu.Lock()
	v.queue, v.dropped = nil, true
	v.mu.Unlock()
	v.finish(code, reason)
	_ = v.conn.NetConn().SetWriteDeadline(time.Now().Add(time.Second)) // ends a write that is stuck
}

func (v *viewer) acked(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unacked = max(v.unacked-max(n, 0), 0)
	signal(v.wake)
}

// take gives the queue, leaving spare in its place; nil, and spare is not used, when nothing is queued.
func (v *viewer) take(spare []byte) ([]byte, *ending) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var q []byte
	if len(v.queue) == 0 {
		v.current = true
	} else {
		q, v.queue = v.queue, spare[:0]
	}
	signal(v.room)
	return q, v.end
}

// caughtUp tells whether the viewer has had everything at some time since the last call.
func (v *viewer) caughtUp() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.current
	v.current = false
	return was
}

// write sends the queue until the connection or the session ends. After a goodbye the connection is left to read,
// which sees the answer.
func (v *viewer) write() {
	defer close(v.gone)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var spare []byte
	for {
		q, end := v.take(spare)
		if q == nil && end != nil {
			v.goodbye(end)
			return
		}
		if q == nil {
			if !v.pause(ping.C) {
				v.conn.Close()
				return
			}
			continue
		}
		if err := v.send(q, ping.C); err != nil {
			v.conn.Close()
			return
		}
		spare = nil
		if cap(q) <= keepBuffer {
			spare = q
		}
	}
}

// pause waits for something to do; false when the connection does not take a ping.
func (v *viewer) pause(ping <-chan time.Time) bool {
	select {
	case <-v.wake:
		return true
	case <-ping:
		return v.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit)) == nil
	}
}

var errGone = errors.New("viewer is gone")

// send writes q, whose first byte is spare, as output messages, each when the viewer has acknowledged enough.
func (v *viewer) send(q []byte, ping <-chan time.Time) error {
	for at := 1; at < len(q); {
		n, err := v.allowance(len(q)-at, ping)
		if err != nil || n == 0 {
			return err
		}
		q[at-1] = wire.TTYOutput // this byte has been sent already
		if err := v.message(q[at-1 : at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func (v *viewer) message(p []byte) error {
	if err := v.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return v.conn.WriteMessage(websocket.BinaryMessage, p)
}

// allowance waits until the viewer may be sent something and gives how many bytes; 0 when it is dropped.
func (v *viewer) allowance(want int, ping <-chan time.Time) (int, error) {
	for {
		n, dropped := v.reserve(min(want, outputMessage))
		if n > 0 || dropped {
			return n, nil
		}
		if !v.pause(ping) {
			return 0, errGone
		}
	}
}

// reserve takes up to want bytes from the viewer's window; when all is about to end the window no longer counts.
func (v *viewer) reserve(want int) (n int, dropped bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dropped {
		return 0, true
	}
	if v.window > 0 && v.end == nil {
		want = max(min(want, v.window-v.unacked), 0)
	}
	v.unacked += want
	return want, false
}

// goodbye sends the close frame and lets the viewer answer it, so that nothing sent before is lost to a reset.
func (v *viewer) goodbye(e *ending) {
	until := time.Now().Add(closeLimit)
	_ = v.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(e.code, e.reason), until)
	_ = v.conn.NetConn().SetReadDeadline(until)
}

// read hands the viewer's messages to s until the connection ends.
func (v *viewer) read(s *session) {
	v.conn.SetPongHandler(func(string) error { return v.extend() })
	for v.extend() == nil {
		_, p, err := v.conn.ReadMessage()
		if err != nil {
			return
		}
		if len(p) == 0 {
			continue
		}
		if err := v.handle(s, p); err != nil {
			v.finish(closeAbuse, err.Error())
			return
		}
	}
}

// extend gives the viewer time for its next message, unless goodbye was said.
func (v *viewer) extend() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.end != nil {
		return nil
	}
	return v.conn.SetReadDeadline(time.Now().Add(silenceLimit))
}

var errNoInput = errors.New("the program takes no input")

func (v *viewer) handle(s *session, p []byte) error {
	switch p[0] {
	case wire.TTYInput:
		return s.input(v, p[1:])
	case wire.TTYResize:
		z, err := readSize(p[1:])
		if err != nil {
			return errors.New("bad size")
		}
		s.resize(v, z)
	case wire.TTYAck:
		n, err := strconv.Atoi(string(p[1:min(len(p), 12)]))
		if err != nil {
			return errors.New("bad acknowledgement")
		}
		v.acked(n)
	}
	return nil // PAUSE, RESUME and unknown messages mean nothing here
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// settle waits for the writer, which has been told to finish, and is not waited for longer than closeLimit.
func (v *viewer) settle() {
	t := time.NewTimer(closeLimit)
	defer t.Stop()
	select {
	case <-v.gone:
	case <-t.C:
		v.conn.Close()
		<-v.gone
	}
}
