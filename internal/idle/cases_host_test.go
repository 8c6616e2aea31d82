package idle_test

import (
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
)

// holdCases are what an agent says.
var holdCases = []story{
	{
		name: "hold that its agent renews, stays",
		play: func(w *world) {
			w.begin(time.Minute, func() {
				id := w.place("training", 10*time.Minute)
				w.each(span{6 * time.Minute, 20 * time.Hour}, 5*time.Minute, func() { w.renew(id, 10*time.Minute) })
			})
		},
		until:   evening,
		because: []idle.Kind{idle.Held},
	},
	{
		name: "hold whose agent has crashed, rests",
		play: func(w *world) {
			w.begin(time.Minute, func() {
				id := w.place("training", 10*time.Minute)
				w.each(span{6 * time.Minute, 2 * time.Hour}, 5*time.Minute, func() { w.renew(id, 10*time.Minute) })
			})
		},
		// Renewed last at 1h56m0s, so it ended at 2h6m0s.
		until: 7 * time.Hour,
		want:  []string{"2h21m0s frozen", "6h6m3s asleep"},
	},
	{
		name:  "hold that has expired, rests",
		play:  func(w *world) { w.begin(time.Minute, func() { w.place("training", 2*time.Hour) }) },
		until: 7 * time.Hour,
		want:  []string{"2h16m0s frozen", "6h1m3s asleep"},
	},
	{
		name: "hold that is revoked, rests",
		play: func(w *world) {
			w.begin(time.Minute, func() {
				id := w.place("training", 24*time.Hour)
				w.begin(3*time.Hour, func() { w.revoke(id) })
			})
		},
		until: 8 * time.Hour,
		want:  []string{"3h15m0s frozen", "7h0m3s asleep"},
	},
	{
		name: "hold across a restart of sandboxd, stays until it expires",
		play: func(w *world) {
			w.pass(time.Minute)
			w.place("training", 2*time.Hour)
			w.pass(10 * time.Minute)
			w.restart()
		},
		until: 3 * time.Hour,
		want:  []string{"2h16m0s frozen"},
	},
	{
		name: "hold on one that is asleep, wakes nobody",
		play: func(w *world) {
			w.begin(5*time.Hour, func() { w.place("later", time.Hour) })
			w.click(5*time.Hour + 30*time.Minute)
		},
		// It was woken at 5h30m1s, and the hold kept it up until 6h.
		until: 7 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep", "5h30m1s running", "6h15m0s frozen"},
	},
}

// handCases are sandboxes that are put to rest by hand.
var handCases = []story{
	{
		name: "slept by hand with a polling tab open, stays asleep",
		play: func(w *world) {
			w.click(0)
			w.poll(always(10*time.Second), 10*time.Second, "/api/kernels")
			w.byHand(30*time.Minute+5*time.Second, w.Sleep)
		},
		until: 5 * time.Hour,
		want:  []string{"30m8s asleep"},
	},
	{
		name: "frozen by hand with a polling tab open, stays frozen until it stops",
		play: func(w *world) {
			w.click(0)
			w.poll(always(10*time.Second), 10*time.Second, "/api/kernels")
			w.byHand(30*time.Minute+5*time.Second, w.Freeze)
		},
		until: 6 * time.Hour,
		want:  []string{"30m5s frozen", "4h30m3s asleep"}, // the last poll that counted was at 30m0s
	},
	{
		name: "slept by hand with a polling tab open, wakes for its person and then for the tab",
		play: func(w *world) {
			w.click(0)
			w.poll(always(15*time.Second), 10*time.Second, "/api/kernels")
			w.byHand(30*time.Minute, w.Sleep)
			w.click(2 * time.Hour)
		},
		// Answered at 2h0m1.2s, so the poll at 2h59m55s is the last that counts.
		until: 4 * time.Hour,
		want:  []string{"30m3s asleep", "2h0m1s running", "3h14m55s frozen"},
	},
	{
		name: "slept by hand while a page was answered, stays asleep",
		play: func(w *world) {
			w.use(29*time.Minute, time.Minute+7*time.Second, page) // it is cut two seconds after
			w.poll(always(0), 10*time.Second, "/api/kernels")
			w.byHand(30*time.Minute+5*time.Second, w.Sleep)
		},
		until: 2 * time.Hour,
		want:  []string{"30m8s asleep"},
	},
}

// hostCases are about times, restarts and the engine.
var hostCases = []story{
	{
		name:  "freeze_after never, stops in its time",
		rest:  catalog.Rest{FreezeAfter: catalog.Never},
		play:  func(*world) {},
		until: 5 * time.Hour,
		want:  []string{"4h0m3s asleep"},
	},
	{
		name:  "stop_after never, stays frozen",
		rest:  catalog.Rest{StopAfter: catalog.Never},
		play:  func(*world) {},
		until: 6 * time.Hour,
		want:  []string{"15m0s frozen"},
	},
	{
		name:  "both never, stays",
		rest:  catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never},
		play:  func(*world) {},
		until: 6 * time.Hour,
	},
	{
		name:  "stop_after before freeze_after, only stops",
		rest:  catalog.Rest{FreezeAfter: catalog.After(time.Hour), StopAfter: catalog.After(30 * time.Minute)},
		play:  func(*world) {},
		until: 2 * time.Hour,
		want:  []string{"30m3s asleep"},
	},
	{
		name: "times of seconds, but not before everything has settled",
		rest: catalog.Rest{FreezeAfter: catalog.After(10 * time.Second), StopAfter: catalog.After(30 * time.Second)},
		play: func(w *world) { w.click(2 * time.Minute) },
		// Both were due when it had settled; the second step is taken a quarter of a second after the first.
		until: 3 * time.Minute,
		want:  []string{"1m0s frozen", "1m3.25s asleep", "2m1s running", "2m11.2s frozen", "2m34.2s asleep"},
	},
	{
		name: "sandboxd restarted in the middle, everything begins afresh",
		play: func(w *world) {
			w.pass(10 * time.Minute)
			w.restart()
		},
		until: 5 * time.Hour,
		want:  []string{"25m0s frozen", "4h10m3s asleep"},
	},
	{
		name: "sandboxd restarted while one is frozen, its time to stop begins afresh",
		play: func(w *world) {
			w.pass(2 * time.Hour)
			w.restart()
		},
		until: 7 * time.Hour,
		want:  []string{"15m0s frozen", "6h0m3s asleep"},
	},
	{
		name: "engine away for ten minutes, nothing happens and everything begins afresh",
		play: func(w *world) {
			w.pass(14 * time.Minute)
			w.bend(func(f *fake) { f.engine = fault.New(fault.Unavailable, "The engine does not answer.") })
			w.pass(24*time.Minute - 500*time.Millisecond) // it is asked every second
			w.bend(func(f *fake) { f.engine = nil })
		},
		until: time.Hour,
		want:  []string{"39m0s frozen"},
	},
	{
		name: "engine that cannot freeze, stops in its time",
		play: func(w *world) { w.bend(func(f *fake) { f.noFreezer = true }) },
		// The hour is not lost: the next step is the stop.
		until: 5 * time.Hour,
		want:  []string{"4h0m3s asleep"},
	},
}
