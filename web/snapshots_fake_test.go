package web

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

// keepSnapshots runs a Service until the test ends.
func keepSnapshots(t *testing.T, boxes snapshot.Sandboxes, log *slog.Logger) *snapshot.Service {
	t.Helper()
	store := &memSnapshots{rows: map[string]snapshot.Snapshot{}, heads: map[string]snapshot.Head{}}
	s, err := snapshot.New(t.Context(), snapshot.Config{
		Store: store, Sandboxes: boxes, Parts: allParts{store}, Memories: allParts{store},
		Keep: 7 * 24 * time.Hour, Automatic: 10, Most: 50, Log: log, Failed: func(sandbox.Sandbox, error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// allParts stands for the engine where snapshots are concerned. It has all parts of those in a store.
type allParts struct{ of *memSnapshots }

func (allParts) Commit(_ context.Context, _, id string) (string, error) { return "image:" + id, nil }
func (allParts) RemoveCopy(context.Context, string) error               { return nil }
func (allParts) RemoveImage(context.Context, string) error              { return nil }

func (allParts) CheckpointSupport(context.Context) string                  { return "" }
func (allParts) StartFrom(context.Context, string, string) error           { return nil }
func (allParts) RemoveCheckpoint(context.Context, string) error            { return nil }
func (allParts) Checkpoints(context.Context) ([]string, error)             { return nil, nil }
func (allParts) Checkpoint(context.Context, string, string) (int64, error) { return 24 << 20, nil }

func (p allParts) Parts(context.Context) (copies, images []string, _ error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	ids := slices.Collect(maps.Keys(p.of.rows))
	return ids, ids, nil
}

// memSnapshots is a snapshot.Store in memory.
type memSnapshots struct {
	mu    sync.Mutex
	rows  map[string]snapshot.Snapshot
	heads map[string]snapshot.Head
}

func (m *memSnapshots) Insert(_ context.Context, s snapshot.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[s.ID] = s
	return nil
}

func (m *memSnapshots) Update(ctx context.Context, s snapshot.Snapshot) error {
	return m.Insert(ctx, s)
}

func (m *memSnapshots) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, id)
	return nil
}

func (m *memSnapshots) List(context.Context) ([]snapshot.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.rows)), nil
}

func (m *memSnapshots) Heads(context.Context) (map[string]snapshot.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.heads), nil
}

func (m *memSnapshots) SetHead(_ context.Context, sandboxID string, h snapshot.Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heads[sandboxID] = h
	return nil
}

// Snapshot copies a home.
func (f *stageHomes) Snapshot(ctx context.Context, ref sandbox.Ref, id string, memory bool) (taken sandbox.Taken, err error) {
	err = f.during(ctx, ref, sandbox.Capturing, func(was sandbox.Sandbox) error {
		taken = sandbox.Taken{Sandbox: was, Image: "image:" + id, Still: true, Took: 1400 * time.Millisecond}
		if memory {
			taken.Memory = 24 << 20
		}
		if err := f.pass(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.fails != nil {
			return f.fails
		}
		f.homes[id] = maps.Clone(f.homes[ref.ID()])
		for _, content := range f.homes[id] {
			taken.Stats.Files, taken.Stats.Bytes = taken.Stats.Files+1, taken.Stats.Bytes+int64(len(content))
		}
		taken.Stats.Lost = f.loses
		return nil
	})
	return taken, err
}

// Revert makes a home what the copy of it is.
func (f *stageHomes) Revert(ctx context.Context, ref sandbox.Ref, to sandbox.Revert) error {
	return f.during(ctx, ref, sandbox.Restoring, func(sandbox.Sandbox) error {
		if err := f.pass(ctx); err != nil {
			return err
		}
		f.put(ref.ID(), f.home(to.Snapshot))
		return nil
	})
}

// All gives all sandboxes, by id.
func (f *stageHomes) All(ctx context.Context) (map[string]sandbox.Sandbox, error) {
	list, _, err := f.boxes.List(ctx, sandbox.Filter{})
	all := map[string]sandbox.Sandbox{}
	for _, b := range list {
		all[b.ID] = b
	}
	return all, err
}

func (f *stageHomes) OnEngine(context.Context) (map[string]bool, error) { return nil, nil }

func (f *stageHomes) Inspect(ctx context.Context, ref sandbox.Ref, snapshot string, look func(context.Context, sandbox.Home) error) error {
	return look(ctx, stageHome{f, ref.ID(), snapshot})
}

func (h stageHome) Compare(_ context.Context, most int) (found []archive.Difference, more bool, err error) {
	found, more = sandboxtest.CompareFiles(h.all.home(h.snapshot), h.all.home(h.id), most)
	return found, more, nil
}

func (h stageHome) Versions(_ context.Context, path string, most int) (before, after []byte, err error) {
	return sandboxtest.Beginning(h.all.home(h.snapshot), path, most), sandboxtest.Beginning(h.all.home(h.id), path, most), nil
}

// Update is for stageUpdates: nothing here asks for it.
func (f *stageHomes) Update(context.Context, sandbox.Ref, sandbox.Update) error { return nil }
