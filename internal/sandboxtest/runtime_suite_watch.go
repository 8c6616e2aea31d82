package sandboxtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// watcher is a Watch under way and all that it has told.
type watcher struct {
	ctx     context.Context
	changed chan struct{} // holds one token when there is more
	over    chan struct{} // closed when the watch has ended
	err     error         // why; to be read once over is closed

	mu  sync.Mutex
	all []sandbox.Instance
}

// watch begins to watch, and returns when nothing is missed any more.
func (r *runtimeTest) watch() *watcher { return r.watchOf(r.Runtime) }

func (r *runtimeTest) watchOf(runtime sandbox.Runtime) *watcher {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	w := &watcher{ctx: r.ctx, changed: make(chan struct{}, 1), over: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(w.over)
		w.err = runtime.Watch(ctx, func() { close(ready) }, w.see)
	}()
	r.t.Cleanup(func() { cancel(); <-w.over })
	select {
	case <-ready:
	case <-w.over:
		r.t.Fatalf("watch: %v", w.err)
	}
	return w
}

func (w *watcher) see(i sandbox.Instance) {
	w.mu.Lock()
	w.all = append(w.all, i)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *watcher) told() []sandbox.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// until waits until the reported instances fulfil cond.
func (w *watcher) until(t *testing.T, what string, cond func([]sandbox.Instance) bool) {
	t.Helper()
	for !cond(w.told()) {
		select {
		case <-w.changed:
		case <-w.over:
			t.Fatalf("the watch ended (%v) before it was told that %s: %+v", w.err, what, w.told())
		case <-w.ctx.Done():
			t.Fatalf("it was never told that %s: %+v", what, w.told())
		}
	}
}

// ended reports whether the last word on id is that it does not run, after it did.
func ended(all []sandbox.Instance, id string) bool {
	ran, now := false, false
	for _, i := range all {
		if i.ID == id {
			ran, now = ran || i.Running, i.Running
		}
	}
	return ran && !now
}

// turns counts how often id was told to begin to run, and to end.
func turns(all []sandbox.Instance, id string) (begun, over int) {
	running := false
	for _, i := range all {
		switch {
		case i.ID != id || i.Running == running:
		case i.Running:
			running = true
			begun++
		default:
			running = false
			over++
		}
	}
	return begun, over
}

func watchAll(t *testing.T, r *runtimeTest) {
	const times = 4
	w := r.watch()
	b, brief := r.Spec(Patient), r.made(Brief)
	r.create(b)
	for range times {
		r.start(b.ID)
		r.start(brief.ID)
		r.stop(b.ID, 5*time.Second)
		w.until(t, "the brief one has ended", func(all []sandbox.Instance) bool { return ended(all, brief.ID) })
	}
	r.remove(b.ID)
	w.until(t, "everything has happened", func(all []sandbox.Instance) bool {
		begun, over := turns(all, b.ID)
		briefBegun, briefOver := turns(all, brief.ID)
		last := slices.IndexFunc(all, func(i sandbox.Instance) bool { return i.ID == b.ID && i.Partial })
		return begun == times && over == times && briefBegun == times && briefOver == times && last >= 0
	})
	for _, i := range w.told() {
		if (i.ID != b.ID || i.Name != b.Name) && (i.ID != brief.ID || i.Name != brief.Name) {
			t.Errorf("told of a stranger: %s", r.describe(i))
		}
	}
}

// watchEnds is told how two have ended. As in listEnds, the greedy one is tried again when the engine has heard too late that
// memory ran out.
func watchEnds(t *testing.T, r *runtimeTest) {
	brief, greedy := r.made(Brief), r.made(Greedy)
	w := r.watch()
	r.start(brief.ID)
	w.until(t, "the brief one has ended", func(all []sandbox.Instance) bool { return ended(all, brief.ID) })
	outOfMemory := false
	for try := 1; try <= 5 && !outOfMemory; try++ {
		r.start(greedy.ID)
		w.until(t, "the greedy one has ended", func(all []sandbox.Instance) bool {
			_, over := turns(all, greedy.ID)
			return over == try
		})
		outOfMemory = slices.ContainsFunc(w.told(), func(i sandbox.Instance) bool { return i.ID == greedy.ID && i.OOM })
	}
	if !outOfMemory {
		t.Error("it was never told that the greedy one used too much memory")
	}
	for _, i := range w.told() {
		switch {
		case i.Running:
		case i.ID == brief.ID && (i.ExitCode != BriefExit || i.OOM), i.ID == greedy.ID && i.ExitCode != sandbox.ExitKilled:
			t.Errorf("told of an end: %s", r.describe(i))
		}
	}
}

