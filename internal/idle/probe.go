package idle

import (
	"context"
	"fmt"
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
	// maxSilence is how many passes a guest that does not answer is waited for, before the engine's word is enough.
	maxSilence = 3
	// A request in flight whose bytes keep flowing (none of at least steadyLooks looks over leastSpan saw a longer pause
	// than steadyPause) is a transfer, whoever watches; a page's polls and a stream's keep-alives have pauses.
	steadyLooks = 3
	steadyPause = 2 * time.Second
	// silentLimit is how long after the last byte a request that waits for its program is believed to do so. It is as long
	// as the gateway, and sandboxd's proxy, wait for an answer to begin: then they end it.
	silentLimit = 10 * time.Minute
)

// Traffic is what a guest says of its direct route.
type Traffic struct {
	InFlight int           // requests that are not fully answered
	Waiting  int           // those of them that the program has not taken whole or not begun to answer; older guests say none
	Quiet    time.Duration // since a byte last flowed; below zero: none ever did
}

// probe is what the engine and the guest have said lately of one running sandbox.
type probe struct {
	first, last sample // the ends of the span that is averaged
	works       bool   // the engine's last word was that it works
	direct      bool   // the guest's last word was that a request is in flight
	failing     bool   // the engine gave no word, and the log has it
	silent      int    // passes in a row without a word from the guest
	looks       int    // in a row that saw bytes flow
	steady      time.Time
}

// sample is what the engine said at a moment.
type sample struct {
	at    time.Time
	usage sandbox.Usage
}

func (b *probe) span() time.Duration { return b.last.at.Sub(b.first.at) }

// wantsProbe reports whether p is to be asked about now: it runs, and is about to be due, or was working when it was
// last asked and nobody else uses it.
func (r *Reaper) wantsProbe(p *plan) bool {
	if p.s.State != sandbox.Running {
		return false
	}
	b := p.probe
	if p.near(time.Now()) || (b.works || b.direct) && onlyProbes(p.status.Because) {
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
	for _, reason := range because {
		if reason.Kind != Work && reason.Kind != Direct {
			return false
		}
	}
	return true
}

// ask asks the guest and the engine, counts what they say as use, and reckons p anew. p waits when they could not say
// enough.
func (r *Reaper) ask(ctx context.Context, p *plan) {
	near := p.step.to != ""
	r.askGuest(ctx, p)
	known := r.askEngine(ctx, p)
	r.reckon(p)
	silent := p.probe.silent
	p.waits = !near || !known || silent > 0 && silent <= maxSilence
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
		r.unheard(p, err)
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
		r.c.Tracker.Touch(p.s.Name, Use{Kind: Work, Detail: detail})
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

// unheard begins the samples anew after an engine that did not answer, and says so once.
func (r *Reaper) unheard(p *plan, err error) {
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

// askGuest counts what flows on the direct route. A request that waits for its program is in flight, as through the proxy.
// Once it is being answered it is a stream: it was counted when it came, so what the guest adds is unattended, but for a
// transfer that goes on steadily.
func (r *Reaper) askGuest(ctx context.Context, p *plan) {
	if r.c.Activity == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	t, err := r.c.Activity(ctx, p.s.ID)
	b, now := p.probe, time.Now()
	b.direct = err == nil && t.InFlight > 0
	if err != nil {
		b.silent++
		b.looks = 0
		return
	}
	b.silent = 0
	use, by := Use{Kind: Direct}, byPage
	if b.flows(t, now) >= p.step.least() {
		by = byNobody
	}
	if t.Waiting > 0 && t.Quiet >= 0 && t.Quiet <= silentLimit {
		by = byPerson
	}
	switch {
	case t.InFlight > 0:
		use.Detail = "in flight"
		r.c.Tracker.moment(p.s.Name, use, by, now)
	case t.Quiet >= 0:
		r.c.Tracker.moment(p.s.Name, use, by, now.Add(-t.Quiet))
	}
}

// flows notes one look at the direct route, and says for how long a transfer has been seen to go on steadily.
func (b *probe) flows(t Traffic, now time.Time) time.Duration {
	if t.InFlight <= 0 || t.Quiet < 0 || t.Quiet > steadyPause {
		b.looks = 0
		return 0
	}
	if b.looks++; b.looks == 1 {
		b.steady = now
	}
	if b.looks < steadyLooks {
		return 0
	}
	return now.Sub(b.steady)
}
