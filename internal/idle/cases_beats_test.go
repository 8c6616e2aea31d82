package idle_test

import (
	"time"

	"sandboxd/internal/idle"
)

// after gives times from one on.
func after(start time.Duration, at []time.Duration) []time.Duration {
	for i := range at {
		at[i] += start
	}
	return at
}

// beatCases are what comes to one address again and again, where nothing but the time tells pages from persons. A page
// counts until some of its requests have shown its rhythm (four, or more in several tabs), and an hour more.
var beatCases = []story{
	{
		name: "telemetry by POST every 30s, give or take 2s, forgotten, rests",
		play: func(w *world) {
			w.asks("POST /telemetry", true, clockwork(30*time.Second, 2*time.Second, 1, night))
		},
		until: night,
		want:  []string{"1h17m43.721s frozen", "5h2m46.721s asleep"},
	},
	{
		name: "telemetry by POST every 30s before somebody who saves, stays",
		play: func(w *world) {
			w.asks("POST /telemetry", true, clockwork(30*time.Second, 2*time.Second, 1, night))
			w.asks("POST /save", true, somebody(14*time.Minute, night))
		},
		until: night,
	},
	{
		name: "telemetry in three forgotten tabs, rests",
		play: func(w *world) {
			w.asks("POST /telemetry", true, clockwork(30*time.Second, time.Second, 3, night))
		},
		until: night,
		want:  []string{"1h16m34.844s frozen", "5h1m37.844s asleep"},
	},
	{
		name: "dashboard with twelve parts that all ask the same every minute, rests",
		play: func(w *world) {
			w.asks("POST /query", true, clicks(clockwork(time.Minute, time.Second, 1, night), 12))
		},
		until: night,
		want:  []string{"1h17m5.972s frozen", "5h2m8.972s asleep"},
	},
	{
		name: "page that asks every 10s and every minute, rests",
		play: func(w *world) {
			w.asks("POST /graphql", true, both(clockwork(10*time.Second, 200*time.Millisecond, 1, night), clockwork(time.Minute, 200*time.Millisecond, 1, night)))
		},
		until: night,
		want:  []string{"1h18m1.182s frozen", "5h3m4.182s asleep"},
	},
	{
		name: "telemetry that is turned away and tried again at shorter pauses, rests",
		play: func(w *world) {
			w.asks("POST /telemetry", true, append(clockwork(30*time.Second, 0, 1, 2*time.Hour),
				2*time.Hour+time.Second, 2*time.Hour+3*time.Second, 2*time.Hour+7*time.Second, 2*time.Hour+11*time.Minute))
		},
		until: night,
		want:  []string{"1h16m30s frozen", "5h1m33s asleep"},
	},
	{
		name: "telemetry of a page that is closed after 20 minutes, rests",
		play: func(w *world) {
			w.asks("POST /telemetry", true, clockwork(30*time.Second, 0, 1, 20*time.Minute))
		},
		until: night,
		want:  []string{"35m0s frozen", "4h20m3s asleep"},
	},
	{
		name: "page that refreshes itself every 60s, forgotten, rests",
		play: func(w *world) {
			w.asks("GET /", false, clockwork(time.Minute, 500*time.Millisecond, 1, night))
		},
		until: night,
		want:  []string{"1h17m2.711s frozen", "5h2m5.711s asleep"},
	},
	{
		name: "page that refreshes itself every 60s before its reader, stays",
		play: func(w *world) {
			w.asks("GET /", false, clockwork(time.Minute, 500*time.Millisecond, 1, night))
			for at := 50 * time.Minute; at < night; at += 50 * time.Minute {
				w.click(at)
			}
		},
		until: night,
	},
	{
		name: "page that reloads itself every 5 min, forgotten, rests",
		play: func(w *world) {
			w.asks("GET /board", false, clockwork(5*time.Minute, time.Second, 1, night))
		},
		until: night,
		want:  []string{"1h29m59.147s frozen", "5h15m2.147s asleep"},
	},
	{
		name: "page that reloads itself every 5 min, and a person who reloads what it has come to, wakes",
		play: func(w *world) {
			w.asks("GET /board", false, clockwork(5*time.Minute, time.Second, 1, night))
			w.begin(6*time.Hour, func() {
				w.using(0, idle.Use{Kind: idle.Web, Detail: "GET /board", Unattended: w.tracker.Beats(box, "GET /board")})
			})
		},
		until: night,
		want:  []string{"1h29m59.147s frozen", "5h15m2.147s asleep", "6h0m1s running", "6h15m1s frozen"},
	},
	{
		name: "long poll whose path changes each time, forgotten, rests",
		play: func(w *world) {
			w.asks("GET /poll/#", true, clockwork(25*time.Second, 300*time.Millisecond, 1, night))
		},
		until: night,
		want:  []string{"1h15m53.29s frozen", "5h0m56.29s asleep"},
	},
	{
		name:  "person who saves by POST now and then for 3 hours, stays",
		play:  func(w *world) { w.asks("POST /save", true, somebody(2*time.Minute, 3*time.Hour)) },
		until: 3 * time.Hour,
	},
	{
		name:  "person who saves by POST now and then, and has gone home, rests",
		play:  func(w *world) { w.asks("POST /save", true, somebody(2*time.Minute, 3*time.Hour)) },
		until: 9 * time.Hour,
		want:  []string{"3h12m59.342s frozen", "6h58m2.342s asleep"},
	},
	{
		name: "person who saves by POST after a night, wakes",
		play: func(w *world) {
			next := after(13*time.Hour, somebody(2*time.Minute, time.Hour))
			w.asks("POST /save", true, append(somebody(2*time.Minute, 3*time.Hour), next...))
		},
		until: 13*time.Hour + 30*time.Minute,
		want:  []string{"3h12m59.342s frozen", "6h58m2.342s asleep", "13h0m1s running"},
	},
}
