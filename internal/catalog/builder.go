package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
)

// How long things may take, and how many at once.
const (
	buildLimit   = 40 * time.Minute // a large template from nothing on a slow line
	pullLimit    = 20 * time.Minute
	askLimit     = 20 * time.Second // a question to the engine
	pullsAtOnce  = 2
	queueLength  = 200  // builds or pulls in line; more is a mistake or an attack
	imageBacklog = 1024 // events that a subscriber may fall behind: a burst of a package manager's output
)

// ImageOptions is what Images works with besides catalog and engine.
type ImageOptions struct {
	CA  []Certificate // given to every build, beyond what the images trust themselves
	Log *slog.Logger  // needed
	// Made is told of every build and pull that the engine was asked for: how long it took, and why it failed. It must not
	// block. nil for none.
	Made func(pulled bool, took time.Duration, err error)
	// Root names the image that a template has for its root, by id. nil where no template has one.
	Root func(id string) string
	// Records is told of every build and pull for a template; nil for none.
	Records Records
	// Times knows how long steps took the last time; nil for nothing.
	Times *pace.Times
}

// Images keeps the images of templates present. Safe for concurrent use. It builds one image at a time, so that
// templates share layers and the host stays responsive. A build does not end when its caller leaves, only with Run.
type Images struct {
	catalog    *Catalog
	engine     Engine
	extra      map[string][]byte // files for every build context
	extraPrint string            // names the content of extra in hashes
	log        *slog.Logger
	root       func(id string) string
	made       func(pulled bool, took time.Duration, err error)
	records    Records
	estimates  estimates
	bus        *event.Bus[ImageEvent]
	builds     chan *job
	pulls      chan *job

	mu    sync.Mutex
	jobs  map[string]*job     // by reference; those under way and in line
	past  map[string]*history // by template
	ended bool
}

// history is the record of a template's last job.
type history struct {
	log     buildLog
	ref     string
	problem string // why it failed, or ""
	since   time.Time

	cancelled bool // that is why
}

// NewImages makes an Images. It does no I/O; nothing is built before Run.
func NewImages(c *Catalog, e Engine, o ImageOptions) *Images {
	extra := buildFiles(o.CA)
	if o.Made == nil {
		o.Made = func(bool, time.Duration, error) {}
	}
	if o.Root == nil {
		o.Root = func(string) string { return "" }
	}
	return &Images{
		root: o.Root, catalog: c, engine: e, extra: extra, extraPrint: printFiles(extra), log: o.Log, made: o.Made, records: o.Records, estimates: estimates{o.Times},
		bus:    event.NewBus[ImageEvent](imageBacklog),
		builds: make(chan *job, queueLength), pulls: make(chan *job, queueLength),
		jobs: map[string]*job{}, past: map[string]*history{},
	}
}

var errEnding = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// Run builds and pulls until ctx ends and all work has stopped. Callers that still wait get an Unavailable error.
func (i *Images) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	workers.Go(func() { i.work(ctx, i.builds) })
	for range pullsAtOnce {
		workers.Go(func() { i.work(ctx, i.pulls) })
	}
	workers.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	for _, f := range i.jobs {
		i.conclude(f, errEnding)
	}
	return nil
}

func (i *Images) work(ctx context.Context, queue <-chan *job) {
	for ctx.Err() == nil {
		select {
		case f := <-queue:
			i.run(ctx, f)
		case <-ctx.Done():
		}
	}
}

// Ensure gives the reference of t's image, building or pulling it first if it is not there. Concurrent callers share
// one build, which outlives its callers. report, which may be nil, is called from the calling goroutine, and
// never after Ensure has returned. Kinds: Invalid (template, Dockerfile or reference is broken; the message says
// where), NotFound, Unavailable, Timeout.
func (i *Images) Ensure(ctx context.Context, t Template, report func(BuildEvent)) (ref string, err error) {
	r, err := i.recipeOf(t)
	if err != nil {
		return "", err
	}
	if present, err := i.has(ctx, r.ref); err != nil {
		return "", err
	} else if present {
		return r.ref, nil
	}
	events := make(chan BuildEvent, listenerBuffer)
	f, err := i.join(newJob(r, i.estimates.lengths(r)), events)
	if err != nil {
		return "", err
	}
	if err := i.wait(ctx, f, events, report); err != nil {
		return "", err
	}
	return r.ref, nil
}

// Reference gives the reference that Ensure would, whether the image is there or not. It asks nobody. Kinds: Invalid,
// NotFound.
func (i *Images) Reference(t Template) (ref string, err error) {
	r, err := i.recipeOf(t)
	if err != nil {
		return "", err
	}
	return r.ref, nil
}

