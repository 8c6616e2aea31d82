package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
)

// lost is homed, and then sandboxd finds an engine that has nothing of it.
func lost(t *testing.T, w *world) (m *sandbox.Manager, end func(), s sandbox.Sandbox) {
	t.Helper()
	m, end = w.run(t)
	synctest.Wait()
	s = homed(t, w, m, sandbox.Running)
	end()
	if err := w.engine.Runtime.Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	m, end = w.run(t)
	pass(time.Minute)
	return m, end, s
}

func wantLost(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, when string) {
	t.Helper()
	now := settled(t, m, "lab", sandbox.Failed)
	if _, exists := w.engine.instance(t, s.ID); exists || !strings.Contains(now.Problem, "Restore its home from a backup") {
		t.Errorf("%s: %q; the engine has it: %v", when, now.Problem, exists)
	}
}

func TestRestore_MakesWhatTheEngineHasNothingOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end, s := lost(t, w)
		defer end()
		wantLost(t, w, m, s, "found")
		broken := errors.New("the archive is broken")
		if err := m.Restore(t.Context(), s.Ref(), func(context.Context, sandbox.Home) error { return broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
		wantLost(t, w, m, s, "after a restore that failed")
		if err := m.Restore(t.Context(), s.Ref(), fill(t)); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Stopped)
		wantHome(t, w, s, newFiles, "restored")
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), s.Ref()) })
		settled(t, m, "lab", sandbox.Running)
		wantHome(t, w, s, newFiles, "started")
	})
}

// TestRestore_ACrashLeavesAllOrNothingOfWhatWasLost kills the Manager before each thing that it does outside.
func TestRestore_ACrashLeavesAllOrNothingOfWhatWasLost(t *testing.T) {
	outcomes := map[sandbox.State]int{}
	strikes(t, 30, func(t *testing.T, w *world) (end, do func()) {
		m, end, s := lost(t, w)
		return end, func() { _ = m.Restore(t.Context(), s.Ref(), fill(t)) } // dies under us
	}, func(t *testing.T, w *world, m *sandbox.Manager, struck string) {
		now, err := m.Sandbox(t.Context(), "lab")
		if err != nil {
			t.Fatal(err)
		}
		outcomes[now.State]++
		if now.State == sandbox.Failed {
			wantLost(t, w, m, now, "killed before "+struck)
			return
		}
		settled(t, m, "lab", sandbox.Stopped)
		wantHome(t, w, now, newFiles, "killed before "+struck)
	})
	if outcomes[sandbox.Failed] < 2 || outcomes[sandbox.Stopped] < 1 {
		t.Errorf("outcomes: %v", outcomes)
	}
}

// A server that was saved during an update and restored on another machine has nothing to take the sandbox back to.
func TestUpdate_OfWhatTheEngineHasNothingOfSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		synctest.Wait()
		s := aged(t, w, m, sandbox.Running)
		end()
		w.engine.NoImage(safety.Root)
		s.State, s.CutOff, s.Revert = sandbox.Restoring, sandbox.Running, safety
		s.Revert.Update = true
		if err := w.store.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := w.engine.Runtime.Remove(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		m, end = w.run(t)
		defer end()
		pass(time.Minute)
		wantLost(t, w, m, s, "after the restore of the server")
		if err := m.Restore(t.Context(), s.Ref(), fill(t)); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Stopped)
		wantHome(t, w, s, newFiles, "restored")
		wantImage(t, w, s, newest, "restored")
	})
}
