package web

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/volume"
	"sandboxd/internal/volume/volumetest"
)

// fakeVolumes is an engine for volumes, and their guests.
type fakeVolumes struct {
	mu     sync.Mutex
	served map[string]bool // by the link's id
	sizes  map[string]int64
}

func (*fakeVolumes) MakeVolume(_ context.Context, id string) (string, error) {
	return "/var/lib/engine/" + id, nil
}
func (*fakeVolumes) RemoveVolume(context.Context, string) error { return nil }
func (f *fakeVolumes) ServeVolume(_ context.Context, id, _, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served[volume.LinkID(id)] = true
	return nil
}
func (f *fakeVolumes) EndVolume(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.served, volume.LinkID(id))
	return nil
}
func (*fakeVolumes) SweepVolumes(context.Context) error           { return nil }
func (*fakeVolumes) Expect(string, sandbox.Setup) (string, error) { return "", nil }
func (*fakeVolumes) Ready(context.Context, string) error          { return nil }
func (*fakeVolumes) Forget(string) error                          { return nil }
func (f *fakeVolumes) Connected(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served[id]
}
func (f *fakeVolumes) access(s *volume.Service, g access.Guest) *access.Control {
	return access.New(s.Files(), func(context.Context, string) (access.Guest, error) { return g, nil }, s.Files())
}

// keepVolumes opens a Service on a store in memory.
func keepVolumes(t *testing.T, templates Templates, log *slog.Logger) (*volume.Service, *fakeVolumes) {
	t.Helper()
	f := &fakeVolumes{served: map[string]bool{}, sizes: map[string]int64{}}
	s, err := volume.Open(t.Context(), volume.Config{Store: &volumetest.Store{}, Engine: f, Guests: f, Log: log, Measure: func() {},
		Sizes:    func() map[string]int64 { f.mu.Lock(); defer f.mu.Unlock(); return f.sizes },
		Template: func(name string) bool { _, err := templates.Template(name); return err == nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}
