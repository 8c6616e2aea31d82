package idle

import (
	"slices"
	"time"
)

// A page that is left open asks in a rhythm, and a person does not. What comes at once is one beat: a click, or a page with
// many parts, asks several times. Several tabs, or several timers of one page, make one rhythm together: then it is the
// pause since the last but one, or an earlier one, that is always the same; or, when they are of different lengths, each
// request echoes earlier ones, whatever came between. A request that comes too early for it is somebody's; one that is
// late is not, since beats are lost and held up. And a page that is answered when something happens asks again at once.
//
// What is taken for somebody's counts for an hour. So a rhythm may be missed now and then, but a person must not be
// taken for one for an hour: that is why the pauses have to be as alike as timers make them.
const (
	maxRhythms  = 64                      // kinds of request that are remembered for one sandbox
	maxBeats    = 64                      // of each: four times what a timer of 5 s and one of a minute make together
	together    = 800 * time.Millisecond  // requests in this time are one beat,
	unevenBelow = 1800 * time.Millisecond // which makes shorter pauses uneven
	beatVoices  = 6                       // tabs and timers in one rhythm
	beatPauses  = 4                       // that are looked at,
	voicePauses = 2                       // with so many more for each voice: a click may ask several times, one after the other
	missedPart  = 4                       // this part of them may be of any length
	beatSlack   = 4 * time.Second         // how far two of them may differ,
	slackPart   = 20                      // with this part of the pause more,
	slackMost   = 3                       // and at most this part of it
	beatLate    = 4                       // after so many pauses it is no beat any more
	beatsBefore = beatVoices + beatPauses + voicePauses*beatVoices

	echoMost  = 10 * time.Minute // the longest pause of an echo
	echoSlack = time.Second      // how far two may differ, since echoes are many and some come by chance,
	echoPart  = 100              // with this part of the pause more,
	echoApart = 4                // and at most this part of the pause between any two requests

	askedAgain = 2 * time.Second // how soon a page asks again when it is answered
	inARow     = 4               // so many times it has to have done so
)

// rhythm is when requests of one kind came.
type rhythm struct {
	key     uint64
	at      []time.Time // the latest first, at most maxBeats
	own     bool        // the latest was the page's own
	refused time.Time   // when one that will be tried again was last turned away
	ended   time.Time   // when one that had been held was last answered
	row     int         // how many have followed such an answer, one after the other
}

// beat notes that a request of a kind has come, and says whether that is in its rhythm, or since the last attended use one
// of them was turned away.
func (a *asked) beat(key uint64, now, attended time.Time) bool {
	a.last = now
	r := a.rhythm(key, now)
	if len(r.at) == 0 || now.Sub(r.at[0]) >= together {
		r.own = r.comes(now)
		r.at = slices.Insert(r.at, 0, now)[:min(len(r.at)+1, maxBeats)]
	}
	return r.own || r.refused.After(attended)
}

// refuse notes that a beat was turned away.
func (a *asked) refuse(key uint64, now time.Time, retries bool) {
	r := a.rhythm(key, now)
	if retries {
		r.refused = now
	} else {
		r.at, r.row = nil, 0
	}
}

// answer notes that a request that was held has its answer.
func (a *asked) answer(key uint64, now time.Time) {
	a.last = now
	a.rhythm(key, now).ended = now
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
	last := r.ended
	if len(r.at) > 0 && r.at[0].After(last) {
		last = r.at[0]
	}
	if r.refused.After(last) {
		last = r.refused
	}
	return last
}

// comes reports whether the beat that begins now is the page's own.
func (r *rhythm) comes(now time.Time) bool {
	inTime := r.expects(now) || r.echoes(now)
	switch {
	case now.Sub(r.ended) <= askedAgain:
		r.row++
	case len(r.at) > 0 && now.Sub(r.at[0]) <= askedAgain: // it was answered too soon to be told of
	case !inTime:
		r.row = 0
	default:
		return true
	}
	return inTime || r.row > inARow
}

// echoes reports whether requests have come before one that comes now at the same pause again and again.
func (r *rhythm) echoes(now time.Time) bool {
	for i := 0; (i+1)*beatPauses <= len(r.at); i++ {
		pause := now.Sub(r.at[i])
		if pause > echoMost {
			return false
		}
		if r.echo(i, pause, min(pause/time.Duration(echoApart*(i+1)), echoSlack+pause/echoPart)) {
			return true
		}
	}
	return false
}

// echo follows the echoes from the one that is i before.
func (r *rhythm) echo(i int, pause, slack time.Duration) bool {
	for range beatPauses - 1 {
		due := r.at[i].Add(-pause)
		for i++; i+1 < len(r.at) && r.at[i+1].Sub(due).Abs() <= r.at[i].Sub(due).Abs(); i++ {
		}
		if i >= len(r.at) || r.at[i].Sub(due).Abs() > slack {
			return false
		}
	}
	return true
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
	if each < unevenBelow {
		slack = max(slack, together)
	}
	missed := 0
	for _, p := range pauses {
		if (p - pause).Abs() > slack {
			missed++
		}
	}
	return pause, slack, missed <= len(pauses)/missedPart
}
