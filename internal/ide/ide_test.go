package ide

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// world is a server with one sandbox, "lab", and an engine that builds what it is told to.
type world struct {
	*Service
	t       *testing.T
	dir     string
	archive []byte

	mu  sync.Mutex
	tag string // of the image as it is described now
	box sandbox.Sandbox
	on  bool
	answers
	counts
}

// answers is what guest and engine say.
type answers struct {
	inside  wire.IDEStatus
	deaf    bool  // the guest does not answer
	fail    error // of a build
	copying error
	gate    chan struct{} // a build waits for it; nil for none
}

type counts struct{ builds, dropped int }

func newTestWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "ide"), tag: "v1", answers: answers{inside: wire.IDEStatus{State: wire.IDEStopped}},
		box: sandbox.Sandbox{ID: "1", Name: "lab", State: sandbox.Running}}
	w.archive = archive(t, folder, entry{name: "ide/file", text: "x"})
	hosts, err := hostname.New("https://box.example.com")
	if err != nil {
		t.Fatal(err)
	}
	w.Service = New(Config{Folder: w.dir, Owner: "test", Images: w, Engine: w, Boxes: boxes{w}, Links: w.link, Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
	return w
}

// live lets the service live, until the test or stop ends it.
func (w *world) live() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Service.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Run implements Images.
func (w *world) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Reference implements Images.
func (w *world) Reference(catalog.Template) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return "sandboxd/code-server:" + w.tag, nil
}

// Ensure implements Images.
func (w *world) Ensure(ctx context.Context, t catalog.Template, report func(catalog.BuildEvent)) (string, error) {
	w.mu.Lock()
	w.builds++
	fail, wait := w.fail, w.gate
	w.mu.Unlock()
	report(catalog.BuildEvent{Step: 5, Steps: 10, Line: "compiling"})
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if fail != nil {
		return "", fail
	}
	return w.Reference(t)
}

// CopyOut implements Engine.
func (w *world) CopyOut(_ context.Context, ref, from, owner string, take func(io.Reader) error) error {
	w.mu.Lock()
	err := w.copying
	w.mu.Unlock()
	if !strings.HasPrefix(ref, "sandboxd/code-server:") || from != imageFolder || owner != "test" {
		w.t.Errorf("copy of %s out of %s for %s", from, ref, owner)
	}
	if err != nil {
		return err
	}
	return take(bytes.NewReader(w.archive))
}

// DropStages implements Engine.
func (w *world) DropStages(context.Context, string) error {
	w.set(func() { w.dropped++ })
	return nil
}

func (w *world) link(context.Context, string) (access.Guest, error) { return guest{world: w}, nil }

// handle is what the sandbox's owner gets.
func (w *world) handle() access.Handle {
	w.t.Helper()
	lab := accesstest.New("lab", nil)
	lab.Change(func(row *sandbox.Sandbox) { *row = w.box })
	return lab.Handle(w.t)
}

type guest struct {
	access.Guest
	*world
}

// IDE implements Guest.
func (g guest) IDE(context.Context) (wire.IDEStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deaf {
		return wire.IDEStatus{}, fault.New(fault.Unavailable, "No answer.")
	}
	return g.inside, nil
}

type boxes struct{ *world }

// List implements Boxes.
func (b boxes) List(_ context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Up && b.box.State != sandbox.Running && b.box.State != sandbox.Frozen {
		return nil, 0, nil
	}
	return []sandbox.Sandbox{b.box}, 1, nil
}

// OffersIDE implements Boxes.
func (b boxes) OffersIDE(sandbox.Sandbox) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

// SetIDE implements Boxes.
func (b boxes) SetIDE(_ context.Context, _ sandbox.Ref, on bool) (sandbox.Sandbox, error) {
	b.set(func() { b.on = on })
	return b.box, nil
}

func (w *world) status() Status {
	w.t.Helper()
	st, err := w.Status(w.t.Context(), w.handle())
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

func (w *world) within(what string, cond func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

func TestEnable_BuildsOnceForManyAndTellsHowFarItHasCome(t *testing.T) {
	w := newTestWorld(t)
	w.gate = make(chan struct{})
	w.live()
	if st := w.status(); st.Enabled || st.State != Off || st.URL != "https://code-lab.box.example.com/" {
		t.Errorf("before: %+v", st)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if st, err := w.Enable(t.Context(), w.handle(), true); err != nil || st.State != Building || !st.Enabled {
				t.Errorf("%+v, %v", st, err)
			}
		})
		all.Go(func() {
			if version, err := w.Service.Ensure(t.Context()); err != nil || version != "v1" {
				t.Errorf("%q, %v", version, err)
			}
		})
	}
	want := Progress{Step: 5, Steps: 10, Line: "compiling", Part: 0.38}
	w.within("progress", func() bool { return cmp.Equal(w.status().Progress, want) })
	if _, err := w.Start(t.Context(), "1"); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "38 % done") {
		t.Errorf("a dial meanwhile: %v", err)
	}
	close(w.gate)
	all.Wait()
	if st := w.status(); st.State != Ready || w.builds != 1 || w.dropped != 1 {
		t.Errorf("%+v after %d builds and %d clean-ups", st, w.builds, w.dropped)
	}
	start, err := w.Start(t.Context(), "1")
	if err != nil || start != (wire.IDEStart{Version: "v1", Ports: "https://{{port}}-{{name}}.box.example.com"}) || start.Check() != nil {
		t.Errorf("start with %+v, %v", start, err)
	}
}

