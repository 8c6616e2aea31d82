package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// How long things may take. Each bounds one call or one operation, so that nothing hangs for ever.
const (
	patience    = 100 * time.Millisecond // how long a caller waits for its operation to be accepted
	imageLimit  = 45 * time.Minute       // building a large template from nothing on a slow line
	engineLimit = 90 * time.Second       // one call to the engine
	readyLimit  = 60 * time.Second       // from the container's start to the guest's word
	storeLimit  = 15 * time.Second       // one write to the store
	claimLimit  = 5 * time.Second        // to make a pooled sandbox usable, before one is made instead
	stopGrace   = 5 * time.Second        // between asking a sandbox to end and ending it
	roomLimit   = 10 * time.Second       // finding out whether the host has room, and making some
	recheck     = time.Minute            // between two looks at everything
)

// eventBuffer is how many events a subscriber may fall behind: some seconds of a burst of creates.
const eventBuffer = 512

// Config is what a Manager works with. All fields are needed but those that say otherwise.
type Config struct {
	Store     Store
	Runtime   Runtime
	Guests    Guests
	Images    Images
	Templates Templates
	// Labels gives the routing labels of a sandbox.
	Labels func(id, name string) map[string]string
	// Host is what this host has; no sandbox gets more.
	Host Limits
	Log  *slog.Logger
	// Freezer freezes sandboxes; nil when the engine cannot.
	Freezer Freezer
	// Rest is when unused sandboxes are put to rest whose template and who themselves say nothing; what it leaves open
	// is never.
	Rest catalog.Rest
	// Room is asked before a container is started, not before a thaw: an Unavailable fault when the host is full. nil
	// when there always is room. It must not wait for an operation on the sandbox that it is asked for.
	Room func(ctx context.Context) error
}

// Manager is the one writer of sandboxes. Its methods are safe for concurrent use. Those that change something
// return as soon as the change is accepted and its intent is kept; the work goes on in the background under its own
// deadline, whoever leaves. Wait waits for it.
type Manager struct {
	c     Config
	rows  *rows
	turns turns
	wakes wakes
	pool  pool
	own   ownership
	bus   *event.Bus[Event]
	life  context.Context // ends when Run ends; all operations end with it
	end   context.CancelFunc

	mu        sync.Mutex
	progress  map[string]Progress // by id
	engineErr error               // why the engine cannot be watched now, or nil
}

// New makes a Manager. It does no I/O; Run keeps it in step with the engine.
func New(c Config) *Manager {
	life, end := context.WithCancel(context.Background())
	c.Rest = c.Rest.Over(catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never})
	return &Manager{
		c: c, rows: newRows(c.Store), bus: event.NewBus[Event](eventBuffer), life: life, end: end, pool: newPool(),
		progress: map[string]Progress{}, engineErr: errNotWatched,
		own: ownership{templateDefaults: map[string]templateDefaults{}, owed: map[string]bool{}},
	}
}

var errNotWatched = fault.New(fault.Unavailable, "The container engine has not answered yet. Try again in a moment.")

// Sandbox finds one by name, from memory when it was asked for before. NotFound if there is none.
func (m *Manager) Sandbox(ctx context.Context, name string) (Sandbox, error) {
	s, err := m.rows.ByName(ctx, name)
	if err == nil && s.Pooled {
		return Sandbox{}, fault.New(fault.NotFound, "There is no sandbox %q.", name)
	}
	return s, err
}

// Tombstone gives what is known of the last deleted sandbox of that name. NotFound when there was none lately.
func (m *Manager) Tombstone(ctx context.Context, name string) (Tombstone, error) {
	return m.c.Store.Tombstone(ctx, name)
}

// List gives the sandboxes that match f, and how many match without f's page.
func (m *Manager) List(ctx context.Context, f Filter) ([]Sandbox, int, error) {
	return m.c.Store.List(ctx, f)
}

// Progress tells how far the operation on the sandbox with this id has come.
func (m *Manager) Progress(id string) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress[id]
}

// Subscribe gives all changes from now on. The caller must Close it.
func (m *Manager) Subscribe() *event.Subscription[Event] { return m.bus.Subscribe() }

// EngineHealth is nil while the engine is being watched, else says why not, as an Unavailable fault.
func (m *Manager) EngineHealth() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.engineErr
}

// Wait blocks until no operation on a sandbox is under way or in line, or ctx ends, and gives what came of it. Gone once it
// is deleted.
func (m *Manager) Wait(ctx context.Context, ref Ref) (Sandbox, error) {
	if err := m.turns.wait(ctx, ref.name); err != nil {
		return Sandbox{}, late(ctx, ref.name)
	}
	return m.Current(ctx, ref)
}

// operation does its work in name's turn. It calls accept once its intent is kept, at the latest when it returns.
type operation func(ctx context.Context, accept func(Sandbox)) error

