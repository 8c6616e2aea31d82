package sandbox

import (
	"context"
	"sync"
)

// turns runs operations in the background: those on one name one after another in the order they came, those on
// different names side by side.
type turns struct {
	mu     sync.Mutex
	queues map[string]*queue
	closed bool
	wg     sync.WaitGroup
}

// queue holds the operations of one name. It is forgotten when the last one ends.
type queue struct {
	tail   chan struct{} // closed when the last operation in line has ended
	length int
	id     string                  // of the sandbox that the operation which has its turn is for
	cancel context.CancelCauseFunc // of that operation; nil between two
}

// run queues f for ref's name and returns at once; false once the turns are closed. f gets a context that ends with ctx, or
// when interrupt is called for ref while f has its turn.
func (t *turns) run(ctx context.Context, ref Ref, f func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.queues == nil {
		t.queues = map[string]*queue{}
	}
	q := t.queues[ref.name]
	if q == nil {
		q = &queue{}
		t.queues[ref.name] = q
	}
	before, done := q.tail, make(chan struct{})
	q.tail = done
	q.length++
	t.wg.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		t.take(ctx, ref, q, f)
	})
	return true
}

func (t *turns) take(ctx context.Context, ref Ref, q *queue, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.mu.Lock()
	q.id, q.cancel = ref.id, cancel
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		q.cancel = nil
		if q.length--; q.length == 0 {
			delete(t.queues, ref.name)
		}
	}()
	f(ctx)
}

// interrupt ends the context of the operation that has its turn now, if that is for the sandbox of ref.
func (t *turns) interrupt(ref Ref, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.queues[ref.name]; q != nil && q.cancel != nil && q.id == ref.id {
		q.cancel(cause)
	}
}

// busy reports whether an operation of name is under way or in line.
func (t *turns) busy(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queues[name] != nil
}

// wait blocks until every operation that is in line for name now has ended, or ctx ends.
func (t *turns) wait(ctx context.Context, name string) error {
	t.mu.Lock()
	q := t.queues[name]
	if q == nil {
		t.mu.Unlock()
		return nil
	}
	tail := q.tail
	t.mu.Unlock()
	select {
	case <-tail:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close takes no more operations and waits until those in line have ended.
func (t *turns) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}
