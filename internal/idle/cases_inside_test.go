package idle_test

import (
	"time"

	"sandboxd/internal/idle"
)

// terminalCases are terminals. A terminal counts its input, its output while its tab has the focus, and, for as long as
// a person may be there, its output otherwise.
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
		// The caller of a command waits for its end.
		until: 6 * time.Hour,
		want:  []string{"1h15m0s frozen", "5h0m3s asleep"},
	},
	{
		name: "top left open in a tab with the focus, stays",
		play: func(w *world) {
			w.stream(always(0), terminal, traffic{during: always(0), every: 3 * time.Second})
		},
		until:   evening,
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
				traffic{during: always(0), every: time.Second, unattended: true})
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
		until: evening + time.Minute,
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
		until: evening,
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
		until: evening + time.Minute,
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
}

// workCases are about programs that work by themselves.
var workCases = []story{
	{
		name: "Jupyter cell that runs with its tab closed, stays until it is done",
		play: func(w *world) {
			w.click(10 * time.Minute)
			w.work(span{10 * time.Minute, 6 * time.Hour}, 3.97, 0)
		},
		until:   6*time.Hour - time.Second,
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
			w.stream(always(0), terminal, traffic{during: span{0, time.Minute}, every: time.Second})
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
		name: "job that has begun half a minute before it is due, stays until it is done",
		play: func(w *world) { w.work(span{14*time.Minute + 30*time.Second, 80 * time.Minute}, 0.8, 0) },
		// The last ten seconds with work end at 1h20m0s.
		until: 2 * time.Hour,
		want:  []string{"1h35m0s frozen"},
	},
	{
		name: "hiccup of a second before it is due, rests",
		play: func(w *world) { w.work(span{14*time.Minute + 30*time.Second, 14*time.Minute + 31*time.Second}, 1, 0) },
		// A second of a minute is less than work.
		until: time.Hour,
		want:  []string{"15m0s frozen"},
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
		until:   evening,
		because: []idle.Kind{idle.Work},
	},
}
