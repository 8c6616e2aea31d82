package idle

import (
	"slices"
	"time"

	"sandboxd/internal/wire"
)

// maxReasons bounds a Standing: more than a person reads.
const maxReasons = 16

// maxDetail is the longest detail of a Reason, in bytes.
const maxDetail = 120

// standing gives what uses the sandbox now, or since when nothing does.
func (c *clock) standing(now time.Time) Standing {
	c.mu.Lock()
	reasons, idle := c.reasons(now)
	last, free := c.ahead(now)
	c.mu.Unlock()
	s := Standing{Idle: idle, last: last, free: free}
	if len(reasons) > 0 {
		s.Because, s.Idle = tidy(reasons), time.Time{}
	}
	return s
}

// ahead gives what Standing says of what is to come, under the lock and after reasons.
func (c *clock) ahead(now time.Time) (last, free time.Time) {
	limit := c.limit()
	last = c.idle()
	for l := c.first; l != nil; l = l.next {
		switch {
		case l.watch:
			free = later(free, l.touched.Add(Pulse))
		case !l.use.Unattended:
			return now, time.Time{}
		case !l.since.After(limit):
			last, free = later(last, limit), later(free, limit.Add(1))
		}
	}
	for _, m := range c.moments {
		free = later(free, m.at.Add(Pulse))
	}
	for _, h := range c.holds {
		last = later(last, h.Expires)
	}
	return last, later(free, last)
}

// reasons gathers what is in use under the lock, details as they came; those that are alike are one. The reckoning of
// idle is for when there are none: an unattended lease that counts no more was a use as long as it counted.
func (c *clock) reasons(now time.Time) (found []Reason, idle time.Time) {
	c.expire(now)
	limit := c.limit()
	idle = c.idle()
	for l := c.first; l != nil; l = l.next {
		if l.busy(now, limit) {
			found = merge(found, Reason{l.use.Kind, l.use.Detail, l.since})
		} else if !l.watch && !l.since.After(limit) {
			idle = later(idle, limit)
		}
	}
	for _, m := range c.moments {
		if m.busy(now) {
			found = merge(found, Reason{m.use.Kind, m.use.Detail, m.since})
		}
	}
	for _, h := range c.holds {
		found = merge(found, Reason{Held, h.Reason, h.Created})
	}
	return found, idle
}

// merge adds a reason, unless there is one like it, or enough of them that are older.
func merge(found []Reason, r Reason) []Reason {
	for i := range found {
		if found[i].Kind == r.Kind && found[i].Detail == r.Detail {
			if r.Since.Before(found[i].Since) {
				found[i].Since = r.Since
			}
			return found
		}
	}
	if len(found) < maxReasons {
		return append(found, r)
	}
	for i := range found {
		if r.Since.Before(found[i].Since) {
			found[i], r = r, found[i]
		}
	}
	return found
}

// tidy makes details fit to be shown, and puts the oldest reason first.
func tidy(raw []Reason) []Reason {
	out := make([]Reason, 0, len(raw))
	for _, r := range raw {
		r.Detail = wire.Clean(r.Detail, maxDetail)
		out = merge(out, r)
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return a.Since.Compare(b.Since) })
	return out
}
