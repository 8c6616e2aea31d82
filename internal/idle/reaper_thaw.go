package idle

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// thawUsed thaws sandboxes that were frozen behind sandboxd's back while a request was in flight or output flowed, and gives their
// names. Nothing else would thaw them, because those requests were made before. A sandbox put to rest by hand is left so.
func (r *Reaper) thawUsed(ctx context.Context, plans []*plan) (thawed []string) {
	var mu sync.Mutex
	side(plans, r.isFrozenInUse, func(p *plan) {
		if r.thaw(ctx, p) {
			mu.Lock()
			defer mu.Unlock()
			thawed = append(thawed, p.s.Name)
		}
	})
	return thawed
}

// isFrozenInUse reports whether p is frozen while a use waits for it.
func (r *Reaper) isFrozenInUse(p *plan) bool {
	if p.s.State != sandbox.Frozen || !r.c.Tracker.awaited(p.s.ID) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !time.Now().Before(p.w.stuck)
}

// thaw thaws p's sandbox, if it still is frozen and in use in its turn. A freeze of ours that is under way has the turn
// before: it asks anew itself whether it is to last.
func (r *Reaper) thaw(ctx context.Context, p *plan) bool {
	ctx, cancel := context.WithTimeout(ctx, thawLimit)
	defer cancel()
	asked := false
	s, err := r.c.Sandboxes.Thaw(ctx, p.s.Ref(), func() bool {
		asked = r.c.Tracker.awaited(p.s.ID)
		return asked
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) || errors.Is(err, context.Canceled) {
		return false // it is gone, or sandboxd is about to be
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		p.w.stuck = time.Now().Add(retryAfter)
		r.c.Log.Warn("a sandbox that is in use stays frozen", "sandbox", p.s.Name, "error", err)
		return false
	}
	r.see(s)
	if !asked || s.State != sandbox.Running {
		return false
	}
	r.c.Log.Info("thawed a sandbox that was frozen while it was in use", "sandbox", p.s.Name)
	return true
}

// awaited reports whether a use waits for the sandbox: a request or a command in flight that counts now, or a stream that did a
// moment ago. It must have begun after the sandbox was last put to rest by hand: what still flowed then is no reason to undo that.
func (t *Tracker) awaited(id string) bool {
	now := time.Now()
	c := t.shard(id).find(id)
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.limit()
	for l := c.first; l != nil; l = l.next {
		put := c.dismissed
		if l.watch {
			put = later(put, c.rested)
		}
		if l.busy(now, limit) && l.since.After(put) {
			return true
		}
	}
	return false
}
