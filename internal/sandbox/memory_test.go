package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// memories is the fake engine's, with trouble.
type memories struct {
	sandboxtest.Memories
	e *engine
}

func (w *world) memories() memories {
	return memories{sandboxtest.MemoriesOf(w.engine.Runtime), w.engine}
}

func (m memories) Checkpoint(ctx context.Context, id, snapshot string) (int64, error) {
	if err := m.e.failing(sandboxtest.OpCheckpoint); err != nil {
		return 0, err
	}
	return m.Memories.Checkpoint(ctx, id, snapshot)
}

func (m memories) StartFrom(ctx context.Context, id, snapshot string) error {
	if err := m.e.failing(sandboxtest.OpStartFrom); err != nil {
		return err
	}
	return m.Memories.StartFrom(ctx, id, snapshot)
}

// remembered is a snapshot with memory of a sandbox whose programs remember "then", and "now" since.
func remembered(t *testing.T, w *world, m *sandbox.Manager, state sandbox.State) (sandbox.Sandbox, sandbox.Revert) {
	t.Helper()
	s := homed(t, w, m, state)
	w.memories().PutMemory(s.ID, "then")
	taken, err := m.Snapshot(t.Context(), s.Ref(), "5a", true)
	if err != nil || taken.Memory != int64(len("then"))+1 || !taken.Still {
		t.Fatalf("%s: %+v, %v", state, taken, err)
	}
	settled(t, m, "lab", state)
	if _, err := m.Awake(t.Context(), s.Ref()); err != nil { // its guest is expected again
		t.Fatal(err)
	}
	w.memories().PutMemory(s.ID, "now")
	return s, sandbox.Revert{Snapshot: "5a", Root: taken.Image, Memory: true}
}

func TestMemory_ComesBackInPlaceAndInClones(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Frozen} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s, to := remembered(t, w, m, state)
			if err := m.Revert(t.Context(), s.Ref(), to); err != nil {
				t.Fatal(err)
			}
			if now := settled(t, m, "lab", sandbox.Running); now.Problem != "" || w.memories().Memory(s.ID) != "then" {
				t.Errorf("restored, it remembers %q: %s", w.memories().Memory(s.ID), now.Problem)
			}
			clone, err := m.CreateFrom(t.Context(), sandbox.Request{Name: "clone", Template: "base"}, sandbox.Origin{
				Snapshot: to.Snapshot, Root: to.Root, ClonedFrom: "lab", Memory: true,
				Fill: func(context.Context, sandbox.Home) error { return nil },
			})
			if err != nil || clone.State != sandbox.Running || clone.Problem != "" || !clone.Revert.Empty() || w.memories().Memory(clone.ID) != "then" {
				t.Errorf("the clone remembers %q: %+v, %v", w.memories().Memory(clone.ID), clone, err)
			}
			if told := w.guests.known[clone.ID].Env["SANDBOXD_CLONED_FROM"]; told != "lab" {
				t.Errorf("the clone is told that it is one of %q", told)
			}
		})
	}
}

func TestMemory_ThatDoesNotComeBackIsToldAndItStartsWithout(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s, to := remembered(t, w, m, sandbox.Running)
		w.engine.refuse(sandboxtest.OpStartFrom, fault.New(fault.Unavailable, "CRIU does not like it."))
		if err := m.Revert(t.Context(), s.Ref(), to); err != nil {
			t.Fatal(err)
		}
		now := settled(t, m, "lab", sandbox.Running)
		if !strings.Contains(now.Problem, "CRIU does not like it.") || w.memories().Memory(s.ID) != "" {
			t.Errorf("it remembers %q: %s", w.memories().Memory(s.ID), now.Problem)
		}
		wantHome(t, w, s, oldFiles, "without memory")
		truly(t, w, m, s, "without memory")
	})
}

func TestMemory_IsKeptOnlyOfWhatRunsWhereItCan(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Asleep)
		if _, err := m.Snapshot(t.Context(), s.Ref(), "5a", true); !fault.Is(err, fault.Conflict) {
			t.Errorf("asleep: %v", err)
		}
		settled(t, m, "lab", sandbox.Asleep)
	})
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		cannot := fault.New(fault.Unavailable, "It has an open device.")
		w.engine.refuse(sandboxtest.OpCheckpoint, cannot)
		if _, err := m.Snapshot(t.Context(), s.Ref(), "5a", true); !errors.Is(err, cannot) {
			t.Errorf("got %v", err)
		}
		settled(t, m, "lab", sandbox.Running)
		truly(t, w, m, s, "not kept")
	})
}

func TestMemory_IsTheLastPhaseOfItsSnapshot(t *testing.T) {
	for _, memory := range []bool{true, false} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			w.memories().PutMemory(s.ID, "then")
			events := m.Subscribe()
			defer events.Close()
			if _, err := m.Snapshot(t.Context(), s.Ref(), "5a", memory); err != nil {
				t.Fatal(err)
			}
			told := false
			for len(events.C) > 0 {
				e := <-events.C
				told = told || e.Progress.Phase == sandbox.PhaseMemory && e.Sandbox.State == sandbox.Capturing
			}
			if told != memory {
				t.Errorf("with memory %t: told %t", memory, told)
			}
			if now := settled(t, m, "lab", sandbox.Running); m.Progress(now.ID) != (sandbox.Progress{}) {
				t.Errorf("left: %+v", m.Progress(now.ID))
			}
		})
	}
}
