package idle

import (
	"slices"
	"time"

	"sandboxd/internal/text"
)

// maxReasons bounds a Status: more than a person reads.
const maxReasons = 16

// maxDetail is the longest detail of a Reason, in bytes.
const maxDetail = 120

// status gives what uses the sandbox now, or since when nothing does.
func (c *clock) status(now time.Time) Status {
	c.mu.Lock()
	reasons, idle := c.reasons(now)
	last, free := c.ahead(now)
	c.mu.Unlock()
	s := Status{Idle: idle, last: last, free: free}
	if len(reasons) > 0 {
		s.Because, s.Idle = tidy(reasons), time.Time{}
	}
	return s
}

// ahead gives the part of Status about the future, under the lock and after reasons.
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

// reasons gathers the uses under the lock, details as they came; those that are alike are one. idle
// is for when there are none: an unattended lease that counts no more was a use as long as it counted.
func (c *clock) reasons(now time.Time) (found []Reason, idle time.Time) {
	c.expire(now)
	limit := c.limit()
	idle = c.idle()
	held := heldReasons(c.holds)
	room := maxReasons - len(held)
	for l := c.first; l != nil; l = l.next {
		if l.busy(now, limit) {
			found = merge(found, Reason{Kind: l.use.Kind, Detail: l.use.Detail, Since: l.since}, room)
		} else if !l.watch && !l.since.After(limit) {
			idle = later(idle, limit)
		}
	}
	for _, m := range c.moments {
		if m.busy(now) {
			found = merge(found, Reason{Kind: m.use.Kind, Detail: m.use.Detail, Since: m.since}, room)
		}
	}
	return append(found, held...), idle
}

// merge adds a reason, unless there is one like it, or there are limit and it is not to take the place of another: it
// takes that of the newest of its kind if that is newer, and as the first of its kind that of the newest of another kind
// which has several.
func merge(found []Reason, r Reason, limit int) []Reason {
	for i := range found {
		if found[i].Kind == r.Kind && found[i].Detail == r.Detail {
			if r.Since.Before(found[i].Since) {
				found[i].Since = r.Since
			}
			found[i].Until = later(found[i].Until, r.Until)
			return found
		}
	}
	if len(found) < limit {
		return append(found, r)
	}
	at, first := newest(found, func(o Reason) bool { return o.Kind == r.Kind }), false
	if at < 0 {
		at, first = newest(found, func(o Reason) bool { return several(found, o.Kind) }), true
	}
	if at >= 0 && (first || r.Since.Before(found[at].Since)) {
		found[at] = r
	}
	return found
}

// newest gives the place of the newest of the reasons that are picked, or -1.
func newest(found []Reason, picked func(Reason) bool) int {
	at := -1
	for i, r := range found {
		if picked(r) && (at < 0 || r.Since.After(found[at].Since)) {
			at = i
		}
	}
	return at
}

// several reports whether more than one of the reasons is of that kind.
func several(found []Reason, k Kind) bool {
	count := 0
	for _, r := range found {
		if r.Kind == k {
			count++
		}
	}
	return count > 1
}

// tidy makes details fit to be shown, and puts the oldest reason first.
func tidy(raw []Reason) []Reason {
	out := make([]Reason, 0, len(raw))
	for _, r := range raw {
		r.Detail = text.OneLine(r.Detail, maxDetail)
		out = merge(out, r, maxReasons)
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return a.Since.Compare(b.Since) })
	return out
}
