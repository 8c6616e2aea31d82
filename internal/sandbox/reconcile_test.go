package sandbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// TestRun_FinishesWhatACrashHasCutOff ends the Manager in the middle of each operation and starts another one.
func TestRun_FinishesWhatACrashHasCutOff(t *testing.T) {
	for what, c := range map[string]struct {
		cut  func(t *testing.T, w *world, m *sandbox.Manager)
		want sandbox.State // "" for gone
	}{
		"create": {func(t *testing.T, w *world, m *sandbox.Manager) {
			w.images.set(time.Hour, nil)
			create(t, m, sandbox.Request{Name: "other"})
		}, sandbox.Running},
		"stop": {func(t *testing.T, _ *world, m *sandbox.Manager) {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) })
		}, sandbox.Stopped},
		"start": {func(t *testing.T, _ *world, m *sandbox.Manager) {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) })
			settled(t, m, "lab", sandbox.Stopped)
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "lab")) })
		}, sandbox.Running},
		"restart": {func(t *testing.T, w *world, m *sandbox.Manager) {
			w.engine.Delay(sandboxtest.OpStart, 0)
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), ref(t, m, "lab")) })
			id := ref(t, m, "lab").ID()
			time.AfterFunc(500*time.Millisecond, func() { w.engine.Exit(id, 0, false) }) // the engine carries on with the stop
		}, sandbox.Running},
		"delete": {func(t *testing.T, w *world, m *sandbox.Manager) {
			w.engine.refuse(sandboxtest.OpRemove, fault.New(fault.Unavailable, "Away."))
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), ref(t, m, "lab")) })
		}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m, end := w.run(t)
			create(t, m, sandbox.Request{Name: "lab"})
			settled(t, m, "lab", sandbox.Running)
			c.cut(t, w, m)
			end()
			w.images.set(0, nil)
			w.engine.refuse(sandboxtest.OpRemove, nil)
			m, end = w.run(t)
			defer end()
			pass(10 * time.Second)
			for _, name := range []string{"lab", "other"} {
				s, err := m.Sandbox(t.Context(), name)
				switch {
				case fault.Is(err, fault.NotFound) && (c.want == "" || name == "other" && what != "create"):
				case err != nil:
					t.Errorf("%s: %s: %v", what, name, err)
				case s.State != c.want:
					t.Errorf("%s: %s is %s (%s), want %q", what, name, s.State, s.Problem, c.want)
				}
			}
		})
	}
}

func mustDo(t *testing.T, do func() (sandbox.Sandbox, error)) {
	t.Helper()
	if _, err := do(); err != nil {
		t.Fatal(err)
	}
}

func TestRun_TakesInRunningSandboxesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		end()
		starts := w.engine.Starts(s.ID)
		if err := w.guests.Forget(s.ID); err != nil { // a new process listens for nobody yet
			t.Fatal(err)
		}
		m, end = w.run(t)
		defer end()
		synctest.Wait()
		settled(t, m, "lab", sandbox.Running)
		if _, ok := w.guests.setup(s.ID); !ok {
			t.Error("its guest is not expected")
		}
		if w.engine.Starts(s.ID) != starts {
			t.Error("it was started again")
		}
	})
}

func TestReconcile_ARowFromTheFutureIsRepaired(t *testing.T) { // the clock has been set back
	for state, want := range map[sandbox.State]sandbox.State{sandbox.Deleting: "", sandbox.Starting: sandbox.Running, sandbox.Stopping: sandbox.Stopped} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m, end := w.run(t)
			s := brought(t, m, sandbox.Running)
			end()
			s.State, s.Changed = state, time.Now().Add(time.Hour)
			if err := w.store.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			m, end = w.run(t)
			defer end()
			pass(2 * time.Minute)
			if now, _ := m.Sandbox(t.Context(), "lab"); now.State != want {
				t.Errorf("%s became %q", state, now.State)
			}
		})
	}
}

func TestReconcile_AnEngineRestartBringsBackWhatRan(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		runs, rests := create(t, m, sandbox.Request{Name: "runs"}), create(t, m, sandbox.Request{Name: "rests"})
		settled(t, m, "runs", sandbox.Running)
		settled(t, m, "rests", sandbox.Running)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "rests")) })
		settled(t, m, "rests", sandbox.Stopped)
		w.engine.restart(runs.ID, rests.ID)
		synctest.Wait()
		if err := m.EngineHealth(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("health while it is away: %v", err)
		}
		if err, pings := m.CheckEngine(t.Context()), w.engine.Calls(sandboxtest.OpPing); !fault.Is(err, fault.Unavailable) || pings != 0 {
			t.Errorf("a check while it is away: %v, with %d pings", err, pings)
		}
		pass(10 * time.Second)
		settled(t, m, "runs", sandbox.Running)
		settled(t, m, "rests", sandbox.Stopped)
		if err := m.EngineHealth(); err != nil {
			t.Errorf("health when it is back: %v", err)
		}
	})
}

func TestReconcile_AnEngineThatGoesAgainWhileItStartsWhatRanMakesNothingFail(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		lab := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		w.engine.restart(lab.ID)
		for state := sandbox.Running; state != sandbox.Starting; pass(10 * time.Millisecond) {
			s, err := m.Sandbox(t.Context(), "lab")
			if err != nil {
				t.Fatal(err)
			}
			state = s.State
		}
		back := w.engine.Lose()
		pass(2 * time.Minute)
		settled(t, m, "lab", sandbox.Starting)
		if m.Progress(lab.ID).Detail == "" {
			t.Error("nobody is told why")
		}
		back()
		pass(10 * time.Second)
		settled(t, m, "lab", sandbox.Running)
		if p := m.Progress(lab.ID); p != (sandbox.Progress{}) {
			t.Errorf("progress is left over: %+v", p)
		}
	})
}

