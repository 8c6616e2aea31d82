package proxy

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/activity"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// fakeBoxes is Manager, tracker, access and hub at once, and keeps their contracts.
type fakeBoxes struct {
	uses *idle.Tracker

	mu          sync.Mutex
	boxes       map[string]sandbox.Sandbox
	tombstones  map[string]sandbox.Tombstone
	progress    sandbox.Progress
	services    map[string][]catalog.Service // by id
	ideOff      bool
	starts      bool            // a start is in line
	changed     chan struct{}   // closed at the next change of a state
	afterLookup func()          // called once, with mu held
	by          activity.Caller // of the last wake
	session     *fakeSession
	fate
	openings
}

// fate is the result of opening a sandbox.
type fate struct {
	openErr error         // instead of any session
	takes   time.Duration // how long a wake takes
	wakeErr error         // what comes of it
}

// openings counts how sandboxes were opened.
type openings struct {
	wakes   int
	opened  int
	inside  int
	seen    []idle.Use
	touched []bool // unattended or not
}

func newBoxes(s *fakeSession) *fakeBoxes {
	return &fakeBoxes{session: s, uses: idle.New(), services: map[string][]catalog.Service{}, tombstones: map[string]sandbox.Tombstone{}, boxes: map[string]sandbox.Sandbox{
		"ml":    {ID: "1", Name: "ml", Owner: "u-ann", State: sandbox.Running},
		"other": {ID: "2", Name: "other", Owner: "u-ann", State: sandbox.Running},
	}}
}

func (b *fakeBoxes) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if after := b.afterLookup; after != nil {
		b.afterLookup = nil
		defer after()
	}
	return b.row(name)
}

func (b *fakeBoxes) Services(s sandbox.Sandbox) []catalog.Service {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.services[s.ID]
}

func (b *fakeBoxes) Starts(string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.starts
}

func (b *fakeBoxes) OffersIDE(sandbox.Sandbox) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ideOff
}

// declare gives a sandbox services: each its name and port.
func (b *fakeBoxes) declare(name string, services map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.boxes[name].ID
	delete(b.services, id)
	for service, port := range services {
		b.services[id] = append(b.services[id], catalog.Service{Name: service, Port: port})
	}
}

func (b *fakeBoxes) row(name string) (sandbox.Sandbox, error) {
	sb, ok := b.boxes[name]
	if !ok {
		return sb, fault.New(fault.NotFound, "There is no sandbox called %q.", name)
	}
	return sb, nil
}

func (b *fakeBoxes) Tombstone(_ context.Context, name string) (sandbox.Tombstone, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tombstone, ok := b.tombstones[name]
	if !ok {
		return tombstone, fault.New(fault.NotFound, "There was no sandbox called %q.", name)
	}
	return tombstone, nil
}

func (b *fakeBoxes) Progress(string) sandbox.Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress
}

// link gives the guest of every sandbox.
func (b *fakeBoxes) link(context.Context, string) (access.Guest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openErr != nil {
		return nil, b.openErr
	}
	b.opened++
	return b.session, nil
}

func (b *fakeBoxes) Current(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(ref)
}

func (b *fakeBoxes) current(ref sandbox.Ref) (sandbox.Sandbox, error) {
	sb, err := b.row(ref.Name())
	if err != nil || sb.ID != ref.ID() {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "%s has been deleted.", ref.Name())
	}
	return sb, nil
}

// Begin implements access.Uses. What is opened is so from when it has been awake.
func (b *fakeBoxes) Begin(id string, u idle.Use) access.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, u)
	b.inside++
	return &fakeLease{Lease: b.uses.Begin(id, u), boxes: b}
}

// Watch implements access.Uses.
func (b *fakeBoxes) Watch(id string, u idle.Use) access.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside++
	return &fakeLease{Lease: b.uses.Watch(id, u), boxes: b}
}

// fakeLease notes how it is touched.
type fakeLease struct {
	*idle.Lease
	boxes *fakeBoxes
	once  sync.Once
}

func (l *fakeLease) Touch(unattended bool) {
	l.Lease.Touch(unattended)
	l.boxes.mu.Lock()
	defer l.boxes.mu.Unlock()
	l.boxes.touched = append(l.boxes.touched, unattended)
}

func (l *fakeLease) End() {
	l.Lease.End()
	l.once.Do(func() {
		l.boxes.mu.Lock()
		defer l.boxes.mu.Unlock()
		l.boxes.inside--
	})
}

