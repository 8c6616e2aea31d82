package web

import (
	"math"
	"slices"
	"strconv"
	"time"

	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// createPhases are the phases of a create, in order.
var createPhases = []sandbox.Phase{sandbox.PhaseImage, sandbox.PhaseVolume, sandbox.PhaseStart, sandbox.PhaseReady}

// creation is how far the create of a sandbox has come; ok is false when it is not being created.
func (s *workspaceHandlers) creation(box sandbox.Sandbox, p sandbox.Progress) (c pace.Pace, ok bool) {
	if box.State != sandbox.Creating {
		return c, false
	}
	at := max(slices.Index(createPhases, p.Phase), 0)
	if at == 0 {
		c, _ = s.cfg.Images.Pace(s.templateOf(box.Spec)) // none when the image is there
	} else {
		step := s.cfg.Sandboxes.PhaseLength(box.Spec, p.Phase)
		spent := max(p.Since.Sub(box.Created), 0)
		c.Since, c.Step, c.Done = p.Since, step.Time, spent
		c.Total = pace.Length{Time: spent, Measured: spent}.Plus(step)
	}
	c.Began = box.Created
	for _, later := range createPhases[at+1:] {
		c.Total = c.Total.Plus(s.cfg.Sandboxes.PhaseLength(box.Spec, later))
	}
	return c, true
}

// paceOf shows a pace as it is now.
func paceOf(p pace.Pace, now time.Time) views.Pace {
	v := views.Pace{
		Began: spanOf(p.Began, now), Total: p.Total.Time.Seconds(), Done: p.Done.Seconds(), Step: p.Step.Seconds(), Part: p.Part,
		Spent: -1, At: p.Fraction(now), Waits: p.Since.IsZero(), Measured: p.Total.IsMeasured(),
	}
	if !v.Waits {
		v.Spent = max(now.Sub(p.Since), 0).Seconds()
	}
	v.Left = leftText(p, now)
	return v
}

// inLine is the least that work takes which is said to wait: what takes less is about to begin.
const inLine = 10 * time.Second

// leftText says how long work still takes, as static/js/pace.js does.
func leftText(p pace.Pace, now time.Time) string {
	left := p.Left(now)
	switch {
	case p.Late(now) && p.Total.IsMeasured():
		return "longer than last time"
	case p.Late(now):
		return "longer than estimated"
	case p.Since.IsZero() && left > inLine:
		return "waiting for another build"
	case left < time.Second:
		return "almost done"
	case p.Total.IsMeasured():
		return aboutText(left) + " left"
	}
	return aboutText(left) + " left (estimate)"
}

// aboutText is a length of time that is not known exactly: "about 40 s".
func aboutText(d time.Duration) string {
	seconds := d.Seconds()
	switch {
	case seconds < 10:
		return "a few seconds"
	case seconds < 57.5:
		return "about " + strconv.Itoa(int(5*math.Round(seconds/5))) + " s"
	case seconds < 3570:
		return "about " + strconv.Itoa(int(math.Round(max(seconds, 60)/60))) + " min"
	}
	return "about " + strconv.Itoa(int(math.Round(seconds/3600))) + " h"
}

// lengthText says how long work takes, and how that is known.
func lengthText(l pace.Length) string {
	if l.IsMeasured() {
		return aboutText(l.Time) + ", as last time"
	}
	return aboutText(l.Time) + " (estimate)"
}
