package alert

import (
	"context"
	"sync"
	"time"
)

// poll asks a source in the background, one question at a time, so that a slow one holds nobody up.
type poll[T any] struct {
	next   time.Time // before which it is not asked again
	answer chan answer[T]

	value T
	fresh bool // value was not used yet
}

type answer[T any] struct {
	value T
	err   error
}

// ask begins a question, unless one is under way or it is too early.
func (p *poll[T]) ask(ctx context.Context, running *sync.WaitGroup, limit time.Duration, source func(context.Context) (T, error)) {
	now := time.Now()
	if p.answer != nil || now.Before(p.next) {
		return
	}
	c := make(chan answer[T], 1)
	p.answer = c
	running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		v, err := source(ctx)
		c <- answer[T]{v, err}
	})
}

// await takes the answer if it comes before ctx ends. pause is how long the source then is not asked. told is whether there was one.
func (p *poll[T]) await(ctx context.Context, pause, afterFailure time.Duration) (told bool, err error) {
	if p.answer == nil {
		return false, nil
	}
	select {
	case a := <-p.answer:
		p.answer = nil
		if a.err != nil {
			p.next = time.Now().Add(afterFailure)
			return true, a.err
		}
		p.value, p.fresh, p.next = a.value, true, time.Now().Add(pause)
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}
