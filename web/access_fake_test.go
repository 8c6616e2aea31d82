package web

import (
	"context"
	"sync"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// rows is what a fakeAccess finds sandboxes in.
type rows interface {
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
	Tombstone(ctx context.Context, name string) (sandbox.Tombstone, error)
	Current(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// fakeAccess is the way to the inside of all sandboxes: the guest that a test has put there. Each is awake as soon as it is
// asked to be.
type fakeAccess struct {
	rows
	guest wholeGuest

	mu       sync.Mutex
	replaced bool // another sandbox has got every name since it was judged
	awakes   int  // how often one was asked to be awake
	looks    int  // how often a row was asked for by id
}

// Current implements access.Sandboxes.
func (f *fakeAccess) Current(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	f.mu.Lock()
	f.looks++
	replaced := f.replaced
	f.mu.Unlock()
	if replaced {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "%s has been deleted.", ref.Name())
	}
	box, err := f.rows.Current(ctx, ref)
	if err == nil && f.guest.asleep() {
		box.State = sandbox.Asleep
	}
	return box, err
}

// Awake implements access.Sandboxes.
func (f *fakeAccess) Awake(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	box, err := f.Current(ctx, ref)
	if err != nil {
		return box, err
	}
	f.mu.Lock()
	f.awakes++
	f.mu.Unlock()
	f.guest.wake()
	box.State = sandbox.Running
	return box, nil
}

func (f *fakeAccess) link(context.Context, string) (access.Guest, error) {
	return f.guest, f.guest.reach()
}

// replace gives every name to another sandbox.
func (f *fakeAccess) replace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaced = true
}

func (f *fakeAccess) count() (awakes, looks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.awakes, f.looks
}

// wholeGuest is a guest made of fakes; what none of them has is not asked.
type wholeGuest struct {
	rest
	*fakeGuest
	*fakeRooms
	*fakeTerminals
}

// rest is one level below the fakes, whose methods win.
type rest struct{ access.Guest }

func (wholeGuest) Done() <-chan struct{} { return nil }

func (g wholeGuest) asleep() bool {
	g.fakeRooms.mu.Lock()
	defer g.fakeRooms.mu.Unlock()
	return g.fakeRooms.asleep || g.fakeGuest.resting
}

func (g wholeGuest) wake() {
	g.fakeRooms.mu.Lock()
	defer g.fakeRooms.mu.Unlock()
	g.fakeRooms.asleep = false
}

// reach is why the guest cannot be reached.
func (g wholeGuest) reach() error {
	g.fakeRooms.mu.Lock()
	defer g.fakeRooms.mu.Unlock()
	if g.fakeTerminals != nil && g.fakeTerminals.err != nil {
		return g.fakeTerminals.err
	}
	return g.fakeRooms.fails
}
