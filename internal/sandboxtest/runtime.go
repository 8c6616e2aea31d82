// Package sandboxtest holds fakes of what the domain asks for, and the suites that every implementation must pass:
// fake, real engine and real database alike.
//
// It is for tests only and is no reference: what the ports' comments say is, and the suites hold everybody to it.
//
// Invariant: a fake passes the same suite as the real thing, so a test that is true on the fake is true.
package sandboxtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Runtime is a sandbox.Runtime in memory, whose time is the test's: it works in a synctest bubble. Beside the port's
// methods it has those with which a test plays engine trouble and what happens inside. Make it with NewRuntime.
type Runtime struct {
	// OnStart is called with each sandbox whose processes have just begun, from the goroutine that called Start,
	// before Start returns. Here a test plays the guest: says that it is ready, or ends it with Exit.
	OnStart func(sandbox.ContainerSpec)

	seen
}

// fakeEngine is what runtimes of several instances share.
type fakeEngine struct {
	mu       sync.Mutex
	boxes    map[boxKey]*fakeBox
	watchers map[*fakeWatch]bool
	parts    fakeParts
	troubles troubles
	calls    map[Op]int
	next     int // numbers instances
}

type boxKey struct{ instance, id string }

// fakeBox is a sandbox on the fake engine: a volume, perhaps a container, perhaps running.
type fakeBox struct {
	box       sandbox.ContainerSpec
	volume    bool
	container bool
	running   bool
	frozen    bool
	deaf      bool
	exitCode  int
	oom       bool
	started   time.Time
	starts    int
	strayed   bool
	memory    string // of its programs, as the test has it; gone with the next start
	moved     bool   // its image's reference names another one by now
	fakeRun
	fakeVolume
}

// fakeRun describes the time between a start and an end.
type fakeRun struct {
	usage sandbox.Usage // as the test has it
	ran   time.Duration // how long it was not frozen, until since
	since time.Time     // of the last start, freeze or thaw
}

// NewRuntime makes a fake engine without sandboxes, seen by one instance.
func NewRuntime() *Runtime {
	e := &fakeEngine{
		boxes: map[boxKey]*fakeBox{}, watchers: map[*fakeWatch]bool{}, troubles: newTroubles(), calls: map[Op]int{},
		parts: fakeParts{copies: map[boxKey][]fakeEntry{}, images: map[boxKey]bool{}, memories: map[boxKey]string{}},
	}
	return e.runtime()
}

// Beside gives the runtime of another instance on the same engine.
func (r *Runtime) Beside() *Runtime { return r.engine.runtime() }

func (e *fakeEngine) runtime() *Runtime {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	return &Runtime{seen: seen{engine: e, instance: strings.Repeat("i", e.next)}}
}

// Create implements sandbox.Runtime.
func (r *Runtime) Create(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := r.engine.enter(ctx, OpCreate); err != nil {
		return err
	}
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[r.key(b.ID)]
	if f == nil {
		f = &fakeBox{}
	}
	if f.container && f.volume {
		return nil
	}
	if e.troubles.noImage[b.Image] {
		return fault.New(fault.NotFound, "The fake engine could not make the container: No such image: %s.", b.Image)
	}
	b.Env, b.Labels = maps.Clone(b.Env), maps.Clone(b.Labels)
	f.box, f.volume = b, true
	e.boxes[r.key(b.ID)] = f
	if e.troubles.cut(AfterVolume) {
		return ErrCut
	}
	*f = fakeBox{box: b, volume: true, container: true, deaf: f.deaf, fakeVolume: f.fakeVolume}
	e.tell(r.key(b.ID), f)
	if e.troubles.cut(AfterContainer) {
		return ErrCut
	}
	return nil
}

// Start implements sandbox.Runtime.
func (r *Runtime) Start(ctx context.Context, id string) error {
	if err := r.engine.enter(ctx, OpStart); err != nil {
		return err
	}
	box, begun, err := r.engine.start(r.key(id))
	if err != nil {
		return err
	}
	if begun && r.OnStart != nil {
		r.OnStart(box)
	}
	return r.engine.cutAfter(AfterStart)
}

func (e *fakeEngine) start(key boxKey) (box sandbox.ContainerSpec, begun bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[key]
	if f == nil || !f.container {
		return box, false, fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	}
	if f.running && !f.frozen {
		return f.box, false, nil
	}
	begun = !f.running
	f.ran, f.since = f.awake(), time.Now()
	f.frozen = false
	if begun {
		f.running, f.exitCode, f.oom, f.started = true, 0, false, time.Now().UTC()
		f.usage, f.ran = sandbox.Usage{}, 0
		f.starts++
		f.memory = ""
	}
	e.tell(key, f)
	return f.box, begun, nil
}

