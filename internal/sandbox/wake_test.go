package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// brought makes a sandbox "lab" and brings it into a state.
func brought(t *testing.T, m *sandbox.Manager, state sandbox.State) sandbox.Sandbox {
	t.Helper()
	create(t, m, sandbox.Request{Name: "lab"})
	settled(t, m, "lab", sandbox.Running)
	switch state {
	case sandbox.Frozen:
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), ref(t, m, "lab"), nil) })
	case sandbox.Asleep:
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), nil) })
	case sandbox.Stopped:
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) })
	}
	return settled(t, m, "lab", state)
}

// awake calls Awake so many times at once and gives what each has got.
func awake(t *testing.T, m *sandbox.Manager, times int) (states []sandbox.State, errs []error) {
	t.Helper()
	states, errs = make([]sandbox.State, times), make([]error, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			s, err := m.Awake(t.Context(), ref(t, m, "lab"))
			states[i], errs[i] = s.State, err
		})
	}
	all.Wait()
	return states, errs
}

func TestAwake_SaysWhyOneDoesNotRun(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab"})
		if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || s.State != sandbox.Running {
			t.Fatalf("on its way up: %s, %v", s.State, err)
		}
		if _, err := m.Stop(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "Start it first") {
			t.Errorf("stopped: %v", err)
		}
		if _, err := m.Awake(t.Context(), ref(t, m, "nobody")); !fault.Is(err, fault.Gone) {
			t.Errorf("unknown: %v", err)
		}
		w.engine.refuse(sandboxtest.OpStart, errors.New("secret detail"))
		if _, err := m.Start(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Conflict) || strings.Contains(fault.Message(err), "secret") {
			t.Errorf("failed: %v", err)
		}
	})
}

func TestAwake_WaitsForAStartInLine(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		if _, err := m.Stop(t.Context(), s.Ref()); err != nil || m.Starts(s.ID) {
			t.Fatalf("stop: %v; starts %v", err, m.Starts(s.ID))
		}
		go func() { _, _ = m.Start(t.Context(), s.Ref()) }()
		synctest.Wait()
		if now, _ := m.Current(t.Context(), s.Ref()); now.State != sandbox.Stopping || !m.Starts(s.ID) {
			t.Errorf("%s, starts %v", now.State, m.Starts(s.ID))
		}
		if now, err := m.Awake(t.Context(), s.Ref()); err != nil || now.State != sandbox.Running {
			t.Errorf("%s, %v", now.State, err)
		}
		if _, err := m.Wait(t.Context(), s.Ref()); err != nil || m.Starts(s.ID) {
			t.Errorf("%v; it still starts", err)
		}
	})
}

func TestAwake_OneThatRunsCostsNoQuestionToAnybody(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Running)
		w.store.FailNextOf("ByName", errors.New("asked"))
		w.engine.refuse(sandboxtest.OpList, errors.New("asked"))
		start := time.Now()
		if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || s.State != sandbox.Running || time.Since(start) != 0 {
			t.Errorf("%s, %v after %s", s.State, err, time.Since(start))
		}
	})
}

func TestAwake_ManyWaitersShareOneStartOrThaw(t *testing.T) {
	for state, op := range map[sandbox.State]sandboxtest.Op{sandbox.Asleep: sandboxtest.OpStart, sandbox.Frozen: sandboxtest.OpThaw} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, state)
			calls, starts, begun := w.engine.Calls(op), w.engine.Starts(s.ID), time.Now()
			states, errs := awake(t, m, 100)
			for i, err := range errs {
				if err != nil || states[i] != sandbox.Running {
					t.Fatalf("waiter %d of one that was %s: %s, %v", i, state, states[i], err)
				}
			}
			if n := w.engine.Calls(op) - calls; n != 1 {
				t.Errorf("%d calls to wake one that was %s", n, state)
			}
			if more := w.engine.Starts(s.ID) - starts; (more == 1) != (state == sandbox.Asleep) {
				t.Errorf("%d starts of one that was %s", more, state)
			}
			if took := time.Since(begun); took != time.Second || w.engine.Frozen(s.ID) {
				t.Errorf("the last waited %s; frozen %v", took, w.engine.Frozen(s.ID))
			}
		})
	}
}

