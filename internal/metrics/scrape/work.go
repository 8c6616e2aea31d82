package scrape

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Buckets of durations, in seconds. Wakes from frozen take milliseconds, commands up to a day.
var (
	quick = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	slow  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

// The parts of sandboxd that errors are counted by.
const (
	partSandboxes = "sandboxes"
	partExec      = "exec"
	partImages    = "images"
)

// work counts what was done with sandboxes, commands and images.
type work struct {
	failures                                      *prometheus.CounterVec
	creates, starts, wakes, rests, stops, deletes timed
	execs, images                                 timed
}

// timed is a counter and a histogram of one kind of work. Their last label is the outcome.
type timed struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newTimed(name, what string, buckets []float64, labels ...string) timed {
	labels = append(labels, "outcome")
	return timed{
		total: counter(name+"s_total", what+", by how they ended: ok, or the kind of error.", labels...),
		took:  histogram(name+"_duration_seconds", "How long these took: "+what+".", buckets, labels...),
	}
}

func (t timed) ended(took time.Duration, labels ...string) {
	t.total.WithLabelValues(labels...).Inc()
	t.took.WithLabelValues(labels...).Observe(took.Seconds())
}

func newWork(failures *prometheus.CounterVec) *work {
	w := &work{
		failures: failures,
		creates:  newTimed("create", "Creates of sandboxes, with the build of their image", slow),
		starts:   newTimed("start", "Starts and restarts of stopped, failed and running sandboxes", quick),
		wakes:    newTimed("wake", "Wakes of sandboxes at rest, by the state they were woken from", quick, "from"),
		rests:    newTimed("rest", "Freezes of unused sandboxes, and putting them to sleep", quick, "to"),
		stops:    newTimed("stop", "Stops of sandboxes by their owners", quick),
		deletes:  newTimed("delete", "Deletes of sandboxes", quick),
		execs:    newTimed("exec", "Commands run in sandboxes; one that exits by itself is ok", slow),
		images:   newTimed("image_build", "Builds and pulls of images", slow, "how"),
	}
	w.zero()
	return w
}

// zero makes the counters that dashboards and alerts ask for begin at 0, so that the first increase is seen.
func (w *work) zero() {
	for _, t := range []timed{w.creates, w.starts, w.stops, w.deletes, w.execs} {
		t.total.WithLabelValues(ok)
	}
	for _, from := range []sandbox.State{sandbox.Frozen, sandbox.Asleep} {
		w.wakes.total.WithLabelValues(string(from), ok)
		w.rests.total.WithLabelValues(string(from), ok)
	}
	for _, how := range []string{"build", "pull"} {
		w.images.total.WithLabelValues(how, ok)
	}
}

func (w *work) collectors() (out []prometheus.Collector) {
	for _, t := range []timed{w.creates, w.starts, w.wakes, w.rests, w.stops, w.deletes, w.execs, w.images} {
		out = append(out, t.total, t.took)
	}
	return out
}

// Action notes that an action on a sandbox begins; sandbox.Config's Observe is this.
func (w *work) Action(_ context.Context, a sandbox.Action, was sandbox.State) (done func(error)) {
	begun := time.Now()
	return func(err error) {
		took, how := time.Since(begun), w.outcome(partSandboxes, err)
		switch a {
		case sandbox.ActionCreate:
			w.creates.ended(took, how)
		case sandbox.ActionStart:
			w.starts.ended(took, how)
		case sandbox.ActionWake:
			w.wakes.ended(took, wokenFrom(was), how)
		case sandbox.ActionFreeze:
			w.rests.ended(took, string(sandbox.Frozen), how)
		case sandbox.ActionSleep:
			w.rests.ended(took, string(sandbox.Asleep), how)
		case sandbox.ActionStop:
			w.stops.ended(took, how)
		case sandbox.ActionDelete:
			w.deletes.ended(took, how)
		}
	}
}

// wokenFrom is the label of a state of rest. One on its way to sleep counts as asleep.
func wokenFrom(s sandbox.State) string {
	if s == sandbox.Frozen {
		return string(s)
	}
	return string(sandbox.Asleep)
}

// Command notes the end of a command; exec.Config's Ended is this.
func (w *work) Command(took time.Duration, err error) {
	w.execs.ended(took, w.outcome(partExec, err))
}

// Image notes the end of a build or a pull; catalog.ImageOptions' Made is this.
func (w *work) Image(pulled bool, took time.Duration, err error) {
	how := "build"
	if pulled {
		how = "pull"
	}
	w.images.ended(took, how, w.outcome(partImages, err))
}

// The outcomes besides the kinds of errors.
const (
	ok       = "ok"
	canceled = "canceled" // its caller left
)

// outcome is the label of how something ended, and counts it as an error if it is one.
func (w *work) outcome(part string, err error) string {
	switch {
	case err == nil:
		return ok
	case fault.KindOf(err) == fault.Internal && errors.Is(err, context.Canceled):
		return canceled
	}
	kind := fault.KindOf(err).String()
	w.failures.WithLabelValues(part, kind).Inc()
	return kind
}