// Build starts a build of the template's image in the background, also when it is there already; steps that have not
// changed are quick, unless the order says otherwise. A running build is left alone.
func (i *Images) Build(name string, o Order) error {
	t, err := i.catalog.Template(name)
	if err != nil {
		return err
	}
	r, err := i.recipeOf(t)
	if err != nil {
		return err
	}
	f := newJob(r, i.estimates.lengths(r))
	f.forced, f.order = true, o
	_, err = i.join(f, nil)
	return err
}

// Subscribe gives every change of every template's image from now on. The caller must Close it.
func (i *Images) Subscribe() *event.Subscription[ImageEvent] { return i.bus.Subscribe() }

func (i *Images) has(ctx context.Context, ref string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	present, err := i.engine.HasImage(ctx, ref)
	if err != nil {
		return false, fmt.Errorf("look for image %s: %w", ref, err)
	}
	return present, nil
}

// join gives the job under way that makes what f would, or lines up f. events, which may be nil, hears all that
// happens to it from now on.
func (i *Images) join(f *job, events chan BuildEvent) (*job, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return nil, errEnding
	}
	under, found := i.jobs[f.recipe.ref]
	if found {
		f = under
	}
	if events != nil {
		f.listeners[events] = struct{}{}
	}
	if found {
		return f, nil
	}
	queue := i.builds
	if f.recipe.docker == nil {
		queue = i.pulls
	}
	select {
	case queue <- f:
	default:
		return nil, fault.New(fault.Unavailable, "Too many images are waiting to be built or fetched. Try again later.")
	}
	i.register(f)
	i.lineUp(f)
	i.publish(f, f.status(), "")
	return f, nil
}

// register makes f the job of its reference, with an empty log. It needs mu.
func (i *Images) register(f *job) {
	i.jobs[f.recipe.ref] = f
	if name := f.recipe.name; name != "" {
		i.past[name] = &history{ref: f.recipe.ref, since: time.Now()}
	}
}

// lineUp lets f hear of its parent's job, when that is before it in the line. It needs mu.
func (i *Images) lineUp(f *job) {
	if f.recipe.parent == nil {
		return
	}
	if below := i.jobs[f.recipe.parent.ref]; below != nil {
		below.dependents[f] = load{}
		f.lead = below.at.all
		f.at.all = f.at.all.plus(f.lead)
	}
}

// publish tells subscribers of a template's image; plain images have none. It needs mu, so that nobody hears of an end
// before the beginning; it never blocks.
func (i *Images) publish(f *job, s ImageStatus, line string) {
	if f.recipe.name != "" {
		i.bus.Publish(ImageEvent{Template: f.recipe.name, Status: s, Line: line})
	}
}

// run runs f to its end, unless another caller runs it or it has ended: then it returns at once.
func (i *Images) run(life context.Context, f *job) {
	limit := buildLimit
	if f.recipe.docker == nil {
		limit = pullLimit
	}
	life, end := context.WithCancelCause(life)
	defer end(nil)
	ctx, cancel := context.WithTimeout(life, limit)
	defer cancel()
	i.mu.Lock()
	mine := !f.claimed && !f.ended
	if mine {
		f.claimed, f.cancel = true, end
	}
	i.mu.Unlock()
	if !mine {
		i.recordUnbegun(f)
		return
	}
	err := i.make(ctx, life, f)
	if err != nil && life.Err() != nil {
		err = endOf(life)
	}
	log := i.logOf(f)
	i.finish(f, err)
	i.recordEnd(f, err, log)
}

// make makes f's image and first whatever it needs that is not there.
func (i *Images) make(ctx, life context.Context, f *job) error {
	if !f.forced {
		if present, err := i.has(ctx, f.recipe.ref); err != nil || present {
			return err
		}
	}
	i.recordBegin(f)
	before, err := i.makeNeeds(ctx, life, f)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if err := i.ask(ctx, f, before); err != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		return f.failure(err)
	}
	return nil
}

// ask has the engine make f's image. before is how much work f needed first.
func (i *Images) ask(ctx context.Context, f *job, before load) (err error) {
	begun, pulled := time.Now(), f.recipe.docker == nil
	i.mu.Lock()
	f.at.began = begun
	f.at.point = point{step: f.at.step, before: before.length.Time, length: f.plan[0].Time, since: begun}
	i.mu.Unlock()
	defer func() { i.made(pulled, time.Since(begun), err) }()
	out := func(e BuildEvent) { i.emit(f, e, before) }
	if pulled {
		err = i.engine.PullImage(ctx, f.recipe.ref, out)
	} else {
		b := f.recipe.build(i.extra)
		b.NoCache = f.order.NoCache
		err = i.engine.BuildImage(ctx, b, out)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Timeout, "It took longer than it may and was given up.")
	}
	if err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.estimates.noteStep(f, time.Now())
	}
	return err
}