func TestAwake_ACallerThatLeavesDoesNotEndTheWake(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Asleep, sandbox.Frozen} {
		play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
			brought(t, m, state)
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := m.Awake(short, ref(t, m, "lab")); !fault.Is(err, fault.Timeout) {
				t.Errorf("a caller in a hurry: %v", err)
			}
			settled(t, m, "lab", sandbox.Running)
		})
	}
}

func TestAwake_WaitersOfAFailedWakeHearTheCause(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		w.engine.refuse(sandboxtest.OpStart, fault.New(fault.Invalid, "No such device."))
		_, errs := awake(t, m, 10)
		_, later := m.Awake(t.Context(), ref(t, m, "lab"))
		for _, err := range append(errs, later) {
			if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "No such device.") {
				t.Fatalf("told %v", err)
			}
		}
		settled(t, m, "lab", sandbox.Failed)
	})
}

func TestAwake_AnEngineThatIsAwayLeavesItToTheNextUse(t *testing.T) {
	for state, op := range map[sandbox.State]sandboxtest.Op{sandbox.Asleep: sandboxtest.OpStart, sandbox.Frozen: sandboxtest.OpThaw} {
		for what, away := range map[string]error{
			"away": fault.New(fault.Unavailable, "The engine is away."),
			"late": fault.New(fault.Timeout, "The engine is slow."),
		} {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				brought(t, m, state)
				w.engine.Fail(op, away) // once, after a second
				_, errs := awake(t, m, 10)
				for _, err := range errs {
					if fault.KindOf(err) != fault.KindOf(away) {
						t.Errorf("%s, %s: %v", state, what, err)
					}
				}
				if s, _ := m.Sandbox(t.Context(), "lab"); !s.State.Resting() {
					t.Errorf("%s, %s: it is %s", state, what, s.State)
				}
				if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || s.State != sandbox.Running {
					t.Errorf("%s, %s, when it is back: %s, %v", state, what, s.State, err)
				}
			})
		}
	}
}

func TestAwake_AFullHostLeavesItAsleepAndOneFrozenNeedsNoRoom(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Asleep)
		starts := w.engine.Starts(s.ID)
		w.full(fault.New(fault.Unavailable, "The host is full."))
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Unavailable) || fault.Message(err) != "The host is full." {
			t.Errorf("told %v", err)
		}
		settled(t, m, "lab", sandbox.Asleep)
		if _, err := m.Start(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("start: %v", err)
		}
		if settled(t, m, "lab", sandbox.Asleep); w.engine.Starts(s.ID) != starts {
			t.Error("it was started")
		}
		w.full(nil)
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil {
			t.Errorf("with room again: %v", err)
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), ref(t, m, "lab"), nil) })
		w.full(fault.New(fault.Unavailable, "The host is full."))
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil {
			t.Errorf("a frozen one: %v", err)
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Restart(t.Context(), ref(t, m, "lab")) })
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestAwake_ThatFailsIsToldToSubscribers(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Asleep)
		events := m.Subscribe()
		defer events.Close()
		w.full(fault.New(fault.Unavailable, "The host is full."))
		awake(t, m, 3)
		synctest.Wait()
		failed := 0
		for len(events.C) > 0 {
			if e := <-events.C; e.Failed != nil {
				failed++
				if e.Sandbox.ID != s.ID || fault.Message(e.Failed) != "The host is full." {
					t.Errorf("told of %+v", e)
				}
			}
		}
		if failed == 0 {
			t.Error("nothing is told")
		}
		w.full(nil)
		awake(t, m, 1)
		for len(events.C) > 0 {
			if e := <-events.C; e.Failed != nil {
				t.Errorf("a wake that did not fail: %v", e.Failed)
			}
		}
	})
}

