package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

var (
	models = sandbox.Mount{Volume: "1", Target: "/volumes/models", ReadOnly: true}
	cache  = sandbox.Mount{Volume: "2", Target: "/volumes/cache"}
)

// has wants the sandbox's container to have just these volumes, and the Manager to know that.
func has(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, want ...sandbox.Mount) {
	t.Helper()
	i, _ := w.engine.instance(t, s.ID)
	known, ok := m.Mounted(s.ID)
	if i.Volumes != sandbox.MountText(want) || !ok || !slices.Equal(known, want) {
		t.Errorf("it has %q, known are %v (%v), want %v", i.Volumes, known, ok, want)
	}
}

func TestMounts_ChangeWithTheNextStart(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.volumes.Store(&[]sandbox.Mount{models})
		create(t, m, sandbox.Request{Name: "lab"})
		s := settled(t, m, "lab", sandbox.Running)
		has(t, w, m, s, models)
		w.volumes.Store(&[]sandbox.Mount{cache, models})
		if _, err := m.Restart(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Running)
		has(t, w, m, s, cache, models)
		remounted := w.engine.Calls(sandboxtest.OpRemount)
		if _, err := m.Restart(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Running)
		if now := w.engine.Calls(sandboxtest.OpRemount); now != remounted {
			t.Errorf("a start without a change asks for it %d times", now-remounted)
		}
		if _, err := m.Sleep(t.Context(), s.Ref(), nil); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Asleep)
		w.volumes.Store(&[]sandbox.Mount{cache})
		if _, err := m.Awake(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		has(t, w, m, s, cache)
	})
}

// What is taken away is gone after the next start, or there is none; what is given may wait.
func TestMounts_ATroubleKeepsNoneThatIsTakenAway(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.volumes.Store(&[]sandbox.Mount{models})
		create(t, m, sandbox.Request{Name: "lab"})
		s := settled(t, m, "lab", sandbox.Running)
		w.engine.refuse(sandboxtest.OpRemount, fault.New(fault.Invalid, "No."))
		w.volumes.Store(&[]sandbox.Mount{cache, models})
		if _, err := m.Restart(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Running)
		has(t, w, m, s, models)
		w.volumes.Store(nil)
		if _, err := m.Restart(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Failed)
		w.engine.refuse(sandboxtest.OpRemount, nil)
		if _, err := m.Start(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Running)
		has(t, w, m, s)
	})
}

func TestMounts_AreKnownAgainAfterARestartOfSandboxd(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.volumes.Store(&[]sandbox.Mount{models})
		create(t, m, sandbox.Request{Name: "lab"})
		s := settled(t, m, "lab", sandbox.Running)
		next, end := w.run(t)
		defer end()
		if err := next.Reconcile(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		has(t, w, next, s, models)
	})
}

// An update makes the container anew, and so does what takes it back: both give the volumes that the sandbox is to have.
func TestMounts_ChangeWithAnUpdate(t *testing.T) {
	for what, check := range map[string]error{"updated": nil, "taken back": fault.New(fault.Unavailable, "It does not work.")} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			w.volumes.Store(&[]sandbox.Mount{models})
			s := aged(t, w, m, sandbox.Running)
			has(t, w, m, s, models)
			w.volumes.Store(&[]sandbox.Mount{cache})
			remounted := w.engine.Calls(sandboxtest.OpRemount)
			err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(context.Context, sandbox.Sandbox) error {
				has(t, w, m, s, cache)
				w.volumes.Store(&[]sandbox.Mount{cache, models})
				return check
			}})
			if errors.Is(err, sandbox.ErrTakenBack) != (check != nil) {
				t.Errorf("%s: %v", what, err)
			}
			settled(t, m, "lab", sandbox.Running)
			if check == nil {
				has(t, w, m, s, cache)
			} else {
				has(t, w, m, s, cache, models)
			}
			if now := w.engine.Calls(sandboxtest.OpRemount); now != remounted {
				t.Errorf("%s: its volumes were changed %d times more", what, now-remounted)
			}
		})
	}
}

// Other volumes do not make a sandbox one that an update has something for.
func TestMounts_AChangeIsNoOlderImage(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab"})
		s := settled(t, m, "lab", sandbox.Running)
		w.volumes.Store(&[]sandbox.Mount{models})
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), s.Ref()) })
		settled(t, m, "lab", sandbox.Running)
		has(t, w, m, s, models)
		if _, st, err := m.Look(t.Context(), s.Ref()); err != nil || !st.Known || st.Older {
			t.Errorf("it counts as %+v, %v", st, err)
		}
	})
}

// The data folder is moved while sandboxd is stopped: what runs is restarted with the new link folder, what rests gets it when it wakes.
func TestReconcile_FetchesBackWhatHasTheFormerDataFolder(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		states := map[string]sandbox.State{"runs": sandbox.Running, "freezes": sandbox.Frozen, "sleeps": sandbox.Asleep}
		ids := map[string]string{}
		for name, state := range states {
			create(t, m, sandbox.Request{Name: name})
			s := settled(t, m, name, sandbox.Running)
			ids[name] = s.ID
			var err error
			switch state {
			case sandbox.Frozen:
				_, err = m.Freeze(t.Context(), s.Ref(), nil)
			case sandbox.Asleep:
				_, err = m.Sleep(t.Context(), s.Ref(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			settled(t, m, name, state)
			sandboxtest.Stray(w.engine.Runtime, s.ID)
		}
		next, end := w.run(t)
		defer end()
		if err := next.Reconcile(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		for name, state := range states {
			want, starts := sandbox.Running, 2
			if state == sandbox.Asleep {
				want, starts = sandbox.Asleep, 1
			}
			s := settled(t, next, name, want)
			if i, _ := w.engine.instance(t, s.ID); i.Strayed != (state == sandbox.Asleep) || w.engine.Starts(s.ID) != starts {
				t.Errorf("%s: %+v, started %d times", name, i, w.engine.Starts(s.ID))
			}
		}
		s := settled(t, next, "sleeps", sandbox.Asleep)
		if _, err := next.Awake(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		if i, _ := w.engine.instance(t, s.ID); i.Strayed {
			t.Errorf("awake it is %+v", i)
		}
	})
}
