// Package event fans values out to many readers without ever waiting for one of them.
//
// It keeps no history and promises no delivery: a subscriber that falls behind its buffer is dropped and told so,
// and it must then read the present state anew.
//
// Invariant: Publish never blocks and never runs a subscriber's code.
package event

import "sync"

// Bus is a bounded fan-out of values of one type. Safe for concurrent use.
type Bus[T any] struct {
	buffer int
	mu     sync.Mutex
	subs   map[*Subscription[T]]struct{}
}

// NewBus makes a bus whose subscribers each may fall behind by at most buffer values (at least 1).
func NewBus[T any](buffer int) *Bus[T] {
	return &Bus[T]{buffer: max(buffer, 1), subs: map[*Subscription[T]]struct{}{}}
}

// Subscription receives the events published after Subscribe. C is closed when the subscriber was too slow, or closed
// itself; Dropped tells which. All subscribers share what a pointer leads to: they must not change it. So a subscription costs
// a word for each value that it may fall behind, however large a value is.
type Subscription[T any] struct {
	C       <-chan *T
	c       chan *T
	bus     *Bus[T]
	dropped bool
}

// Subscribe starts a subscription. The caller must Close it.
func (b *Bus[T]) Subscribe() *Subscription[T] {
	c := make(chan *T, b.buffer)
	s := &Subscription[T]{C: c, c: c, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs[s] = struct{}{}
	return s
}

// Publish hands v to every subscriber that has room, and drops those that have none. It never blocks.
func (b *Bus[T]) Publish(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		select {
		case s.c <- &v:
		default:
			s.dropped = true
			b.remove(s)
		}
	}
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription[T]) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	s.bus.remove(s)
}

// Dropped reports whether the bus ended the subscription because its reader was too slow.
func (s *Subscription[T]) Dropped() bool {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.dropped
}

func (b *Bus[T]) remove(s *Subscription[T]) {
	if _, ok := b.subs[s]; ok {
		delete(b.subs, s)
		close(s.c)
	}
}
