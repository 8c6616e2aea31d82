package idle_test

import (
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// TestOutlook_ComesTrueAndIsNeverPast looks ten times a second, as pages and programs do, and at when it really happens.
func TestOutlook_ComesTrueAndIsNeverPast(t *testing.T) {
	const begin = 2 * time.Minute
	touch := func(w *world) { w.tracker.Touch(box, terminal) }
	poll := func(w *world) { w.tracker.Touch(box, idle.Use{Kind: idle.Web, Unattended: true}) }
	request := func(w *world) { w.using(200*time.Millisecond, page) }
	for name, c := range map[string]struct {
		freeze, stop time.Duration
		use          func(*world)  // at begin, of one that has been frozen or asleep
		frozen       time.Duration // after begin, at the latest
	}{
		"a moment of use, 15m":             {15 * time.Minute, 4 * time.Hour, touch, 15 * time.Minute},
		"a moment of use, 20s":             {20 * time.Second, 5 * time.Minute, touch, 30 * time.Second}, // the least time after a thaw
		"a moment of use, 8s":              {8 * time.Second, 5 * time.Minute, touch, 30 * time.Second},
		"a poll, 8s":                       {8 * time.Second, 5 * time.Minute, poll, 30 * time.Second},
		"a request, 40s":                   {40 * time.Second, 5 * time.Minute, request, 40*time.Second + 200*time.Millisecond},
		"a thaw without use, 8s":           {8 * time.Second, 5 * time.Minute, func(*world) {}, 30 * time.Second},
		"a hold, 8s":                       {8 * time.Second, 5 * time.Minute, func(w *world) { w.place("x", time.Minute) }, 68 * time.Second},
		"started, a hold, 8s":              {8 * time.Second, 20 * time.Second, func(w *world) { w.place("x", time.Minute) }, 68 * time.Second},
		"started, a moment of use, 8s":     {8 * time.Second, 20 * time.Second, touch, 15 * time.Second},
		"started, a request, 8s":           {8 * time.Second, 20 * time.Second, request, 8200 * time.Millisecond},
		"started, a request, 5s":           {5 * time.Second, 20 * time.Second, request, 5200 * time.Millisecond},
		"started, a request, 2s":           {2 * time.Second, 20 * time.Second, request, 3500 * time.Millisecond},
		"started, a request, 1s, and stop": {time.Second, 2 * time.Second, request, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bend := func(w *world) {
				w.add(box, catalog.Rest{FreezeAfter: catalog.After(c.freeze), StopAfter: catalog.After(c.stop)})
			}
			within(t, bend, func(w *world) {
				w.pass(begin)
				if w.row(box).State == sandbox.Asleep {
					w.move(box, sandbox.Starting)
				}
				w.move(box, sandbox.Running)
				c.use(w)
				w.watchUntilFrozen(begin+c.frozen, c.freeze)
				for range 20 {
					o := w.foreseen()
					if len(o.Because) > 0 || w.row(box).State == sandbox.Frozen && o.StopsAt.IsZero() {
						t.Errorf("frozen: %+v", o)
					}
					elapse(100 * time.Millisecond)
				}
			})
		})
	}
}

// foreseen gives the outlook, which is never in the past.
func (w *world) foreseen() idle.Outlook {
	o := w.reaper.Outlook(w.row(box))
	for _, at := range []time.Time{o.FreezesAt, o.StopsAt} {
		if !at.IsZero() && !at.After(time.Now()) {
			w.t.Errorf("at %s: %s ago", time.Since(w.began), time.Since(at))
		}
	}
	return o
}

// watchUntilFrozen checks that it is frozen at a time at the latest, and when it was said to be: at the last look, and for
// the better part of the time before.
func (w *world) watchUntilFrozen(latest, freeze time.Duration) {
	w.t.Helper()
	said := map[time.Time]int{}
	var last idle.Outlook
	for w.row(box).State == sandbox.Running {
		if time.Since(w.began) > latest+time.Second {
			w.t.Fatalf("it is still running, and said to freeze at %s", last.FreezesAt.Sub(w.began))
		}
		last = w.foreseen()
		said[last.FreezesAt]++
		elapse(100 * time.Millisecond)
	}
	froze := w.row(box).Changed
	if late := froze.Sub(w.began) - latest; late > 250*time.Millisecond {
		w.t.Errorf("frozen at %s, %s late", froze.Sub(w.began), late)
	}
	if off := froze.Sub(last.FreezesAt); len(last.Because) == 0 && off.Abs() > 300*time.Millisecond {
		w.t.Errorf("said to freeze at %s, frozen at %s", last.FreezesAt.Sub(w.began), froze.Sub(w.began))
	}
	for at, looks := range said {
		if !at.IsZero() && at.After(froze.Add(300*time.Millisecond)) {
			w.t.Errorf("said %d times to freeze at %s, frozen at %s", looks, at.Sub(w.began), froze.Sub(w.began))
		}
	}
}

func TestOutlook_OfOneFrozenByHandSaysWhenItStops(t *testing.T) {
	for name, use := range map[string]func(*world){
		"just typed":        func(w *world) { w.tracker.Touch(box, terminal) },
		"a page that waits": func(w *world) { w.tracker.Begin(box, idle.Use{Kind: idle.Web, Unattended: true}) },
		"a command":         func(w *world) { w.tracker.Begin(box, command) },
		"a hold":            func(w *world) { w.place("x", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world) {
				w.pass(5 * time.Minute)
				use(w)
				w.tracker.Dismiss(box)
				w.move(box, sandbox.Frozen)
				for range 60 {
					o := w.foreseen()
					if len(o.Because) > 0 || !o.FreezesAt.IsZero() || time.Until(o.StopsAt) < stopAfter-2*time.Minute {
						t.Fatalf("%+v", o)
					}
					elapse(time.Second)
				}
			})
		})
	}
}
