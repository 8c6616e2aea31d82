package snapshot_test

import (
	"slices"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// wantMemories checks of which snapshots the engine keeps the memory.
func (w *world) wantMemories(ids ...string) {
	w.t.Helper()
	w.settle()
	got, err := w.memories().Checkpoints(w.t.Context())
	w.ok(err)
	if !slices.Equal(got, ids) {
		w.t.Errorf("memories of %v, want %v", got, ids)
	}
}

func TestMemory_IsOfTheSnapshotUntilThatIsDeleted(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.memories().PutMemory(box.ID, "then")
		plain := w.take(box, snapshot.Ask{})
		snap := w.take(box, snapshot.Ask{Memory: true})
		if plain.Memory != 0 || snap.Memory != 5 {
			t.Fatalf("%d and %d bytes", plain.Memory, snap.Memory)
		}
		w.restart()
		if got, err := w.Snapshot(snap.ID); err != nil || got.Memory != snap.Memory {
			t.Errorf("after a restart: %+v, %v", got, err)
		}
		w.wantMemories(snap.ID)
		_, err := w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		if now := w.now(box); now.State != sandbox.Running || now.Problem != "" || w.memories().Memory(box.ID) != "then" {
			t.Errorf("restored, it remembers %q: %+v", w.memories().Memory(box.ID), now)
		}
		clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "bob", Name: "copy", Count: 2, Snapshot: snap.ID})
		w.ok(err)
		for _, c := range clones {
			if c.State != sandbox.Running || c.Problem != "" || w.memories().Memory(c.ID) != "then" {
				t.Errorf("the clone remembers %q: %+v", w.memories().Memory(c.ID), c)
			}
		}
		_, err = w.Restore(w.t.Context(), box, plain.ID)
		w.ok(err)
		if w.memories().Memory(box.ID) != "" {
			t.Error("a restore to one without memory has some")
		}
		w.wantMemories(snap.ID)
		w.ok(w.Delete(w.t.Context(), snap.ID))
		w.wantMemories()
	})
}

func TestMemory_CannotBeKeptOfWhatDoesNotRun(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		_, err := w.m.Stop(w.t.Context(), box.Ref())
		w.ok(err)
		box, err = w.m.Wait(w.t.Context(), box.Ref())
		w.ok(err)
		_, _, err = w.Begin(w.t.Context(), box, snapshot.Ask{Memory: true})
		w.wantKind("of a stopped one", err, fault.Conflict, "does not run")
	})
	within(t, func(c *snapshot.Config) { c.Memories = nil }, func(w *world, box sandbox.Sandbox) {
		_, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{Memory: true})
		w.wantKind("where none can", err, fault.Conflict, "on this host")
		w.wantRows()
	})
}

func TestMemory_OfOneThatACrashHasCutOffGoes(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		_, err := w.m.Snapshot(w.t.Context(), box.Ref(), "5a", true) // a row that the crash has kept from being stored
		w.ok(err)
		w.Nudge()
		w.wantMemories()
	})
}
