// Package accesstest gives handles of a sandbox that exists in memory alone, to test what opens sandboxes.
//
// It has no engine and no link: the guest is the test's own.
//
// Invariant: it answers as sandbox.Manager does; what a test sees is what the production code asked of the real
// access.Control.
package accesstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// Sandbox is one sandbox and its guest. Safe for concurrent use.
type Sandbox struct {
	Uses *idle.Tracker

	id    string
	mu    sync.Mutex
	row   sandbox.Sandbox
	guest access.Guest
	links access.Links // instead of guest
	awake func(ctx context.Context) error
	asked int
	woken int
	looks int
}

// New makes a running sandbox called name, of the user "ann".
func New(name string, g access.Guest) *Sandbox {
	return &Sandbox{Uses: idle.New(), guest: g, id: "id-" + name, row: sandbox.Sandbox{ID: "id-" + name, Name: name, Owner: "ann", State: sandbox.Running}}
}

// Linked makes a running sandbox called name whose guest is behind a hub, by the id that it has there.
func Linked(name, id string, links access.Links) *Sandbox {
	s := New(name, nil)
	s.id, s.row.ID, s.links = id, id, links
	return s
}

// Passwd writes a file of users that gives this process's user an empty home. Login shells of a guest with it read no profile of this
// machine, which may take long, and hang when a shell before was killed while it read it.
func Passwd(t testing.TB, home string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(file, fmt.Appendf(nil, "root:x:%d:%d::%s:/bin/bash\n", os.Getuid(), os.Getgid(), home), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Run runs each until the end of the test, where each has to end without an error: a hub, a guest.
func Run(t testing.TB, runs ...func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range runs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// Status is what uses it now, also once it is deleted.
func (s *Sandbox) Status() idle.Status { return s.Uses.Status(s.id) }

// Control is the access to it.
func (s *Sandbox) Control() *access.Control { return access.New(s, s.link, access.Tracked(s.Uses)) }

// Handle is what its owner gets.
func (s *Sandbox) Handle(t testing.TB) access.Handle {
	t.Helper()
	row := s.Row()
	h, err := s.Control().Resolve(t.Context(), row.Name, access.By(auth.Principal{User: auth.User{ID: row.Owner}}))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Row gives the sandbox as it is.
func (s *Sandbox) Row() sandbox.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.row
}

// Change changes the row; one without an ID is deleted.
func (s *Sandbox) Change(change func(*sandbox.Sandbox)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.row)
}

// Becomes changes the state.
func (s *Sandbox) Becomes(state sandbox.State) {
	s.Change(func(row *sandbox.Sandbox) { row.State = state })
}

// SetGuest replaces the guest; nil is one that does not answer.
func (s *Sandbox) SetGuest(g access.Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guest = g
}

// OnAwake lets f say what comes of every Awake; it may block.
func (s *Sandbox) OnAwake(f func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awake = f
}

// Awakes tells how often it was asked to be awake, and how often that woke it.
func (s *Sandbox) Awakes() (asked, woken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.woken
}

// Looks tells how often its row was asked for by its id.
func (s *Sandbox) Looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *Sandbox) link(ctx context.Context, id string) (access.Guest, error) {
	if s.links != nil {
		return s.links(ctx, id)
	}
	s.mu.Lock()
	g := s.guest
	s.mu.Unlock()
	if g == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return g, nil
}

// Sandbox implements access.Sandboxes.
func (s *Sandbox) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	if row := s.Row(); row.ID != "" && row.Name == name {
		return row, nil
	}
	return sandbox.Sandbox{}, fault.New(fault.NotFound, "There is no sandbox %q.", name)
}

// Tombstone implements access.Sandboxes.
func (s *Sandbox) Tombstone(_ context.Context, name string) (sandbox.Tombstone, error) {
	return sandbox.Tombstone{}, fault.New(fault.NotFound, "There was no sandbox %q.", name)
}

// Current implements access.Sandboxes.
func (s *Sandbox) Current(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	s.mu.Lock()
	s.looks++
	row := s.row
	s.mu.Unlock()
	if row.ID != ref.ID() {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "%s has been deleted.", ref.Name())
	}
	return row, nil
}

// Wait is as sandbox.Manager's; nothing is ever under way.
func (s *Sandbox) Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return s.Current(ctx, ref)
}

// Awake implements access.Sandboxes.
func (s *Sandbox) Awake(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	s.mu.Lock()
	s.asked++
	awake := s.awake
	s.mu.Unlock()
	if awake != nil {
		if err := awake(ctx); err != nil {
			return sandbox.Sandbox{}, err
		}
	}
	row, err := s.Current(ctx, ref)
	switch {
	case err != nil:
		return row, err
	case row.State == sandbox.Stopped || row.State == sandbox.Failed:
		return row, fault.New(fault.Conflict, "%s is %s. Start it first.", row.Name, row.State)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.row.State.Resting() {
		s.woken++
	}
	s.row.State = sandbox.Running
	return s.row, nil
}
