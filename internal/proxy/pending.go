package proxy

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

// waits says whose bytes wait to be taken.
type waits int

const (
	nothing waits = iota
	unattended
	attended
)

// stuckAfter is how long bytes wait before that is more than the moment that each takes.
const stuckAfter = time.Second

// pending tells what waits to be taken in one direction. Safe for concurrent use; the zero value is nothing.
type pending struct {
	mu    sync.Mutex
	by    waits
	since time.Time
}

func (p *pending) set(by waits) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by, p.since = by, now
}

// stuck gives what has been waiting for stuckAfter.
func (p *pending) stuck(now time.Time) waits {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) < stuckAfter {
		return nothing
	}
	return p.by
}

// touchBlocked counts what cannot flow because its taker does not take it. Where that is the sandbox, it owes the work, for which
// it must not be frozen: attended, for as long as it lasts. Where that is the visitor, they may have left a page behind. VS Code
// counts so by being open: somebody may read what it shows.
func (p *proxied) touchBlocked(ctx context.Context) {
	now := time.Now()
	stream, in := p.stream.Load(), p.inwards.stuck(now)
	if !p.sending.Load() && !isWebSocket(p.r) {
		in = nothing // nobody wants the rest of the body
	}
	if stream == nil || in == nothing && p.outwards.stuck(now) == nothing && !p.toEditor() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	sb, err := p.handle.Current(ctx)
	switch {
	case err != nil:
	case sb.State == sandbox.Running: // what somebody has put to rest by hand stays there
		_ = stream.Touch(ctx, in != attended) // what waits goes on to wait, whatever happens there
	case sb.State == sandbox.Frozen && in == attended && p.proxy.cfg.Tracker.Counts(p.handle.ID()):
		_ = p.thaw(ctx) // it was frozen between two looks; the next look tries again
	}
}
