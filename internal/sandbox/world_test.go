package sandbox_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// world is everything around a Manager, in memory: a store, an engine, guests and images that the test can bend. It
// outlives the Manager, as the real ones outlive a crash.
type world struct {
	store     *sandboxtest.MemStore
	engine    *engine
	guests    *guests
	images    *images
	templates *templates
	fate      *fate
	room      atomic.Pointer[error] // why there is none, or nil
	stiff     bool                  // the engine cannot freeze
	quota     sandbox.Quota         // nil: there is no storage pool
	volumes   atomic.Pointer[[]sandbox.Mount]
	left      atomic.Int32 // how often Config.Leave was called of one that the engine had running
	times     *pace.Times
	observe   func(ctx context.Context, a sandbox.Action, was sandbox.State, s sandbox.Sandbox) func(error)
}

func newWorld() *world {
	f := &fate{}
	return &world{
		store:     sandboxtest.NewMemStore(),
		engine:    newEngine(f),
		guests:    &guests{silent: map[string]bool{}, known: map[string]sandbox.Setup{}, heard: map[string]sandbox.Setup{}},
		images:    &images{},
		templates: &templates{env: "template"},
		fate:      f,
	}
}

// full makes the host have no room; nil ends that.
func (w *world) full(err error) {
	if err == nil {
		w.room.Store(nil)
		return
	}
	w.room.Store(&err)
}

// run starts a Manager in this world; the returned function ends it as the end of the process would.
func (w *world) run(t *testing.T) (m *sandbox.Manager, end func()) {
	t.Helper()
	c := sandbox.Config{
		Store: fatedStore{w.store, w.fate}, Runtime: w.engine, Freezer: w.engine, Homes: w.engine, Snapshots: w.engine, Layers: layers{sandboxtest.LayersOf(w.engine.Runtime), w.engine}, Checkpoints: w.memories(),
		Guests: w.guests, Images: w.images, Templates: w.templates,
		Labels: func(_, name string) map[string]string { return map[string]string{"route": name} },
		Host:   sandbox.Limits{CPUs: 4, Memory: 8 << 30, Pids: 4096},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		Rest:   catalog.Rest{FreezeAfter: catalog.After(15 * time.Minute)},
		Room: func(context.Context) error {
			if err := w.room.Load(); err != nil {
				return *err
			}
			return nil
		},
	}
	c.Observe, c.Quota, c.Times = w.observe, w.quota, w.times
	c.Leave = func(_ context.Context, s sandbox.Sandbox) {
		if w.engine.Runs(s.ID) {
			w.left.Add(1)
		}
	}
	c.Volumes = func(sandbox.Sandbox) []sandbox.Mount {
		if list := w.volumes.Load(); list != nil {
			return *list
		}
		return nil
	}
	if w.stiff {
		c.Freezer = nil
	}
	m = sandbox.New(c)
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

// engine is the fake runtime, whose starts, stops, freezes and thaws take a second, with trouble that lasts until it is taken back, and
// a watch that can be made deaf.
type engine struct {
	*sandboxtest.Runtime
	fate *fate

	mu   sync.Mutex
	fail map[sandboxtest.Op]error
	deaf bool
	seen func(sandbox.Instance)
}

func newEngine(f *fate) *engine {
	e := &engine{Runtime: sandboxtest.NewRuntime(), fate: f, fail: map[sandboxtest.Op]error{}}
	for _, op := range []sandboxtest.Op{sandboxtest.OpStart, sandboxtest.OpStop, sandboxtest.OpFreeze, sandboxtest.OpThaw} {
		e.Delay(op, time.Second)
	}
	return e
}

// refuse makes every call of op give err; nil ends that.
func (e *engine) refuse(op sandboxtest.Op, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail[op] = err
}

func (e *engine) failing(op sandboxtest.Op) error {
	if err := e.fate.strike(string(op)); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fail[op]
}

func (e *engine) Create(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := e.failing(sandboxtest.OpCreate); err != nil {
		return err
	}
	return e.Runtime.Create(ctx, b)
}

func (e *engine) Start(ctx context.Context, id string) error {
	if err := e.failing(sandboxtest.OpStart); err != nil {
		return err
	}
	return e.Runtime.Start(ctx, id)
}

func (e *engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := e.failing(sandboxtest.OpStop); err != nil {
		return err
	}
	return e.Runtime.Stop(ctx, id, grace)
}

func (e *engine) Freeze(ctx context.Context, id string) error {
	if err := e.failing(sandboxtest.OpFreeze); err != nil {
		return err
	}
	return e.Runtime.Freeze(ctx, id)
}

func (e *engine) Pause(ctx context.Context, id string) error { return e.Freeze(ctx, id) }

func (e *engine) Thaw(ctx context.Context, id string) error {
	if err := e.failing(sandboxtest.OpThaw); err != nil {
		return err
	}
	return e.Runtime.Thaw(ctx, id)
}

func (e *engine) OpenHome(ctx context.Context, id, snapshot string) (sandbox.Home, error) {
	if err := e.failing(sandboxtest.OpOpenHome); err != nil {
		return nil, err
	}
	h, err := e.Runtime.OpenHome(ctx, id, snapshot)
	return fatedHome{h, e}, err
}

// fatedHome is a home whose work fate may strike.
type fatedHome struct {
	sandbox.Home
	engine *engine
}

func (h fatedHome) Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	if err := h.engine.failing(sandboxtest.OpReadHome); err != nil {
		return archive.Stats{}, err
	}
	return h.Home.Read(ctx, w, prefix, progress)
}

