package update_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/snapshot/snapshottest"
	"sandboxd/internal/update"
	"sandboxd/internal/update/updatetest"
	"sandboxd/internal/wire"
)

// world is all around a Service, with a real Manager and real snapshots on a fake engine. It outlives them, as the real one outlives a crash.
type world struct {
	t         *testing.T
	boxes     *sandboxtest.MemStore
	engine    *sandboxtest.Runtime
	snapshots *snapshottest.Store
	store     *updatetest.Store
	template  *template
	tracker   *idle.Tracker

	*update.Service
	m     *sandbox.Manager
	shots *snapshot.Service
	end   func() // as the end of the process would
}

// within runs a test in a world whose time is the test's.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, boxes: sandboxtest.NewMemStore(), engine: sandboxtest.NewRuntime(), snapshots: snapshottest.NewStore(),
			store: &updatetest.Store{}, template: &template{tag: "1", sick: map[string]bool{}, used: map[string]time.Time{}}, tracker: idle.New()}
		w.start()
		defer func() { w.end() }()
		test(w)
	})
}

func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	w.m = sandbox.New(sandbox.Config{
		Store: w.boxes, Runtime: w.engine, Freezer: w.engine, Homes: w.engine, Snapshots: w.engine, Guests: guests{}, Images: w.template, Templates: w.template,
		Labels: func(string, string) map[string]string { return nil }, Host: sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096}, Log: log,
	})
	var err error
	w.shots, err = snapshot.New(w.t.Context(), snapshot.Config{Store: w.snapshots, Sandboxes: w.m, Parts: w.engine, Keep: 24 * time.Hour, Automatic: 3, Most: 6, Log: log,
		Failed: func(sandbox.Sandbox, error) {}})
	w.ok(err)
	w.Service, err = update.New(w.t.Context(), update.Config{
		Store: w.store, Sandboxes: w.m, Snapshots: w.shots, Images: w.template, Templates: w.template, Guests: w.template.guest(w), Log: log,
		InUse:   func(_ context.Context, s sandbox.Sandbox) []idle.Reason { return w.tracker.Status(s.ID).Because },
		Unused:  func(id string) bool { return len(w.tracker.Status(id).Because) == 0 },
		LastUse: func(s sandbox.Sandbox) time.Time { return w.template.used[s.Name] },
		LastLines: func(_ context.Context, _, service string, _ time.Time, most int) []string {
			return []string{"the last line of " + service}
		},
	})
	w.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{w.m.Run, w.shots.Run, w.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Error(err)
			}
		})
	}
	w.end = func() { cancel(); running.Wait() }
	synctest.Wait()
}

// restart ends sandboxd, and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.start()
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create makes a sandbox that runs, and was used last so many minutes after the test began.
func (w *world) create(name string, used int) sandbox.Sandbox {
	w.t.Helper()
	box, _, err := w.m.Create(w.t.Context(), sandbox.Request{Name: name, Owner: "ann", Template: "base"})
	w.ok(err)
	box, err = w.m.Wait(w.t.Context(), box.Ref())
	w.ok(err)
	w.engine.PutHome(box.ID, map[string]string{"file": name})
	synctest.Wait() // for the engine's event, which says what it was made from
	w.template.used[name] = time.Unix(int64(60*used), 0)
	return box
}

func (w *world) now(box sandbox.Sandbox) sandbox.Sandbox {
	w.t.Helper()
	now, err := w.m.Current(w.t.Context(), box.Ref())
	w.ok(err)
	return now
}

// image gives what the engine has made a sandbox from.
func (w *world) image(box sandbox.Sandbox) string {
	w.t.Helper()
	all, err := w.engine.List(w.t.Context())
	w.ok(err)
	for _, i := range all {
		if i.ID == box.ID {
			return i.Image
		}
	}
	return ""
}

// all updates all of the template, and waits for the end.
func (w *world) all(a update.Ask) update.Run {
	w.t.Helper()
	a.Template, a.By, a.MaxFailures = "base", "root", max(a.MaxFailures, 1)
	r, err := w.All(w.t.Context(), a)
	w.ok(err)
	r, err = w.Wait(w.t.Context(), r.ID)
	w.ok(err)
	return r
}

// how says in a line how a run went: "stopped: a updated, b failed, c skipped".
func how(r update.Run) string {
	var items []string
	for _, i := range r.Items {
		items = append(items, i.Sandbox+" "+string(i.State))
	}
	return string(r.State) + ": " + strings.Join(items, ", ")
}

// template is a template "base" whose image can be changed, the images, and how the services in its sandboxes are.
type template struct {
	mu    sync.Mutex
	tag   string
	built error
	takes time.Duration
	sick  map[string]bool // names of sandboxes whose service does not work on image 2
	used  map[string]time.Time
}

func (c *template) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// Template implements sandbox.Templates.
func (c *template) Template(name string) (catalog.Template, error) {
	if name != "base" {
		return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q.", name)
	}
	return catalog.Template{Name: "base", Size: catalog.DefaultSize, Profile: catalog.Dev, Services: []catalog.Service{
		{Name: "web", Command: []string{"serve"}, Port: 80, Autostart: true, Health: &catalog.Health{Path: "/", Interval: time.Second}},
		{Name: "byhand", Command: []string{"other"}},
	}}, nil
}

// Ensure implements sandbox.Images.
func (c *template) Ensure(ctx context.Context, t catalog.Template, _ func(catalog.BuildEvent)) (string, error) {
	c.mu.Lock()
	takes, err := c.takes, c.built
	c.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if err != nil {
		return "", err
	}
	return c.Reference(t)
}

// Reference implements sandbox.Images.
func (c *template) Reference(catalog.Template) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "image:" + c.tag, nil
}

// guest gives the links to guests that say how the services are.
func (c *template) guest(w *world) access.Links {
	return func(_ context.Context, id string) (access.Guest, error) {
		return &guest{template: c, world: w, id: id}, nil
	}
}

// guest is one that only says how its services are.
type guest struct {
	access.Guest
	template *template
	world    *world
	id       string
}

// Services implements access.Guest.
func (g *guest) Services(context.Context) ([]wire.ServiceStatus, error) {
	name, image := "", ""
	all, err := g.world.engine.List(context.Background())
	for _, i := range all {
		if i.ID == g.id {
			name, image = i.Name, i.Image
		}
	}
	g.template.mu.Lock()
	defer g.template.mu.Unlock()
	web := wire.ServiceStatus{Name: "web", State: wire.ServiceRunning, Health: wire.HealthHealthy}
	if g.template.sick[name] && image == "image:2" {
		web.Health, web.Problem = wire.HealthUnhealthy, "It answers 500."
	}
	return []wire.ServiceStatus{web, {Name: "byhand", State: wire.ServiceStopped}}, err
}

// guests are ready at once.
type guests struct{}

func (guests) Expect(id string, _ sandbox.Setup) (string, error) { return "/link/" + id, nil }
func (guests) Ready(context.Context, string) error               { return nil }
func (guests) HangUp(context.Context, string) error              { return nil }
func (guests) Forget(string) error                               { return nil }
