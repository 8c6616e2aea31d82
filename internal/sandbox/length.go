package sandbox

import (
	"time"

	"sandboxd/internal/pace"
)

// createGuesses say what the phases of a create take whose length does not depend on the image, until it is measured.
var createGuesses = map[Phase]time.Duration{
	PhaseVolume: 400 * time.Millisecond, PhaseStart: 400 * time.Millisecond, PhaseReady: 500 * time.Millisecond,
}

func phaseKey(s Spec, p Phase) string { return "create/" + s.Template + "/" + string(p) }

// notePhase notes how long a phase of a create took that ended at a time.
func (r *records) notePhase(s Sandbox, p Progress, end time.Time) {
	if _, ok := createGuesses[p.Phase]; ok && s.State == Creating && !p.Since.IsZero() {
		r.times.Note(phaseKey(s.Spec, p.Phase), end.Sub(p.Since))
	}
}

// PhaseLength gives how long a phase of a create takes; the zero value for that of the image, which Images knows.
func (r *records) PhaseLength(s Spec, p Phase) pace.Length {
	guess, ok := createGuesses[p]
	if !ok {
		return pace.Length{}
	}
	return r.times.Length(phaseKey(s, p), guess)
}
