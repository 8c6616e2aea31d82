package idle

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/sandbox"
)

// When the reaper looks again. A pass costs one query and some memory reads for each sandbox that is up.
const (
	longestPause  = 5 * time.Second
	shortestPause = 250 * time.Millisecond
	busyPause     = time.Second // while the engine is away or the host is short of memory
)

// How long one call outside may take.
const (
	listLimit = 5 * time.Second
	askLimit  = 2 * time.Second  // one question to the engine or a guest
	restLimit = 15 * time.Second // a freeze; or the acceptance of a sleep
	thawLimit = 5 * time.Second  // the wait for a thaw, which continues after it
)

const (
	// atOnce bounds how many sandboxes are asked, or put to rest, at the same time.
	atOnce = 8
	// minUptime is how long a thawed sandbox stays up at least, so that a forgotten page's ping, which thaws it and does not
	// count, does not make it freeze and thaw without end.
	minUptime = 30 * time.Second
	// retryAfter is the wait after the engine could not put a sandbox to rest.
	retryAfter = 15 * time.Second
)

// Between two looks at what time alone changes.
const (
	holdsEvery = time.Minute
	pruneEvery = 10 * time.Minute
)

// Sandboxes is what the reaper asks of sandbox.Manager, and as it says there. still and used are called inside the turn:
// false leaves the sandbox as it is.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Resting(s sandbox.Sandbox) sandbox.Resting
	Freeze(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	Sleep(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	Thaw(ctx context.Context, ref sandbox.Ref, used func() bool) (sandbox.Sandbox, error)
	Subscribe() *event.Subscription[sandbox.Event]
	EngineHealth() error
}

// Config is what a Reaper works with. Tracker, Sandboxes and Log are needed.
type Config struct {
	Tracker   *Tracker
	Sandboxes Sandboxes
	Holds     *Holds // may be nil
	// Usage asks the engine what the sandbox of an id has used; nil when the engine cannot tell. Kinds as for
	// sandbox.Freezer.
	Usage func(ctx context.Context, id string) (sandbox.Usage, error)
	// Memory tells how many bytes the host has available, has in all, and has free in swap; nil turns off pressure.
	Memory func() (available, total, swapFree int64, err error)
	// DropPooled gives up one sandbox that was made in advance, and says whether there was one; may be nil.
	DropPooled func(ctx context.Context) (bool, error)
	Settle     time.Duration // nothing is put to rest so soon after the start of sandboxd or the return of the engine
	Reserve    int64         // bytes of memory to keep available; 0 turns off pressure
	Log        *slog.Logger
}

// Reaper puts unused sandboxes to rest: first frozen, then asleep, at the times that a sandbox, its template or the
// server says. It thaws a sandbox that was frozen behind its back while in use. Its methods are safe for concurrent use.
type Reaper struct {
	c      Config
	turn   chan struct{} // holds a token while a pass is under way
	nudged chan struct{}

	mu       sync.Mutex
	settled  time.Time // before this nothing is put to rest
	away     bool      // the engine was not there when last seen
	up       map[string]*watched
	next     time.Time // when the next pass is due
	relieved time.Time // when memory was last made
	held     time.Time // when holds were last swept
	pruned   time.Time
}

// NewReaper makes a reaper. It does no I/O; Run makes it live.
func NewReaper(c Config) *Reaper {
	now := time.Now()
	return &Reaper{
		c: c, turn: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
		up: map[string]*watched{}, settled: now.Add(c.Settle), held: now, pruned: now,
	}
}

// watched is what the reaper remembers of one sandbox that is up.
type watched struct {
	state   sandbox.State
	changed time.Time // of the row
	// Guarded by Reaper.mu.
	grace        time.Time // not to be put to rest before
	stuck        time.Time // it did not thaw; not to be tried again before
	sampled      time.Time // since when it is probed for activity; zero when it is not
	cannotFreeze bool      // the engine has said so since it came up
	probe        *probe    // used only by the running pass
}

// Run puts sandboxes to rest until ctx ends. The clock of every sandbox that is up begins afresh with it.
func (r *Reaper) Run(ctx context.Context) error {
	r.begin()
	sub := r.c.Sandboxes.Subscribe()
	defer func() { sub.Close() }()
	for {
		report, err := r.Sweep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			r.c.Log.Warn("pass over idle sandboxes did not succeed", "error", err)
		}
		if !r.wait(ctx, sub, report.Next) {
			return nil
		}
		if sub.Dropped() {
			sub.Close()
			sub = r.c.Sandboxes.Subscribe()
			r.catchUp(ctx)
		}
	}
}

