package proxy

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

// waits says what kind of bytes wait to be read.
type waits int

const (
	nothing waits = iota
	unattended
	attended
)

// stuckAfter is how long bytes wait before they count as blocked.
const stuckAfter = time.Second

// pending is what waits to be read in one direction. Safe for concurrent use; the zero value is nothing.
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

// stuck gives what has waited for stuckAfter.
func (p *pending) stuck(now time.Time) waits {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) < stuckAfter {
		return nothing
	}
	return p.by
}

// touchBlocked counts bytes that are not being read. If the sandbox does not read them it still has work to do, and must not be
// frozen: they count as attended. If the client does not, the page may be forgotten: they count as unattended. VS Code counts as
// unattended while it is open, because a person may be reading.
func (p *proxied) touchBlocked(ctx context.Context) {
	now := time.Now()
	stream, in := p.stream.Load(), p.inwards.stuck(now)
	if !p.sending.Load() && !isWebSocket(p.r) {
		in = nothing // the rest of the body is not wanted
	}
	if stream == nil || in == nothing && p.outwards.stuck(now) == nothing && !p.toEditor() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	sb, err := p.handle.Current(ctx)
	switch {
	case err != nil:
	case sb.State == sandbox.Running: // a sandbox put to rest by hand is left so
		_ = stream.Touch(ctx, in != attended) // the bytes wait on in any case
	case sb.State == sandbox.Frozen && in == attended && p.proxy.cfg.Tracker.Counts(p.handle.ID()):
		_ = p.thaw(ctx) // it was frozen between two checks; the next one tries again
	}
}
