package metrics

import (
	"slices"
	"time"

	"sandboxd/internal/sandbox"
)

// fineKept is how many spans between two readings are kept of a sandbox; a source that is read less often needs fewer.
const fineKept = int(FineLife / FineStep)

// fineFirst is how many there is room for at first. After that there is room for all: growing by and by leaves garbage of every step.
const fineFirst = 32

// track is what is in memory of one sandbox, or of the host.
type track struct {
	state   sandbox.State
	settled sandbox.State // the last one that was settled
	last    Reading
	based   bool // last counts
	changed time.Time
	kills   int64 // processes killed for want of memory since sandboxd was started

	fine   []span // a ring, once it is full
	next   int    // where the next one goes
	medium bucket
	coarse bucket
}

// bucket is a span of a tier that is not over.
type bucket struct {
	open bool
	span span // from is its beginning
}

// asked reports whether a source is to be asked.
func (t *track) asked() bool { return t.state == sandbox.Running }

// enter notes a state, and gives the change, if it is one.
func (t *track) enter(state sandbox.State, now time.Time) (Change, bool) {
	if state == t.state {
		return Change{}, false
	}
	c := Change{Time: now.Round(0), State: state}
	if !c.Time.After(t.changed) && t.changed.Sub(c.Time) < time.Millisecond {
		c.Time = t.changed.Add(time.Microsecond) // each its own time
	}
	if state == sandbox.Running && t.state != sandbox.Capturing {
		c.Mark = markOf(t.settled)
	}
	if state == sandbox.Starting { // its counters begin anew
		t.last, t.based = Reading{Time: now}, true
	}
	if t.state == sandbox.Frozen || t.state == sandbox.Capturing { // nothing was used meanwhile
		t.last.Time = now
	}
	t.state, t.changed = state, c.Time
	if state.Settled() {
		t.settled = state
	}
	return c, true
}

// markOf says what led to Running from the last settled state.
func markOf(settled sandbox.State) Mark {
	switch settled {
	case sandbox.Asleep, sandbox.Frozen:
		return Woken
	case sandbox.Running:
		return Restarted
	}
	return Started
}

// read takes a reading, and gives the rows that are over by it and how many processes were killed for want of memory.
func (t *track) read(r Reading) (rows []tierSpan, kills int) {
	before := t.last
	if t.based && !r.Time.After(before.Time) && before.Time.Sub(r.Time) < staleReading {
		return nil, 0 // the same once more, or from before a restart
	}
	t.last = r
	if !t.based {
		t.based = true
		return nil, 0
	}
	s, ok := between(before, r)
	if !ok {
		return nil, 0
	}
	if len(t.fine) == fineFirst {
		t.fine = slices.Grow(t.fine, fineKept-fineFirst)
	}
	if len(t.fine) < fineKept {
		t.fine = append(t.fine, s)
	} else {
		t.fine[t.next] = s
	}
	t.next = (t.next + 1) % fineKept
	rows = t.medium.take(rows, Medium, s)
	rows = t.coarse.take(rows, Coarse, s)
	return rows, int(s.oomKills)
}

// staleReading is how far back the time of a reading may be and be taken for an old one; further back, the clock was changed.
const staleReading = 30 * time.Second

// tierSpan is a span of a tier.
type tierSpan struct {
	tier Tier
	span span
}

// take adds s, and what is over by it to rows.
func (b *bucket) take(rows []tierSpan, tier Tier, s span) []tierSpan {
	step, end := int64(tier), s.from+s.took
	for at := s.from; at < end; {
		begin := at - at%step
		if b.open && b.span.from != begin {
			rows = b.close(rows, tier)
		}
		if !b.open {
			b.open, b.span = true, span{from: begin}
		}
		if part, ok := s.cut(end, at, begin+step); ok {
			b.span.add(part)
		}
		at = begin + step
	}
	return rows
}

// over closes the bucket when its time is over at now.
func (b *bucket) over(rows []tierSpan, tier Tier, now time.Time) []tierSpan {
	if b.open && now.UnixNano() >= b.span.from+int64(tier) {
		rows = b.close(rows, tier)
	}
	return rows
}

func (b *bucket) close(rows []tierSpan, tier Tier) []tierSpan {
	if b.open {
		rows = append(rows, tierSpan{tier, b.span})
	}
	b.open = false
	return rows
}

// spans gives those that are in memory, oldest first, and that end after since.
func (t *track) spans(since int64) []span {
	out := make([]span, 0, len(t.fine))
	begin := 0
	if len(t.fine) == fineKept {
		begin = t.next
	}
	for i := range t.fine {
		if s := t.fine[(begin+i)%len(t.fine)]; s.from+s.took > since {
			out = append(out, s)
		}
	}
	return out
}

// forget lets go of what is too old to be asked for.
func (t *track) forget(now time.Time) {
	if n := len(t.fine); n > 0 {
		newest := t.fine[(t.next+n-1)%n]
		if newest.from < now.Add(-FineLife).UnixNano() {
			t.fine, t.next = nil, 0
		}
	}
}
