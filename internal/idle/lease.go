package idle

import "time"

// Lease is one use of a sandbox that lasts. Its methods are safe for concurrent use.
type Lease struct {
	t     *Tracker
	id    string
	clock *clock
	use   Use
	bit   kindSet
	watch bool // it counts around its touches only

	// Guarded by clock.mu.
	since      time.Time // its beginning; of a watched one that of the present stretch of touches
	touched    time.Time // the last time that it counted
	ended      bool
	prev, next *Lease
}

// Touch notes that something happens in it: a byte, a key, the focus of its tab. After End it does nothing.
func (l *Lease) Touch(unattended bool) {
	now := time.Now()
	c := l.clock
	c.mu.Lock()
	told := false
	if !l.ended && c.stamp(now, whose(unattended)) {
		if l.watch && now.Sub(l.touched) > Pulse {
			l.since = now
		}
		l.touched = now
		told = c.appears(l.bit, now)
	}
	c.mu.Unlock()
	l.t.tell(l.id, told)
}

// End ends the use. It may be called more than once.
func (l *Lease) End() {
	now := time.Now()
	c := l.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	c.drop(l)
	switch limit := c.limit(); {
	case l.watch: // its last touch was its last use
	case l.use.by() == byNone:
		c.stamp(now, byNone)
	case !l.use.Unattended:
		c.attended = later(c.attended, now) // its beginning was the act
	case now.After(limit) && !l.since.After(limit):
		c.unattended = later(c.unattended, limit)
	default:
		c.stamp(now, byPage)
	}
}

// busy reports whether it counts now, where unattended use counts until limit.
func (l *Lease) busy(now, limit time.Time) bool {
	switch {
	case l.watch:
		return now.Before(l.touched.Add(Pulse))
	case l.use.Unattended:
		return !now.After(limit)
	}
	return true
}
