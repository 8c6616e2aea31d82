package idle_test

import (
	"slices"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
)

// story is one thing that happens in real life, and what must come of it, to the millisecond. Nobody uses the box before
// the story does; it was started at its beginning; it freezes after 15 minutes and stops after 4 hours without use.
type story struct {
	name    string
	rest    catalog.Rest
	play    func(w *world)
	until   time.Duration // when the story ends
	want    []string      // every change of the box's state
	because []idle.Kind   // what keeps it awake at the end
}

// TestCases decides real-life cases, each in both directions where there are two: "stays" must be up as long as it lasts,
// "rests" must not be kept up.
func TestCases(t *testing.T) {
	for _, s := range slices.Concat(pageCases, timerCases, streamCases, terminalCases, programCases, workCases, holdCases, handCases, hostCases) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			bend := func(w *world) { w.add(box, s.rest) }
			within(t, bend, func(w *world) {
				s.play(w)
				w.pass(s.until)
				if because := w.because(); !slices.Equal(because, s.because) {
					t.Errorf("kept awake by %v, want %v", because, s.because)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if !slices.Equal(w.log, s.want) {
					t.Errorf("the states were %q, want %q", w.log, s.want)
				}
			})
		})
	}
}

// How long a story lasts: what stays has to outlast the hour and the time to the freeze
// twice, and what rests is asleep four hours after that.
const (
	evening = 3 * time.Hour
	night   = 5*time.Hour + 40*time.Minute
)

var (
	page     = idle.Use{Kind: idle.Web, Detail: "GET /lab"}
	feed     = idle.Use{Kind: idle.Stream, Detail: "GET /events"}
	pageFeed = idle.Use{Kind: idle.Stream, Detail: "GET /events", Unattended: true}
	socket   = idle.Use{Kind: idle.Stream, Detail: "WebSocket /ws"}
	terminal = idle.Use{Kind: idle.Terminal, Detail: "main"}
	command  = idle.Use{Kind: idle.Exec, Detail: "make test"}
)

// always is a part of a story that lasts as long as it does.
func always(from time.Duration) span { return span{from, 1000 * time.Hour} }

