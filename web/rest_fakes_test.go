package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// What the delivery asks for is what there is.
var (
	_ Idle  = (*idle.Reaper)(nil)
	_ Uses  = (*idle.Tracker)(nil)
	_ Holds = (*idle.Holds)(nil)
)

// resting is what a world has for rest.
type resting struct {
	idle  *fakeIdle
	room  *fakeEngine // says whether the host has room
	rooms *fakeRooms  // the inside of all sandboxes
}

// fakeIdle says of each sandbox what a test has put there.
type fakeIdle struct {
	bus *event.Bus[idle.Change]

	mu       sync.Mutex
	outlooks map[string]idle.Outlook // by name
	asked    int
	gone     []string // the sandboxes that were dismissed
	again    []string // and once more
}

func newFakeIdle() *fakeIdle {
	return &fakeIdle{bus: event.NewBus[idle.Change](64), outlooks: map[string]idle.Outlook{}}
}

func (f *fakeIdle) Outlook(s sandbox.Sandbox) idle.Outlook {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.outlooks[s.Name]
}

// count is how often it was asked.
func (f *fakeIdle) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fakeIdle) Dismiss(id string) (again func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = append(f.gone, id)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.again = append(f.again, id)
	}
}

// dismissed gives the sandboxes that were dismissed, in order, and those once more.
func (f *fakeIdle) dismissed() (gone, again []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.gone), slices.Clone(f.again)
}

func (f *fakeIdle) Subscribe() *event.Subscription[idle.Change] { return f.bus.Subscribe() }

// put sets the outlook of a sandbox without telling anybody.
func (f *fakeIdle) put(name string, o idle.Outlook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outlooks[name] = o
}

// change sets the outlook of a sandbox and tells everybody.
func (f *fakeIdle) change(id, name string, o idle.Outlook) {
	f.put(name, o)
	f.bus.Publish(idle.Change{ID: id})
}

// fakeHolds keeps holds in memory and leaves checks to the real ones.
type fakeHolds struct {
	mu   sync.Mutex
	list []sandbox.Hold
}

func (f *fakeHolds) Place(_ context.Context, s sandbox.Sandbox, by, reason string, ttl time.Duration) (sandbox.Hold, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := sandbox.Hold{
		ID: sandbox.NewID(), SandboxID: s.ID, Owner: by, Reason: reason, Created: stageTime, Expires: stageTime.Add(ttl),
	}
	f.list = append(f.list, h)
	return h, nil
}

func (f *fakeHolds) Renew(_ context.Context, s sandbox.Sandbox, id string, ttl time.Duration) (sandbox.Hold, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.list {
		if h := &f.list[i]; h.SandboxID == s.ID && h.ID == id {
			h.Expires = stageTime.Add(ttl)
			return *h, nil
		}
	}
	return sandbox.Hold{}, errNoHold
}

func (f *fakeHolds) List(_ context.Context, s sandbox.Sandbox) (found []sandbox.Hold, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.list {
		if h.SandboxID == s.ID {
			found = append(found, h)
		}
	}
	return found, nil
}

func (f *fakeHolds) Revoke(_ context.Context, s sandbox.Sandbox, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, h := range f.list {
		if h.SandboxID == s.ID && h.ID == id {
			f.list = append(f.list[:i], f.list[i+1:]...)
			return nil
		}
	}
	return errNoHold
}

var errNoHold = fault.New(fault.NotFound, "There is no such hold.")

// serverRest is what the server of the tests says about rest.
var serverRest = catalog.Rest{FreezeAfter: catalog.After(15 * time.Minute), StopAfter: catalog.After(4 * time.Hour)}

func (f *fakeBoxes) Freeze(ctx context.Context, ref sandbox.Ref, _ func() bool) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.State = sandbox.Frozen })
}

func (f *fakeBoxes) Sleep(ctx context.Context, ref sandbox.Ref, _ func() bool) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) {
		if b.State == sandbox.Running || b.State == sandbox.Frozen {
			b.State = sandbox.Sleeping
		}
	})
}

func (f *fakeBoxes) SetRest(ctx context.Context, ref sandbox.Ref, c sandbox.RestChange) (sandbox.Sandbox, error) {
	return f.change(ctx, ref, func(b *sandbox.Sandbox) { b.Rest = c.Over(b.Rest) })
}

// Resting knows the sandbox and the server; templates say nothing.
func (f *fakeBoxes) Resting(s sandbox.Sandbox) sandbox.Resting {
	r := sandbox.Resting{Rest: s.Rest.Over(serverRest), FreezeFrom: "server", StopFrom: "server"}
	if s.Rest.FreezeAfter != 0 {
		r.FreezeFrom = "sandbox"
	}
	if s.Rest.StopAfter != 0 {
		r.StopFrom = "sandbox"
	}
	return r
}

func (f *fakeBoxes) Tombstone(ctx context.Context, name string) (sandbox.Tombstone, error) {
	return f.store.Tombstone(ctx, name)
}
