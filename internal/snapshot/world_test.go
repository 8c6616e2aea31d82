package snapshot_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/snapshot/snapshottest"
)

var errDown = fault.New(fault.Unavailable, "It is down.")

// world is all around a Service and its Manager, in memory. It outlives them, as the real one outlives a crash.
type world struct {
	t       *testing.T
	boxes   *sandboxtest.MemStore
	engine  *sandboxtest.Runtime
	store   *snapshottest.Store
	change  func(*snapshot.Config)
	telling sync.Mutex
	failed  []string // what Config.Failed was called with

	*snapshot.Service
	m   *sandbox.Manager
	end func() // as the end of the process would

	endManager func() // alone
}

// within runs a test in a world whose time is the test's, with a sandbox "one" that runs.
func within(t *testing.T, change func(*snapshot.Config), test func(w *world, box sandbox.Sandbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, boxes: sandboxtest.NewMemStore(), engine: sandboxtest.NewRuntime(), store: snapshottest.NewStore(), change: change}
		w.start()
		defer func() { w.end() }()
		test(w, w.create("one"))
	})
}

func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	w.m = sandbox.New(sandbox.Config{
		Store: w.boxes, Runtime: w.engine, Freezer: w.engine, Homes: w.engine, Snapshots: w.engine, Checkpoints: w.memories(), Guests: guests{}, Images: images{}, Templates: templates{},
		Labels: func(string, string) map[string]string { return nil }, Host: sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096}, Log: log,
	})
	c := snapshot.Config{Store: w.store, Sandboxes: w.m, Parts: w.engine, Memories: w.memories(), Keep: 24 * time.Hour, Automatic: 3, Most: 6, Log: log,
		Failed: w.fails}
	if w.change != nil {
		w.change(&c)
	}
	s, err := snapshot.New(w.t.Context(), c)
	w.ok(err)
	w.Service = s
	ctx, cancel := context.WithCancel(context.Background())
	under, endManager := context.WithCancel(ctx)
	w.endManager = endManager
	ended := make(chan error, 2)
	go func() { ended <- w.m.Run(under) }()
	go func() { ended <- s.Run(ctx) }()
	w.end = func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			w.t.Error(err)
		}
	}
	synctest.Wait()
}

func (w *world) memories() sandboxtest.Memories { return sandboxtest.MemoriesOf(w.engine) }

// restart ends sandboxd, and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.store.Fail("", nil)
	w.start()
}

// settle lets all that is under way end.
func (w *world) settle() {
	synctest.Wait()
	<-time.After(20 * time.Second)
	synctest.Wait()
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(name string) sandbox.Sandbox {
	w.t.Helper()
	box, _, err := w.m.Create(w.t.Context(), sandbox.Request{Name: name, Label: "Lab", Owner: "ann", Template: "base", Env: map[string]string{"KEY": "value"}})
	w.ok(err)
	box, err = w.m.Wait(w.t.Context(), box.Ref())
	w.ok(err)
	w.engine.PutHome(box.ID, map[string]string{"file": "first"})
	return box
}

// now gives a sandbox as it is.
func (w *world) now(box sandbox.Sandbox) sandbox.Sandbox {
	w.t.Helper()
	box, err := w.m.Current(w.t.Context(), box.Ref())
	w.ok(err)
	return box
}

// take takes a snapshot and waits for it.
func (w *world) take(box sandbox.Sandbox, a snapshot.Ask) snapshot.Snapshot {
	w.t.Helper()
	snap, _, err := w.Begin(w.t.Context(), box, a)
	w.ok(err)
	snap, err = w.Wait(w.t.Context(), snap.ID)
	w.ok(err)
	return snap
}

// wantParts checks which copies of homes and which images the engine has, by the ids of snapshots.
func (w *world) wantParts(copies, images []string) {
	w.t.Helper()
	w.settle()
	gotCopies, gotImages, err := w.engine.Parts(w.t.Context())
	w.ok(err)
	slices.Sort(copies)
	slices.Sort(images)
	if !slices.Equal(gotCopies, copies) || !slices.Equal(gotImages, images) {
		w.t.Errorf("copies %v and images %v, want %v and %v", gotCopies, gotImages, copies, images)
	}
}

// wantRows checks that the store has these snapshots, all ready, and the Service lists them.
func (w *world) wantRows(ids ...string) {
	w.t.Helper()
	list, err := w.store.List(w.t.Context())
	w.ok(err)
	var stored, listed []string
	for _, snap := range list {
		if stored = append(stored, snap.ID); snap.State != snapshot.Ready {
			w.t.Errorf("snapshot %s is stored as %s", snap.ID, snap.State)
		}
	}
	for _, snap := range w.List(func(snap snapshot.Snapshot) bool { return snap.State != snapshot.Failed }) {
		listed = append(listed, snap.ID)
	}
	slices.Sort(stored)
	slices.Sort(listed)
	ids = slices.Sorted(slices.Values(ids))
	if !slices.Equal(stored, ids) || !slices.Equal(listed, ids) {
		w.t.Errorf("stored %v and listed %v, want %v", stored, listed, ids)
	}
}

func (w *world) wantHome(box sandbox.Sandbox, content string) {
	w.t.Helper()
	files, settled := w.engine.HomeFiles(box.ID)
	if !settled || !maps.Equal(files, map[string]string{"file": content}) {
		w.t.Errorf("the home of %s has %v, settled %t, want %q", box.Name, files, settled, content)
	}
}

// wantHead checks the head in memory and in the store.
func (w *world) wantHead(box sandbox.Sandbox, id string) {
	w.t.Helper()
	heads, err := w.store.Heads(w.t.Context())
	w.ok(err)
	if w.Head(box.ID) != id || heads[box.ID].Snapshot != id {
		w.t.Errorf("head of %s is %q, stored %q, want %q", box.Name, w.Head(box.ID), heads[box.ID].Snapshot, id)
	}
}

func (w *world) fails(of sandbox.Sandbox, err error) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.failed = append(w.failed, of.Name+": "+fault.Message(err))
}

// wantFailed checks what Config.Failed was called with since it was checked last.
func (w *world) wantFailed(what string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.telling.Lock()
	defer w.telling.Unlock()
	if !slices.Equal(w.failed, want) {
		w.t.Errorf("%s: told of %q, want %q", what, w.failed, want)
	}
	w.failed = nil
}

func (w *world) wantKind(what string, err error, kind fault.Kind, part string) {
	w.t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Message(err), part) {
		w.t.Errorf("%s: %v, want %s with %q", what, err, kind, part)
	}
}

// guests are ready at once.
type guests struct{}

func (guests) Expect(id string, _ sandbox.Setup) (string, error) { return "/link/" + id, nil }
func (guests) Ready(context.Context, string) error               { return nil }
func (guests) HangUp(context.Context, string) error              { return nil }
func (guests) Forget(string) error                               { return nil }

// images are there.
type images struct{}

func (images) Ensure(context.Context, catalog.Template, func(catalog.BuildEvent)) (string, error) {
	return "image", nil
}
func (images) Reference(catalog.Template) (string, error) { return "image", nil }

// templates has one.
type templates struct{}

func (templates) Template(name string) (catalog.Template, error) {
	if name != "base" {
		return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q.", name)
	}
	return catalog.Template{Name: "base", Size: catalog.DefaultSize, Profile: catalog.Dev}, nil
}
