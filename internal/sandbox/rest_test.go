package sandbox_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

func TestFreeze_StandsStillUntilItIsUsed(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		got, err := m.Freeze(t.Context(), ref(t, m, "lab"), func() bool { return true })
		if err != nil || got.State != sandbox.Frozen || !w.engine.Frozen(s.ID) {
			t.Fatalf("%s, %v; frozen %v", got.State, err, w.engine.Frozen(s.ID))
		}
		pass(10 * time.Minute)
		settled(t, m, "lab", sandbox.Frozen)
		if got, err = m.Freeze(t.Context(), ref(t, m, "lab"), nil); err != nil || got.State != sandbox.Frozen {
			t.Errorf("once more: %s, %v", got.State, err)
		}
		if got, err = m.Awake(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Running || w.engine.Frozen(s.ID) {
			t.Errorf("used: %s, %v; frozen %v", got.State, err, w.engine.Frozen(s.ID))
		}
		if w.engine.Starts(s.ID) != 1 {
			t.Error("it was started again")
		}
	})
}

func TestFreeze_OnlyWhatRunsAndIsStill(t *testing.T) {
	busy := func() bool { return false }
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Asleep, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, state)
			still := busy
			if state != sandbox.Running {
				still = nil
			}
			for what, do := range map[string]func() (sandbox.Sandbox, error){
				"freeze": func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), ref(t, m, "lab"), still) },
				"sleep":  func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), still) },
			} {
				if got, err := do(); err != nil || got.State != state || w.engine.Calls(sandboxtest.OpFreeze) != 0 {
					t.Errorf("%s of one that is %s: %s, %v", what, state, got.State, err)
				}
			}
			settled(t, m, s.Name, state)
		})
	}
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		if _, err := m.Freeze(t.Context(), ref(t, m, "nobody"), nil); !fault.Is(err, fault.Gone) {
			t.Errorf("freeze: %v", err)
		}
		if _, err := m.Sleep(t.Context(), ref(t, m, "nobody"), nil); !fault.Is(err, fault.Gone) {
			t.Errorf("sleep: %v", err)
		}
	})
}

func TestFreeze_AnEngineThatCannotSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.stiff = true
		m, end := w.run(t)
		defer end()
		s := brought(t, m, sandbox.Running)
		if _, err := m.Freeze(t.Context(), ref(t, m, "lab"), nil); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "cannot freeze") {
			t.Errorf("told %v", err)
		}
		pass(time.Second)
		w.engine.FreezeOutside(s.ID) // from outside
		synctest.Wait()
		settled(t, m, "lab", sandbox.Frozen)
		if got, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Running || w.engine.Frozen(s.ID) {
			t.Errorf("used: %s, %v", got.State, err)
		}
	})
}

// TestRest_AUseAtAnyMomentFindsItRunningAndKeepsItSo lets a use come at every tenth of a second around a freeze and a
// sleep, whose engine calls take a second each.
func TestRest_AUseAtAnyMomentFindsItRunningAndKeepsItSo(t *testing.T) {
	for what, rest := range map[string]func(t *testing.T, m *sandbox.Manager, still func() bool) error{
		"freeze": func(t *testing.T, m *sandbox.Manager, still func() bool) error {
			_, err := m.Freeze(t.Context(), ref(t, m, "lab"), still)
			return err
		},
		"sleep": func(t *testing.T, m *sandbox.Manager, still func() bool) error {
			_, err := m.Sleep(t.Context(), ref(t, m, "lab"), still)
			return err
		},
		"freeze, then sleep": func(t *testing.T, m *sandbox.Manager, still func() bool) error {
			_, err := m.Freeze(t.Context(), ref(t, m, "lab"), still)
			_, sleepErr := m.Sleep(t.Context(), ref(t, m, "lab"), still)
			return errors.Join(err, sleepErr)
		},
	} {
		for at := time.Duration(0); at <= 5*time.Second; at += 100 * time.Millisecond {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				s := brought(t, m, sandbox.Running)
				var used atomic.Bool
				ended := make(chan error)
				go func() {
					pass(time.Second)
					ended <- rest(t, m, func() bool { return !used.Load() })
				}()
				pass(at)
				useFrom(t, w, m, s, &used, what+" at "+at.String())
				if err := <-ended; err != nil {
					t.Errorf("%s at %s: %v", what, at, err)
				}
				stays(t, w, m, s, what+" at "+at.String())
			})
		}
	}
}