// pageCases are pages, with a person before them or not.
var pageCases = []story{
	{
		name:  "created and never used, rests",
		play:  func(*world) {},
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
	{
		name: "created, and opened just in time, stays until nobody uses it",
		play: func(w *world) { w.click(14*time.Minute + 59*time.Second) },
		// The page was answered at 14m59.2s.
		until: 30 * time.Minute,
		want:  []string{"29m59.2s frozen"},
	},
	{
		name: "woken by one request, rests again",
		play: func(w *world) { w.click(8 * time.Hour) },
		// It takes a second to start; the answer ends at 8h0m1.2s.
		until: 13 * time.Hour,
		want: []string{"15m0s frozen", "4h0m3s asleep", "8h0m1s running", "8h15m1.2s frozen",
			"12h0m4.2s asleep"},
	},
	{
		name: "Jupyter tab forgotten overnight, rests",
		play: func(w *world) {
			w.click(0)
			w.poll(always(10*time.Second), 10*time.Second, "/api/kernels")
			w.stream(always(time.Second), socket) // its pings are no traffic
		},
		// The page was answered at 200ms: the poll at 1h is the last that counts.
		until: night,
		want:  []string{"1h15m0s frozen", "5h0m3s asleep"},
	},
	{
		name: "Jupyter tab whose user comes back every half hour, stays",
		play: func(w *world) {
			w.poll(always(10*time.Second), 10*time.Second, "/api/kernels")
			for at := time.Duration(0); at < evening; at += 30 * time.Minute {
				w.click(at)
			}
		},
		until: evening,
	},
	{
		name: "page read for half an hour, thaws for what its script asks for then",
		play: func(w *world) {
			w.click(0)
			w.poll(span{30 * time.Minute, 30 * time.Minute}, time.Hour, "/next")
		},
		until: time.Hour,
		want:  []string{"15m0.2s frozen", "30m0s running", "45m0s frozen"},
	},
	{
		name: "page read for more than an hour, thaws for no script",
		play: func(w *world) {
			w.click(0)
			w.poll(span{61 * time.Minute, 61 * time.Minute}, time.Hour, "/next")
			w.click(62 * time.Minute)
		},
		until: 70 * time.Minute,
		want:  []string{"15m0.2s frozen", "1h2m0s running"},
	},
	{
		name: "single-page app that polls every 10s before its reader, stays",
		play: func(w *world) {
			w.poll(always(0), 10*time.Second, "/api/state")
			for at := 30 * time.Minute; at <= 3*time.Hour; at += 30 * time.Minute {
				w.click(at)
			}
		},
		until: 4 * time.Hour,
	},
	{
		name: "single-page app that polls every 10s, forgotten, rests",
		play: func(w *world) {
			w.poll(always(0), 10*time.Second, "/api/state")
			w.click(30 * time.Minute)
		},
		// Answered at 30m0.2s, so the poll at 1h30m0s is the last that counts.
		until: night,
		want:  []string{"1h45m0s frozen", "5h30m3s asleep"},
	},
	{
		name: "long poll whose path changes each time, forgotten, rests",
		play: func(w *world) {
			w.click(0)
			w.poll(always(time.Second), 25*time.Second, "/poll/#")
		},
		until: night,
		want:  []string{"1h14m36s frozen", "4h59m39s asleep"},
	},
	{
		name: "long poll that a forgotten page keeps open, rests",
		play: func(w *world) {
			w.click(0)
			w.use(time.Second, night, idle.Use{Kind: idle.Web, Detail: "GET /wait", Unattended: true})
		},
		// The page was answered at 200ms: for an hour from then on a person may wait for the poll.
		until: night,
		want:  []string{"1h15m0.2s frozen", "5h0m3.2s asleep"},
	},
	{
		name: "page opened and nothing typed, the dashboard open all day, rests",
		play: func(w *world) {
			w.stream(always(time.Second), terminal)
			w.each(always(0), 5*time.Second, func() { w.reaper.Outlook(w.row(box)) })
		},
		until: night,
		want:  []string{"15m1s frozen", "4h0m4s asleep"},
	},
	{
		name: "lists and metrics are polled, rests",
		play: func(w *world) {
			w.each(always(0), time.Second, func() { w.tracker.Status(box); w.reaper.Outlook(w.row(box)) })
		},
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
	{
		name: "health checks that only observe, rest",
		play: func(w *world) {
			w.each(always(0), 10*time.Second, func() { w.tracker.Counts(box) }) // the proxy looks and begins no use
		},
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
}

// streamCases are what stays open.
var streamCases = []story{
	{
		name: "video stream, stays by what it carries",
		play: func(w *world) {
			w.stream(always(0), pageFeed, traffic{during: always(0), every: time.Second, unattended: true})
			w.work(always(0), 0.01, 1e5)
		},
		until:   evening,
		because: []idle.Kind{idle.Work},
	},
	{
		name: "video paused, rests",
		play: func(w *world) {
			w.stream(always(0), pageFeed, traffic{during: span{0, 2 * time.Hour}, every: time.Second, unattended: true})
			w.work(span{0, 2 * time.Hour}, 0.01, 1e5)
		},
		until: 7 * time.Hour,
		want:  []string{"2h15m0s frozen", "6h0m3s asleep"},
	},
	{
		name: "SSE feed of a program with an event every 10s, stays",
		play: func(w *world) {
			w.stream(always(0), feed, traffic{during: always(0), every: 10 * time.Second})
		},
		until:   evening,
		because: []idle.Kind{idle.Stream},
	},
	{
		name: "SSE feed of a program with an event every 14 minutes, stays",
		play: func(w *world) {
			w.stream(always(0), feed, traffic{during: always(0), every: 14 * time.Minute})
		},
		until: evening + 5*time.Minute,
	},
	{
		name: "SSE feed of a forgotten page with an event every 10s, rests",
		play: func(w *world) {
			w.click(0)
			w.stream(always(time.Second), pageFeed, traffic{during: always(0), every: 10 * time.Second, unattended: true})
		},
		until: night,
		want:  []string{"1h14m51s frozen", "4h59m54s asleep"},
	},
	{
		name: "SSE feed of a page before a person who does something every 50 minutes, stays",
		play: func(w *world) {
			w.stream(always(0), pageFeed, traffic{during: always(0), every: 10 * time.Second, unattended: true})
			for at := time.Duration(0); at < evening; at += 50 * time.Minute {
				w.click(at)
			}
		},
		until:   evening,
		because: []idle.Kind{idle.Stream},
	},
	{
		name: "SSE feed with keep-alive comments only, rests",
		play: func(w *world) {
			w.stream(always(0), feed) // the proxy does not touch for a comment
		},
		until: 5 * time.Hour,
		want:  []string{"15m0s frozen", "4h0m3s asleep"},
	},
	{
		name:  "websocket with pings only, rests",
		play:  func(w *world) { w.stream(always(time.Minute), socket) },
		until: 5 * time.Hour,
		want:  []string{"16m0s frozen", "4h1m3s asleep"},
	},
	{
		name: "websocket chat, stays",
		play: func(w *world) {
			w.stream(always(0), socket, traffic{during: always(0), every: 12 * time.Minute})
		},
		until: 6*time.Hour + 5*time.Minute,
	},
	{
		name: "websocket chat that is over, rests",
		play: func(w *world) {
			w.stream(always(0), socket, traffic{during: span{0, time.Hour}, every: 12 * time.Minute})
		},
		until: 6 * time.Hour,
		want:  []string{"1h15m0s frozen", "5h0m3s asleep"},
	},
	{
		name: "VS Code tab forgotten, which counts while it is connected, rests",
		play: func(w *world) {
			w.stream(always(0), socket,
				traffic{during: span{0, 20 * time.Minute}, every: 3 * time.Second},
				traffic{during: always(0), every: 5 * time.Second, unattended: true})
		},
		// The last key at 20m0s; until 1h20m0s a person may read.
		until: night,
		want:  []string{"1h35m0s frozen", "5h20m3s asleep"},
	},
	{
		name: "VS Code in use, stays",
		play: func(w *world) {
			w.stream(always(0), socket,
				traffic{during: always(0), every: 50 * time.Minute},
				traffic{during: always(0), every: 5 * time.Second, unattended: true})
		},
		until:   evening,
		because: []idle.Kind{idle.Stream},
	},
	{
		name:    "download of 10 GB at 1 MB/s, stays until its end",
		play:    func(w *world) { w.use(0, 10000*time.Second, idle.Use{Kind: idle.Web, Detail: "GET /big.tar"}) },
		until:   2*time.Hour + 46*time.Minute,
		because: []idle.Kind{idle.Web},
	},
	{
		name:  "download of 10 GB that has ended, rests",
		play:  func(w *world) { w.use(0, 10000*time.Second, idle.Use{Kind: idle.Web, Detail: "GET /big.tar"}) },
		until: 8 * time.Hour, // it ended at 2h46m40s
		want:  []string{"3h1m40s frozen", "6h46m43s asleep"},
	},
	{
		name:    "upload of 10 GB into files, stays",
		play:    func(w *world) { w.use(time.Minute, 6*time.Hour, idle.Use{Kind: idle.Files, Detail: "PUT /data"}) },
		until:   6 * time.Hour,
		because: []idle.Kind{idle.Files},
	},
	{
		name:  "upload of 10 GB that has ended, rests",
		play:  func(w *world) { w.use(0, 6*time.Hour, idle.Use{Kind: idle.Files, Detail: "PUT /data"}) },
		until: 7 * time.Hour,
		want:  []string{"6h15m0s frozen"},
	},
}
