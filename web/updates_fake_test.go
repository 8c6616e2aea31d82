package web

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/update"
	"sandboxd/internal/update/updatetest"
)

// keepUpdates runs a Service until the test ends. uses says what uses a sandbox.
func keepUpdates(t *testing.T, boxes update.Sandboxes, shots update.Updater, images sandbox.Images, templates sandbox.Templates, uses func(sandbox.Sandbox) []idle.Reason) *update.Service {
	t.Helper()
	s, err := update.New(t.Context(), update.Config{
		Store: &updatetest.Store{}, Sandboxes: boxes, Snapshots: shots, Images: images, Templates: templates, Log: slog.New(slog.DiscardHandler),
		Guests: func(context.Context, string) (access.Guest, error) { return nil, context.Canceled },
		InUse:  func(_ context.Context, s sandbox.Sandbox) []idle.Reason { return uses(s) }, Unused: func(string) bool { return true },
		LastUse:   func(s sandbox.Sandbox) time.Time { return s.Changed },
		LastLines: func(context.Context, string, string, time.Time, int) []string { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // it ends with ctx
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// stageUpdates says what the engine would of images, and updates sandboxes: at once, or when it is let.
type stageUpdates struct {
	*fakeBoxes
	idle *fakeIdle

	mu    sync.Mutex
	older map[string]string // the image that a sandbox is made from, by name; all others are on the newest
	fails map[string]error  // by name
	hold  chan struct{}     // nil: nothing waits
}

const stageNewest = "sandboxd/base:newest"

func newStageUpdates(boxes *fakeBoxes, idle *fakeIdle) *stageUpdates {
	return &stageUpdates{fakeBoxes: boxes, idle: idle, older: map[string]string{}, fails: map[string]error{}}
}

// age puts a sandbox on an older image.
func (u *stageUpdates) age(names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		u.older[name] = "sandboxd/base:older"
	}
}

// wait has updates wait until hold is closed.
func (u *stageUpdates) wait() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hold = make(chan struct{})
}

// Newest implements update.Sandboxes.
func (u *stageUpdates) Newest(template string) string {
	if template == "" {
		return ""
	}
	return stageNewest
}

// StandingTo implements update.Sandboxes.
func (u *stageUpdates) StandingTo(s sandbox.Sandbox, newest string) sandbox.Standing {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := sandbox.Standing{Known: true, Image: newest, Newest: newest}
	if image := u.older[s.Name]; image != "" {
		out.Image, out.Older = image, true
	}
	return out
}

// Look implements update.Sandboxes.
func (u *stageUpdates) Look(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, sandbox.Standing, error) {
	s, err := u.Current(ctx, ref)
	return s, u.StandingTo(s, stageNewest), err
}

// Update implements update.Updater.
func (u *stageUpdates) Update(ctx context.Context, box sandbox.Sandbox, _ sandbox.Update) (snapshot.Snapshot, error) {
	u.mu.Lock()
	hold := u.hold
	u.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return snapshot.Snapshot{}, snapshot.ErrClosing
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.fails[box.Name]; err != nil {
		return snapshot.Snapshot{ID: "5afe"}, err
	}
	delete(u.older, box.Name)
	return snapshot.Snapshot{ID: "5afe"}, nil
}

// uses says what uses a sandbox, as the stage's outlook has it.
func (u *stageUpdates) uses(s sandbox.Sandbox) []idle.Reason { return u.idle.Outlook(s).Because }
