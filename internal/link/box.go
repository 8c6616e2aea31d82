package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sandboxd/internal/fault"
)

// greetings is how many connections of one sandbox may be in the middle of their hello.
const greetings = 4

// box is what the hub has of one sandbox. Safe for concurrent use.
type box struct {
	hub     *Hub
	id      string
	accepts *rate.Limiter
	calls   *rate.Limiter // connections for models
	over    chan struct{} // closed by close, under mu
	closer  closer

	complaints rate.Sometimes // in the log

	mu      sync.Mutex
	listens *listener // replaced when its socket has been removed
	setup   terms
	session *Session      // the newest good one; nil when there is none
	changed chan struct{} // closed and replaced when session changes
	problem string        // why the last connection was refused, a sentence
}

func newBox(h *Hub, id string, l *listener, setup terms) *box {
	return &box{hub: h, id: id, listens: l, setup: setup, over: make(chan struct{}), changed: make(chan struct{}),
		accepts:    rate.NewLimiter(rate.Limit(h.pace.accepts), h.pace.acceptMax),
		calls:      rate.NewLimiter(rate.Limit(h.pace.calls), h.pace.callMax),
		complaints: rate.Sometimes{First: 3, Interval: time.Minute}}
}

// relisten makes guests come to l instead. The connection that there is lives on until it ends. It is
// false when the box is closed.
func (b *box) relisten(l *listener) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return false
	}
	b.closer.end(b.listens)
	b.listens = l
	return true
}

func (b *box) isClosed() bool { return isOver(b.over) }

func (b *box) listener() *listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.listens
}

// close ends the listening and the connection. It does not wait; the hub's tasks do.
func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return
	}
	close(b.over)
	b.closer.end(b.listens)
	if b.session != nil {
		b.session.drop(errors.New("not expected any more"))
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// run accepts connections until the box is closed. A sandbox that dials too often waits, in the kernel's queue.
func (b *box) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var greeted sync.WaitGroup
	defer greeted.Wait()
	defer cancel()
	greeted.Go(func() {
		select {
		case <-b.over:
		case <-ctx.Done():
		}
		cancel()
		b.close()
	})
	room := make(chan struct{}, greetings)
	for {
		if b.accepts.Wait(ctx) != nil || !b.awaitCloser(ctx) {
			return
		}
		l := b.listener()
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
		case ctx.Err() != nil || b.isClosed():
			return
		case l != b.listener():
			continue // another one has taken its place
		default:
			b.hub.log.Warn("accept a guest", "sandbox", b.id, "err", err) // out of descriptors, say: continue, slowly
			continue
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			b.closer.end(conn)
			return
		}
		greeted.Go(func() {
			s := b.greet(ctx, newDescriptorConn(conn, &b.closer))
			<-room
			if s != nil {
				b.keep(s)
			}
		})
	}
}

// awaitCloser waits while what the guest has left behind cannot be closed. It is false when ctx ends.
func (b *box) awaitCloser(ctx context.Context) bool {
	for b.closer.stuck() || b.closer.waiting() > maxPassed {
		b.complaints.Do(func() { b.hub.log.Warn("guest holds up its own end", "sandbox", b.id) })
		select {
		case <-time.After(closeSlow):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// greet says hello to who has dialled in and gives the session, or nil.
func (b *box) greet(ctx context.Context, conn *descriptorConn) *Session {
	ctx, cancel := context.WithTimeout(ctx, b.hub.pace.hello)
	defer cancel()
	b.mu.Lock()
	setup := b.setup
	b.mu.Unlock()
	s, err := open(ctx, b.id, conn, setup, b.hub.pace)
	if err == nil {
		s.ide = b.hub.ide
		return s
	}
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problem = fault.Message(err)
	b.complaints.Do(func() { b.hub.log.Warn("guest refused", "sandbox", b.id, "err", err) })
	return nil
}

// keep makes s the box's session until s ends, which it waits for.
func (b *box) keep(s *Session) {
	b.change(nil, s)
	s.begin(func() { b.takeCalls(s) })
	<-s.done
	b.change(s, nil)
	s.wait()
}

// change replaces the session by next, if it is old or next is new.
func (b *box) change(old, next *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() && next != nil {
		next.drop(errors.New("not expected any more"))
		return
	}
	if old != nil && b.session != old {
		return // a newer one has taken its place
	}
	if next != nil && b.session != nil {
		b.session.drop(errors.New("a newer connection of the same sandbox has come"))
	}
	b.session, b.problem = next, ""
	close(b.changed)
	b.changed = make(chan struct{})
}

// await gives the live session, waiting for one.
func (b *box) await(ctx context.Context) (*Session, error) {
	for {
		b.mu.Lock()
		s, changed, closed, problem := b.session, b.changed, b.isClosed(), b.problem
		b.mu.Unlock()
		if closed {
			return nil, fault.New(fault.Unavailable, "The sandbox is not there any more, or sandboxd is stopping.")
		}
		if s != nil && s.alive() {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if problem == "" {
				problem = "The program inside the sandbox has not connected."
			}
			return nil, fault.Wrap(context.Cause(ctx), fault.Unavailable, "%s", problem)
		}
	}
}