// useFrom uses the sandbox: said first, woken second.
func useFrom(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, used *atomic.Bool, when string) {
	t.Helper()
	used.Store(true)
	if got, err := m.Awake(t.Context(), ref(t, m, s.Name)); err != nil || got.State != sandbox.Running {
		t.Errorf("%s: %s, %v", when, got.State, err)
	}
	if i, _ := w.engine.instance(t, s.ID); !i.Running {
		t.Errorf("%s: it is given, and the engine has %+v", when, i)
	}
}

// stays wants the sandbox to run, in the row and on the engine, now and later.
func stays(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, when string) {
	t.Helper()
	for range 3 {
		now, err := m.Wait(t.Context(), ref(t, m, s.Name))
		if i, _ := w.engine.instance(t, s.ID); err != nil || now.State != sandbox.Running || !i.Running || i.Frozen {
			t.Errorf("%s: used, and it is %s, %v; the engine has %+v", when, now.State, err, i)
		}
		pass(time.Minute)
	}
}

// TestRest_AUseRightAfterALookIsNotLeftBehind lets the use come from within the question whether it is still, right
// after the answer.
func TestRest_AUseRightAfterALookIsNotLeftBehind(t *testing.T) {
	for what, rest := range map[string]func(*sandbox.Manager, *testing.T, func() bool) (sandbox.Sandbox, error){
		"freeze": func(m *sandbox.Manager, t *testing.T, still func() bool) (sandbox.Sandbox, error) {
			return m.Freeze(t.Context(), ref(t, m, "lab"), still)
		},
		"sleep": func(m *sandbox.Manager, t *testing.T, still func() bool) (sandbox.Sandbox, error) {
			return m.Sleep(t.Context(), ref(t, m, "lab"), still)
		},
	} {
		for _, look := range []int32{1, 2} {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				s := brought(t, m, sandbox.Running)
				var used atomic.Bool
				var looks atomic.Int32
				woken := make(chan struct{})
				if _, err := rest(m, t, func() bool {
					answer := !used.Load()
					if looks.Add(1) == look {
						go func() {
							defer close(woken)
							useFrom(t, w, m, s, &used, what)
						}()
						for !used.Load() {
							pass(time.Nanosecond)
						}
					}
					return answer
				}); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				<-woken
				stays(t, w, m, s, what)
				if started := w.engine.Starts(s.ID) - 1; look == 1 && started != 0 {
					t.Errorf("%s: it was ended under its user", what)
				}
			})
		}
	}
}

func TestFreeze_ThatTheEngineRefusesLeavesTheTruth(t *testing.T) {
	refusal := errors.New("no freezer cgroup")
	for what, c := range map[string]struct {
		bend func(w *world, id string)
		want sandbox.State
	}{
		"refused":         {func(w *world, _ string) { w.engine.refuse(sandboxtest.OpFreeze, refusal) }, sandbox.Running},
		"done, unheard":   {func(w *world, _ string) { w.engine.CutAfter(sandboxtest.AfterFreeze) }, sandbox.Frozen},
		"ended meanwhile": {func(w *world, id string) { w.engine.deafen(); w.engine.Exit(id, 1, false) }, sandbox.Asleep},
		"gone meanwhile":  {func(w *world, id string) { w.engine.deafen(); w.engine.Destroy(id) }, sandbox.Failed},
		"engine gone": {func(w *world, _ string) {
			w.engine.refuse(sandboxtest.OpFreeze, refusal)
			w.engine.refuse(sandboxtest.OpList, refusal)
		}, sandbox.Frozen}, // wakes on use
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, sandbox.Running)
			c.bend(w, s.ID)
			if _, err := m.Freeze(t.Context(), ref(t, m, "lab"), nil); err == nil {
				t.Errorf("%s: nobody is told", what)
			}
			settled(t, m, "lab", c.want)
			w.engine.refuse(sandboxtest.OpFreeze, nil)
			w.engine.refuse(sandboxtest.OpList, nil)
			pass(10 * time.Minute)
			if what == "engine gone" {
				c.want = sandbox.Running
			}
			settled(t, m, "lab", c.want)
		})
	}
}

func TestFreeze_AThawUnderAUserIsTriedAgain(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		w.engine.Fail(sandboxtest.OpThaw, errors.New("busy"), errors.New("busy"))
		looks := 0
		got, err := m.Freeze(t.Context(), ref(t, m, "lab"), func() bool { looks++; return looks == 1 })
		if err != nil || got.State != sandbox.Running || w.engine.Frozen(s.ID) {
			t.Errorf("%s, %v; frozen %v", got.State, err, w.engine.Frozen(s.ID))
		}
	})
}

