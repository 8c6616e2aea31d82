package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// backoff is the wait before the engine is watched again after it was lost.
const backoff = time.Second

// restartGap is longer than an engine that is asked for a restart leaves between an end and the start. It also is longer than one takes to
// notice that a sandbox was thawed again: Docker sets "paused" once more when it hears of a pause after it has ended it already.
const restartGap = 2 * time.Second

// freezing is longer than freezing takes: an older look at a frozen sandbox may have been from before it was.
const freezing = 2 * engineLimit

// reconciler follows the engine, and brings rows and engine together where they differ.
type reconciler struct {
	*operations
	*health
	settings   *settings
	containers *containers
	rester     *rester
	remover    *remover
	keeper     *keeper
	pools      *pools
	orphans    *orphans
}

// health is whether the engine is being watched.
type health struct {
	mu  sync.Mutex
	err error
}

// EngineHealth is nil while the engine is being watched, else says why not, as an Unavailable fault.
func (h *health) EngineHealth() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *health) setEngine(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// checkLimit bounds CheckEngine. With the time between two looks of a page it is less than ten seconds.
const checkLimit = 4 * time.Second

// CheckEngine gives an error unless the engine answers now. Unlike EngineHealth it also finds one that hangs, whose events only
// stay away. It blocks until the engine answers, ctx ends, or for four seconds.
func (r *reconciler) CheckEngine(ctx context.Context) error {
	if err := r.EngineHealth(); err != nil {
		return err
	}
	ctx, end := context.WithTimeout(ctx, checkLimit)
	defer end()
	if err := r.sharedPing(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// Run reconciles until ctx ends: it finishes operations that a crash has cut off, watches the engine, and compares all
// sandboxes again when the engine comes back and once a minute. When ctx ends it takes no more operations, ends those
// under way (their intent is stored) and returns when they have ended.
func (r *reconciler) Run(ctx context.Context) error {
	defer r.turns.close()
	defer r.end()
	for {
		err := r.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.setEngine(fault.Wrap(err, fault.Unavailable, "The container engine does not answer. Start it; sandboxd continues by itself when it is back."))
		r.log.Warn("engine lost", "error", err)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return nil
		}
	}
}

// Recall lets the guests of all sandboxes that are awake dial in, so that those can be used before the engine has been
// looked at. It gives the ids of all sandboxes that there are, also of the pooled ones. To be called once, before Run.
func (r *reconciler) Recall(ctx context.Context) (ids map[string]bool, err error) {
	rows, err := r.All(ctx)
	if err != nil {
		return nil, err
	}
	ids = make(map[string]bool, len(rows))
	for id, s := range rows {
		ids[id] = true
		if s.State == Running || s.State == Frozen || s.State == Capturing {
			err = errors.Join(err, r.settings.expect(s))
		}
	}
	return ids, err
}

// watch follows the engine until it is lost or ctx ends.
func (r *reconciler) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready := make(chan struct{})
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		r.sweep(ctx, ready, cancel)
	}()
	err := r.containers.runtime.Watch(ctx, func() { close(ready) }, r.observe)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(err)
	<-swept
	return err
}

