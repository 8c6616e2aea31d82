package sandbox_test

import (
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

func size(cpus float64, memory int64) sandbox.LimitsChange {
	return sandbox.LimitsChange{CPUs: &cpus, Memory: &memory}
}

func TestResize_ChangesASandboxInAnyStateAndOnlyWhatIsAskedFor(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		check := func(what string, state sandbox.State, cpus float64, memory int64) {
			t.Helper()
			row, spec := settled(t, m, "lab", state), specOf(t, w, s)
			if row.Spec.Limits != spec.Limits || row.Resizing || spec.Limits.CPUs != cpus || spec.Limits.Memory != memory || spec.Limits.Pids != s.Spec.Limits.Pids {
				t.Errorf("%s: the row has %+v (%v), the container %+v", what, row.Spec.Limits, row.Resizing, spec.Limits)
			}
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Resize(t.Context(), s.Ref(), size(0.5, gib)) })
		check("both", sandbox.Running, 0.5, gib)
		one := 1.0
		mustDo(t, func() (sandbox.Sandbox, error) {
			return m.Resize(t.Context(), s.Ref(), sandbox.LimitsChange{CPUs: &one})
		})
		check("one", sandbox.Running, 1, gib)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), s.Ref()) })
		settled(t, m, "lab", sandbox.Stopped)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Resize(t.Context(), s.Ref(), size(0.25, gib/2)) })
		check("stopped", sandbox.Stopped, 0.25, gib/2)
		for field, c := range map[string]sandbox.LimitsChange{"cpus": size(1000, gib), "memory": size(1, 1)} {
			if _, err := m.Resize(t.Context(), s.Ref(), c); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		check("refused", sandbox.Stopped, 0.25, gib/2)
	})
}

func TestResize_BelowWhatItsProgramsHoldIsRefusedAndChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		was := settled(t, m, "lab", sandbox.Running)
		w.engine.Use(s.ID, sandbox.Usage{Memory: gib})
		if _, err := m.Resize(t.Context(), s.Ref(), size(1, gib/2)); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v", err)
		}
		if now := settled(t, m, "lab", sandbox.Running); now.Spec.Limits != was.Spec.Limits || now.Resizing {
			t.Errorf("the row has %+v (%v)", now.Spec.Limits, now.Resizing)
		}
	})
}

// TestResize_CutOffEndsAsTheRowSays ends sandboxd before and after the engine has changed the limits, and has it start again.
func TestResize_CutOffEndsAsTheRowSays(t *testing.T) {
	for what, cut := range map[string]func(w *world){
		"before the engine": func(w *world) { w.engine.Fail(sandboxtest.OpResize, fault.New(fault.Unavailable, "It is away.")) },
		"after the engine":  func(w *world) { w.engine.CutAfter(sandboxtest.AfterResize) },
	} {
		for _, state := range []sandbox.State{sandbox.Running, sandbox.Stopped} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				m, end := w.run(t)
				s := create(t, m, sandbox.Request{Name: "lab"})
				settled(t, m, "lab", sandbox.Running)
				if state == sandbox.Stopped {
					mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), s.Ref()) })
					settled(t, m, "lab", sandbox.Stopped)
				}
				cut(w)
				if _, err := m.Resize(t.Context(), s.Ref(), size(0.5, gib)); err == nil {
					t.Errorf("%s: it is not cut off", what)
				}
				end()
				m, end = w.run(t)
				defer end()
				synctest.Wait()
				row := settled(t, m, "lab", state)
				if spec := specOf(t, w, s); spec.Limits != row.Spec.Limits || row.Resizing {
					t.Errorf("%s, %s: the row has %+v (%v), the container %+v", what, state, row.Spec.Limits, row.Resizing, spec.Limits)
				}
			})
		}
	}
}

func specOf(t *testing.T, w *world, s sandbox.Sandbox) sandbox.ContainerSpec {
	t.Helper()
	spec, ok := w.engine.Spec(s.ID)
	if !ok {
		t.Fatal("it has no container")
	}
	return spec
}
