package sandbox_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// An engine may say for a moment that a sandbox is frozen which has just been thawed, as after a snapshot of it.
func TestReconcile_AnEngineThatIsLateIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		defer end()
		s := brought(t, m, sandbox.Running)
		pass(time.Second)
		events := m.Subscribe()
		defer events.Close()
		w.engine.FreezeOutside(s.ID)
		synctest.Wait()
		if err := w.engine.Thaw(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		select {
		case e := <-events.C:
			t.Errorf("it was taken for changed: %+v", e)
		default:
		}
		settled(t, m, "lab", sandbox.Running)
	})
}

// TestReconcile_WhatIsDoneToOneAtRestFromOutsideIsSeen does it with the watch on, with a deaf one, and while sandboxd is
// away.
func TestReconcile_WhatIsDoneToOneAtRestFromOutsideIsSeen(t *testing.T) {
	start := func(t *testing.T, w *world, id string) {
		if err := w.engine.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		from sandbox.State
		do   func(t *testing.T, w *world, id string)
		want sandbox.State
	}{
		"frozen, thawed":      {sandbox.Frozen, func(t *testing.T, w *world, id string) { start(t, w, id) }, sandbox.Running},
		"running, paused":     {sandbox.Running, func(_ *testing.T, w *world, id string) { w.engine.FreezeOutside(id) }, sandbox.Frozen},
		"frozen, ended":       {sandbox.Frozen, func(_ *testing.T, w *world, id string) { w.engine.Exit(id, 137, true) }, sandbox.Asleep},
		"frozen, removed":     {sandbox.Frozen, func(_ *testing.T, w *world, id string) { w.engine.Destroy(id) }, sandbox.Failed},
		"asleep, started":     {sandbox.Asleep, func(t *testing.T, w *world, id string) { start(t, w, id) }, sandbox.Running},
		"asleep, removed":     {sandbox.Asleep, func(_ *testing.T, w *world, id string) { w.engine.Destroy(id) }, sandbox.Failed},
		"asleep, left alone":  {sandbox.Asleep, func(*testing.T, *world, string) {}, sandbox.Asleep},
		"frozen, left alone":  {sandbox.Frozen, func(*testing.T, *world, string) {}, sandbox.Frozen},
		"stopped, and paused": {sandbox.Stopped, func(t *testing.T, w *world, id string) { start(t, w, id); w.engine.FreezeOutside(id) }, sandbox.Frozen},
	} {
		for _, how := range []string{"watched", "deaf", "away"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				m, end := w.run(t)
				synctest.Wait()
				s := brought(t, m, c.from)
				pass(time.Second)
				switch how {
				case "deaf":
					w.engine.deafen()
				case "away":
					end()
					if err := w.guests.Forget(s.ID); err != nil {
						t.Fatal(err)
					}
				}
				c.do(t, w, s.ID)
				if how == "away" {
					m, end = w.run(t)
				}
				defer end()
				synctest.Wait()
				if how != "watched" {
					pass(5 * time.Minute)
				}
				s = settled(t, m, "lab", c.want)
				if c.want == sandbox.Failed && !strings.Contains(s.Problem, "outside sandboxd removed it") {
					t.Errorf("%s, %s: problem %q", what, how, s.Problem)
				}
				if _, ok := w.guests.setup(s.ID); !ok && (c.want == sandbox.Running || c.want == sandbox.Frozen) {
					t.Errorf("%s, %s: its guest is not expected", what, how)
				}
			})
		}
	}
}

func TestReconcile_AnEngineRestartLeavesRestingOnesToTheNextUse(t *testing.T) {
	for _, from := range []sandbox.State{sandbox.Frozen, sandbox.Asleep} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, from)
			w.engine.restart(s.ID)
			pass(10 * time.Second)
			settled(t, m, "lab", sandbox.Asleep)
			if got, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Running {
				t.Errorf("used: %s, %v", got.State, err)
			}
		})
	}
}