// sweep reconciles once the watch is on, and then from time to time. An engine that cannot be listed counts as lost.
func (r *reconciler) sweep(ctx context.Context, ready <-chan struct{}, lost context.CancelCauseFunc) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	back := true
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	for {
		if err := r.Reconcile(ctx, back); err != nil {
			lost(err)
			return
		}
		r.setEngine(nil)
		back = false
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Reconcile compares the rows with the engine, once, and starts an operation for every sandbox where
// they differ. With back, sandboxes that should run and do not are started (the engine or sandboxd was away);
// without, they have ended by themselves and are stored as failed. It does not wait for the operations. Instances without a
// row become orphans.
func (r *reconciler) Reconcile(ctx context.Context, back bool) error {
	asked := time.Now().UTC()
	listing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	instances, err := r.containers.runtime.List(listing)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	rows, err := r.All(listing)
	if err != nil {
		return err
	}
	found := make(map[string]Instance, len(instances))
	for _, i := range instances {
		found[i.ID] = i
		r.containers.note(i)
	}
	for _, s := range rows {
		i, ok := found[s.ID]
		delete(found, s.ID)
		switch {
		case i.Strayed: // so that its next start remounts it
			r.containers.mounts.drop(s.ID)
		case ok && !changedSince(s, asked):
			r.containers.mounts.note(s.ID, ParseMounts(i.Volumes))
		}
		r.compare(s, i, ok, look{at: asked, back: back})
	}
	return r.orphans.note(listing, found)
}

// look is the circumstance of a comparison: when the engine was asked, and whether it was away before.
type look struct {
	at   time.Time
	back bool
}

// compare starts an operation when s's row and its instance differ. Inside its turn it does nothing if the row has changed
// since then.
func (r *reconciler) compare(s Sandbox, i Instance, exists bool, l look) {
	if !differs(s.State, i, exists) && !s.Resizing && !r.settings.pushPending(s.ID) && !(l.back && (s.State == Running || s.State == Frozen)) {
		return
	}
	r.turns.run(r.life, s.Ref(), func(ctx context.Context) {
		now, err := r.rows.ByName(ctx, s.Name)
		if err != nil || now.ID != s.ID || changedSince(now, l.at) {
			return
		}
		// A row is Frozen before the engine is asked, so the look may be from between the two.
		early := now.State == Frozen && differs(Frozen, i, exists) && l.at.Sub(now.Changed) < freezing
		if doubtful(now, i) && !waited(ctx, restartGap) {
			return
		}
		if early || doubtful(now, i) {
			i, exists, err = r.containers.find(ctx, s.ID)
		}
		if l.back && (now.State == Running || now.State == Frozen) {
			r.settings.keepLimit(ctx, now)
		}
		if err == nil && now.Resizing {
			if now, err = r.settings.applyLimits(ctx, now); fault.Is(err, fault.Conflict) {
				err = nil // its programs hold more than they may have now: it gets its limits when it starts anew
			}
		}
		if err == nil {
			err = r.repair(ctx, now, i, exists, l.back)
		}
		if err != nil {
			r.log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "state", now.State, "error", err)
		}
	})
}

// changedSince reports whether s has changed after at. A row from the future tells nothing: the clock has been set back.
func changedSince(s Sandbox, at time.Time) bool {
	return s.Changed.After(at) && !s.Changed.After(time.Now())
}

// doubtful says whether the engine may tell of a pause that has ended.
func doubtful(s Sandbox, i Instance) bool { return s.State == Running && i.Running && i.Frozen }

// waited waits for so long, and says whether ctx lasted.
func waited(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// observe handles an event of the engine: an instance has changed. It must not block the watch.
func (r *reconciler) observe(i Instance) {
	at := time.Now().UTC()
	r.containers.noteEvent(i)
	name := r.rows.nameOf(i.ID, i.Name)
	r.turns.run(r.life, Ref{i.ID, name}, func(ctx context.Context) {
		s, err := r.rows.ByName(ctx, name)
		if err != nil || s.ID != i.ID || changedSince(s, at) || !s.State.Settled() || !differs(s.State, i, true) {
			return
		}
		restarts := s.State == Running && !i.Running && i.ExitCode == 0 // "docker restart" starts it again by itself
		if (restarts || doubtful(s, i)) && !waited(ctx, restartGap) {
			return
		}
		now, exists, err := r.containers.find(ctx, s.ID) // the event may be old
		if err == nil {
			err = r.repair(ctx, s, now, exists, false)
		}
		if err != nil {
			r.log.Warn("change of a sandbox cannot be confirmed", "sandbox", s.Name, "error", err)
		}
	})
}
