package idle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// Thaw implements idle.Sandboxes.
func (w *world) Thaw(_ context.Context, name string, used func() bool) (sandbox.Sandbox, error) {
	s := w.row(name)
	w.mu.Lock()
	hook, broken := w.before, w.freezing
	w.mu.Unlock()
	if hook != nil {
		hook(name, used)
	}
	if broken != nil {
		return s, broken
	}
	if s.State != sandbox.Frozen || !used() {
		return s, nil
	}
	return w.move(name, sandbox.Running), nil
}

func TestReaper_WhatIsFrozenFromOutsideUnderAUseGoesOnAtOnce(t *testing.T) {
	for name, use := range map[string]idle.Use{"a request": page, "a command": command, "a page's own request": {Kind: idle.Web, Unattended: true}} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world) {
				w.pass(10 * time.Minute)
				w.tracker.Begin(box, use)
				w.pass(20 * time.Minute)
				w.move(box, sandbox.Frozen)
				w.pass(20*time.Minute + time.Second)
				w.wantLog("20m0s frozen", "20m0.25s running")
			})
		})
	}
}

func TestReaper_WhatNobodyWaitsForStaysFrozen(t *testing.T) {
	for name, use := range map[string]func(*world){
		"nothing":                 func(*world) {},
		"a request that is over":  func(w *world) { w.tracker.Begin(box, page).End() },
		"a moment of use":         func(w *world) { w.tracker.Touch(box, page) },
		"a terminal that is open": func(w *world) { w.tracker.Watch(box, terminal) },
		"a hold":                  func(w *world) { w.place("busy", time.Hour) },
		"a page that counts no more": func(w *world) {
			w.pass(2 * time.Hour)
			w.tracker.Begin(box, idle.Use{Kind: idle.Web, Unattended: true})
		},
		"what was put to rest by hand": func(w *world) { w.tracker.Begin(box, page); w.pass(5 * time.Minute); w.tracker.Dismiss(box) },
		"a page after it was so put to": func(w *world) {
			w.tracker.Dismiss(box)
			w.tracker.Begin(box, idle.Use{Kind: idle.Web, Unattended: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world) {
				w.pass(time.Minute)
				use(w)
				w.move(box, sandbox.Frozen)
				w.pass(time.Since(w.began) + 10*time.Minute)
				if s := w.row(box); s.State != sandbox.Frozen {
					t.Errorf("it is %s", s.State)
				}
			})
		})
	}
}

func TestReaper_AUseThatEndsBeforeTheThawHasItsTurnLeavesItFrozen(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(time.Minute)
		lease := w.tracker.Begin(box, page)
		w.bend(func(f *fake) { f.before = func(string, func() bool) { lease.End() } })
		w.move(box, sandbox.Frozen)
		w.pass(5 * time.Minute)
		w.wantLog("1m0s frozen")
	})
}

func TestReaper_AThawThatDoesNotSucceedIsTriedAgainLater(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(time.Minute)
		w.tracker.Begin(box, page)
		w.bend(func(f *fake) { f.freezing = fault.New(fault.Unavailable, "No.") })
		w.move(box, sandbox.Frozen)
		w.pass(time.Minute + 14*time.Second)
		w.bend(func(f *fake) { f.freezing = nil })
		w.pass(2 * time.Minute)
		w.wantLog("1m0s frozen", "1m15.25s running")
	})
}

func TestSweep_ReportsWhatItHasThawed(t *testing.T) {
	within(t, nil, func(w *world) {
		w.end()
		reaper := idle.NewReaper(w.config)
		w.tracker.Begin(box, page)
		w.move(box, sandbox.Frozen)
		report, err := reaper.Sweep(context.Background())
		if err != nil || !slices.Equal(report.Thawed, []string{box}) {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
