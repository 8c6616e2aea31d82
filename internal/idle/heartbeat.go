package idle

import "time"

// A heartbeat is a small message of the same size that comes again and again in the same time.
const (
	heartsKnown  = 4               // sizes looked at
	heartsEnough = 3               // equal pauses before a message is a heartbeat
	heartShort   = time.Second     // a shorter pause is somebody's typing or dragging
	heartSlack   = 5               // pauses are equal when they differ by a fifth
	heartLong    = 3 * time.Minute // a longer pause is chance
)

// Heartbeats knows those of one direction of one connection. The zero value is ready for use; it belongs to one goroutine.
type Heartbeats [heartsKnown]struct {
	size  int
	last  time.Time
	pause time.Duration
	equal int
}

// Is notes a message and reports whether a message of that size is a heartbeat.
func (b *Heartbeats) Is(size int, now time.Time) bool {
	at := 0
	for i := range b {
		if b[i].size == size && !b[i].last.IsZero() {
			at = i
			break
		}
		if b[i].last.Before(b[at].last) {
			at = i
		}
	}
	m := &b[at]
	if m.size != size {
		*m = Heartbeats{}[0]
		m.size = size
	}
	pause := now.Sub(m.last)
	if (pause-m.pause).Abs() <= m.pause/heartSlack && pause >= heartShort && pause <= heartLong {
		m.equal++
	} else {
		m.equal, m.pause = 0, pause
	}
	m.last = now
	return m.equal >= heartsEnough
}
