package idle

import (
	"time"

	"sandboxd/internal/sandbox"
)

// Outlook says what keeps a sandbox awake, or when it will be put to rest if unused.
type Outlook struct {
	Because            []Reason  // oldest first
	FreezesAt, StopsAt time.Time // zero: not while this lasts, or never
}

// Outlook tells the next steps of s. Empty for one that is not up; one that is frozen has no Because. The times are the
// earliest at which it can happen, with the reason for waiting until then, and never in the past.
func (r *Reaper) Outlook(s sandbox.Sandbox) Outlook {
	if s.State != sandbox.Running && s.State != sandbox.Frozen {
		return Outlook{}
	}
	status := r.c.Tracker.Status(s.ID)
	if len(status.Because) > 0 && s.State == sandbox.Running {
		return Outlook{Because: status.Because}
	}
	rest := r.c.Sandboxes.Resting(s).Rest
	away := r.c.Sandboxes.EngineHealth() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.up[s.ID]
	if w == nil {
		w = &watched{}
	}
	floor := r.ground(w, s, away)
	var o Outlook
	freezes, stops := stepsBelow(s.State, rest, w.cannotFreeze)
	if freezes {
		step := stepTo(sandbox.Frozen, status, rest.FreezeAfter)
		o.FreezesAt = r.earliest(r.probed(w, step, later(step.due, floor)))
	}
	if stops {
		step := stepTo(sandbox.Asleep, status, rest.StopAfter)
		at := later(step.due, floor)
		switch {
		case freezes:
			at = later(at, o.FreezesAt.Add(shortestPause))
		case s.State == sandbox.Running:
			at = r.probed(w, step, at)
		}
		o.StopsAt = r.earliest(at)
	}
	return o
}

// ground is floor with news that came between the passes, under r.mu: that the engine is away, or that s has been thawed.
func (r *Reaper) ground(w *watched, s sandbox.Sandbox, away bool) time.Time {
	now, floor := time.Now(), r.floor(w)
	if away {
		floor = now.Add(r.c.Settle)
	}
	if w.state == sandbox.Frozen && s.State == sandbox.Running && kept(s.Changed).After(w.changed) {
		floor = later(floor, now.Add(minUptime))
	}
	return floor
}

// probed is when a step that is due at a time has been asked about for long enough, under r.mu.
func (r *Reaper) probed(w *watched, s step, due time.Time) time.Time {
	if r.c.Usage == nil {
		return due
	}
	begun := w.sampled
	if begun.IsZero() {
		begun = later(due.Add(-s.lead), later(r.next, time.Now()))
	}
	return later(due, begun.Add(s.least()))
}

// earliest is the first pass at or after a time, under r.mu.
func (r *Reaper) earliest(at time.Time) time.Time {
	if now := time.Now(); !at.After(now) {
		return later(r.next, now.Add(shortestPause))
	}
	return at
}
