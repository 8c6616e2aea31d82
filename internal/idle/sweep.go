package idle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Report is what one pass has done.
type Report struct {
	Up            int       // how many sandboxes it has looked at
	Frozen        []string  // names of those frozen
	Slept         []string  // names of those on their way to be stopped
	Thawed        []string  // names of those that were frozen under a use
	DroppedPooled bool      // one that was made in advance has been given up
	Next          time.Time // when to look again, at the latest
}

// plan is the next step of one sandbox that is up.
type plan struct {
	s          sandbox.Sandbox
	w          *watched
	probe      *probe
	rest       catalog.Rest
	status     Status
	step       step
	memoryRest sandbox.State // where the host sends it because memory is short; "" when it does not
	waits      bool          // it has not been probed for long enough
}

// step is the next one down: frozen, then asleep.
type step struct {
	to   sandbox.State // Frozen or Asleep; "" for none: in use, or never
	due  time.Time
	lead time.Duration // how long before due it is probed for activity
}

// Sweep looks once at all sandboxes that are up, thaws those that were frozen under a use, probes those
// that are about to be due, and puts to rest those that are. It blocks until that is done, at most some seconds each; one
// pass runs at a time. The error is of the list; what cannot be done to a sandbox is logged and tried again.
func (r *Reaper) Sweep(ctx context.Context) (Report, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	if !r.healthy() {
		return Report{Next: time.Now().Add(busyPause)}, nil
	}
	plans, err := r.plans(ctx)
	if err != nil {
		return Report{Next: time.Now().Add(longestPause)}, err
	}
	r.upkeep(ctx)
	report := Report{Up: len(plans), Thawed: r.thawUsed(ctx, plans)}
	short := r.checkMemory(ctx, plans, &report)
	side(plans, r.wantsProbe, func(p *plan) { r.ask(ctx, p) })
	var mu sync.Mutex
	side(plans, r.isDue, func(p *plan) {
		to, ok := r.rest(ctx, p)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ok && to == sandbox.Frozen:
			report.Frozen = append(report.Frozen, p.s.Name)
		case ok:
			report.Slept = append(report.Slept, p.s.Name)
		}
	})
	report.Next = next(plans, short)
	return report, nil
}

// side runs f for the plans that are picked, several side by side, and waits for all.
func side(plans []*plan, picked func(*plan) bool, f func(*plan)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, p := range plans {
		if !picked(p) {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(p)
		})
	}
	wg.Wait()
}

// plans lists the sandboxes that are up with the next step of each.
func (r *Reaper) plans(ctx context.Context) ([]*plan, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	rows, _, err := r.c.Sandboxes.List(ctx, sandbox.Filter{Up: true})
	if err != nil {
		return nil, fmt.Errorf("list the sandboxes that are up: %w", err)
	}
	plans := make([]*plan, 0, len(rows))
	for _, p := range r.meet(rows) {
		r.c.Tracker.note(p.s.ID)
		p.rest = r.c.Sandboxes.Resting(p.s).Rest
		r.setStep(p)
		plans = append(plans, p)
	}
	return plans, nil
}

// meet takes in the rows of all that are up, and forgets those that are not.
func (r *Reaper) meet(rows []sandbox.Sandbox) []*plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := make(map[string]bool, len(rows))
	plans := make([]*plan, 0, len(rows))
	for _, s := range rows {
		there[s.ID] = true
		if r.see(s) {
			w := r.up[s.ID]
			plans = append(plans, &plan{s: s, w: w, probe: w.probe})
		}
	}
	for id := range r.up {
		if !there[id] {
			delete(r.up, id)
		}
	}
	return plans
}