// pending is an operation that has been queued.
type pending struct {
	accepted chan Sandbox
	ended    chan error // one error at most, then closed
}

// begin queues op for name.
func (m *Manager) begin(name string, op operation) (pending, error) {
	p := pending{accepted: make(chan Sandbox, 1), ended: make(chan error, 1)}
	accept := func(s Sandbox) {
		select {
		case p.accepted <- s:
		default:
		}
	}
	queued := m.turns.run(m.life, name, func(ctx context.Context) {
		defer close(p.ended)
		if err := op(ctx, accept); err != nil {
			p.ended <- err
		}
	})
	if !queued {
		return p, errClosing
	}
	return p, nil
}

var errClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// wait blocks until the operation is accepted or has failed before that, or patience is over: then ok is false.
func (p pending) wait(ctx context.Context) (s Sandbox, ok bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case s := <-p.accepted:
		return s, true, nil
	case err := <-p.ended:
		s, err = outcome(p.accepted, err)
		return s, true, err
	case <-timer.C:
		return Sandbox{}, false, nil
	case <-ctx.Done():
		return Sandbox{}, false, ctx.Err()
	}
}

// do queues a change, and returns once it is accepted, has failed before that, or patience is over; then it gives the row
// as it stands.
func (m *Manager) do(ctx context.Context, ref Ref, c change) (Sandbox, error) {
	p, err := m.begin(ref.name, m.on(ref, c))
	if err != nil {
		return Sandbox{}, err
	}
	s, ok, err := p.wait(ctx)
	if ok || err != nil {
		return s, err
	}
	return m.Current(ctx, ref)
}

// attend queues a change, and returns once it is accepted or has failed before that, however long that takes.
func (m *Manager) attend(ctx context.Context, ref Ref, c change) (Sandbox, error) {
	return m.attendTo(ctx, ref.name, m.on(ref, c))
}

func (m *Manager) attendTo(ctx context.Context, name string, op operation) (Sandbox, error) {
	p, err := m.begin(name, op)
	if err != nil {
		return Sandbox{}, err
	}
	select {
	case s := <-p.accepted:
		return s, nil
	case err := <-p.ended:
		return outcome(p.accepted, err)
	case <-ctx.Done():
		return Sandbox{}, late(ctx, name)
	}
}

// late is what a caller hears who does not wait for the end of an operation.
func late(ctx context.Context, name string) error {
	return fault.Wrap(ctx.Err(), fault.Timeout, "%s is still being worked on. Ask again later.", name)
}

// outcome is what a caller hears of an operation that has ended: an accepted one was accepted, whatever came of it.
func outcome(accepted <-chan Sandbox, err error) (Sandbox, error) {
	select {
	case s := <-accepted:
		return s, nil
	default:
		return Sandbox{}, err
	}
}

// set keeps s in a new state and tells everybody. It works under its own deadline, so that the truth is kept also
// when the operation has run out of time.
func (m *Manager) set(ctx context.Context, s Sandbox, state State, problem string) (Sandbox, error) {
	s.State, s.Problem, s.Changed = state, problem, stamp()
	if state != Failed {
		s.Cause = fault.Internal
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	if err := m.rows.Update(ctx, s); err != nil {
		return s, err
	}
	if state.Settled() {
		m.clearProgress(s.ID)
	}
	m.publish(Event{Sandbox: s})
	return s, nil
}

// fail keeps s as failed for the reason that err gives, unless the operation was cut off by the end of sandboxd: then
// the intent stays, and the next start finishes it.
func (m *Manager) fail(ctx context.Context, s Sandbox, err error) error {
	if m.life.Err() != nil {
		return err
	}
	m.c.Log.Warn("sandbox failed", "sandbox", s.Name, "error", err)
	s.Cause = fault.KindOf(err)
	_, setErr := m.set(ctx, s, Failed, fault.Message(err))
	return errors.Join(err, setErr)
}

func (m *Manager) report(s Sandbox, p Progress) {
	m.mu.Lock()
	m.progress[s.ID] = p
	m.mu.Unlock()
	m.publish(Event{Sandbox: s, Progress: p})
}

func (m *Manager) clearProgress(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.progress, id)
}

// publish tells everybody of a change. Pooled sandboxes are nobody's business.
func (m *Manager) publish(e Event) {
	if e.Sandbox.Pooled {
		return
	}
	if !e.Deleted && e.Progress == (Progress{}) {
		e.Progress = m.Progress(e.Sandbox.ID)
	}
	m.bus.Publish(e)
}

// template gives the template or plain image that spec names.
func (m *Manager) template(spec Spec) (catalog.Template, error) {
	if spec.Template == "" {
		return catalog.PlainImage(spec.Image), nil
	}
	return m.c.Templates.Template(spec.Template)
}