// makeNeeds makes the images below f's that are missing, the lowest first, and gives how much work that was.
func (i *Images) makeNeeds(ctx, life context.Context, f *job) (done load, err error) {
	missing, err := i.missing(ctx, f.recipe)
	if err == nil && f.order.Pull {
		missing = f.recipe.refreshed(missing)
	}
	if err != nil {
		return load{}, err
	}
	done = f.lead
	all := done.plus(load{len(f.plan), pace.Sum(f.plan)})
	for _, r := range missing {
		all = all.plus(i.estimates.loadOf(r))
	}
	i.mu.Lock()
	f.at.all = all
	i.mu.Unlock()
	for _, r := range missing {
		need, err := i.adopt(f, r, done)
		refresh := f.order.Pull && r.docker == nil
		if err != nil {
			return load{}, err
		}
		i.run(life, need)
		if err := i.outcome(life, need); err != nil && !(refresh && i.kept(ctx, f, r, err)) {
			return load{}, f.groundless(err)
		}
		done = done.plus(load{len(need.plan), pace.Sum(need.plan)})
	}
	return done, nil
}

// outcome waits for f and gives what came of it.
func (i *Images) outcome(life context.Context, f *job) error {
	select {
	case <-f.done:
		return f.err
	case <-life.Done():
		return errEnding
	}
}

// missing lists what r needs and the engine does not have, the lowest first.
func (i *Images) missing(ctx context.Context, r *recipe) ([]*recipe, error) {
	var list []*recipe
	if r.rootID != "" {
		if present, err := i.hasRoot(ctx, r); err != nil || !present {
			return nil, cmp.Or(err, fault.New(fault.NotFound, "The image that the template %s was made with from a snapshot is not on this engine. "+
				"It is not in backups of the server: make the template anew from a snapshot.", r.name))
		}
	}
	if r.parent != nil {
		present, err := i.has(ctx, r.parent.ref)
		if err != nil {
			return nil, err
		}
		if !present {
			below, err := i.missing(ctx, r.parent)
			if err != nil {
				return nil, err
			}
			list = append(below, r.parent)
		}
	}
	for _, ref := range r.external {
		need := &recipe{ref: normalImage(ref)}
		present, err := i.has(ctx, need.ref)
		if err != nil {
			return nil, err
		}
		if !present && !slices.ContainsFunc(list, func(r *recipe) bool { return r.ref == need.ref }) {
			list = append(list, need)
		}
	}
	return list, nil
}

func (i *Images) hasRoot(ctx context.Context, r *recipe) (bool, error) {
	if r.root == "" {
		return false, nil
	}
	return i.has(ctx, r.root)
}

// adopt gives the job that makes r, ready to be run at once, with dependent hearing of its progress.
func (i *Images) adopt(dependent *job, r *recipe, before load) (*job, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return nil, errEnding
	}
	f, found := i.jobs[r.ref]
	if !found {
		f = newJob(r, i.estimates.lengths(r))
		f.forced = dependent.order.Pull && r.docker == nil
		f.order = Order{Why: WhyBase, By: dependent.recipe.name}
		i.register(f)
	}
	f.dependents[dependent] = before
	return f, nil
}

// finish ends f with err, once: who comes second changes nothing.
func (i *Images) finish(f *job, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conclude(f, err)
}

// conclude ends f, writes down how, and ends also what stands on f and cannot begin any more: in the same moment, so
// that no worker begins it in between. It needs mu.
func (i *Images) conclude(f *job, err error) {
	if f.ended {
		return
	}
	if err != nil && !errors.Is(err, errEnding) {
		i.log.Warn("image not made", "image", f.recipe.ref, "template", f.recipe.name, "error", err)
	}
	f.ended, f.err = true, err
	delete(i.jobs, f.recipe.ref)
	status := ImageStatus{State: ImageBuilt, Ref: f.recipe.ref, Progress: 1, Since: time.Now()}
	if err != nil {
		status = ImageStatus{State: ImageFailed, Ref: f.recipe.ref, Problem: fault.Message(err), Cancelled: errors.Is(err, errCancelled), Since: status.Since}
	}
	line, _, _ := strings.Cut(status.Problem, "\n") // the rest is in the log already
	line = CleanLine(line)
	if h := i.past[f.recipe.name]; h != nil && h.ref == f.recipe.ref {
		h.problem, h.since, h.cancelled = status.Problem, status.Since, status.Cancelled
		if line != "" {
			h.log.add(line)
		}
	}
	i.publish(f, status, line)
	close(f.done)
	for dependent := range f.dependents {
		if err != nil && !dependent.claimed {
			i.conclude(dependent, dependent.groundless(err))
		}
	}
}