func TestSleep_EndsItsProcessesAndWakesOnUse(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Frozen} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, state)
			start := time.Now()
			if got, err := m.Sleep(t.Context(), ref(t, m, "lab"), func() bool { return true }); err != nil || got.State != sandbox.Sleeping || time.Since(start) > 0 {
				t.Fatalf("%s, %v after %s", got.State, err, time.Since(start))
			}
			settled(t, m, "lab", sandbox.Asleep)
			if i, _ := w.engine.instance(t, s.ID); i.Running {
				t.Error("the engine still runs it")
			}
			pass(10 * time.Minute)
			settled(t, m, "lab", sandbox.Asleep)
			if got, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Running {
				t.Errorf("used: %s, %v", got.State, err)
			}
		})
	}
}

func TestSleep_WaitsForItsTurn(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Running)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), ref(t, m, "lab")) })
		if got, err := m.Sleep(t.Context(), ref(t, m, "lab"), nil); err != nil || got.State != sandbox.Sleeping {
			t.Errorf("%s, %v", got.State, err)
		}
	})
}

func TestSleep_ThatTheEngineDoesNotFinishIsToldTriedAgainAndEndedByUse(t *testing.T) {
	for _, use := range []bool{false, true} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, sandbox.Running)
			w.engine.refuse(sandboxtest.OpStop, fault.New(fault.Unavailable, "The engine is away."))
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), nil) })
			settled(t, m, "lab", sandbox.Sleeping)
			if !strings.Contains(m.Progress(s.ID).Detail, "The engine is away.") {
				t.Errorf("nobody is told why: %+v", m.Progress(s.ID))
			}
			w.engine.refuse(sandboxtest.OpStop, nil)
			want := sandbox.Asleep
			if use {
				want = sandbox.Running
				mustDo(t, func() (sandbox.Sandbox, error) { return m.Awake(t.Context(), ref(t, m, "lab")) })
				if n := w.engine.Starts(s.ID); n != 2 {
					t.Errorf("its container was started %d times: it may end yet, for the stop that was cut off", n)
				}
			}
			pass(2 * time.Minute)
			settled(t, m, "lab", want)
			if p := m.Progress(s.ID); p != (sandbox.Progress{}) {
				t.Errorf("progress is left over: %+v", p)
			}
		})
	}
}

func TestPower_FromEveryKindOfRest(t *testing.T) {
	for _, from := range []sandbox.State{sandbox.Frozen, sandbox.Sleeping, sandbox.Asleep} {
		for what, c := range map[string]struct {
			do   func(*sandbox.Manager, *testing.T) (sandbox.Sandbox, error)
			want sandbox.State // "" for gone
		}{
			"start": {func(m *sandbox.Manager, t *testing.T) (sandbox.Sandbox, error) {
				return m.Start(t.Context(), ref(t, m, "lab"))
			}, sandbox.Running},
			"stop": {func(m *sandbox.Manager, t *testing.T) (sandbox.Sandbox, error) {
				return m.Stop(t.Context(), ref(t, m, "lab"))
			}, sandbox.Stopped},
			"restart": {func(m *sandbox.Manager, t *testing.T) (sandbox.Sandbox, error) {
				return m.Restart(t.Context(), ref(t, m, "lab"))
			}, sandbox.Running},
			"delete": {func(m *sandbox.Manager, t *testing.T) (sandbox.Sandbox, error) {
				return m.Delete(t.Context(), ref(t, m, "lab"))
			}, ""},
			"rename": {func(m *sandbox.Manager, t *testing.T) (sandbox.Sandbox, error) {
				return m.Rename(t.Context(), ref(t, m, "lab"), "new")
			}, from},
		} {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				if from == sandbox.Sleeping {
					brought(t, m, sandbox.Running)
					mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), nil) })
				} else {
					brought(t, m, from)
				}
				if _, err := c.do(m, t); err != nil {
					t.Errorf("%s of one that is %s: %v", what, from, err)
				}
				s, err := m.Wait(t.Context(), ref(t, m, "lab"))
				if c.want == "" {
					if !fault.Is(err, fault.Gone) {
						t.Errorf("%s of one that is %s: it is %s, %v", what, from, s.State, err)
					}
					return
				}
				want := c.want
				if want == sandbox.Sleeping {
					want = sandbox.Asleep
				}
				settled(t, m, "lab", want)
				pass(5 * time.Minute)
				settled(t, m, "lab", want)
			})
		}
	}
}

func TestStop_OfOneAsleepNeedsNoEngine(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		calls := w.engine.Calls(sandboxtest.OpStop)
		if got, err := m.Stop(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Stopped || w.engine.Calls(sandboxtest.OpStop) != calls {
			t.Errorf("%s, %v", got.State, err)
		}
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Conflict) {
			t.Errorf("used: %v", err)
		}
	})
}