func watchContext(t *testing.T, r *runtimeTest) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	err := r.Runtime.Watch(ctx, cancel, func(sandbox.Instance) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func apart(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	w := r.watchOf(r.Other)
	r.start(b.ID)
	if all, err := r.Other.List(r.ctx); err != nil || len(all) != 0 {
		t.Errorf("the other instance lists %+v (%v)", all, err)
	}
	r.kind(r.Other.Start(r.ctx, b.ID), fault.NotFound)
	if err := errors.Join(r.Other.Stop(r.ctx, b.ID, time.Second), r.Other.Remove(r.ctx, b.ID)); err != nil {
		t.Error(err)
	}
	if i := r.the(b.ID); !i.Running {
		t.Errorf("the other instance has ended it: %+v", i)
	}
	own := b // even with the same id and name
	if err := errors.Join(r.Other.Create(r.ctx, own), r.Other.Start(r.ctx, own.ID)); err != nil {
		t.Fatal(err)
	}
	r.stop(b.ID, 5*time.Second)
	if err := r.Other.Stop(r.ctx, own.ID, 5*time.Second); err != nil {
		t.Error(err)
	}
	w.until(t, "its own has ended", func(all []sandbox.Instance) bool { return ended(all, own.ID) })
	if begun, over := turns(w.told(), own.ID); begun != 1 || over != 1 {
		t.Errorf("it was told of more than its own: %+v", w.told())
	}
	r.remove(b.ID)
	if all, err := r.Other.List(r.ctx); err != nil || len(all) != 1 {
		t.Errorf("the other instance lists %+v (%v)", all, err)
	}
}

// methods are all that can be asked of a runtime.
func (r *runtimeTest) methods(b sandbox.ContainerSpec) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { return r.Runtime.Create(ctx, b) },
		"start":  func(ctx context.Context) error { return r.Runtime.Start(ctx, b.ID) },
		"stop":   func(ctx context.Context) error { return r.Runtime.Stop(ctx, b.ID, time.Second) },
		"resize": func(ctx context.Context) error { return r.Runtime.Resize(ctx, b.ID, b.Limits) },
		"remove": func(ctx context.Context) error { return r.Runtime.Remove(ctx, b.ID) },
		"list":   func(ctx context.Context) error { _, err := r.Runtime.List(ctx); return err },
		"watch": func(ctx context.Context) error {
			return r.Runtime.Watch(ctx, func() { r.t.Error("the watch is ready without an engine") }, func(sandbox.Instance) {})
		},
	}
}

func hung(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	resume := r.Hang()
	for name, method := range r.methods(b) {
		ctx, cancel := context.WithTimeout(r.ctx, 150*time.Millisecond)
		began := time.Now()
		err := method(ctx)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		if !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: got %v, want a Timeout", name, err)
		}
		cancel()
	}
	resume()
	r.remove(b.ID)
	r.empty()
}

func lost(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	w := r.watch()
	back := r.Lose()
	select {
	case <-w.over:
		r.kind(w.err, fault.Unavailable)
	case <-r.ctx.Done():
		t.Error("the watch outlives the engine")
	}
	for name, method := range r.methods(b) {
		if err := method(r.ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
	}
	back()
	r.start(b.ID)
	again := r.watch()
	r.stop(b.ID, 5*time.Second)
	again.until(t, "it has ended", func(all []sandbox.Instance) bool {
		return slices.ContainsFunc(all, func(i sandbox.Instance) bool { return i.ID == b.ID && !i.Running })
	})
	r.remove(b.ID)
	r.empty()
}
