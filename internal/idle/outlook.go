package idle

import (
	"time"

	"sandboxd/internal/sandbox"
)

// Outlook is what a person is told: what keeps a sandbox awake, or when it will be put to rest if nobody uses it.
type Outlook struct {
	Because            []Reason  // oldest first
	FreezesAt, StopsAt time.Time // zero: not while this lasts, or never
}

// Outlook tells what is ahead of s. Empty for one that is not up. A time that has passed means that the sandbox is being
// asked whether it works.
func (r *Reaper) Outlook(s sandbox.Sandbox) Outlook {
	if s.State != sandbox.Running && s.State != sandbox.Frozen {
		return Outlook{}
	}
	standing := r.c.Tracker.Standing(s.Name)
	if len(standing.Because) > 0 {
		return Outlook{Because: standing.Because}
	}
	rest := r.c.Sandboxes.Resting(s).Rest
	away := r.c.Sandboxes.EngineHealth() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.up[s.Name]
	if w == nil || w.id != s.ID {
		w = &watched{}
	}
	floor := r.floor(w)
	if away {
		floor = time.Now().Add(r.c.Settle)
	}
	var o Outlook
	freezes, stops := whole(s.State, rest, w.cannotFreeze)
	if freezes {
		o.FreezesAt = later(standing.Idle.Add(time.Duration(rest.FreezeAfter)), floor)
	}
	if stops {
		o.StopsAt = later(standing.Idle.Add(time.Duration(rest.StopAfter)), floor)
	}
	return o
}
