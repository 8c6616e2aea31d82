package idle_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

var stream = idle.Use{Kind: idle.Stream, Detail: "GET /big"}

// Thaw implements idle.Sandboxes.
func (w *world) Thaw(_ context.Context, ref sandbox.Ref, used func() bool) (sandbox.Sandbox, error) {
	name := ref.ID()
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
		"a terminal that is open": func(w *world) { w.tracker.Watch(box, terminal); w.pass(2 * time.Minute) },
		"a hold":                  func(w *world) { w.place("busy", time.Hour) },
		"a page that counts no more": func(w *world) {
			w.pass(2 * time.Hour)
			w.tracker.Begin(box, idle.Use{Kind: idle.Web, Unattended: true})
		},
		"what was put to rest by hand": func(w *world) { w.tracker.Begin(box, page); w.pass(5 * time.Minute); w.tracker.Dismiss(box) },
		"one that another use has met on its way to a hand's rest": func(w *world) {
			w.tracker.Begin(box, page)
			w.pass(5 * time.Minute)
			again := w.tracker.Dismiss(box)
			w.pass(5*time.Minute + 20*time.Millisecond)
			w.tracker.Begin(box, page).End()
			again()
			w.tracker.Begin(box, idle.Use{Kind: idle.Web, Unattended: true})
		},
		"a stream that flows on as it is put to rest by hand": func(w *world) {
			download := w.tracker.Watch(box, stream)
			w.pass(5 * time.Minute)
			download.Touch(false)
			w.pass(5*time.Minute + 10*time.Second)
			w.tracker.Dismiss(box)
			download.Touch(false)
		},
		"one of which more comes out then": func(w *world) {
			download := w.tracker.Watch(box, stream)
			w.tracker.Dismiss(box)
			w.move(box, sandbox.Frozen)
			w.pass(time.Minute + 5*time.Second)
			download.Touch(false)
		},
		"a terminal in use as it is put to rest by hand": func(w *world) {
			shell := w.tracker.Watch(box, terminal)
			w.tracker.Dismiss(box)
			shell.Touch(true)
		},
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

func TestReaper_AUseThatBeginsOnTheWayToAHandsRestWakesIt(t *testing.T) {
	within(t, nil, func(w *world) {
		w.pass(time.Minute)
		again := w.tracker.Dismiss(box)
		w.pass(time.Minute + 20*time.Millisecond)
		w.tracker.Begin(box, page)
		w.move(box, sandbox.Frozen)
		again()
		w.pass(5 * time.Minute)
		w.wantLog("1m0.02s frozen", "1m0.25s running")
	})
}

// TestReaper_WhatIsFrozenFromOutsideUnderAStreamGoesOnEachTime has something flow on whenever the sandbox runs.
func TestReaper_WhatIsFrozenFromOutsideUnderAStreamGoesOnEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		use        idle.Use
		unattended bool
		before     func(*world, *idle.Lease)
	}{
		"a download":          {use: stream},
		"a terminal's output": {use: terminal, unattended: true},
		"a stream after a hand's rest": {use: stream, before: func(w *world, _ *idle.Lease) {
			w.tracker.Dismiss(box)
			w.tracker.Touch(box, page) // which wakes it
		}},
		"a terminal after a hand's rest": {use: terminal, unattended: true, before: func(w *world, l *idle.Lease) {
			w.tracker.Dismiss(box)
			w.pass(5 * time.Minute)
			l.Touch(false) // a key wakes it
		}},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world) {
				w.pass(time.Minute)
				lease := w.tracker.Watch(box, c.use)
				if c.before != nil {
					c.before(w, lease)
				}
				w.pass(10 * time.Minute)
				lease.Touch(false)
				w.each(span{10 * time.Minute, 20 * time.Minute}, 10*time.Second, func() {
					if w.row(box).State == sandbox.Running {
						lease.Touch(c.unattended)
					}
				})
				for n := range 5 {
					w.pass(10*time.Minute + time.Duration(n*45+9)*time.Second)
					w.move(box, sandbox.Frozen)
					elapse(time.Second)
					if s := w.row(box); s.State != sandbox.Running {
						t.Fatalf("after freeze %d it is %s", n, s.State)
					}
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
		if err != nil || !slices.Equal(report.Thawed, []string{"name-of-" + box}) {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

func TestReaper_DoesNotReportWhatAUseHasThawedBeforeItsStop(t *testing.T) {
	var log bytes.Buffer
	within(t, func(w *world) { w.config.Log = slog.New(slog.NewTextHandler(&log, nil)) }, func(w *world) {
		w.pass(time.Hour)
		w.bend(func(f *fake) {
			f.before = func(string, func() bool) {
				f.before = nil
				w.tracker.Touch(box, page)
				w.move(box, sandbox.Running)
			}
		})
		w.pass(4*time.Hour + 5*time.Minute)
		w.wantLog("15m0s frozen", "4h0m0s running")
	})
	if n := strings.Count(log.String(), "put a sandbox to rest"); n != 1 {
		t.Errorf("%d rests are reported:\n%s", n, &log)
	}
}
