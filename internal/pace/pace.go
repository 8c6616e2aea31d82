// Package pace estimates how long work of several steps takes and how far it has come, from how long its steps took the last time on
// this host.
//
// It does no work and watches none: who does a step notes how long that took, and asks for the length of what lies ahead.
//
// Invariant: an estimate never fails and never keeps work from being done. What was not measured on this host is a guess, and counts as
// one to the end.
package pace

import (
	"math"
	"time"
)

// Length is how long work takes, as far as that can be told. The zero value is of no work.
type Length struct {
	Time     time.Duration
	Measured time.Duration // the part of Time that was measured the last time; the rest is guessed
}

// Plus gives the length of both, one after the other.
func (l Length) Plus(o Length) Length { return Length{l.Time + o.Time, l.Measured + o.Measured} }

// known is how much of a length must be measured for it to count as measured.
const known = 0.8

// IsMeasured reports whether the length is more than a guess.
func (l Length) IsMeasured() bool {
	return l.Measured > 0 && float64(l.Measured) >= known*float64(l.Time)
}

// Sum gives the length of all.
func Sum(all []Length) (sum Length) {
	for _, l := range all {
		sum = sum.Plus(l)
	}
	return sum
}

// Pace is how far work of several steps has come. The zero value is of no work. The module static/js/pace.js counts on as At and Late do.
type Pace struct {
	Began time.Time     // of the whole
	Total Length        // of the whole
	Done  time.Duration // of Total, by the steps that have ended
	Step  time.Duration // that the present step is expected to take
	Since time.Time     // when that began; zero while none is under way
	Part  float64       // 0 to 1: how much of the present step is done, as it says itself; 0 when it cannot tell
}

// steady is the part of a step that its expected time fills evenly. A step that takes longer fills the rest ever more slowly, so that
// it is never shown as done before it is.
const steady = 0.8

// At gives how much of Total.Time is done.
func (p Pace) At(now time.Time) time.Duration {
	if p.Since.IsZero() {
		return p.Done
	}
	if p.Part > 0 {
		return p.Done + time.Duration(min(p.Part, 1)*float64(p.Step))
	}
	spent, even := max(now.Sub(p.Since), 0), time.Duration(steady*float64(p.Step))
	if spent <= even {
		return p.Done + spent
	}
	rest := float64(p.Step - even)
	return p.Done + even + time.Duration(rest*(1-math.Exp(-float64(spent-even)/rest)))
}

// Fraction gives that from 0 to 1.
func (p Pace) Fraction(now time.Time) float64 {
	if p.Total.Time <= 0 {
		return 0
	}
	return min(float64(p.At(now))/float64(p.Total.Time), 1)
}

// Left gives how long the work still takes.
func (p Pace) Left(now time.Time) time.Duration { return max(p.Total.Time-p.At(now), 0) }

// lateBy is how much longer than expected a step takes before that is worth a word.
const (
	lateBy    = 0.25
	lateAfter = 5 * time.Second
)

// Late reports whether the present step takes much longer than expected, so that Left says little.
func (p Pace) Late(now time.Time) bool {
	if p.Since.IsZero() || p.Part > 0 {
		return false
	}
	return now.Sub(p.Since) > time.Duration((1+lateBy)*float64(p.Step))+lateAfter
}