// TestReconcile_ALookFromBeforeAFreezeIsNotBelieved has the once-a-minute look fall into every moment of a freeze.
func TestReconcile_ALookFromBeforeAFreezeIsNotBelieved(t *testing.T) {
	for at := time.Duration(0); at < 4*time.Second; at += 250 * time.Millisecond {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			brought(t, m, sandbox.Running)
			w.engine.Delay(sandboxtest.OpFreeze, 2*time.Second)
			w.engine.deafen()
			go func() {
				pass(at)
				if err := m.Reconcile(t.Context(), false); err != nil {
					t.Error(err)
				}
			}()
			pass(time.Second)
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), ref(t, m, "lab"), nil) })
			settled(t, m, "lab", sandbox.Frozen)
			pass(5 * time.Minute)
			settled(t, m, "lab", sandbox.Frozen)
		})
	}
}

// crashing are operations that are struck at every call to the outside, with what brings them about.
var crashing = map[string]struct {
	from sandbox.State
	do   func(t *testing.T, m *sandbox.Manager) error
}{
	"freeze": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Freeze(t.Context(), ref(t, m, "lab"), func() bool { return true })
		return err
	}},
	"freeze under a use": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		looks := 0
		_, err := m.Freeze(t.Context(), ref(t, m, "lab"), func() bool { looks++; return looks == 1 })
		return err
	}},
	"sleep": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Sleep(t.Context(), ref(t, m, "lab"), nil)
		return err
	}},
	"sleep of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Sleep(t.Context(), ref(t, m, "lab"), nil)
		return err
	}},
	"thaw": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Awake(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"wake": {sandbox.Asleep, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Awake(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"stop of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Stop(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"stop of asleep": {sandbox.Asleep, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Stop(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"restart of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Restart(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"restart of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Restart(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"restart of asleep": {sandbox.Asleep, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Restart(t.Context(), ref(t, m, "lab"))
		return err
	}},
	"capture of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		return m.Capture(t.Context(), ref(t, m, "lab"), false, read)
	}},
	"capture of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		return m.Capture(t.Context(), ref(t, m, "lab"), false, read)
	}},
	"capture of asleep": {sandbox.Asleep, func(t *testing.T, m *sandbox.Manager) error {
		return m.Capture(t.Context(), ref(t, m, "lab"), false, read)
	}},
	"home of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		return m.Restore(t.Context(), ref(t, m, "lab"), fill(t))
	}},
	"home of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		return m.Restore(t.Context(), ref(t, m, "lab"), fill(t))
	}},
	"home of stopped": {sandbox.Stopped, func(t *testing.T, m *sandbox.Manager) error {
		return m.Restore(t.Context(), ref(t, m, "lab"), fill(t))
	}},
	"snapshot of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Snapshot(t.Context(), ref(t, m, "lab"), "5a", false)
		return err
	}},
	"snapshot of asleep": {sandbox.Asleep, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Snapshot(t.Context(), ref(t, m, "lab"), "5a", false)
		return err
	}},
	"memory of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Snapshot(t.Context(), ref(t, m, "lab"), "5a", true)
		return err
	}},
	"memory of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Snapshot(t.Context(), ref(t, m, "lab"), "5a", true)
		return err
	}},
	"revert with memory": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		to := toSnapshot
		to.Memory = true
		return m.Revert(t.Context(), ref(t, m, "lab"), to)
	}},
	"revert of running": {sandbox.Running, func(t *testing.T, m *sandbox.Manager) error {
		return m.Revert(t.Context(), ref(t, m, "lab"), toSnapshot)
	}},
	"revert of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		return m.Revert(t.Context(), ref(t, m, "lab"), toSnapshot)
	}},
	"revert of stopped": {sandbox.Stopped, func(t *testing.T, m *sandbox.Manager) error {
		return m.Revert(t.Context(), ref(t, m, "lab"), toSnapshot)
	}},
	"delete of frozen": {sandbox.Frozen, func(t *testing.T, m *sandbox.Manager) error {
		_, err := m.Delete(t.Context(), ref(t, m, "lab"))
		return err
	}},
}

