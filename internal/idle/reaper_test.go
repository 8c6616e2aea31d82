package idle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// wantLog checks the states that the box has been in, one after the other.
func (w *world) wantLog(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("the states were %q, want %q", w.log, want)
	}
}

func TestReaper_UseBetweenDueAndFreezeKeepsItUp(t *testing.T) {
	for name, use := range map[string]func(*world){
		"a request in flight":    func(w *world) { w.tracker.Begin(box, page) },
		"a moment that is over":  func(w *world) { w.tracker.Touch(box, page) },
		"a request that is over": func(w *world) { w.tracker.Begin(box, page).End() },
		"a hold":                 func(w *world) { w.place("no", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world) {
				asked := false
				w.bend(func(f *fake) {
					f.before = func(_ string, still func() bool) {
						if !asked && still() {
							asked = true
							use(w)
						}
					}
				})
				w.pass(20 * time.Minute)
				if !asked {
					t.Error("it was never due")
				}
				w.wantLog()
			})
		})
	}
}

func TestReaper_UseBetweenDueAndSleepKeepsItFrozen(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(time.Hour)
		w.bend(func(f *fake) { f.before = func(string, func() bool) { w.tracker.Touch(box, page) } })
		w.pass(4*time.Hour + 10*time.Minute)
		w.wantLog("15m0s frozen")
	})
}

func TestReaper_ShorterTimeCountsAtOnce(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(10*time.Minute + 1100*time.Millisecond)
		w.mu.Lock()
		s := w.rows[box]
		s.Rest.FreezeAfter = catalog.After(5 * time.Minute)
		w.rows[box] = s
		w.mu.Unlock()
		w.bus.Publish(sandbox.Event{Sandbox: s})
		w.pass(12 * time.Minute)
		// It is due at once, and then asked for ten seconds whether it works.
		w.wantLog("10m11.1s frozen")
	})
}

func TestReaper_ThawWithoutUseIsKeptUpForAWhile(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(2 * time.Hour)
		w.move(box, sandbox.Running)
		w.pass(3 * time.Hour)
		w.wantLog("15m0s frozen", "2h0m0s running", "2h0m30s frozen")
	})
}

func TestReaper_StartIsAFreshStart(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(5 * time.Hour)
		w.move(box, sandbox.Starting)
		w.move(box, sandbox.Running)
		w.pass(6 * time.Hour)
		w.wantLog("15m0s frozen", "4h0m3s asleep", "5h0m0s running", "5h15m0s frozen")
	})
}

func TestReaper_RestartByItsOwnerIsAFreshStart(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(14 * time.Minute)
		w.move(box, sandbox.Stopping)
		w.move(box, sandbox.Stopped)
		w.move(box, sandbox.Starting)
		w.move(box, sandbox.Running)
		w.pass(time.Hour)
		w.wantLog("14m0s stopped", "14m0s running", "29m0s frozen")
	})
}

func TestReaper_WhatCannotBeFrozenIsAskedOnce(t *testing.T) {
	within(t, nil, func(w *world) {
		tries := 0
		w.bend(func(f *fake) { f.noFreezer = true; f.tries = &tries })
		w.pass(3 * time.Hour)
		if tries != 1 {
			t.Errorf("%d tries to freeze, want 1", tries)
		}
		if o := w.reaper.Outlook(w.row(box)); !o.FreezesAt.IsZero() || o.StopsAt.Sub(w.began) != 4*time.Hour {
			t.Errorf("outlook %+v", o)
		}
		w.bend(func(f *fake) { f.noFreezer = false })
		w.move(box, sandbox.Starting)
		w.move(box, sandbox.Running)
		w.pass(4 * time.Hour)
		w.wantLog("3h0m0s running", "3h15m0s frozen")
	})
}

func TestReaper_EngineThatFailsIsTriedAgainLater(t *testing.T) {
	within(t, nil, func(w *world) {
		w.bend(func(f *fake) { f.freezing = fault.New(fault.Internal, "No.") })
		w.pass(16 * time.Minute)
		w.bend(func(f *fake) { f.freezing = nil })
		w.pass(20 * time.Minute)
		w.wantLog("16m15s frozen")
	})
}

func TestReaper_EngineThatCannotSayWhetherItWorksLeavesItUp(t *testing.T) {
	within(t, nil, func(w *world) {
		w.bend(func(f *fake) { f.uncounted = fault.New(fault.Unavailable, "No.") })
		w.pass(time.Hour)
		w.bend(func(f *fake) { f.uncounted = nil })
		w.pass(2 * time.Hour)
		// It is asked every second now, and has to answer for ten.
		w.wantLog("1h0m11s frozen")
	})
}

func TestReaper_EngineThatNeverCountsIsNotWaitedFor(t *testing.T) {
	within(t, nil, func(w *world) {
		w.bend(func(f *fake) { f.uncounted = fault.New(fault.Conflict, "This engine does not count.") })
		w.pass(time.Hour)
		w.wantLog("15m0s frozen")
	})
}

func TestReaper_DeletedIsForgotten(t *testing.T) {
	within(t, nil, func(w *world) {
		w.click(time.Minute)
		w.pass(2 * time.Minute)
		w.place("busy", 20*time.Hour)
		w.mu.Lock()
		s := w.rows[box]
		delete(w.rows, box)
		w.mu.Unlock()
		w.bus.Publish(sandbox.Event{Sandbox: s, Deleted: true})
		w.pass(3 * time.Minute)
		if got := w.tracker.Status(box); len(got.Because) > 0 || time.Since(got.Idle) > 0 {
			t.Errorf("something is left of it: %+v", got)
		}
		w.add(box, catalog.Rest{})
		w.pass(3*time.Minute + 5*time.Second)
		w.pass(20 * time.Minute)
		w.wantLog("18m5s frozen")
	})
}