func TestResting_TheNearestWordCounts(t *testing.T) {
	const minute = catalog.After(time.Minute)
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := create(t, m, sandbox.Request{Name: "lab", Rest: catalog.Rest{StopAfter: 9 * minute}})
		want := func(when string, freeze catalog.After, freezeFrom string, stop catalog.After, stopFrom string) {
			t.Helper()
			pass(2 * time.Second) // a template may be believed for a moment
			s, err := m.Wait(t.Context(), ref(t, m, "lab"))
			got := m.Resting(s)
			if err != nil || got != (sandbox.Resting{Rest: catalog.Rest{FreezeAfter: freeze, StopAfter: stop}, FreezeFrom: freezeFrom, StopFrom: stopFrom}) {
				t.Errorf("%s: %+v, %v", when, got, err)
			}
		}
		want("at first", 15*minute, "server", 9*minute, "sandbox")
		w.templates.change(func(c *templates) { c.rest = catalog.Rest{FreezeAfter: catalog.Never, StopAfter: minute} })
		want("with a template's", catalog.Never, "template", 9*minute, "sandbox")
		mustDo(t, func() (sandbox.Sandbox, error) {
			return m.SetRest(t.Context(), ref(t, m, "lab"), restOf(catalog.Rest{}))
		})
		want("with none of its own", catalog.Never, "template", minute, "template")
		mustDo(t, func() (sandbox.Sandbox, error) {
			return m.SetRest(t.Context(), ref(t, m, "lab"), restOf(catalog.Rest{FreezeAfter: 3 * minute, StopAfter: catalog.Never}))
		})
		want("set", 3*minute, "sandbox", catalog.Never, "sandbox")
		mustDo(t, func() (sandbox.Sandbox, error) {
			return m.SetRest(t.Context(), ref(t, m, "lab"), restOf(catalog.Rest{}))
		})
		w.templates.change(func(c *templates) { c.broken = true })
		want("with a broken template", 15*minute, "server", catalog.Never, "server")
		if got := m.Resting(sandbox.Sandbox{Spec: sandbox.Spec{Image: "debian"}}); got.FreezeFrom != "server" || got.FreezeAfter != 15*minute {
			t.Errorf("of a plain image: %+v", got)
		}
		settled(t, m, s.Name, sandbox.Running)
	})
}

// restOf is the change to these times.
func restOf(r catalog.Rest) sandbox.RestChange {
	return sandbox.RestChange{FreezeAfter: &r.FreezeAfter, StopAfter: &r.StopAfter}
}

// TestSetRest_ChangesOfOneTimeEachDoNotUndoEachOther lines two up behind a start, so that neither can see the other's.
func TestSetRest_ChangesOfOneTimeEachDoNotUndoEachOther(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Start(t.Context(), ref(t, m, "lab")) })
		freeze, stop := catalog.After(time.Hour), catalog.Never
		for _, c := range []sandbox.RestChange{{FreezeAfter: &freeze}, {StopAfter: &stop}, {}} {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.SetRest(t.Context(), ref(t, m, "lab"), c) })
		}
		s, err := m.Wait(t.Context(), ref(t, m, "lab"))
		if want := (catalog.Rest{FreezeAfter: freeze, StopAfter: stop}); err != nil || s.Rest != want {
			t.Errorf("%+v, %v, want %+v", s.Rest, err, want)
		}
	})
}

func TestSetRest_OutOfBoundsNamesTheField(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		for field, r := range map[string]catalog.Rest{
			"freeze_after": {FreezeAfter: catalog.After(time.Millisecond)},
			"stop_after":   {StopAfter: catalog.After(400 * 24 * time.Hour)},
		} {
			if _, err := m.SetRest(t.Context(), ref(t, m, "lab"), restOf(r)); fault.FieldOf(err) != field || !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", field, err)
			}
			if _, _, err := m.Create(t.Context(), sandbox.Request{Template: "base", Rest: r}); fault.FieldOf(err) != field {
				t.Errorf("create with %s: %v", field, err)
			}
		}
		got, err := m.SetRest(t.Context(), ref(t, m, "lab"), restOf(catalog.Rest{StopAfter: -5}))
		if err != nil || got.Rest.StopAfter != catalog.Never || got.State != sandbox.Asleep {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestLeave_IsToldOnceWhileTheProcessesStillRun(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Asleep, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			brought(t, m, state)
			if n := w.left.Load(); n != 1 {
				t.Errorf("%s: told %d times", state, n)
			}
			if state == sandbox.Frozen { // from there nothing more can be seen
				mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), nil) })
				settled(t, m, "lab", sandbox.Asleep)
			}
			if n := w.left.Load(); n != 1 {
				t.Errorf("%s: told %d times in the end", state, n)
			}
		})
	}
}
