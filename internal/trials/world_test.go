package trials_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/snapshot/snapshottest"
	"sandboxd/internal/trials"
	"sandboxd/internal/trials/trialstest"
)

// world is all around a Service, over real services on stores and an engine in memory, which outlive them.
type world struct {
	t      *testing.T
	boxes  *sandboxtest.MemStore
	engine *sandboxtest.Runtime
	snaps  *snapshottest.Store
	talks  *chattest.Store
	rows   *rows
	room   error
	agent  func(ctx context.Context, t *chat.Turn) error // nil repeats the message

	*trials.Service
	m    *sandbox.Manager
	snap *snapshot.Service
	chat *chat.Service
	end  func() // as the end of the process would
}

// rows is a store that refuses trials of one state.
type rows struct {
	trialstest.Store
	refused atomic.Value
}

// Put implements trials.Store.
func (r *rows) Put(ctx context.Context, t trials.Trial) error {
	if r.refused.Load() == t.State {
		return errors.New("the disk is full")
	}
	return r.Store.Put(ctx, t)
}

// within runs a test in a world whose time is the test's, with a sandbox "lab" of ann's that runs.
func within(t *testing.T, test func(w *world, box sandbox.Sandbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, boxes: sandboxtest.NewMemStore(), engine: sandboxtest.NewRuntime(), snaps: snapshottest.NewStore(), talks: chattest.NewStore(), rows: &rows{}}
		w.start()
		defer func() { w.end() }()
		box, _, err := w.m.Create(t.Context(), sandbox.Request{Name: "lab", Owner: "ann", Template: "base"})
		w.ok(err)
		box, err = w.m.Wait(t.Context(), box.Ref())
		w.ok(err)
		w.engine.PutHome(box.ID, map[string]string{"file": "first"})
		test(w, box)
	})
}

func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	w.m = sandbox.New(sandbox.Config{
		Store: w.boxes, Runtime: w.engine, Freezer: w.engine, Homes: w.engine, Snapshots: w.engine, Checkpoints: sandboxtest.MemoriesOf(w.engine), Guests: guests{}, Images: images{}, Templates: templates{},
		Labels: func(string, string) map[string]string { return nil }, Host: sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096}, Log: log,
	})
	var err error
	w.snap, err = snapshot.New(w.t.Context(), snapshot.Config{Store: w.snaps, Sandboxes: w.m, Parts: w.engine, Keep: 24 * time.Hour, Automatic: 10, Most: 10, Log: log,
		Failed: func(sandbox.Sandbox, error) {}})
	w.ok(err)
	doing := chat.NewStates(w.talks, nil)
	w.ok(doing.Load(w.t.Context()))
	w.chat = chat.New(chat.Config{Store: doing, Log: log, Drivers: func(agent string) (chat.Driver, error) {
		if agent != chat.OwnAgent {
			return nil, fault.New(fault.NotFound, "There is no agent %q.", agent)
		}
		return w, nil
	}})
	w.Service = trials.New(trials.Config{Store: w.rows, Sandboxes: w.m, Snapshots: w.snap, Chat: w.chat, Doing: doing,
		Room: func(context.Context) error { return w.room }, Log: log})
	w.ok(w.Load(w.t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 4)
	for _, run := range []func(context.Context) error{w.m.Run, w.snap.Run, w.chat.Run, w.Run} {
		go func() { ended <- run(ctx) }()
	}
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, <-ended, <-ended); err != nil {
			w.t.Error(err)
		}
	})
	synctest.Wait()
}

// restart ends sandboxd, and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.start()
}

// Turn implements chat.Driver.
func (w *world) Turn(ctx context.Context, t *chat.Turn) error {
	if w.agent != nil {
		return w.agent(ctx, t)
	}
	t.Text("You said " + t.Message().Text)
	return nil
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

func (w *world) wantKind(what string, err error, kind fault.Kind, part string) {
	w.t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Message(err), part) {
		w.t.Errorf("%s: %v, want %s with %q", what, err, kind, part)
	}
}

// try begins a trial, and lets it settle.
func (w *world) try(box sandbox.Sandbox, count int) trials.Trial {
	w.t.Helper()
	t, err := w.Begin(w.t.Context(), box, trials.Ask{Owner: "ann", Text: "Make it faster", Count: count})
	w.ok(err)
	w.settle()
	return w.now(t)
}

// now gives a trial as it is.
func (w *world) now(t trials.Trial) trials.Trial {
	w.t.Helper()
	t, err := w.Trial(t.ID)
	w.ok(err)
	return t
}

// names lists the sandboxes there are.
func (w *world) names() map[string]sandbox.Sandbox {
	w.t.Helper()
	all, err := w.m.All(w.t.Context())
	w.ok(err)
	names := map[string]sandbox.Sandbox{}
	for _, b := range all {
		names[b.Name] = b
	}
	return names
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
	return catalog.Template{Name: name, Size: catalog.DefaultSize, Profile: catalog.Dev}, nil
}
