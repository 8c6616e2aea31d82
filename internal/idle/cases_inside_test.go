package idle_test

import (
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
)

// terminalCases are terminals. A terminal counts its input, its output while its tab has the focus, and, for as long as
// somebody may be there, its output otherwise.
var terminalCases = []story{
	{
		name: "long compile in a terminal without output, nobody watching, stays until it is done",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: span{0, time.Minute}, every: time.Second})
			w.work(span{time.Minute, 90 * time.Minute}, 1.9, 0)
		},
		until:   80 * time.Minute,
		because: []idle.Kind{idle.Work},
	},
	{
		name: "long compile that is done, rests",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: span{0, time.Minute}, every: time.Second})
			w.work(span{time.Minute, 90 * time.Minute}, 1.9, 0)
		},
		// The samples of the ten seconds up to 1h30m0s are the last with work.
		until: 6 * time.Hour,
		want:  []string{"1h45m0s frozen", "5h30m3s asleep"},
	},
	{
		name: "long compile with output that nobody watches, stays until it is done",
		play: func(w *world) {
			w.stream(always(0), terminal,
				traffic{during: span{0, time.Minute}, every: time.Second},
				traffic{during: span{time.Minute, 5 * time.Hour}, every: time.Second, unattended: true})
			w.work(span{time.Minute, 5 * time.Hour}, 1, 0)
		},
		until:   5 * time.Hour,
		because: []idle.Kind{idle.Work},
	},
	{
		name: "sleep 3600 in a terminal, rests",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: span{0, 30 * time.Second}, every: time.Second})
		},
		until: 5 * time.Hour,
		want:  []string{"15m30s frozen", "4h0m33s asleep"},
	},
	{
		name: "sleep 3600 as a command, stays until its end",
		play: func(w *world) { w.use(0, time.Hour, idle.Use{Kind: idle.Exec, Detail: "sleep 3600"}) },
		// Whoever runs a command waits for its end.
		until: 6 * time.Hour,
		want:  []string{"1h15m0s frozen", "5h0m3s asleep"},
	},
	{
		name: "top left open in a tab with the focus, stays",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: always(0), every: 3 * time.Second})
		},
		until:   night,
		because: []idle.Kind{idle.Terminal},
	},
	{
		name: "top left open in a forgotten tab, rests",
		play: func(w *world) {
			w.stream(always(0), terminal,
				traffic{during: span{0, 10 * time.Minute}, every: time.Second},
				traffic{during: always(0), every: 3 * time.Second, unattended: true})
		},
		until: night,
		want:  []string{"1h25m0s frozen", "5h10m3s asleep"},
	},
	{
		name: "tail -f of a chatty log in a forgotten tab, rests",
		play: func(w *world) {
			w.stream(always(0), terminal,
				traffic{during: span{0, time.Second}, every: time.Second},
				traffic{during: always(0), every: 200 * time.Millisecond, unattended: true})
			w.work(always(0), 0.01, 2000)
		},
		until: night,
		want:  []string{"1h15m1s frozen", "5h0m4s asleep"},
	},
	{
		name: "typing every 9 minutes, stays",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: always(0), every: 9 * time.Minute})
		},
		until: night,
	},
	{
		name: "typing every 9 minutes until noon, rests",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: span{0, 90 * time.Minute}, every: 9 * time.Minute})
		},
		until: night,
		want:  []string{"1h45m0s frozen", "5h30m3s asleep"},
	},
}