func (h fatedHome) CopyOut(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	if err := h.engine.failing(sandboxtest.OpCopyOut); err != nil {
		return archive.Stats{}, err
	}
	return h.Home.CopyOut(ctx, progress)
}

func (h fatedHome) CopyIn(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	if err := h.engine.failing(sandboxtest.OpCopyIn); err != nil {
		return archive.Stats{}, err
	}
	return h.Home.CopyIn(ctx, progress)
}

func (e *engine) Commit(ctx context.Context, id, snapshot string) (string, error) {
	if err := e.failing(sandboxtest.OpCommit); err != nil {
		return "", err
	}
	return e.Runtime.Commit(ctx, id, snapshot)
}

// layers are those of an engine.
type layers struct {
	sandboxtest.Layers
	e *engine
}

func (l layers) MakeImage(ctx context.Context, snapshot, base string, layer sandbox.Layer) (string, error) {
	if err := l.e.failing(sandboxtest.OpMakeImage); err != nil {
		return "", err
	}
	return l.Layers.MakeImage(ctx, snapshot, base, layer)
}

func (e *engine) Remount(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := e.failing(sandboxtest.OpRemount); err != nil {
		return err
	}
	return e.Runtime.Remount(ctx, b)
}

func (e *engine) Recreate(ctx context.Context, b sandbox.ContainerSpec) error {
	if err := e.failing(sandboxtest.OpRecreate); err != nil {
		return err
	}
	return e.Runtime.Recreate(ctx, b)
}

func (h fatedHome) Replace(ctx context.Context, r io.Reader, c sandbox.Content, progress func(archive.Stats)) (archive.Stats, error) {
	if err := h.engine.failing(sandboxtest.OpReplaceHome); err != nil {
		return archive.Stats{}, err
	}
	return h.Home.Replace(ctx, r, c, progress)
}

func (h fatedHome) Settle(ctx context.Context) (bool, error) {
	if err := h.engine.failing(sandboxtest.OpSettleHome); err != nil {
		return false, err
	}
	return h.Home.Settle(ctx)
}

func (e *engine) List(ctx context.Context) ([]sandbox.Instance, error) {
	if err := e.failing(sandboxtest.OpList); err != nil {
		return nil, err
	}
	list, err := e.Runtime.List(ctx)
	e.fate.wasRead("list")
	return list, err
}

func (e *engine) Remove(ctx context.Context, id string) error {
	if err := e.failing(sandboxtest.OpRemove); err != nil {
		return err
	}
	return e.Runtime.Remove(ctx, id)
}

func (e *engine) Watch(ctx context.Context, ready func(), seen func(sandbox.Instance)) error {
	e.mu.Lock()
	e.seen = seen
	e.mu.Unlock()
	return e.Runtime.Watch(ctx, ready, func(i sandbox.Instance) {
		e.mu.Lock()
		deaf := e.deaf
		e.mu.Unlock()
		if !deaf {
			seen(i)
		}
	})
}