// TestRun_ACrashBeforeAnyCallLeavesATrueState kills the Manager before each thing that the operation does outside, and
// starts another one.
func TestRun_ACrashBeforeAnyCallLeavesATrueState(t *testing.T) {
	for what, c := range crashing {
		for n, struck := 0, "first"; struck != ""; n++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				m, end := w.run(t)
				synctest.Wait()
				s := homed(t, w, m, c.from)
				w.fate.arm(n, true, errFate)
				_ = c.do(t, m) // the caller has lost sandboxd
				pass(10 * time.Second)
				end()
				struck = w.fate.rest()
				m, end = w.run(t)
				defer end()
				pass(10 * time.Minute)
				truly(t, w, m, s, what+" killed before "+struck)
				now, _ := m.Sandbox(t.Context(), "lab")
				if now.State == sandbox.Failed || strings.HasPrefix(what, "restart") && now.State == sandbox.Stopped {
					t.Errorf("%s killed before %s: %s, %s", what, struck, now.State, now.Problem)
				}
			})
			if n > 30 {
				t.Fatalf("%s does not come to an end", what)
			}
		}
	}
}

// TestManager_AnyCallThatFailsOnceLeavesATrueState fails each thing that the operation does outside, once.
func TestManager_AnyCallThatFailsOnceLeavesATrueState(t *testing.T) {
	for what, c := range crashing {
		for _, trouble := range []error{errFate, fault.New(fault.Unavailable, "Away."), fault.New(fault.Timeout, "Slow.")} {
			for n, struck := 0, "first"; struck != ""; n++ {
				play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
					s := homed(t, w, m, c.from)
					w.fate.arm(n, false, trouble)
					_ = c.do(t, m) // what it says of the failure is not the question here
					pass(10 * time.Minute)
					struck = w.fate.rest()
					truly(t, w, m, s, what+" with a failing "+struck)
				})
				if n > 30 {
					t.Fatalf("%s does not come to an end", what)
				}
			}
		}
	}
}

// truly wants row and engine to agree, nothing to be under way, and all sandboxes at rest to wake.
func truly(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, when string) {
	t.Helper()
	now, err := m.Wait(t.Context(), ref(t, m, s.Name))
	i, exists := w.engine.instance(t, s.ID)
	if fault.Is(err, fault.Gone) {
		if exists {
			t.Errorf("%s: deleted, and the engine has %+v", when, i)
		}
		return
	}
	if files, whole := w.engine.HomeFiles(s.ID); !whole || len(files) > 0 && !maps.Equal(files, oldFiles) && !maps.Equal(files, newFiles) {
		t.Errorf("%s: its home has %v (whole: %v)", when, files, whole)
	}
	wantAsOneSnapshot(t, w, now, when)
	runs := now.State == sandbox.Running || now.State == sandbox.Frozen
	if err != nil || !now.State.Settled() || !exists || i.Running != runs || i.Frozen != (now.State == sandbox.Frozen) {
		t.Errorf("%s: it is %s (%s), %v; the engine has %+v", when, now.State, now.Problem, err, i)
	}
	kept, err := w.store.ByName(t.Context(), s.Name)
	if err != nil || kept.State != now.State || !kept.Changed.Equal(now.Changed) {
		t.Errorf("%s: remembered as %s, kept as %s, %v", when, now.State, kept.State, err)
	}
	if !runs && !now.State.Resting() {
		return
	}
	if got, err := m.Awake(t.Context(), ref(t, m, s.Name)); err != nil || got.State != sandbox.Running {
		t.Errorf("%s: used when it is %s, it is %s, %v", when, now.State, got.State, err)
	}
}