func TestAwake_TellsDeletedFromUnknown(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Asleep)
		var told error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, told = m.Awake(t.Context(), ref(t, m, "lab"))
		}()
		synctest.Wait()
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Delete(t.Context(), ref(t, m, "lab")) })
		<-done
		if !fault.Is(told, fault.Gone) {
			t.Errorf("who waited: %v", told)
		}
		if _, err := m.Wait(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Gone) {
			t.Fatal(err)
		}
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Gone) {
			t.Errorf("who comes later: %v", err)
		}
		if _, err := m.Sandbox(t.Context(), "lab"); !fault.Is(err, fault.NotFound) {
			t.Errorf("found: %v", err)
		}
		if g, err := m.Tombstone(t.Context(), "lab"); err != nil || g.Name != "lab" {
			t.Errorf("tombstone %+v, %v", g, err)
		}
		create(t, m, sandbox.Request{Name: "lab"})
		if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || s.State != sandbox.Running {
			t.Errorf("a new one of that name: %s, %v", s.State, err)
		}
	})
}

func TestAwake_WaitsForWhatIsOnItsWay(t *testing.T) {
	for what, begin := range map[string]func(t *testing.T, m *sandbox.Manager) error{
		"restart": func(t *testing.T, m *sandbox.Manager) error {
			_, err := m.Restart(t.Context(), ref(t, m, "lab"))
			return err
		},
		"two restarts": func(t *testing.T, m *sandbox.Manager) error {
			time.AfterFunc(500*time.Millisecond, func() { _, _ = m.Restart(t.Context(), ref(t, m, "lab")) })
			_, err := m.Restart(t.Context(), ref(t, m, "lab"))
			return err
		},
		"sleep": func(t *testing.T, m *sandbox.Manager) error {
			_, err := m.Sleep(t.Context(), ref(t, m, "lab"), nil)
			return err
		},
		"delete and create": func(t *testing.T, m *sandbox.Manager) error {
			if _, err := m.Delete(t.Context(), ref(t, m, "lab")); err != nil {
				return err
			}
			_, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base"})
			return err
		},
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			brought(t, m, sandbox.Running)
			if err := begin(t, m); err != nil {
				t.Fatal(err)
			}
			if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || s.State != sandbox.Running {
				t.Errorf("%s: %s, %v", what, s.State, err)
			}
		})
	}
}

func TestAwake_TheEndOfSandboxdIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		brought(t, m, sandbox.Asleep)
		done := make(chan error)
		go func() {
			_, err := m.Awake(t.Context(), ref(t, m, "lab"))
			done <- err
		}()
		synctest.Wait()
		go end()
		if err := <-done; !fault.Is(err, fault.Unavailable) {
			t.Errorf("who waited: %v", err)
		}
		synctest.Wait()
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("who comes later: %v", err)
		}
		m, end = w.run(t)
		defer end()
		pass(10 * time.Second)
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestAwake_AFrozenOneThatTheEngineLostIsStarted(t *testing.T) {
	for what, lose := range map[string]func(w *world, id string){
		"ended":   func(w *world, id string) { w.engine.Exit(id, 137, false) },
		"removed": func(w *world, id string) { w.engine.Destroy(id) },
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, sandbox.Frozen)
			w.engine.deafen()
			lose(w, s.ID)
			if got, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil || got.State != sandbox.Running {
				t.Fatalf("%s: %s, %v", what, got.State, err)
			}
			if i, _ := w.engine.instance(t, s.ID); !i.Running || i.Frozen {
				t.Errorf("%s: the engine has %+v", what, i)
			}
		})
	}
}

func TestAwake_AThawThatIsNotConfirmedIsLookedAt(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Frozen)
		w.engine.CutAfter(sandboxtest.AfterThaw)
		if s, err := m.Awake(t.Context(), ref(t, m, "lab")); err != nil && s.State != sandbox.Running {
			t.Errorf("thawed without a word: %s, %v", s.State, err)
		}
		settled(t, m, "lab", sandbox.Running)
	})
}

func TestAwake_AThawedOneWhoseGuestIsSilentIsNotEnded(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Frozen)
		w.guests.silence("lab", true)
		if _, err := m.Awake(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Timeout) {
			t.Errorf("told %v", err)
		}
		settled(t, m, "lab", sandbox.Running)
		if i, _ := w.engine.instance(t, s.ID); !i.Running || i.Frozen {
			t.Errorf("the engine has %+v", i)
		}
	})
}

