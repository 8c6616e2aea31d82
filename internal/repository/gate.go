package repository

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// errYield cuts maintenance off for one who uses the repository.
var errYield = fault.New(fault.Conflict, "The repository is in use.")

// gate lets many use a repository, or one maintain it. Maintenance gives way to use.
type gate struct {
	mu     sync.Mutex
	users  int
	cancel context.CancelCauseFunc // of who is alone there
	ended  chan struct{}           // closed when that one has left
}

// enter begins a use, and waits until maintenance has given way or ctx ends.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	for {
		g.mu.Lock()
		if g.cancel == nil {
			g.users++
			g.mu.Unlock()
			return sync.OnceFunc(g.leave), nil
		}
		g.cancel(errYield)
		ended := g.ended
		g.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
}

// alone begins maintenance if there is no use. Its ctx ends with the next use, and after limit.
func (g *gate) alone(ctx context.Context, limit time.Duration) (_ context.Context, leave func(), free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users > 0 || g.cancel != nil {
		return ctx, nil, false
	}
	ctx, end := context.WithTimeout(ctx, limit)
	ctx, g.cancel = context.WithCancelCause(ctx)
	g.ended = make(chan struct{})
	return ctx, func() {
		end()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.cancel(nil)
		g.cancel = nil
		close(g.ended)
	}, true
}
