package idle_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// The times that count in the stories, unless one says otherwise.
const (
	freezeAfter = 15 * time.Minute
	stopAfter   = 4 * time.Hour
	settle      = time.Minute
)

// The manager is what the reaper asks of it.
var _ idle.Sandboxes = (*sandbox.Manager)(nil)

// box is the sandbox that the stories are about.
const box = "box"

// world is everything around a Tracker and a Reaper, in memory: a manager, an engine, guests, memory. Its time is fake.
type world struct {
	t       *testing.T
	tracker *idle.Tracker
	reaper  *idle.Reaper
	config  idle.Config
	bus     *event.Bus[sandbox.Event]
	store   *sandboxtest.MemStore // of the holds
	began   time.Time
	end     context.CancelFunc
	play    context.Context // ends with the story

	mu sync.Mutex
	fake
}

// fake is what the test can bend, and what it sees. Guarded by world.mu.
type fake struct {
	manager
	engineFake
	memory struct{ available, swap int64 } // of the host
	pooled int                             // sandboxes in the pool
	asked  int                             // questions to the engine
}

type manager struct {
	rows    map[string]sandbox.Sandbox
	log     []string // the states of box: "1h15m0s frozen"
	lists   int
	listing error                                // why the list cannot be read
	before  func(name string, still func() bool) // runs inside Freeze and Sleep, before still is asked
}

type engineFake struct {
	engine    error // why it cannot be reached
	noFreezer bool  // it cannot freeze
	freezing  error // why nothing freezes now
	tries     *int  // to freeze
	uncounted error // why it does not say what is used
	used      sandbox.Usage
	cores     float64   // in use now, by all sandboxes together
	network   int64     // bytes a second now
	counted   time.Time // until when used is counted
}

// within runs a story in fake time, with the sandboxes that it names, all running and fresh.
func within(t *testing.T, bend func(*world), story func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if bend != nil {
			bend(w)
		}
		w.run()
		story(w)
		w.end()
		synctest.Wait()
	})
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, tracker: idle.New(), bus: event.NewBus[sandbox.Event](512), began: time.Now(),
		store: sandboxtest.NewMemStore(),
	}
	w.rows = map[string]sandbox.Sandbox{}
	w.memory.available = 8 << 30
	w.counted = w.began
	w.config = idle.Config{
		Tracker: w.tracker, Sandboxes: w, Usage: w.usage, Memory: w.free, DropPooled: w.dropPooled,
		Settle: settle, Reserve: 1 << 30, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	w.add(box, catalog.Rest{})
	return w
}

// run starts the reaper of this world, as sandboxd's start does.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	w.config.Holds = idle.NewHolds(w.store.Holds(), w.tracker)
	if err := w.config.Holds.Load(ctx); err != nil {
		w.t.Error(err)
	}
	w.reaper = idle.NewReaper(w.config)
	w.play = ctx
	ended := make(chan error, 1)
	go func() { ended <- w.reaper.Run(ctx) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
}

// restart ends sandboxd and starts it again: what was in memory is gone, what is stored is there.
func (w *world) restart() {
	w.end()
	w.tracker = idle.New()
	w.config.Tracker = w.tracker
	w.run()
}

func (w *world) add(name string, rest catalog.Rest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	s := sandbox.Sandbox{ID: name, Name: "name-of-" + name, State: sandbox.Running, Created: now, Changed: now, Rest: rest}
	w.rows[name] = s
	if err := w.store.Insert(context.Background(), s); err != nil && !fault.Is(err, fault.Conflict) {
		w.t.Error(err)
	}
}

// move sets a state, as the manager does.
func (w *world) move(name string, to sandbox.State) sandbox.Sandbox {
	w.mu.Lock()
	s := w.rows[name]
	if s.State == to {
		w.mu.Unlock()
		return s
	}
	s.State, s.Changed = to, later(time.Now(), s.Changed.Add(time.Microsecond)).Add(123*time.Nanosecond)
	w.rows[name] = s
	if name == box && to.Settled() {
		w.log = append(w.log, time.Since(w.began).Round(time.Millisecond).String()+" "+string(to))
	}
	w.mu.Unlock()
	w.bus.Publish(sandbox.Event{Sandbox: s})
	return s
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (w *world) row(name string) sandbox.Sandbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[name]
}

// bend changes the world.
func (w *world) bend(f func(*fake)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	f(&w.fake)
}

// elapse lets fake time pass.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pass lets time pass until the story is that old.
func (w *world) pass(until time.Duration) {
	elapse(time.Until(w.began.Add(until)))
}

// List implements idle.Sandboxes.
func (w *world) List(_ context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	if w.listing != nil {
		return nil, 0, w.listing
	}
	var found []sandbox.Sandbox
	for _, s := range w.rows {
		if !f.Up || s.State == sandbox.Running || s.State == sandbox.Frozen {
			s.Changed = s.Changed.Truncate(time.Microsecond) // as the store keeps it
			found = append(found, s)
		}
	}
	return found, len(found), nil
}

// Resting implements idle.Sandboxes.
func (w *world) Resting(s sandbox.Sandbox) sandbox.Resting {
	return sandbox.Resting{Rest: s.Rest.Over(catalog.Rest{FreezeAfter: catalog.After(freezeAfter), StopAfter: catalog.After(stopAfter)})}
}

// Freeze implements idle.Sandboxes.
func (w *world) Freeze(_ context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error) {
	name := ref.ID()
	s := w.row(name)
	w.mu.Lock()
	hook, refuse, broken := w.before, w.noFreezer, w.freezing
	if w.tries != nil {
		*w.tries++
	}
	w.mu.Unlock()
	if broken != nil {
		return s, broken
	}
	if refuse {
		return s, fault.New(fault.Conflict, "This engine cannot freeze.")
	}
	if s.State != sandbox.Running {
		return s, fault.New(fault.Conflict, "%s does not run.", name)
	}
	if hook != nil {
		hook(name, still)
	}
	if !still() {
		return s, nil
	}
	return w.move(name, sandbox.Frozen), nil
}

// Sleep implements idle.Sandboxes. A stop takes three seconds.
func (w *world) Sleep(_ context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error) {
	name := ref.ID()
	w.mu.Lock()
	hook := w.before
	w.mu.Unlock()
	if hook != nil {
		hook(name, still)
	}
	s := w.row(name)
	if s.State != sandbox.Running && s.State != sandbox.Frozen || !still() {
		return s, nil
	}
	s = w.move(name, sandbox.Sleeping)
	go func() {
		rest(w.play, 3*time.Second)
		w.move(name, sandbox.Asleep)
	}()
	return s, nil
}

// Subscribe implements idle.Sandboxes.
func (w *world) Subscribe() *event.Subscription[sandbox.Event] { return w.bus.Subscribe() }

// EngineHealth implements idle.Sandboxes.
func (w *world) EngineHealth() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engine
}

// count adds the use since the last call; it needs w.mu.
func (w *world) count() {
	now := time.Now()
	span := now.Sub(w.counted)
	w.used.CPU += time.Duration(w.cores * float64(span))
	w.used.Network += int64(float64(w.network) * span.Seconds())
	w.counted = now
}

func (w *world) usage(context.Context, string) (sandbox.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count()
	w.asked++
	if w.uncounted != nil {
		return sandbox.Usage{}, w.uncounted
	}
	return w.used, w.engine
}

func (w *world) free() (available, total, swapFree int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.memory.available, 16 << 30, w.memory.swap, nil
}

func (w *world) dropPooled(context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pooled == 0 {
		return false, nil
	}
	w.pooled--
	return true, nil
}
