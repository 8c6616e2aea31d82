package sandbox_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// world is everything around a Manager, in memory: a store, an engine, guests and images that the test can bend. It
// outlives the Manager, as the real ones outlive a crash.
type world struct {
	store  *sandboxtest.MemStore
	engine *engine
	guests *guests
	images *images
}

func newWorld() *world {
	return &world{
		store:  sandboxtest.NewMemStore(),
		engine: &engine{boxes: map[string]*sandbox.Instance{}},
		guests: &guests{silent: map[string]bool{}, known: map[string]sandbox.Setup{}},
		images: &images{},
	}
}

// run starts a Manager in this world; the returned function ends it as the end of the process would.
func (w *world) run(t *testing.T) (m *sandbox.Manager, end func()) {
	t.Helper()
	m = sandbox.New(sandbox.Config{
		Store: w.store, Runtime: w.engine, Guests: w.guests, Images: w.images, Templates: templates{},
		Labels: func(_, name string, _ []int) map[string]string { return map[string]string{"route": name} },
		Host:   sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return m, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// engine is a Runtime in memory. Its start and stop take a second of fake time.
type engine struct {
	mu     sync.Mutex
	boxes  map[string]*sandbox.Instance
	fail   map[string]error // by method
	starts int
	seen   func(sandbox.Instance)
	lost   chan struct{}
}

func (e *engine) failing(method string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fail[method]
}

func (e *engine) refuse(method string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail == nil {
		e.fail = map[string]error{}
	}
	e.fail[method] = err
}

func (e *engine) Create(_ context.Context, b sandbox.Box) error {
	if err := e.failing("Create"); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.boxes[b.ID] == nil {
		e.boxes[b.ID] = &sandbox.Instance{ID: b.ID, Name: b.Name, Template: b.Template, Image: b.Image}
	}
	return nil
}

func (e *engine) Start(ctx context.Context, id string) error {
	if err := e.failing("Start"); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starts++
	i := e.boxes[id]
	if i == nil {
		return fault.New(fault.NotFound, "No such thing.")
	}
	i.Running = true
	return nil
}

func (e *engine) Stop(ctx context.Context, id string, _ time.Duration) error {
	if err := e.failing("Stop"); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.boxes[id]; i != nil {
		i.Running = false
	}
	return nil
}

func (e *engine) Remove(_ context.Context, id string) error {
	if err := e.failing("Remove"); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.boxes, id)
	return nil
}

func (e *engine) List(context.Context) ([]sandbox.Instance, error) {
	if err := e.failing("List"); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []sandbox.Instance
	for _, i := range e.boxes {
		out = append(out, *i)
	}
	return out, nil
}

func (e *engine) Watch(ctx context.Context, ready func(), seen func(sandbox.Instance)) error {
	if err := e.failing("Watch"); err != nil {
		return err
	}
	lost := make(chan struct{})
	e.mu.Lock()
	e.seen, e.lost = seen, lost
	e.mu.Unlock()
	ready()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return fault.New(fault.Unavailable, "The engine went away.")
	}
}

// change alters an instance behind the Manager's back, and tells the watch when told to.
func (e *engine) change(id string, tell bool, f func(*sandbox.Instance)) {
	e.mu.Lock()
	i, seen := e.boxes[id], e.seen
	f(i)
	after := *i
	e.mu.Unlock()
	if tell {
		seen(after)
	}
}

// restart is the engine going away and coming back, with everything in it ended.
func (e *engine) restart() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range e.boxes {
		i.Running = false
	}
	close(e.lost)
}

// put is an instance that nobody has a record of.
func (e *engine) put(i sandbox.Instance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.boxes[i.ID] = &i
}

func (e *engine) instance(id string) (sandbox.Instance, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.boxes[id]; i != nil {
		return *i, true
	}
	return sandbox.Instance{}, false
}

// guests answers at once, except those that are silent.
type guests struct {
	mu     sync.Mutex
	silent map[string]bool // by name
	known  map[string]sandbox.Setup
}

func (g *guests) Expect(id string, s sandbox.Setup) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Env = maps.Clone(s.Env)
	g.known[id] = s
	return "/link/" + id, nil
}

func (g *guests) Ready(ctx context.Context, id string) error {
	g.mu.Lock()
	s, ok := g.known[id]
	silent := g.silent[s.Name]
	g.mu.Unlock()
	if ok && !silent {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g *guests) Forget(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
	return nil
}

func (g *guests) setup(id string) (sandbox.Setup, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.known[id]
	return s, ok
}

// images takes as long as it is told, and tells its progress once.
type images struct {
	mu   sync.Mutex
	err  error
	took time.Duration
}

func (i *images) set(took time.Duration, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.took, i.err = took, err
}

func (i *images) Ensure(ctx context.Context, t catalog.Template, report func(catalog.BuildEvent)) (string, error) {
	i.mu.Lock()
	took, err := i.took, i.err
	i.mu.Unlock()
	report(catalog.BuildEvent{Step: 2, Steps: 4, Line: "Get:1 \x1b[31mpackages"})
	if err := sleep(ctx, took); err != nil {
		return "", err
	}
	return "image-of-" + t.Name + t.Image, err
}

type templates struct{}

func (templates) Template(name string) (catalog.Template, error) {
	if name != "base" {
		return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q. There are: base.", name)
	}
	return catalog.Template{
		Name: "base", Size: catalog.DefaultSize, Profile: catalog.Dev, Env: map[string]string{"FROM": "template", "BOTH": "template"},
		Services: []catalog.Service{{Name: "web", Command: []string{"serve"}}},
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass lets fake time go by.
func pass(d time.Duration) { <-time.After(d) }
