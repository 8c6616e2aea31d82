package idle

import (
	"slices"
	"time"
)

// A page that is left open asks in a rhythm, and a person does not. Several tabs, or several timers of one page, make one
// rhythm together: then it is the pause since the last but one, or an earlier one, that is always the same. A request
// that comes too early for it is somebody's; one that is late is not, since beats are lost and held up.
//
// What is taken for somebody's counts for an hour. So a rhythm may be missed now and then, but a person must not be
// taken for one for an hour: that is why the pauses have to be as alike as timers make them.
const (
	maxRhythms  = 64              // kinds of request that are remembered for one sandbox
	beatVoices  = 6               // tabs and timers in one rhythm
	beatPauses  = 4               // that are looked at,
	voicePauses = 2               // with so many more for each voice: a click may ask several times at once
	missedPart  = 4               // this part of them may be of any length
	beatSlack   = 4 * time.Second // how far two of them may differ,
	slackPart   = 20              // with this part of the pause more,
	slackMost   = 3               // and at most this part of it
	beatLate    = 4               // after so many pauses it is no beat any more
	beatsBefore = beatVoices + beatPauses + voicePauses*beatVoices
)

// rhythm is when requests of one kind came.
type rhythm struct {
	key     uint64
	at      []time.Time // the latest first, at most beatsBefore
	refused time.Time   // when one that will be tried again was last turned away
}

// beat notes that a request of a kind has come, and says whether that is in its rhythm, or since the last attended use one
// of them was turned away.
func (a *asked) beat(key uint64, now, attended time.Time) bool {
	a.last = now
	r := a.rhythm(key, now)
	is := r.expects(now) || r.refused.After(attended)
	r.at = slices.Insert(r.at, 0, now)[:min(len(r.at)+1, beatsBefore)]
	return is
}

// refuse notes that a beat was turned away.
func (a *asked) refuse(key uint64, now time.Time, retries bool) {
	r := a.rhythm(key, now)
	if retries {
		r.refused = now
	} else {
		r.at = nil
	}
}

// rhythm gives the one of a kind, which is new if none of it came within Attention. When there are too many the one that
// was quiet for the longest goes: somebody who asks for ever new things is there.
func (a *asked) rhythm(key uint64, now time.Time) *rhythm {
	quiet := 0
	for i := range a.rhythms {
		r := &a.rhythms[i]
		if r.key == key {
			if now.Sub(r.last()) > Attention {
				*r = rhythm{key: key}
			}
			return r
		}
		if r.last().Before(a.rhythms[quiet].last()) {
			quiet = i
		}
	}
	if len(a.rhythms) < maxRhythms {
		a.rhythms = append(a.rhythms, rhythm{key: key})
		return &a.rhythms[len(a.rhythms)-1]
	}
	a.rhythms[quiet] = rhythm{key: key}
	return &a.rhythms[quiet]
}

func (r *rhythm) last() time.Time {
	if len(r.at) == 0 {
		return r.refused
	}
	return r.at[0]
}

// expects reports whether a request that comes now is in the rhythm of those before.
func (r *rhythm) expects(now time.Time) bool {
	for voices := 1; voices <= beatVoices && voices+looks(voices) <= len(r.at); voices++ {
		pause, slack, steady := r.pause(voices)
		since := now.Sub(r.at[voices-1])
		if steady && since >= pause-slack && since <= beatLate*pause {
			return true
		}
	}
	return false
}

// looks is how many pauses are looked at.
func looks(voices int) int { return beatPauses + voicePauses*voices }

// pause gives how long it takes until each of so many voices comes again, how far that may differ, and whether it does not
// differ by more.
func (r *rhythm) pause(voices int) (pause, slack time.Duration, steady bool) {
	var space [beatsBefore]time.Duration
	pauses := space[:looks(voices)]
	for i := range pauses {
		pauses[i] = r.at[i].Sub(r.at[i+voices])
	}
	slices.Sort(pauses)
	pause = pauses[len(pauses)/2]
	each := pause / time.Duration(voices)
	slack = min(each/slackMost, beatSlack+each/slackPart)
	missed := 0
	for _, p := range pauses {
		if (p - pause).Abs() > slack {
			missed++
		}
	}
	return pause, slack, missed <= len(pauses)/missedPart
}
