package idle

import (
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

// tellEvery is the least time between two Changes of one sandbox.
const tellEvery = time.Second

// clock is one sandbox's part of the tracker.
type clock struct {
	mu    sync.Mutex
	gone  bool // removed from the tracker; those who found it before look it up again
	known bool // the reaper or a start has confirmed that there is such a sandbox
	stamps
	first, last *Lease   // in the order of their beginning
	moments     []moment // at most one for each kind
	holds       []sandbox.Hold
	heartbeats  Heartbeats[uint64]
	told        kindSet // the kinds that subscribers were last told of
	toldAt      time.Time
}

// stamps are the times from which idleness is computed. Uses that do not count leave none.
type stamps struct {
	seen       time.Time // when sandboxd first heard of it
	fresh      time.Time // its last start
	attended   time.Time // the last attended use
	dismissed  time.Time // when it was put to rest by hand; zero since the next attended use,
	rested     time.Time // which leaves it here
	unattended time.Time // the last unattended use that counted
	unaided    time.Time // the last use by no one: work, a hold
}

// limit is until when unattended use counts.
func (s *stamps) limit() time.Time {
	limit := s.attended.Add(Attention)
	if s.attended.IsZero() {
		limit = s.seen.Add(Attention)
	}
	if before := s.dismissed.Add(-1); !s.dismissed.IsZero() && before.Before(limit) {
		return before
	}
	return limit
}

// idle is the last moment of use.
func (s *stamps) idle() time.Time {
	return later(later(s.fresh, s.attended), later(s.unattended, s.unaided))
}

// doing is whose doing a use is.
type doing uint8

const (
	byPerson doing = iota // attended: a person's, or a program's that asks for something
	byPage                // unattended: perhaps a forgotten page's; it counts as long as a person may be there
	byNone                // it counts, but no person need be there
)

func whose(unattended bool) doing {
	if unattended {
		return byPage
	}
	return byPerson
}

// by is whose doing the use is when it begins.
func (u Use) by() doing {
	if u.Kind == Model || u.Kind == Agent || u.Kind == Work {
		return byNone
	}
	return whose(u.Unattended)
}

// stamp notes a use at a moment, and says whether it counts.
func (s *stamps) stamp(at time.Time, by doing) bool {
	switch {
	case by == byPerson:
		s.attended, s.rested, s.dismissed = later(s.attended, at), later(s.rested, s.dismissed), time.Time{}
	case by == byNone:
		s.unaided = later(s.unaided, at)
	case at.After(s.limit()):
		return false
	default:
		s.unattended = later(s.unattended, at)
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// moment is the last of the moments of use of one kind.
type moment struct {
	use   Use
	since time.Time // the first of those with the same detail without a longer pause than Pulse
	at    time.Time
}

// moment notes a moment of use and says whether it counts.
func (c *clock) moment(u Use, by doing, at time.Time) bool {
	if !c.stamp(at, by) {
		return false
	}
	for i := range c.moments {
		m := &c.moments[i]
		if m.use.Kind != u.Kind {
			continue
		}
		if at.Sub(m.at) > Pulse {
			m.since = at
		}
		if !at.Before(m.at) {
			m.use, m.at = u, at
		}
		return true
	}
	if len(c.moments) <= len(kinds) {
		c.moments = append(c.moments, moment{u, at, at})
	}
	return true
}

// appears notes that a kind is in use, and says whether that is news to be told now.
func (c *clock) appears(bit kindSet, now time.Time) bool {
	if c.told&bit != 0 || now.Sub(c.toldAt) < tellEvery {
		return false
	}
	c.told, c.toldAt = c.told|bit, now
	return true
}

// present gives the kinds in use.
func (c *clock) present(now time.Time) kindSet {
	c.expire(now)
	var set kindSet
	limit := c.limit()
	for l := c.first; l != nil; l = l.next {
		if l.busy(now, limit) {
			set |= l.bit
		}
	}
	for _, m := range c.moments {
		if m.busy(now) {
			set |= m.use.Kind.bit()
		}
	}
	if len(c.holds) > 0 {
		set |= Held.bit()
	}
	return set
}

func (m moment) busy(now time.Time) bool { return now.Before(m.at.Add(Pulse)) }

// expire ends the holds whose time is over: at that time, not when it is noticed.
func (c *clock) expire(now time.Time) {
	kept := c.holds[:0]
	for _, h := range c.holds {
		if now.Before(h.Expires) {
			kept = append(kept, h)
		} else {
			c.unaided = later(c.unaided, h.Expires)
		}
	}
	clear(c.holds[len(kept):])
	c.holds = kept
}

// keepLeases leaves only the leases that have not ended.
func (c *clock) keepLeases(now time.Time) {
	c.known, c.stamps, c.moments, c.holds, c.heartbeats = false, stamps{seen: now, fresh: now}, nil, nil, Heartbeats[uint64]{}
}

// empty reports whether forgetting c changes nothing.
func (c *clock) empty(now time.Time) bool {
	c.expire(now)
	return !c.known && c.first == nil && len(c.holds) == 0 &&
		now.Sub(c.idle()) > Attention && now.Sub(c.heartbeats.latest()) > Attention
}

// push adds a lease as the latest.
func (c *clock) push(l *Lease) {
	l.prev = c.last
	if c.last != nil {
		c.last.next = l
	} else {
		c.first = l
	}
	c.last = l
}

// drop takes a lease out.
func (c *clock) drop(l *Lease) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		c.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
	l.prev, l.next = nil, nil
}