// deafen makes the watch miss what happens from now on.
func (e *engine) deafen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deaf = true
}

// restart is the engine going away and coming back, with everything in it ended.
func (e *engine) restart(ids ...string) {
	back := e.Lose()
	for _, id := range ids {
		e.Exit(id, 137, false)
	}
	time.AfterFunc(5*time.Second, back)
}

// instance gives what the engine has of a sandbox.
func (e *engine) instance(t *testing.T, id string) (sandbox.Instance, bool) {
	t.Helper()
	all, err := e.Runtime.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.ID == id {
			return i, true
		}
	}
	return sandbox.Instance{}, false
}

// guests answers at once, except those that are silent.
type guests struct {
	mu     sync.Mutex
	silent map[string]bool // by name
	known  map[string]sandbox.Setup
	heard  map[string]sandbox.Setup // what guests that are ready have been told
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
	if ok && !silent {
		g.heard[id] = s
	}
	g.mu.Unlock()
	if ok && !silent {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g *guests) HangUp(_ context.Context, id string) error { return g.Forget(id) }

func (g *guests) Forget(id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
	return nil
}

// silence makes the guest of a sandbox of that name say nothing.
func (g *guests) silence(name string, silent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silent[name] = silent
}

func (g *guests) setup(id string) (sandbox.Setup, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.known[id]
	return s, ok
}

// told gives the names of the services that a guest has heard of last.
func (g *guests) told(id string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return names(g.heard[id].Services)
}

func names(list []catalog.Service) string {
	all := ""
	for _, s := range list {
		all += s.Name + " "
	}
	return all
}

// images takes as long as it is told, and tells its progress once.
type images struct {
	mu    sync.Mutex
	err   error
	took  time.Duration
	tag   string
	asked int
	said  []string // lines of a build, beside the one that there always is
}

// retag makes every image another one from now on.
func (i *images) retag(tag string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tag = tag
}

// calls tells how often an image was asked for.
func (i *images) calls() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func (i *images) set(took time.Duration, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.took, i.err = took, err
}

func (i *images) Ensure(ctx context.Context, t catalog.Template, report func(catalog.BuildEvent)) (string, error) {
	i.mu.Lock()
	took, err, tag, said := i.took, i.err, i.tag, i.said
	i.asked++
	i.mu.Unlock()
	report(catalog.BuildEvent{Step: 2, Steps: 4, Line: "Get:1 \x1b[31mpackages"})
	for _, line := range said {
		report(catalog.BuildEvent{Step: 3, Steps: 4, Line: line})
	}
	if err := sleep(ctx, took); err != nil {
		return "", err
	}
	return "image-of-" + t.Name + t.Image + tag, err
}

func (i *images) Reference(t catalog.Template) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return "image-of-" + t.Name + t.Image + i.tag, nil
}

// templates is a catalog of one template that can be changed.
type templates struct {
	mu     sync.Mutex
	disk   int64 // that a home may take
	env    string
	rest   catalog.Rest
	pool   int
	broken bool

	service string // its one service, "web" unless told
	port    int
}

func (c *templates) change(f func(*templates)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// list gives the template, as what keeps the pools asks for it.
func (c *templates) list() []catalog.Template {
	t, err := c.Template("base")
	if err != nil {
		return nil
	}
	return []catalog.Template{t}
}

func (c *templates) Template(name string) (catalog.Template, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != "base" || c.broken {
		return catalog.Template{}, fault.New(fault.NotFound, "There is no template %q. There are: base.", name)
	}
	one := catalog.Service{Name: "web", Command: []string{"serve"}, Port: c.port}
	if c.service != "" {
		one.Name = c.service
	}
	size := catalog.DefaultSize
	size.Disk = c.disk
	return catalog.Template{
		Name: "base", Size: size, Profile: catalog.Dev, Env: map[string]string{"FROM": c.env, "BOTH": c.env},
		Standby:  catalog.Standby{Rest: c.rest, Pool: c.pool},
		Services: []catalog.Service{one},
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