func TestReaper_EventsThatAreMissedChangeNothing(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(5 * time.Hour)
		w.move(box, sandbox.Starting)
		for range 2000 {
			w.bus.Publish(sandbox.Event{Sandbox: w.row(box)})
		}
		w.move(box, sandbox.Running)
		w.pass(6 * time.Hour)
		w.wantLog("15m0s frozen", "4h0m3s asleep", "5h0m0s running", "5h15m0s frozen")
	})
}

func TestReaper_AskingIsDoneOnlyShortlyBeforeItIsDue(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(14*time.Minute - time.Second)
		w.mu.Lock()
		asked := w.asked
		w.mu.Unlock()
		if asked != 0 {
			t.Errorf("%d questions to engine and guest long before anything is due", asked)
		}
		w.pass(14 * time.Hour)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.asked == 0 || w.asked > 30 {
			t.Errorf("%d questions to engine and guest in all", w.asked)
		}
	})
}

func TestReaper_ManyAreDueAtOnce(t *testing.T) {
	bend := func(w *world) {
		for i := range 200 {
			w.add(fmt.Sprint("box-", i), catalog.Rest{})
		}
	}
	within(t, bend, func(w *world) {
		w.pass(15*time.Minute + time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, s := range w.rows {
			if s.State != sandbox.Frozen {
				t.Errorf("%s is %s", name, s.State)
			}
		}
	})
}

func TestSweep_AsksNothingOfThoseAsleep(t *testing.T) {
	within(t, nil, func(w *world) {
		w.move(box, sandbox.Asleep)
		w.pass(10 * time.Minute)
		w.bend(func(f *fake) { f.lists, f.asked = 0, 0 })
		report, err := w.reaper.Sweep(context.Background())
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil || report.Up != 0 || w.lists != 1 || w.asked != 0 {
			t.Errorf("%+v, %v, with %d lists and %d questions", report, err, w.lists, w.asked)
		}
	})
}

func TestSweep_ReportsWhatItHasDone(t *testing.T) {
	within(t, nil, func(w *world) {
		w.add("other", catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.After(15 * time.Minute)})
		w.end()
		w.tracker.Reset(box)
		reaper := idle.NewReaper(w.config)
		var frozen, slept []string
		for range 16 * 60 {
			report, err := reaper.Sweep(context.Background())
			if err != nil || time.Until(report.Next) < 200*time.Millisecond || time.Until(report.Next) > 5*time.Second {
				t.Fatalf("%+v, %v", report, err)
			}
			frozen, slept = append(frozen, report.Frozen...), append(slept, report.Slept...)
			elapse(time.Second)
		}
		if !slices.Equal(frozen, []string{"name-of-" + box}) || !slices.Equal(slept, []string{"name-of-other"}) {
			t.Errorf("frozen %v, slept %v", frozen, slept)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		w.bend(func(f *fake) { f.listing = context.Canceled })
		if _, err := reaper.Sweep(gone); err == nil {
			t.Error("a list that cannot be read is no error")
		}
	})
}

func TestOutlook_SaysWhatIsAhead(t *testing.T) {
	within(t, nil, func(w *world) {
		check := func(what string, because int, freezes, stops time.Duration) {
			t.Helper()
			synctest.Wait()
			o := w.reaper.Outlook(w.row(box))
			since := func(at time.Time) time.Duration {
				if at.IsZero() {
					return 0
				}
				return at.Sub(w.began)
			}
			if len(o.Because) != because || since(o.FreezesAt) != freezes || since(o.StopsAt) != stops {
				t.Errorf("%s: %v, freezes at %s, stops at %s", what, o.Because, since(o.FreezesAt), since(o.StopsAt))
			}
		}
		check("fresh", 0, 15*time.Minute, 4*time.Hour)
		w.pass(5 * time.Minute)
		lease := w.tracker.Begin(box, page)
		check("in use", 1, 0, 0)
		lease.End()
		check("used", 0, 20*time.Minute, 4*time.Hour+5*time.Minute)
		w.pass(time.Hour)
		check("frozen", 0, 0, 4*time.Hour+5*time.Minute)
		w.pass(5 * time.Hour)
		w.tracker.Begin(box, page)
		check("asleep", 0, 0, 0)
	})
}

func TestOutlook_NotBeforeEverythingHasSettled(t *testing.T) {
	bend := func(w *world) {
		w.add(box, catalog.Rest{FreezeAfter: catalog.After(time.Second), StopAfter: catalog.Never})
	}
	within(t, bend, func(w *world) {
		if o := w.reaper.Outlook(w.row(box)); o.FreezesAt.Sub(w.began) != settle || !o.StopsAt.IsZero() {
			t.Errorf("outlook %+v", o)
		}
		w.bend(func(f *fake) { f.engine = fault.New(fault.Unavailable, "Away.") })
		w.pass(time.Hour)
		if o := w.reaper.Outlook(w.row(box)); time.Until(o.FreezesAt) != settle {
			t.Errorf("while the engine is away: outlook %+v", o)
		}
	})
}

func TestSubscribe_TellsWhenAReasonHasEnded(t *testing.T) {
	within(t, nil, func(w *world) {
		sub := w.tracker.Subscribe()
		defer sub.Close()
		w.pass(time.Minute)
		lease := w.tracker.Begin(box, command)
		w.pass(2 * time.Minute)
		lease.End()
		drain(sub)
		w.pass(2*time.Minute + 6*time.Second)
		if got := drain(sub); got != 1 {
			t.Errorf("%d changes after the end, want 1", got)
		}
	})
}
