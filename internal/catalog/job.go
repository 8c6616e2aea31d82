package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
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
	dependents map[*job]load // jobs that wait for this one, with the work that they have before it
	lead       load          // of a job that was under way when this one lined up behind it
	plan       []pace.Length // of its own steps
	at         progress
}

// progress is how far a job has come.
type progress struct {
	own    int       // the step as the engine counts, for the Dockerfile's line
	began  time.Time // when that step did
	cached bool      // it only found its result
	all    load      // the job and what it needs first
	point
	since time.Time
}

// point is a place in the work of a job and of what it needs first.
type point struct {
	step   int
	before time.Duration // expected of the steps that have ended
	length time.Duration // expected of the present one
	since  time.Time     // when that began; zero while none is under way
	part   float64       // of it that is done, as far as it says
}

func (a progress) pace() pace.Pace {
	return pace.Pace{Began: a.since, Total: a.all.length, Done: a.before, Step: a.length, Since: a.point.since, Part: a.part}
}

// newJob makes the job of a recipe whose steps take as long as plan says.
func newJob(r *recipe, plan []pace.Length) *job {
	return &job{
		recipe: r, done: make(chan struct{}), listeners: map[chan BuildEvent]struct{}{}, dependents: map[*job]load{}, plan: plan,
		at: progress{all: load{len(plan), pace.Sum(plan)}, since: time.Now()},
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
// before is how much work f needed first.
func (i *Images) emit(f *job, e BuildEvent, before load) {
	e.Line = CleanLine(e.Line)
	i.mu.Lock()
	defer i.mu.Unlock()
	f.turn(e.Step, i.estimates)
	f.at.cached = f.at.cached || e.Cached
	own := min(max(f.at.own, 1), len(f.plan))
	e.Step, e.Steps = own+before.steps, len(f.plan)+before.steps
	at := point{
		step: e.Step, before: before.length.Time + pace.Sum(f.plan[:own-1]).Time, length: f.plan[own-1].Time, since: f.at.began, part: part(e),
	}
	i.spread(f, e, at)
}

// turn notes that f is at a step of its own now, and how long the one before it took. It needs mu.
func (f *job) turn(step int, e estimates) {
	now := time.Now()
	if f.at.began.IsZero() {
		f.at.began = now
	}
	if step <= f.at.own {
		return
	}
	if f.at.own > 0 {
		e.noteStep(f, now)
		f.at.began = now
	}
	f.at.own, f.at.cached = step, false
}

// spread notes e in f and in every job that waits for f, and tells those who listen. at is where it leaves f. It needs mu, which
// keeps the events in order.
func (i *Images) spread(f *job, e BuildEvent, at point) {
	f.at.point = at
	f.at.all.steps = max(e.Steps, f.at.all.steps)
	e.Steps = f.at.all.steps
	for c := range f.listeners {
		handNewest(c, e)
	}
	if h := i.past[f.recipe.name]; e.Line != "" && h != nil && h.ref == f.recipe.ref {
		h.log.add(e.Line)
	}
	i.publish(f, f.status(), e.Line)
	for dependent, before := range f.dependents {
		shifted, there := e, at
		shifted.Step, shifted.Steps = e.Step+before.steps, 0
		there.step, there.before = shifted.Step, at.before+before.length.Time
		if !dependent.ended {
			i.spread(dependent, shifted, there)
		}
	}
}

// handNewest puts e into c without waiting. When c is full its oldest event makes room, so that the newest is never missed. Only one caller may at a
// time; reading is free.
func handNewest(c chan BuildEvent, e BuildEvent) {
	for {
		select {
		case c <- e:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

// part is how much of the step under way is done; 0 when it does not tell.
func part(e BuildEvent) float64 {
	if e.Total <= 0 {
		return 0
	}
	return min(max(float64(e.Done)/float64(e.Total), 0), 1)
}

// status is what people are shown of a job under way.
func (f *job) status() ImageStatus {
	p := f.at.pace()
	return ImageStatus{
		State: ImageBuilding, Ref: f.recipe.ref, Step: f.at.step, Steps: f.at.all.steps, Progress: p.Fraction(time.Now()), Since: f.at.since,
		Expected: p.Total, Pace: p,
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
