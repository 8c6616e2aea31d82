package idle

import "time"

// A heartbeat is what a timer sends: the same again, at equal pauses. A person does not.
const (
	heartsKnown  = 16                     // keys looked at
	heartsEnough = 3                      // equal pauses after the first, before it is a heartbeat
	heartShort   = 800 * time.Millisecond // requests closer together are one: a click or a timer may send many
	heartLong    = Attention              // a longer pause is chance
	heartSlack   = 4 * time.Second        // how far equal pauses differ,
	slackPart    = 20                     // with this part of the pause more,
	slackMost    = 4                      // and at most this part of it
)

// Heartbeats tells them from what else comes, by keys: addresses, sizes of messages. The zero value is ready for use; it is
// not safe for concurrent use.
type Heartbeats[K comparable] [heartsKnown]struct {
	key         K
	begun, last time.Time // the first and the latest of those that came at once
	pause       time.Duration
	equal       int
}

// Is notes that something has come, and reports whether it is a heartbeat. It remembers the 16 keys that came last.
func (h *Heartbeats[K]) Is(key K, now time.Time) bool {
	at := 0
	for i := range h {
		if h[i].key == key && !h[i].last.IsZero() {
			at = i
			break
		}
		if h[i].last.Before(h[at].last) {
			at = i
		}
	}
	b := &h[at]
	if b.key != key {
		*b = Heartbeats[K]{}[0]
		b.key = key
	}
	if now.Sub(b.last) >= heartShort {
		pause := now.Sub(b.begun)
		if (pause-b.pause).Abs() <= min(heartSlack+b.pause/slackPart, b.pause/slackMost) && pause < heartLong {
			b.equal++
		} else {
			b.equal, b.pause = 0, pause
		}
		b.begun = now
	}
	b.last = now
	return b.equal >= heartsEnough
}

// latest is when something last came.
func (h *Heartbeats[K]) latest() (at time.Time) {
	for i := range h {
		at = later(at, h[i].last)
	}
	return at
}