// programCases are programs that use a sandbox from outside.
var programCases = []story{
	{
		name: "CI polls an address of the sandbox every 30s by token, stays",
		play: func(w *world) {
			w.each(always(0), 30*time.Second, func() { w.using(0, idle.Use{Kind: idle.Web, Detail: "GET /status"}) })
		},
		until: night,
	},
	{
		name: "CI polls sandboxd about the sandbox every 30s, rests",
		play: func(w *world) {
			w.each(always(0), 30*time.Second, func() { w.reaper.Outlook(w.row(box)) })
		},
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
	{
		name: "webhook every 5 minutes, stays",
		play: func(w *world) {
			w.each(always(0), 5*time.Minute, func() {
				w.using(50*time.Millisecond, idle.Use{Kind: idle.Web, Detail: "POST /hook"})
			})
		},
		until: night + time.Minute,
	},
	{
		name: "webhook every 5 hours, wakes it and lets it rest",
		play: func(w *world) {
			w.each(always(0), 5*time.Hour, func() { w.using(0, idle.Use{Kind: idle.Web, Detail: "POST /hook"}) })
		},
		until: 6 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep", "5h0m1s running", "5h15m1s frozen"},
	},
	{
		name:    "exec in flight for 3 hours without output, stays",
		play:    func(w *world) { w.use(0, 3*time.Hour, command) },
		until:   3*time.Hour - time.Second,
		because: []idle.Kind{idle.Exec},
	},
	{
		name:  "exec that has ended, rests",
		play:  func(w *world) { w.use(0, 3*time.Hour, command) },
		until: 8 * time.Hour,
		want:  []string{"3h15m0s frozen", "7h0m3s asleep"},
	},
	{
		name: "download on the direct route at 1 MB/s, stays until its end",
		play: func(w *world) {
			w.direct(span{0, 3 * time.Hour}, true, false)
			w.work(span{0, 3 * time.Hour}, 0.01, 1e6)
		},
		until:   3*time.Hour - time.Minute,
		because: []idle.Kind{idle.Direct, idle.Work},
	},
	{
		name:    "download on the direct route over a slow line, stays until its end",
		play:    func(w *world) { w.direct(span{0, 6 * time.Hour}, true, false) },
		until:   6 * time.Hour,
		because: []idle.Kind{idle.Direct},
	},
	{
		name: "request on the direct route that a forgotten page keeps open, rests",
		play: func(w *world) { w.direct(always(0), false, false) },
		// It may have a reader for an hour. The last look within that hour counts.
		until: night,
		want:  []string{"1h15m0s frozen", "5h0m3s asleep"},
	},
	{
		name: "polls on the direct route from a forgotten page, rest",
		play: func(w *world) {
			w.click(0)
			w.each(always(time.Second), 10*time.Second, func() {
				w.tracker.Touch(box, idle.Use{Kind: idle.Direct, Detail: "GET /api", Unattended: true})
				w.bend(func(f *fake) { f.byteAt = time.Now() })
			})
		},
		until: night,
		want:  []string{"1h14m51s frozen", "4h59m54s asleep"},
	},
}

// workCases are what goes on inside by itself.
var workCases = []story{
	{
		name: "Jupyter cell that runs with its tab closed, stays until it is done",
		play: func(w *world) {
			w.click(10 * time.Minute)
			w.work(span{10 * time.Minute, 9 * time.Hour}, 3.97, 0)
		},
		until:   9*time.Hour - time.Second,
		because: []idle.Kind{idle.Work},
	},
	{
		name: "Jupyter cell that waits for input with its tab closed, rests",
		play: func(w *world) {
			w.click(10 * time.Minute)
			w.work(always(10*time.Minute), 0.004, 0)
		},
		until: night,
		want:  []string{"25m0.2s frozen", "4h10m3.2s asleep"},
	},
	{
		name: "wget in the background, stays until it is done",
		play: func(w *world) {
			w.stream(span{0, time.Minute}, terminal, traffic{during: span{0, time.Minute}, every: time.Second})
			w.work(span{0, 2 * time.Hour}, 0.01, 4e6)
		},
		until:   2*time.Hour - time.Second,
		because: []idle.Kind{idle.Work},
	},
	{
		name: "wget in the background that stalls, rests",
		play: func(w *world) {
			w.stream(span{0, time.Minute}, terminal, traffic{during: span{0, time.Minute}, every: time.Second})
			w.work(span{0, 2 * time.Hour}, 0, 800)
		},
		until: 5 * time.Hour,
		want:  []string{"16m0s frozen", "4h1m3s asleep"},
	},
	{
		name: "cron job of two minutes each hour, rests in between",
		play: func(w *world) {
			w.click(0)
			for at := time.Hour; at < night; at += time.Hour {
				w.work(span{at, at + 2*time.Minute}, 0.8, 0)
			}
		},
		// A frozen clock strikes no hour: nothing inside wakes a sandbox.
		until: night,
		want:  []string{"15m0.2s frozen", "4h0m3.2s asleep"},
	},
	{
		name: "cron job each ten minutes of two minutes, stays",
		rest: catalog.Rest{FreezeAfter: catalog.After(20 * time.Minute)},
		play: func(w *world) {
			for at := 18 * time.Minute; at < night; at += 20*time.Minute + 10*time.Second {
				w.work(span{at, at + 130*time.Second}, 0.8, 0)
			}
		},
		until: 65 * time.Minute,
	},
	{
		name:  "idle database inside, rests",
		play:  func(w *world) { w.work(always(0), 0.02, 3000) },
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
	{
		name: "database inside that answers queries, stays",
		play: func(w *world) {
			w.work(always(0), 0.3, 0)
		},
		until:   night,
		because: []idle.Kind{idle.Work},
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
		until: 400 * time.Hour,
		want:  []string{"15m0s frozen"},
	},
	{
		name:  "both never, stays",
		rest:  catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never},
		play:  func(*world) {},
		until: 400 * time.Hour,
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
		// The thawed one has a breath of 30s, in which its 10s pass too.
		until: 3 * time.Minute,
		want:  []string{"1m0s frozen", "1m3s asleep", "2m1s running", "2m11.2s frozen", "2m34.2s asleep"},
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
			w.pass(24 * time.Minute)
			w.bend(func(f *fake) { f.engine = nil })
		},
		until: time.Hour,
		want:  []string{"39m0s frozen"},
	},
	{
		name: "engine that cannot freeze, stops in its time",
		play: func(w *world) { w.bend(func(f *fake) { f.noFreezer = true }) },
		// The hour is not lost: the ladder goes on with the stop.
		until: 5 * time.Hour,
		want:  []string{"4h0m3s asleep"},
	},
	{
		name: "guest that does not answer, rests by the engine's word",
		play: func(w *world) {
			w.bend(func(f *fake) { f.deaf = fault.New(fault.Unavailable, "The guest does not answer.") })
		},
		until: time.Hour,
		want:  []string{"15m0s frozen"},
	},
	{
		name: "guest that does not answer but works by the engine's word, stays",
		play: func(w *world) {
			w.bend(func(f *fake) { f.deaf = fault.New(fault.Unavailable, "The guest does not answer.") })
			w.work(always(0), 1, 0)
		},
		until:   time.Hour,
		because: []idle.Kind{idle.Work},
	},
}