// setStep sets p's next step and its time from the tracker.
func (r *Reaper) setStep(p *plan) {
	p.status = r.c.Tracker.Status(p.s.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.w.sampled = p.probe.first.at
	p.step = nextStep(p.s.State, p.rest, p.status, p.w.cannotFreeze)
	if p.memoryRest != "" && len(p.status.Because) == 0 {
		p.step = step{to: p.memoryRest, due: p.status.Idle.Add(leastIdle), lead: longestLead}
	}
	p.step.due = later(p.step.due, r.floor(p.w))
}

// nextStep gives the next step of an unused sandbox, or one that soon will be, without regard to settling.
func nextStep(now sandbox.State, rest catalog.Rest, status Status, cannotFreeze bool) step {
	freezes, stops := stepsBelow(now, rest, cannotFreeze)
	switch {
	case status.free.IsZero():
	case freezes:
		return stepTo(sandbox.Frozen, status, rest.FreezeAfter)
	case stops:
		return stepTo(sandbox.Asleep, status, rest.StopAfter)
	}
	return step{}
}

// stepsBelow says which of the two steps are below a state. A freeze that would come with the stop or after it
// is none.
func stepsBelow(now sandbox.State, rest catalog.Rest, cannotFreeze bool) (freezes, stops bool) {
	stops = rest.StopAfter > 0
	freezes = now == sandbox.Running && !cannotFreeze && rest.FreezeAfter > 0 && (!stops || rest.FreezeAfter < rest.StopAfter)
	return freezes, stops
}

func stepTo(to sandbox.State, status Status, after catalog.After) step {
	wait := time.Duration(after)
	return step{to: to, due: later(status.last.Add(wait), status.free), lead: min(longestLead, max(wait/2, shortestLead))}
}

// floor is before when nothing happens to w, under r.mu.
func (r *Reaper) floor(w *watched) time.Time {
	if r.away {
		return time.Now().Add(r.c.Settle)
	}
	return later(r.settled, w.grace)
}

// isDue reports whether p is to be put to rest now.
func (r *Reaper) isDue(p *plan) bool {
	return p.step.to != "" && !p.waits && !time.Now().Before(p.step.due)
}

// rest puts p's sandbox to rest, unless it has been used since it was looked at.
func (r *Reaper) rest(ctx context.Context, p *plan) (sandbox.State, bool) {
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	since := p.status.last
	still := func() bool {
		now := r.c.Tracker.Status(p.s.ID)
		return len(now.Because) == 0 && !now.Idle.After(since)
	}
	down := r.c.Sandboxes.Sleep
	if p.step.to == sandbox.Frozen {
		down = r.c.Sandboxes.Freeze
	}
	s, err := down(ctx, p.s.Ref(), still)
	if err != nil {
		r.refused(p, err)
		return "", false
	}
	r.mu.Lock()
	r.see(s)
	if p.memoryRest != "" {
		r.relieved = time.Now()
	}
	r.mu.Unlock()
	if s.State == p.s.State || s.State == sandbox.Running { // the latter when it was frozen and a use thawed it first
		return s.State, false
	}
	why := "unused"
	if p.memoryRest != "" {
		why = "the host is short of memory"
	}
	r.c.Log.Info("put a sandbox to rest", "sandbox", p.s.Name, "state", s.State, "why", why, "idle", time.Since(since).Round(time.Second))
	return p.step.to, true
}

// refused remembers what could not be done: never to be tried again in this state, or later.
func (r *Reaper) refused(p *plan, err error) {
	if fault.Is(err, fault.NotFound) || errors.Is(err, context.Canceled) {
		return // it is gone, or sandboxd is about to be
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.step.to == sandbox.Frozen && fault.Is(err, fault.Conflict) {
		p.w.cannotFreeze = true
		r.c.Log.Info("a sandbox cannot be frozen; it will be stopped in its time", "sandbox", p.s.Name, "error", err)
		return
	}
	p.w.grace = time.Now().Add(retryAfter)
	r.c.Log.Warn("a sandbox cannot be put to rest", "sandbox", p.s.Name, "error", err)
}

// next gives when to look again.
func next(plans []*plan, short bool) time.Time {
	now := time.Now()
	at := now.Add(longestPause)
	if short {
		at = now.Add(busyPause)
	}
	for _, p := range plans {
		if soon, ok := p.next(now); ok && soon.Before(at) {
			at = soon
		}
	}
	return later(at, now.Add(shortestPause))
}

// next gives when there is something to be done about p.
func (p *plan) next(now time.Time) (time.Time, bool) {
	if p.step.to == "" { // its use may end at any time, and a step due shortly after must not be late
		after := p.rest.FreezeAfter
		if after <= 0 {
			after = p.rest.StopAfter
		}
		return now.Add(max(time.Duration(after)/2, busyPause/2)), after > 0
	}
	times := []time.Time{p.step.due.Add(-p.step.lead), p.step.due}
	if first := p.probe.first.at; !first.IsZero() {
		times = append(times, first.Add(p.step.least()))
	}
	for _, t := range times {
		if t.After(now) {
			return t, true
		}
	}
	return now.Add(busyPause), true // it is due and waits
}
