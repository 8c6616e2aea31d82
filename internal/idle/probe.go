package idle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	// longestLead is how long before a running sandbox is due it is probed for activity; half of its time where that is shorter.
	longestLead = time.Minute
	// leastSpan is the least time over which use is averaged, so that a short run of a garbage collector is no work.
	leastSpan = 10 * time.Second
	// shortestLead is that of times so short that there is no more than a glance: a tenth more than the span of two seconds.
	shortestLead = 2250 * time.Millisecond
	// From these averages on it is work.
	workCores = 0.05
	workBytes = 32 << 10 // a second, network and disk together
)

// probe is what the engine has said lately of one running sandbox.
type probe struct {
	first, last sample // the ends of the span that is averaged
	works       bool   // the engine's last word was that it works
	failing     bool   // the engine gave no word, and the log has it
}

// sample is what the engine said at a moment.
type sample struct {
	at    time.Time
	usage sandbox.Usage
}

func (b *probe) span() time.Duration { return b.last.at.Sub(b.first.at) }

// wantsProbe reports whether p is to be asked about now: it runs, and is about to be due, or was working when it was
// last asked and has no other use.
func (r *Reaper) wantsProbe(p *plan) bool {
	if p.s.State != sandbox.Running {
		return false
	}
	b := p.probe
	if p.near(time.Now()) || b.works && onlyProbes(p.status.Because) {
		return true
	}
	*b = probe{}
	return false
}

// near reports whether p is due within its lead.
func (p *plan) near(now time.Time) bool {
	return p.step.to != "" && !now.Before(p.step.due.Add(-p.step.lead))
}

// onlyProbes reports whether nothing but what the probe itself has found uses a sandbox.
func onlyProbes(because []Reason) bool {
	return !slices.ContainsFunc(because, func(r Reason) bool { return r.Kind != Work })
}

// ask asks the engine, counts what it says as use, and sets the next step of p anew. p waits when it could not say enough.
func (r *Reaper) ask(ctx context.Context, p *plan) {
	near := p.step.to != ""
	known := r.askEngine(ctx, p)
	r.setStep(p)
	p.waits = !near || !known
}

// askEngine takes a sample and counts work. False when there is no verdict yet: the engine does not answer, or the
// samples do not reach far enough.
func (r *Reaper) askEngine(ctx context.Context, p *plan) bool {
	if r.c.Usage == nil {
		return true
	}
	b := p.probe
	usage, err := r.usage(ctx, p.s.ID)
	if fault.Is(err, fault.Conflict) { // it cannot be told of this sandbox
		return true
	}
	if err != nil {
		r.probeFailed(p, err)
		return false
	}
	b.failing = false
	b.last = sample{time.Now(), usage}
	if b.first.at.IsZero() || shrunk(b.first.usage, usage) {
		b.first = b.last
	}
	span := b.span()
	if span <= 0 || span < p.step.least() || !b.works && p.early(b.last.at) {
		return false // the longer the span, the less a hiccup weighs
	}
	detail, works := work(b.first.usage, usage, span)
	if works {
		r.c.Tracker.Touch(p.s.ID, Use{Kind: Work, Detail: detail})
	}
	if works || b.works {
		b.first = b.last
	}
	b.works = works
	return true
}

// early reports whether there is time until a verdict on p is needed: it is not yet due, and about to be or unused.
func (p *plan) early(now time.Time) bool {
	return now.Before(p.step.due) && (p.near(now) || len(p.status.Because) == 0)
}

// probeFailed begins the samples anew after an engine that did not answer, and says so once.
func (r *Reaper) probeFailed(p *plan, err error) {
	b := p.probe
	b.first, b.last = sample{}, sample{}
	if !b.failing && !fault.Is(err, fault.NotFound) {
		r.c.Log.Warn("the engine cannot say whether a sandbox works; it stays up", "sandbox", p.s.Name, "error", err)
	}
	b.failing = true
}

// least is the least span before a step: shorter where its own time is, and a little less, since passes are not to the
// millisecond.
func (s step) least() time.Duration {
	if s.lead > 0 {
		return min(leastSpan, s.lead*9/10)
	}
	return leastSpan
}

func (r *Reaper) usage(ctx context.Context, id string) (sandbox.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return r.c.Usage(ctx, id)
}

// shrunk reports whether counters went back: it was started anew.
func shrunk(before, now sandbox.Usage) bool {
	return now.CPU < before.CPU || now.Network < before.Network || now.Disk < before.Disk
}

// work says whether a sandbox has worked over a span, and at what.
func work(before, now sandbox.Usage, span time.Duration) (detail string, works bool) {
	cores := float64(now.CPU-before.CPU) / float64(span)
	network := float64(now.Network-before.Network) / span.Seconds()
	disk := float64(now.Disk-before.Disk) / span.Seconds()
	switch {
	case cores >= workCores:
		return digits(cores) + " cores", true
	case network+disk < workBytes:
		return "", false
	case network >= disk:
		return speed(network) + " network", true
	default:
		return speed(disk) + " disk", true
	}
}

// digits writes a number as briefly as makes sense.
func digits(x float64) string {
	switch {
	case x < 0.095:
		return fmt.Sprintf("%.2f", x)
	case x < 9.5:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// speed writes bytes a second for a person.
func speed(rate float64) string {
	if rate < 1e6 {
		return digits(rate/1e3) + " kB/s"
	}
	return digits(rate/1e6) + " MB/s"
}

// glance is the span over which InUse asks the engine for work.
const glance = 2500 * time.Millisecond

// InUse gives what uses s now, work inside it among that, which it asks the engine for when nothing else does: then it takes some seconds.
// Nothing for one that does not run.
func (r *Reaper) InUse(ctx context.Context, s sandbox.Sandbox) []Reason {
	if s.State != sandbox.Running {
		return nil
	}
	because := r.c.Tracker.Status(s.ID).Because
	if len(because) > 0 || r.c.Usage == nil {
		return because
	}
	before, err := r.usage(ctx, s.ID)
	if err != nil {
		return nil // it cannot be told of this sandbox, or what comes next finds the engine away
	}
	begun := time.Now()
	select {
	case <-time.After(glance):
	case <-ctx.Done():
		return nil
	}
	after, err := r.usage(ctx, s.ID)
	if err == nil && !shrunk(before, after) {
		if detail, works := work(before, after, time.Since(begun)); works {
			r.c.Tracker.Touch(s.ID, Use{Kind: Work, Detail: detail})
		}
	}
	return r.c.Tracker.Status(s.ID).Because
}