func TestAwake_ChangesArePublishedOnceEach(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		brought(t, m, sandbox.Running)
		events := m.Subscribe()
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Freeze(t.Context(), ref(t, m, "lab"), nil) })
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Awake(t.Context(), ref(t, m, "lab")) })
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Sleep(t.Context(), ref(t, m, "lab"), nil) })
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Awake(t.Context(), ref(t, m, "lab")) })
		synctest.Wait()
		events.Close()
		var got []sandbox.State
		for e := range events.C {
			if len(got) == 0 || got[len(got)-1] != e.Sandbox.State {
				got = append(got, e.Sandbox.State)
			}
		}
		want := []sandbox.State{sandbox.Frozen, sandbox.Running, sandbox.Sleeping, sandbox.Asleep, sandbox.Starting, sandbox.Running}
		if !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	})
}

// TestAwake_AThawThatCannotBeKeptLetsItsUserIn has a disk that is full at the moment when the row would be written.
func TestAwake_AThawThatCannotBeKeptLetsItsUserIn(t *testing.T) {
	for n := range 5 {
		var struck string
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			brought(t, m, sandbox.Frozen)
			w.fate.arm(n, false, fault.New(fault.Unavailable, "The disk is full."))
			got, err := m.Awake(t.Context(), ref(t, m, "lab"))
			if struck = w.fate.rest(); struck != "update to running" {
				return
			}
			if err != nil || got.State != sandbox.Running {
				t.Errorf("told %s, %v", got.State, err)
			}
			pass(2 * time.Minute)
			settled(t, m, "lab", sandbox.Running)
		})
		if struck == "update to running" {
			return
		}
	}
	t.Error("the row was not written")
}

func TestThaw_OnlyWhatIsFrozenAndUsed(t *testing.T) {
	used, unused := func() bool { return true }, func() bool { return false }
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := brought(t, m, state)
			if got, err := m.Thaw(t.Context(), ref(t, m, "lab"), unused); err != nil || got.State != state {
				t.Errorf("unused and %s: %s, %v", state, got.State, err)
			}
			want := state
			if state == sandbox.Frozen {
				want = sandbox.Running
			}
			got, err := m.Thaw(t.Context(), ref(t, m, "lab"), used)
			if err != nil || got.State != want || w.engine.Frozen(s.ID) || w.engine.Starts(s.ID) != 1 {
				t.Errorf("used and %s: %s, %v", state, got.State, err)
			}
			settled(t, m, "lab", want)
		})
	}
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		if _, err := m.Thaw(t.Context(), ref(t, m, "nobody"), used); !fault.Is(err, fault.Gone) {
			t.Errorf("told %v", err)
		}
	})
}

// TestThaw_DuringAFreezeThatIsUndoneFindsItRunning asks for a thaw while a freeze is under way, whose second question
// hears of the use.
func TestThaw_DuringAFreezeThatIsUndoneFindsItRunning(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		var used atomic.Bool
		ended := make(chan error, 1)
		go func() {
			_, err := m.Freeze(t.Context(), ref(t, m, "lab"), func() bool { return !used.Load() })
			ended <- err
		}()
		pass(500 * time.Millisecond)
		used.Store(true)
		if got, err := m.Thaw(t.Context(), ref(t, m, "lab"), used.Load); err != nil || got.State != sandbox.Running {
			t.Errorf("%s, %v", got.State, err)
		}
		if err := <-ended; err != nil || w.engine.Calls(sandboxtest.OpThaw) != 1 {
			t.Errorf("freeze: %v; %d thaws", err, w.engine.Calls(sandboxtest.OpThaw))
		}
		stays(t, w, m, s, "thawed")
	})
}

func TestThaw_OfWhatWasPausedFromOutside(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := brought(t, m, sandbox.Running)
		pass(time.Second)
		w.engine.FreezeOutside(s.ID)
		synctest.Wait()
		settled(t, m, "lab", sandbox.Frozen)
		if _, err := m.Thaw(t.Context(), ref(t, m, "lab"), func() bool { return true }); err != nil {
			t.Error(err)
		}
		stays(t, w, m, s, "thawed")
	})
}
