package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// listenerBuffer is how many events a waiter may fall behind before it misses some; it shows only the latest anyway.
const listenerBuffer = 64

// job is one build or pull under way or in line. All callers who want its image share it. Its fields are guarded
// by Images.mu, but for recipe and done.
type job struct {
	recipe *recipe
	done   chan struct{} // closed when it has ended
	err    error         // why it failed; read after done

	claimed    bool                    // it is being run
	cancel     context.CancelCauseFunc // ends it while it is
	ended      bool
	forced     bool // build although the image is there
	order      Order
	record     *recorded // of the build that has begun, or nil
	listeners  map[chan BuildEvent]struct{}
	dependents map[*job]int // jobs that wait for this one, with the steps that they have before it
	lead       int          // steps of a job that was under way when this one lined up behind it
	at         progress
}

// progress is how far a job has come.
type progress struct {
	own      int // the step as the engine counts, for the Dockerfile's line
	step     int // counted over the job and what it needed first
	steps    int
	fraction float64
	since    time.Time
}

func newJob(r *recipe) *job {
	return &job{
		recipe: r, done: make(chan struct{}), listeners: map[chan BuildEvent]struct{}{}, dependents: map[*job]int{},
		at: progress{steps: r.steps(), since: time.Now()},
	}
}

// wait blocks until the job has ended or ctx has; the job continues in the second case. It reports what comes on
// events, a listener of f that it takes away at the end, from the caller's own goroutine.
func (i *Images) wait(ctx context.Context, f *job, events chan BuildEvent, report func(BuildEvent)) error {
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(f.listeners, events)
	}()
	for {
		select {
		case e := <-events:
			if report != nil {
				report(e)
			}
		case <-f.done:
			return f.err
		case <-ctx.Done():
			return fmt.Errorf("wait for image %s: %w", f.recipe.ref, ctx.Err())
		}
	}
}

// emit takes an event of the engine into f, and hands it on to waiters, subscribers and the jobs that wait for f.
// before is how many steps f needed first.
func (i *Images) emit(f *job, e BuildEvent, before int) {
	e.Line = CleanLine(e.Line)
	i.mu.Lock()
	defer i.mu.Unlock()
	f.at.own = max(e.Step, f.at.own)
	e.Step = min(max(f.at.own, 1), f.recipe.steps()) + before
	e.Steps = f.recipe.steps() + before
	i.spread(f, e)
}

// spread notes e in f and in every job that waits for f, and tells those who listen. It needs mu, which keeps the
// events in order.
func (i *Images) spread(f *job, e BuildEvent) {
	f.at.step, f.at.steps = e.Step, max(e.Steps, f.at.steps)
	e.Steps = f.at.steps
	f.at.fraction = max(f.at.fraction, fraction(e))
	for c := range f.listeners {
		select {
		case c <- e:
		default:
		}
	}
	if h := i.past[f.recipe.name]; e.Line != "" && h != nil && h.ref == f.recipe.ref {
		h.log.add(e.Line)
	}
	i.publish(f, f.status(), e.Line)
	for dependent, before := range f.dependents {
		shifted := e
		shifted.Step, shifted.Steps = e.Step+before, 0
		if !dependent.ended {
			i.spread(dependent, shifted)
		}
	}
}

// fraction is how much of all steps is done.
func fraction(e BuildEvent) float64 {
	if e.Steps < 1 {
		return 0
	}
	done := float64(max(e.Step-1, 0))
	if e.Total > 0 {
		done += min(max(float64(e.Done)/float64(e.Total), 0), 1)
	}
	return min(done/float64(e.Steps), 1)
}

// status is what people are shown of a job under way.
func (f *job) status() ImageStatus {
	return ImageStatus{
		State: ImageBuilding, Ref: f.recipe.ref, Step: f.at.step, Steps: f.at.steps, Progress: f.at.fraction, Since: f.at.since,
	}
}

// failure says what went wrong in words for a person: what, where in the Dockerfile if it is known, and the engine's
// own words, which name the step and quote its last output. The kind stays.
func (f *job) failure(err error) error {
	var known *fault.Error
	if f.recipe.docker == nil && errors.As(err, &known) {
		return err // it names the image
	}
	what := "The template " + f.recipe.name + " could not be built"
	if f.recipe.docker == nil {
		what = "The image " + f.recipe.ref + " could not be fetched"
	}
	kind := fault.KindOf(err)
	if where := f.recipe.stepLine(f.at.own); where != "" && kind == fault.Invalid {
		what += " (" + where + ")"
	}
	return fault.Wrap(err, kind, "%s: %s", what, fault.Message(err))
}

// groundless says that f failed because what it builds on did.
func (f *job) groundless(err error) error {
	return fault.Wrap(err, fault.KindOf(err), "What the template %s builds on could not be made. %s", f.recipe.name, fault.Message(err))
}