func TestEnable_ATryThatFailsTellsWhyAndIsRepeatedOnRequest(t *testing.T) {
	w := newTestWorld(t)
	w.live()
	for what, c := range map[string]struct {
		fail func()
		text string
	}{
		"the build": {func() { w.fail = fault.New(fault.Invalid, "Step 3 of 9 has failed.") }, "Step 3 of 9"},
		"the copy":  {func() { w.copying = fault.New(fault.Unavailable, "The engine has hung up.") }, "hung up"},
	} {
		w.set(func() { w.fail, w.copying = nil, nil; c.fail() })
		if _, err := w.Enable(t.Context(), w.handle(), true); err != nil {
			t.Fatal(err)
		}
		w.within(what+" fails", func() bool { st := w.status(); return st.State == Failed && strings.Contains(st.Problem, c.text) })
		before := w.builds
		for range 5 {
			if _, err := w.Start(t.Context(), "1"); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), c.text) {
				t.Errorf("%s: a dial: %v", what, err)
			}
		}
		if w.status(); w.builds != before {
			t.Errorf("%s: dials have built %d times", what, w.builds-before)
		}
		if _, err := w.Service.Ensure(t.Context()); !strings.Contains(fault.Message(err), c.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.set(func() { w.fail, w.copying = nil, nil })
	if _, err := w.Enable(t.Context(), w.handle(), true); err != nil {
		t.Fatal(err)
	}
	w.within("it is ready", func() bool { return w.status().State == Ready })
}

func TestRun_GoesOnWithWhatARestartHasBrokenOff(t *testing.T) {
	w := newTestWorld(t)
	w.gate = make(chan struct{})
	stop := w.live()
	if _, err := w.Enable(t.Context(), w.handle(), true); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := w.Service.Ensure(context.Background()); waiting <- err }()
	w.within("the build", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.builds == 1 })
	stop()
	if err := <-waiting; !fault.Is(err, fault.Unavailable) {
		t.Errorf("who waited got %v", err)
	}
	if _, err := w.Service.Ensure(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, newPrefix+"half/lib"), 0o755); err != nil { // a kill in the middle of a copy
		t.Fatal(err)
	}
	close(w.gate)
	w.Service = New(w.cfg)
	w.live()
	w.within("it is ready, unasked", func() bool { return w.status().State == Ready })
	if left := names(t, w.dir); strings.Join(left, " ") != "v1 v1/file" {
		t.Errorf("there are %q", left)
	}
}

func TestStatus_TellsWhatTheGuestSays(t *testing.T) {
	w := newTestWorld(t)
	w.live()
	w.set(func() { w.on = true })
	if _, err := w.Service.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		box    sandbox.State
		inside wire.IDEStatus
		deaf   bool
		want   State
	}{
		{sandbox.Running, wire.IDEStatus{State: wire.IDEStopped, Problem: "It ended."}, false, Ready},
		{sandbox.Running, wire.IDEStatus{State: wire.IDEStarting}, false, Starting},
		{sandbox.Running, wire.IDEStatus{State: wire.IDERunning}, false, Running},
		{sandbox.Running, wire.IDEStatus{State: wire.IDERunning}, true, Ready},
		{sandbox.Frozen, wire.IDEStatus{State: wire.IDERunning}, false, Ready},
		{sandbox.Stopped, wire.IDEStatus{State: wire.IDERunning}, false, Ready},
	} {
		w.set(func() { w.box.State, w.inside, w.deaf = c.box, c.inside, c.deaf })
		if st := w.status(); st.State != c.want || st.Problem != c.inside.Problem {
			t.Errorf("%+v: %+v", c, st)
		}
	}
}

func TestSweep_AnOldVersionServesUntilTheNewOneIsThereAndGoesWhenNobodyUsesIt(t *testing.T) {
	w := newTestWorld(t)
	w.live()
	w.set(func() { w.on = true })
	if _, err := w.Service.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.set(func() {
		w.tag, w.gate, w.inside = "v2", make(chan struct{}), wire.IDEStatus{State: wire.IDERunning, Version: "v1"}
	})
	if start, err := w.Start(t.Context(), "1"); err != nil || start.Version != "v1" {
		t.Errorf("while v2 is built: %+v, %v", start, err)
	}
	w.within("v2 is built by itself", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.builds == 2 })
	close(w.gate)
	w.within("v2 is there", func() bool { return w.tree.has("v2") })
	if start, err := w.Start(t.Context(), "1"); err != nil || start.Version != "v2" {
		t.Errorf("then: %+v, %v", start, err)
	}
	for what, c := range map[string]struct {
		change func()
		stays  bool
	}{
		"used":             {func() {}, true},
		"frozen":           {func() { w.box.State = sandbox.Frozen }, true},
		"not answering":    {func() { w.deaf = true }, true},
		"lying":            {func() { w.inside.Version = "v2" }, false},
		"ended":            {func() { w.inside = wire.IDEStatus{State: wire.IDEStopped} }, false},
		"its sandbox ends": {func() { w.box.State = sandbox.Stopped }, false},
		"switched off":     {func() { w.on = false }, false},
	} {
		if err := os.MkdirAll(filepath.Join(w.dir, "v1/lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.set(func() {
			w.box.State, w.deaf, w.on, w.inside = sandbox.Running, false, true, wire.IDEStatus{State: wire.IDERunning, Version: "v1"}
			c.change()
		})
		w.sweep(t.Context())
		if has := w.tree.has("v1"); has != c.stays || !w.tree.has("v2") {
			t.Errorf("%s: the old one is there: %t", what, has)
		}
	}
}