// begin lets everything settle, and every clock start afresh with the next pass.
func (r *Reaper) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = time.Now().Add(r.c.Settle)
	clear(r.up)
}

// wait takes events until the next pass is due, and says whether there is to be one.
func (r *Reaper) wait(ctx context.Context, sub *event.Subscription[sandbox.Event], next time.Time) bool {
	soonest := time.Now().Add(shortestPause)
	due := time.NewTimer(r.expect(later(next, soonest)))
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-r.nudged:
			due.Reset(r.expect(soonest))
		case e, open := <-sub.C:
			if !open {
				return true
			}
			if r.observe(*e) {
				due.Reset(r.expect(soonest))
			}
		}
	}
}

// expect notes when the next pass is due, and says how long that is.
func (r *Reaper) expect(next time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = next
	return time.Until(next)
}

// nudge lets the next pass be soon.
func (r *Reaper) nudge() {
	select {
	case r.nudged <- struct{}{}:
	default:
	}
}

// observe takes one event, and reports whether it may change the next steps.
func (r *Reaper) observe(e sandbox.Event) bool {
	s := e.Sandbox
	if s.Pooled {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.up[s.ID]
	if !e.Deleted {
		old := w != nil && kept(s.Changed).Before(w.changed) // the list has told of what came after it
		return !old && r.see(s)
	}
	delete(r.up, s.ID)
	r.c.Tracker.Forget(s.ID)
	return false
}

// see notes the state that a row says, under r.mu, and says whether the sandbox is up. One that has come up since it was
// last seen starts its clock afresh; one that was thawed is kept up for minUptime.
func (r *Reaper) see(s sandbox.Sandbox) bool {
	s.Changed = kept(s.Changed)
	w := r.up[s.ID]
	if s.State != sandbox.Running && s.State != sandbox.Frozen {
		delete(r.up, s.ID)
		return false
	}
	if w == nil {
		r.up[s.ID] = &watched{state: s.State, changed: s.Changed, probe: &probe{}}
		r.c.Tracker.Reset(s.ID)
		return true
	}
	if !w.changed.Equal(s.Changed) {
		r.move(w, s)
	}
	return true
}

func (r *Reaper) move(w *watched, s sandbox.Sandbox) {
	switch {
	case w.state == sandbox.Frozen && s.State == sandbox.Running:
		w.grace = time.Now().Add(minUptime)
	case w.state == sandbox.Running && s.State == sandbox.Running:
		r.c.Tracker.Reset(s.ID) // it was down in between, or at least might have been
	}
	w.state, w.changed, w.cannotFreeze, w.probe = s.State, s.Changed, false, &probe{}
	w.sampled, w.stuck = time.Time{}, time.Time{}
}

// catchUp finds out what events that were missed would have told: which sandboxes are gone.
func (r *Reaper) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	rows, _, err := r.c.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		r.c.Log.Warn("events were missed, and the list cannot be read", "error", err)
		return
	}
	ids := make(map[string]bool, len(rows))
	for _, s := range rows {
		ids[s.ID] = true
	}
	r.c.Tracker.setExisting(ids)
}

// healthy follows the engine's health: whatever was up when it went away gets all its time once it is back.
func (r *Reaper) healthy() bool {
	err := r.c.Sandboxes.EngineHealth()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.away {
		r.settled = time.Now().Add(r.c.Settle)
		clear(r.up)
	}
	r.away = err != nil
	return err == nil
}

// upkeep does what only time asks for.
func (r *Reaper) upkeep(ctx context.Context) {
	now := time.Now()
	r.mu.Lock()
	holds, prune := now.Sub(r.held) >= holdsEvery && r.c.Holds != nil, now.Sub(r.pruned) >= pruneEvery
	if holds {
		r.held = now
	}
	if prune {
		r.pruned = now
	}
	r.mu.Unlock()
	if prune {
		r.c.Tracker.prune()
	}
	if !holds {
		return
	}
	if err := r.c.Holds.Sweep(ctx); err != nil {
		r.c.Log.Warn("expired holds stay in the store", "error", err)
	}
}