// Stop implements sandbox.Runtime.
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := r.engine.enter(ctx, OpStop); err != nil {
		return err
	}
	code := 0
	if r.engine.isDeaf(r.key(id)) {
		if err := wait(ctx, grace); err != nil {
			return err
		}
		code = sandbox.ExitKilled
	}
	r.engine.end(r.key(id), code, false)
	return r.engine.cutAfter(AfterStop)
}

func (e *fakeEngine) isDeaf(key boxKey) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[key]
	return f != nil && f.running && f.deaf
}

// end ends the processes of a sandbox, if it has any.
func (e *fakeEngine) end(key boxKey, code int, oom bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[key]
	if f == nil || !f.running {
		return
	}
	f.ran = f.awake()
	f.running, f.frozen, f.exitCode, f.oom = false, false, code, oom
	e.tell(key, f)
}

// Remove implements sandbox.Runtime.
func (r *Runtime) Remove(ctx context.Context, id string) error {
	if err := r.engine.enter(ctx, OpRemove); err != nil {
		return err
	}
	r.engine.end(r.key(id), sandbox.ExitKilled, false)
	r.engine.destroy(r.key(id))
	if err := r.engine.cutAfter(AfterDestroy); err != nil {
		return err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if f := r.engine.boxes[r.key(id)]; f != nil {
		f.leave()
	}
	delete(r.engine.boxes, r.key(id))
	return nil
}

// destroy removes the container of a sandbox and leaves its volume.
func (e *fakeEngine) destroy(key boxKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.boxes[key]; f != nil && f.container {
		*f = fakeBox{box: f.box, volume: f.volume, deaf: f.deaf, fakeVolume: f.fakeVolume}
		e.tell(key, f)
	}
}

// List implements sandbox.Runtime.
func (r *Runtime) List(ctx context.Context) ([]sandbox.Instance, error) {
	if err := r.engine.enter(ctx, OpList); err != nil {
		return nil, err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	var out []sandbox.Instance
	for key, f := range r.engine.boxes {
		if key.instance == r.instance {
			out = append(out, f.fact())
		}
	}
	slices.SortFunc(out, func(a, b sandbox.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (f *fakeBox) fact() sandbox.Instance {
	return sandbox.Instance{
		ID: f.box.ID, Name: f.box.Name, Template: f.box.Template, Image: f.box.Image, Running: f.running,
		Frozen: f.frozen, ExitCode: f.exitCode, OOM: f.oom, Partial: !f.volume || !f.container, Started: f.started,
		Moved: f.moved && f.container, Volumes: sandbox.MountText(f.box.Volumes), Strayed: f.strayed,
	}
}

// Ping implements sandbox.Runtime.
func (r *Runtime) Ping(ctx context.Context) error { return r.engine.enter(ctx, OpPing) }

// Watch implements sandbox.Runtime.
func (r *Runtime) Watch(ctx context.Context, ready func(), seen func(sandbox.Instance)) error {
	if err := r.engine.enter(ctx, OpWatch); err != nil {
		return err
	}
	w := &fakeWatch{instance: r.instance, wake: make(chan struct{}, 1), lost: make(chan struct{})}
	r.engine.join(w)
	defer r.engine.leave(w)
	ready()
	for {
		for _, i := range r.engine.take(w) {
			seen(i)
		}
		select {
		case <-w.wake:
		case <-w.lost:
			return fault.New(fault.Unavailable, "The connection to the fake engine has ended.")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeWatch is a watcher and what it has still to be told. It is never behind by more than the test has done.
type fakeWatch struct {
	instance string
	wake     chan struct{} // holds one token when there is something to take
	lost     chan struct{} // closed when the engine goes away
	pending  []sandbox.Instance
}

func (e *fakeEngine) join(w *fakeWatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers[w] = true
}

func (e *fakeEngine) leave(w *fakeWatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watchers, w)
}

func (e *fakeEngine) take(w *fakeWatch) []sandbox.Instance {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := w.pending
	w.pending = nil
	return out
}

// tell notes a change for the watchers of its instance. The caller holds mu.
func (e *fakeEngine) tell(key boxKey, f *fakeBox) {
	for w := range e.watchers {
		if w.instance != key.instance {
			continue
		}
		w.pending = append(w.pending, f.fact())
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// wait lets d pass, or less when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return late(ctx.Err())
	}
}

// late gives the end of a context the kind that a real engine's adapter gives it.
func late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(err, fault.Timeout, "The fake engine did not answer in time.")
	}
	return err
}
