package idle

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

const (
	// leastIdle is how long a sandbox is unused before memory is taken from it.
	leastIdle = time.Minute
	// reliefs is how many are put to rest for memory at a time, and reliefPause the time until it shows.
	reliefs     = 2
	reliefPause = 5 * time.Second
	// dropLimit is how long giving up a sandbox that was made in advance may take.
	dropLimit = 15 * time.Second
)

// checkMemory looks at the host's memory and says whether it is short. When it is, one sandbox that was made in advance goes
// first; then those that are unused for the longest are due at once, whatever their times say but never.
func (r *Reaper) checkMemory(ctx context.Context, plans []*plan, report *Report) bool {
	available, swap, ok := r.memory()
	if !ok || available >= r.c.Reserve {
		return false
	}
	if report.DroppedPooled = r.dropPooled(ctx); report.DroppedPooled {
		return true
	}
	now := time.Now()
	r.mu.Lock()
	early := now.Before(r.relieved.Add(reliefPause))
	r.mu.Unlock()
	if early {
		return true
	}
	r.pick(plans, swap > 0)
	return true
}

// pick marks the sandboxes that have to give up memory.
func (r *Reaper) pick(plans []*plan, swap bool) {
	now := time.Now()
	able := map[*plan]sandbox.State{}
	var idlest []*plan
	r.mu.Lock()
	for _, p := range plans {
		to := relief(p, swap, p.w.cannotFreeze)
		if to == "" || len(p.status.Because) > 0 || now.Sub(p.status.Idle) < leastIdle || now.Before(r.floor(p.w)) {
			continue
		}
		able[p] = to
		idlest = append(idlest, p)
	}
	r.mu.Unlock()
	slices.SortStableFunc(idlest, func(a, b *plan) int { return a.status.Idle.Compare(b.status.Idle) })
	for _, p := range idlest[:min(reliefs, len(idlest))] {
		p.memoryRest = able[p]
		r.setStep(p)
	}
}

// relief gives the state in which p holds less memory: frozen if swap can take what it has, else stopped. "" where its
// owner has said never.
func relief(p *plan, swap, cannotFreeze bool) sandbox.State {
	switch {
	case p.s.State == sandbox.Running && swap && !cannotFreeze && p.rest.FreezeAfter > 0:
		return sandbox.Frozen
	case p.rest.StopAfter > 0:
		return sandbox.Asleep
	}
	return ""
}

func (r *Reaper) dropPooled(ctx context.Context) bool {
	if r.c.DropPooled == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, dropLimit)
	defer cancel()
	dropped, err := r.c.DropPooled(ctx)
	if err != nil {
		r.c.Log.Warn("a sandbox that was made in advance cannot be given up", "error", err)
		return false
	}
	if dropped {
		r.c.Log.Info("gave up a sandbox that was made in advance", "why", "the host is short of memory")
	}
	return dropped
}

// memory gives the available memory and the free swap; not ok when they are unknown or not asked for.
func (r *Reaper) memory() (available, swap int64, ok bool) {
	if r.c.Memory == nil || r.c.Reserve <= 0 {
		return 0, 0, false
	}
	available, _, swap, err := r.c.Memory()
	if err != nil {
		r.c.Log.Warn("the host's memory cannot be read", "error", err)
	}
	return available, swap, err == nil
}

// Room says whether there is memory to start a sandbox: nil, or Unavailable while less than half of the reserve is
// available. Then the reaper makes room, so that a later try succeeds if anything is unused.
func (r *Reaper) Room(_ context.Context) error {
	available, _, ok := r.memory()
	if !ok || available >= r.c.Reserve/2 {
		return nil
	}
	r.nudge()
	return fault.New(fault.Unavailable, "This host is short of memory: %s are available, and %s are kept in reserve. Stop a sandbox, or try again in a moment.",
		text.Size(available), text.Size(r.c.Reserve))
}
