package idle_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// short makes the host short of memory.
func short(f *fake) { f.memory.available = 100 << 20 }

func TestPressure_UnusedOnesGoAndUsedOnesStay(t *testing.T) {
	bend := func(w *world) { w.add("used", catalog.Rest{}) }
	within(t, bend, func(w *world) {
		w.tracker.Begin("used", command)
		w.pass(2 * time.Minute)
		w.bend(short)
		w.pass(10 * time.Minute)
		// It is seen within five seconds, asked for ten whether it works, and, without swap, stopped in three.
		w.wantLog("2m18s asleep")
		if s := w.row("used").State; s != sandbox.Running {
			t.Errorf("the used one is %s", s)
		}
	})
}

func TestPressure_WhatWorksStays(t *testing.T) {
	within(t, nil, func(w *world) {
		w.work(always(0), 1, 0)
		w.pass(2 * time.Minute)
		w.bend(short)
		w.pass(time.Hour)
		w.wantLog()
	})
}

func TestPressure_FreezesWhatSwapCanTakeAndStopsWhatIsFrozen(t *testing.T) {
	within(t, nil, func(w *world) {
		w.bend(func(f *fake) { f.memory.swap = 4 << 30 })
		w.pass(2 * time.Minute)
		w.bend(short)
		w.pass(2*time.Minute + 16*time.Second)
		w.bend(func(f *fake) { f.memory.available = 8 << 30 })
		w.pass(10 * time.Minute)
		w.wantLog("2m15s frozen")
		w.bend(short)
		w.pass(11 * time.Minute)
		w.wantLog("2m15s frozen", "10m4.25s asleep")
	})
}

func TestPressure_LongestUnusedFirstAndFewAtATime(t *testing.T) {
	bend := func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.add(name, catalog.Rest{})
		}
	}
	within(t, bend, func(w *world) {
		w.pass(time.Minute)
		w.tracker.Touch("a", page)
		w.pass(2 * time.Minute)
		w.tracker.Touch(box, page)
		w.pass(5 * time.Minute)
		w.bend(short)
		w.pass(5*time.Minute + 16*time.Second)
		for name, want := range map[string]sandbox.State{"b": sandbox.Sleeping, "c": sandbox.Sleeping, "a": sandbox.Running, box: sandbox.Running} {
			if s := w.row(name).State; s != want {
				t.Errorf("%s is %s, want %s", name, s, want)
			}
		}
		w.bend(func(f *fake) { f.memory.available = 8 << 30 })
		w.pass(10 * time.Minute)
		if s := w.row("a").State; s != sandbox.Running {
			t.Errorf("a is %s although there is memory again", s)
		}
	})
}

func TestPressure_NeverIsNever(t *testing.T) {
	bend := func(w *world) { w.add(box, catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never}) }
	within(t, bend, func(w *world) {
		w.bend(func(f *fake) { short(f); f.memory.swap = 1 << 30 })
		w.pass(time.Hour)
		w.wantLog()
	})
}

func TestPressure_NothingGoesThatWasUsedAMinuteAgoOrBeforeItHasSettled(t *testing.T) {
	bend := func(w *world) { w.bend(short) }
	within(t, bend, func(w *world) {
		w.pass(settle - time.Second)
		w.tracker.Touch(box, page)
		w.pass(settle + 50*time.Second)
		w.wantLog()
		w.pass(5 * time.Minute)
		w.wantLog("2m12s asleep") // a minute after its use at 59s, ten seconds to ask, and three to stop
	})
}

func TestPressure_SandboxesMadeInAdvanceGoFirst(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(10 * time.Minute)
		w.bend(func(f *fake) { short(f); f.pooled = 20 })
		w.pass(10*time.Minute + 15*time.Second)
		w.wantLog()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.pooled > 10 || w.pooled < 2 {
			t.Errorf("%d are left after 15 seconds, want one given up in each pass", w.pooled)
		}
	})
}

func TestRoom_SaysNoAndMakesSome(t *testing.T) {
	within(t, nil, func(w *world) {
		ctx := context.Background()
		if err := w.reaper.Room(ctx); err != nil {
			t.Errorf("with 8 GiB: %v", err)
		}
		w.bend(func(f *fake) { f.memory.available = 600 << 20 })
		if err := w.reaper.Room(ctx); err != nil {
			t.Errorf("with more than half of the reserve: %v", err)
		}
		w.pass(5 * time.Minute)
		w.wantLog("1m13s asleep")
		w.bend(func(f *fake) { f.memory.available = 8 << 30 })
		w.add("other", catalog.Rest{})
		w.pass(10 * time.Minute)
		w.bend(func(f *fake) {
			short(f)
			f.before = func(string, func() bool) { w.bend(func(f *fake) { f.memory.available = 4 << 30 }) }
		})
		err := w.reaper.Room(ctx)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "short of memory: 100 MiB are available, and 1 GiB") {
			t.Errorf("with 100 MiB: %v", err)
		}
		w.pass(10*time.Minute + 15*time.Second)
		if err := w.reaper.Room(ctx); err != nil {
			t.Errorf("after the reaper has made room: %v", err)
		}
	})
}

func TestRoom_WithoutAReserveThereIsAlways(t *testing.T) {
	within(t, func(w *world) { w.config.Reserve = 0 }, func(w *world) {
		w.bend(func(f *fake) { f.memory.available = 0 })
		if err := w.reaper.Room(context.Background()); err != nil {
			t.Error(err)
		}
		w.pass(10 * time.Minute)
		w.wantLog()
	})
}
