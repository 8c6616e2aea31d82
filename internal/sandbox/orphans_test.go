package sandbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// The orphans of these tests: one that runs, one that is stopped, and one of which only the volume is left.
const (
	runsID = "feedfeedfeedfeed"
	restID = "beefbeefbeefbeef"
	halfID = "deaddeaddeaddead"
)

// orphaned is play with orphans that a reconcile has found.
func orphaned(t *testing.T, f func(t *testing.T, w *world, m *sandbox.Manager)) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		for id, name := range map[string]string{runsID: "runs", restID: "rests", halfID: "half"} {
			if err := w.engine.Create(t.Context(), sandbox.ContainerSpec{ID: id, Name: name, Template: "base", Image: "debian"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.engine.Start(t.Context(), runsID); err != nil {
			t.Fatal(err)
		}
		w.engine.Destroy(halfID)
		pass(2 * time.Minute)
		f(t, w, m)
	})
}

func TestOrphans_AreOfferedAndLeftAlone(t *testing.T) {
	orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		found := m.Orphans()
		if len(found) != 3 || found[0].ID != halfID || !found[0].Partial || found[1].ID != restID || !found[2].Running || found[2].Template != "base" {
			t.Fatalf("offered: %+v", found)
		}
		if _, total, err := m.List(t.Context(), sandbox.Filter{}); err != nil || total != 0 {
			t.Errorf("%d of them are sandboxes (%v)", total, err)
		}
		now, err := w.engine.List(t.Context())
		if err != nil || len(now) != 3 {
			t.Errorf("the engine has %+v, %v", now, err)
		}
	})
}

func TestAdopt_MakesItASandboxThatWorks(t *testing.T) {
	for id, want := range map[string]sandbox.State{runsID: sandbox.Running, restID: sandbox.Stopped, halfID: sandbox.Failed} {
		orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			starts := w.engine.Starts(id)
			s, err := m.Adopt(t.Context(), id, "", "ada")
			if err != nil || s.Owner != "ada" || s.Spec.Template != "base" || s.Spec.Limits.Pids == 0 {
				t.Fatalf("adopted: %+v, %v", s, err)
			}
			pass(5 * time.Second)
			settled(t, m, s.Name, want)
			if want == sandbox.Running && w.engine.Starts(id) != starts {
				t.Error("one that ran was started again")
			}
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), s.Ref()) })
			settled(t, m, s.Name, sandbox.Running)
			if _, ok := w.guests.setup(id); !ok {
				t.Error("its guest is not expected")
			}
			pass(2 * time.Minute)
			if left := m.Orphans(); len(left) != 2 {
				t.Errorf("still offered: %+v", left)
			}
			if _, err := m.Adopt(t.Context(), id, "again", "eve"); !fault.Is(err, fault.NotFound) {
				t.Errorf("adopted twice: %v", err)
			}
		})
	}
}

func TestAdopt_UnderAnotherNameWhenItsOwnIsTaken(t *testing.T) {
	orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "runs"})
		if _, err := m.Adopt(t.Context(), runsID, "", "ada"); !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
			t.Errorf("a taken name: %v", err)
		}
		if _, err := m.Adopt(t.Context(), runsID, "No name", "ada"); !fault.Is(err, fault.Invalid) {
			t.Errorf("no name at all: %v", err)
		}
		s, err := m.Adopt(t.Context(), runsID, "other", "ada")
		if err != nil || s.Name != "other" {
			t.Fatalf("another name: %+v, %v", s, err)
		}
		settled(t, m, "other", sandbox.Running)
		pass(time.Second)
		w.engine.Destroy(runsID) // the event has the old name
		synctest.Wait()
		settled(t, m, "other", sandbox.Failed)
		settled(t, m, "runs", sandbox.Running)
	})
}

func TestRemoveOrphan_LeavesNothing(t *testing.T) {
	orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		for _, id := range []string{runsID, restID, halfID} {
			if err := m.RemoveOrphan(t.Context(), id); err != nil {
				t.Errorf("remove %s: %v", id, err)
			}
			if err := m.RemoveOrphan(t.Context(), id); !fault.Is(err, fault.NotFound) {
				t.Errorf("remove %s again: %v", id, err)
			}
		}
		if now, err := w.engine.List(t.Context()); err != nil || len(now) != 0 {
			t.Errorf("the engine has %+v, %v", now, err)
		}
		if left := m.Orphans(); len(left) != 0 {
			t.Errorf("still offered: %+v", left)
		}
	})
}

func TestAdopt_OneThatTheEngineHasNotIsOfferedAgainOnceItHas(t *testing.T) {
	orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		if err := w.engine.Remove(t.Context(), restID); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Adopt(t.Context(), restID, "", "ada"); !fault.Is(err, fault.NotFound) {
			t.Errorf("one that is gone: %v", err)
		}
		if err := w.engine.Create(t.Context(), sandbox.ContainerSpec{ID: restID, Name: "rests", Template: "base", Image: "debian"}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if _, err := m.Adopt(t.Context(), restID, "", "ada"); err != nil {
			t.Errorf("one that is back: %v", err)
		}
	})
}

func TestRemoveOrphan_OneThatCannotBeRemovedIsOfferedAgain(t *testing.T) {
	orphaned(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.engine.refuse(sandboxtest.OpRemove, fault.New(fault.Unavailable, "Away."))
		if err := m.RemoveOrphan(t.Context(), restID); !fault.Is(err, fault.Unavailable) || len(m.Orphans()) != 3 {
			t.Errorf("%v; offered: %+v", err, m.Orphans())
		}
	})
}