func TestObserve_AnEndThatNobodyAskedForIsAFailureWithItsCause(t *testing.T) {
	for cause, oom := range map[string]bool{"exit code 0": false, "more memory": true} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := create(t, m, sandbox.Request{Name: "lab"})
			settled(t, m, "lab", sandbox.Running)
			pass(time.Second)
			w.engine.Exit(s.ID, 0, oom)
			pass(5 * time.Second)
			if s = settled(t, m, "lab", sandbox.Failed); !strings.Contains(s.Problem, cause) {
				t.Errorf("problem %q, want %q in it", s.Problem, cause)
			}
		})
	}
}

func TestObserve_AKilledGuestIsStartedAgainOnceAnHour(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		for range 2 {
			pass(2 * time.Hour)
			w.engine.Exit(s.ID, 137, false)
			pass(5 * time.Second)
			if s = settled(t, m, "lab", sandbox.Running); s.Problem != "It was killed (exit code 137) and started again. Programs and terminals in it ended." {
				t.Errorf("problem %q", s.Problem)
			}
		}
		w.engine.Exit(s.ID, 137, false)
		pass(5 * time.Second)
		if s = settled(t, m, "lab", sandbox.Failed); !strings.Contains(s.Problem, "exit code 137") {
			t.Errorf("problem %q", s.Problem)
		}
	})
}

func TestObserve_NothingIsRememberedOfWhenADeletedSandboxWasStartedAgain(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		for range 2 {
			pass(time.Second)
			w.engine.Exit(s.ID, 137, false)
			pass(5 * time.Second)
			s = settled(t, m, "lab", sandbox.Running)
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), s.Ref()) })
			pass(5 * time.Second)
			// Only with the same id can a test see that nothing was kept.
			if err := w.engine.Create(t.Context(), sandbox.ContainerSpec{ID: s.ID, Name: s.Name, Template: "base", Image: "debian"}); err != nil {
				t.Fatal(err)
			}
			if err := w.engine.Start(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			if err := w.store.Insert(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
		}
	})
}

func TestObserve_ARestartFromOutsideIsAStart(t *testing.T) {
	for what, gap := range map[string]time.Duration{"quick": 500 * time.Millisecond, "slow": 20 * time.Second} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := create(t, m, sandbox.Request{Name: "lab"})
			settled(t, m, "lab", sandbox.Running)
			pass(time.Second)
			w.engine.Exit(s.ID, 0, false)
			pass(gap)
			if now, err := m.Sandbox(t.Context(), "lab"); err != nil || what == "quick" && now.State != sandbox.Running {
				t.Errorf("%s: in between it is %s, %v", what, now.State, err)
			}
			if err := w.engine.Runtime.Start(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Second)
			settled(t, m, "lab", sandbox.Running)
			if now, err := w.engine.List(t.Context()); err != nil || !now[0].Running {
				t.Errorf("%s: the engine has %+v, %v", what, now, err)
			}
		})
	}
}

func TestObserve_ARemovedContainerIsNoticedAtOnceAlsoOfOneAtRest(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) })
		settled(t, m, "lab", sandbox.Stopped)
		pass(time.Second)
		w.engine.Destroy(s.ID)
		synctest.Wait()
		if s = settled(t, m, "lab", sandbox.Failed); !strings.Contains(s.Problem, "outside sandboxd removed it") {
			t.Errorf("problem %q", s.Problem)
		}
	})
}

func TestObserve_ALateEventIsNotBelieved(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		pass(time.Second)
		w.engine.seen(sandbox.Instance{ID: s.ID, Name: "lab", ExitCode: 137}) // it runs again by now
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestReconcile_MissedChangesAreSeenWithinAMinute(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		gone := create(t, m, sandbox.Request{Name: "gone"})
		ended := create(t, m, sandbox.Request{Name: "ended"})
		woken := create(t, m, sandbox.Request{Name: "woken"})
		for _, name := range []string{"gone", "ended", "woken"} {
			settled(t, m, name, sandbox.Running)
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "woken")) })
		settled(t, m, "woken", sandbox.Stopped)
		w.engine.deafen()
		w.engine.Destroy(gone.ID)
		w.engine.Exit(ended.ID, 0, false)
		if err := w.engine.Start(t.Context(), woken.ID); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		settled(t, m, "gone", sandbox.Failed)
		settled(t, m, "ended", sandbox.Failed)
		settled(t, m, "woken", sandbox.Running)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "gone")) })
		settled(t, m, "gone", sandbox.Running)
	})
}

func TestReconcile_ADeleteBetweenItsTwoReadsLeavesNoRow(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		lab := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		w.fate.between("list", func() {
			if _, err := m.Delete(t.Context(), lab.Ref()); err != nil {
				t.Error(err)
			}
			if _, err := m.Wait(t.Context(), lab.Ref()); !fault.Is(err, fault.Gone) {
				t.Error(err)
			}
		})
		if err := m.Reconcile(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s, err := m.Sandbox(t.Context(), "lab"); !fault.Is(err, fault.NotFound) {
			t.Errorf("the deleted sandbox is there again: %+v, %v", s, err)
		}
		if left := m.Orphans(); len(left) != 0 {
			t.Errorf("the deleted sandbox is offered as an orphan: %+v", left)
		}
	})
}