// Awake is Manager's: one start for many.
func (b *fakeBoxes) Awake(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	name := ref.Name()
	for {
		b.mu.Lock()
		sb, err := b.current(ref)
		changed := b.change()
		switch {
		case err != nil, sb.State == sandbox.Running:
			b.mu.Unlock()
			return sb, err
		case !b.starts && (sb.State == sandbox.Stopped || sb.State == sandbox.Failed):
			b.mu.Unlock()
			return sb, fault.New(fault.Conflict, "%s is %s. Start it first.", name, sb.State)
		case sb.State.Resting() && b.wakeErr != nil && b.takes == 0:
			b.mu.Unlock()
			return sb, b.wakeErr
		case sb.State.Resting():
			b.wakes++
			b.by, _ = activity.CallerOf(ctx)
			b.setState(name, sandbox.Starting, "")
			time.AfterFunc(b.takes, func() { b.woke(name) })
			changed = b.change()
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return sb, ctx.Err()
		}
	}
}

// woke ends a wake.
func (b *fakeBoxes) woke(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wakeErr != nil {
		b.setState(name, sandbox.Failed, fault.Message(b.wakeErr))
		return
	}
	b.uses.Reset(b.boxes[name].ID)
	b.setState(name, sandbox.Running, "")
}

func (b *fakeBoxes) change() <-chan struct{} {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *fakeBoxes) setState(name string, state sandbox.State, problem string) {
	sb := b.boxes[name]
	sb.State, sb.Problem, sb.Changed = state, problem, time.Now()
	b.boxes[name] = sb
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// entered tells how many sessions were opened, and how many uses there are.
func (b *fakeBoxes) entered() (opened, inside int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened, b.inside
}

// woken tells how many wakes there were.
func (b *fakeBoxes) woken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wakes
}

// touches tells how often a stream was touched.
func (b *fakeBoxes) touches() (attended, unattended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.touched {
		if u {
			unattended++
		} else {
			attended++
		}
	}
	return attended, unattended
}

func (b *fakeBoxes) set(name string, state sandbox.State, problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setState(name, state, problem)
}

func (b *fakeBoxes) state(name string) sandbox.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.boxes[name].State
}

// usesSeen tells how the sessions were opened.
func (b *fakeBoxes) usesSeen() []idle.Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// settle makes a sandbox as one that has been as it is for long.
func (b *fakeBoxes) settle(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sb := b.boxes[name]
	sb.Changed = time.Time{}
	b.boxes[name] = sb
}

// put replaces a sandbox; the zero one is not there.
func (b *fakeBoxes) put(name string, sb sandbox.Sandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boxes[name] = sb
	if sb.ID == "" {
		delete(b.boxes, name)
	}
}

// fakeSession leads ports and tabs to the test's servers.
type fakeSession struct {
	access.Guest

	mu       sync.Mutex
	ttyd     bool
	to       map[string]func(context.Context) (net.Conn, error) // by portHost or tabHost
	services []wire.ServiceStatus
	err      error
	dials    int
}

func newSession() *fakeSession {
	return &fakeSession{ttyd: true, to: map[string]func(context.Context) (net.Conn, error){}}
}

func (s *fakeSession) lead(host string, to func(context.Context) (net.Conn, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to[host] = to
}

func (s *fakeSession) Hello() wire.Hello { return wire.Hello{HasTTYD: s.ttyd} }

func (*fakeSession) Done() <-chan struct{} { return nil }

func (s *fakeSession) DialPort(ctx context.Context, port int) (net.Conn, error) {
	return s.dial(ctx, portHost(port))
}

func (s *fakeSession) DialTerminal(ctx context.Context, tab string) (net.Conn, error) {
	return s.dial(ctx, tabHost(tab))
}

func (*fakeSession) Terminals(context.Context) ([]wire.Terminal, error) {
	return []wire.Terminal{{Name: "main", Full: true}}, nil
}

func (*fakeSession) TerminalText(_ context.Context, tab string) ([]byte, error) {
	return []byte("text of " + tab), nil
}

func (s *fakeSession) DialIDE(ctx context.Context) (net.Conn, error) { return s.dial(ctx, ideHost) }

func (s *fakeSession) Services(context.Context) ([]wire.ServiceStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services, nil
}

func (s *fakeSession) dial(ctx context.Context, host string) (net.Conn, error) {
	s.mu.Lock()
	s.dials++
	to, err := s.to[host], s.err
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if to == nil {
		return nil, fault.New(fault.NotFound, "Nothing listens at %s.", host)
	}
	return to(ctx)
}
