package terminal

import (
	"sync"

	"sandboxd/internal/wire"
)

// queueBytes is how much output may wait for a viewer before its terminal is no longer read.
const queueBytes = 256 << 10

// outbox is what waits for a viewer: messages in order, output joined into fewer and larger ones. One goroutine puts and one
// takes.
type outbox struct {
	wake chan struct{} // for the taker: something has changed
	room chan struct{} // for the putter: something has changed

	mu       sync.Mutex
	messages [][]byte // each with its type byte
	spare    []byte   // a buffer to use again
	bytes    int
	window   int // output that may be unacknowledged; 0 for any
	unacked  int
	end      *ending
	ping     bool // to be answered
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put queues one message, waiting for room; false when the viewer is being let go. p is copied.
func (o *outbox) put(kind byte, p []byte) bool {
	for {
		switch o.offer(kind, p) {
		case taken:
			return true
		case over:
			return false
		}
		<-o.room // finish and take both signal
	}
}

type outcome uint8

const (
	taken outcome = iota
	full
	over
)

func (o *outbox) offer(kind byte, p []byte) outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		return over
	}
	if o.bytes >= queueBytes {
		return full
	}
	o.bytes += len(p)
	signal(o.wake)
	if n := len(o.messages); n > 0 && kind == wire.TTYOutput {
		last := o.messages[n-1]
		if last[0] == wire.TTYOutput && len(last)+len(p) <= outputMessage {
			o.messages[n-1] = append(last, p...)
			return taken
		}
	}
	m := append(o.spare[:0], kind)
	o.spare = nil
	o.messages = append(o.messages, append(m, p...))
	return taken
}

// take gives the first message, or nil when there is none that may be sent, and how all is to end if that is known. used is
// an earlier message that is no longer needed.
func (o *outbox) take(used []byte) ([]byte, *ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spare == nil && cap(used) > 0 {
		o.spare = used
	}
	if o.end != nil && o.end.discard {
		o.messages = nil
	}
	if o.ping && o.end == nil {
		o.ping = false
		return []byte{ping}, o.end
	}
	if len(o.messages) == 0 || o.end == nil && o.window > 0 && o.unacked >= o.window {
		return nil, o.end
	}
	m := o.messages[0]
	if o.messages = o.messages[1:]; len(o.messages) == 0 {
		o.messages = nil
	}
	o.bytes -= len(m) - 1
	if m[0] == wire.TTYOutput {
		o.unacked += len(m) - 1
	}
	signal(o.room)
	return m, o.end
}

// answer answers a ping, ahead of the queue.
func (o *outbox) answer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ping = true
	signal(o.wake)
}

func (o *outbox) setWindow(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.window = n
}

func (o *outbox) acked(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unacked = max(o.unacked-n, 0)
	signal(o.wake)
}

// finish says how all is to end; only the first call counts. Nothing can be put afterwards.
func (o *outbox) finish(e ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end == nil {
		o.end = &e
	}
	signal(o.wake)
	signal(o.room)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
