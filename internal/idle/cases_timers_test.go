package idle_test

import (
	"math/rand/v2"
	"slices"
	"time"
)

// clockwork gives when a page asks: every so often, give or take, in so many tabs that are opened one after the other.
func clockwork(every, jitter time.Duration, tabs int, until time.Duration) []time.Duration {
	chance := rand.New(rand.NewPCG(1, 2))
	next := make([]time.Duration, tabs)
	for i := range next {
		next[i] = every * time.Duration(i*i) / time.Duration(2*tabs*tabs)
	}
	var all []time.Duration
	for {
		first := 0
		for i := range next {
			if next[i] < next[first] {
				first = i
			}
		}
		if next[first] > until {
			return all
		}
		all = append(all, next[first])
		next[first] += every - jitter + time.Duration(chance.Int64N(int64(2*jitter+1)))
	}
}

// person gives the times of a person's requests, on average every so often.
func person(every, until time.Duration) []time.Duration {
	chance := rand.New(rand.NewPCG(3, 4))
	var all []time.Duration
	for at := time.Duration(0); at <= until; at += time.Second + time.Duration(chance.ExpFloat64()*float64(every)) {
		all = append(all, at)
	}
	return all
}

// clicks gives when what a person does asks, several times at once.
func clicks(at []time.Duration, times int) []time.Duration {
	var all []time.Duration
	for _, one := range at {
		for i := range times {
			all = append(all, one+time.Duration(i)*50*time.Millisecond)
		}
	}
	return all
}

// both gives when two timers of one page ask, the second of which starts 4 s after the first.
func both(one, other []time.Duration) []time.Duration {
	all := append(one, after(4*time.Second, other)...)
	slices.Sort(all)
	return all
}

// after gives times from one on.
func after(start time.Duration, at []time.Duration) []time.Duration {
	for i := range at {
		at[i] += start
	}
	return at
}

// timerCases are what comes to one address again and again, where nothing but the pauses tells pages from persons: a POST, a
// page that reloads itself. A page counts until the fifth of its requests, and an hour more.
var timerCases = []story{
	{
		name: "telemetry by POST every 30s, give or take 2s, forgotten, rests",
		play: func(w *world) {
			w.posts("POST /telemetry", true, clockwork(30*time.Second, 2*time.Second, 1, night))
		},
		until: night,
		want:  []string{"1h16m13.339s frozen", "5h1m16.339s asleep"},
	},
	{
		name: "telemetry by POST every 30s before a person who saves, stays",
		play: func(w *world) {
			w.posts("POST /telemetry", true, clockwork(30*time.Second, 2*time.Second, 1, evening))
			w.posts("POST /save", true, person(14*time.Minute, evening))
		},
		until: evening,
	},
	{
		name: "telemetry in three forgotten tabs, stays",
		play: func(w *world) {
			w.posts("POST /telemetry", true, clockwork(30*time.Second, time.Second, 3, evening))
		},
		until: evening,
	},
	{
		name: "dashboard with twelve parts that all ask the same every minute, rests",
		play: func(w *world) {
			w.posts("POST /query", true, clicks(clockwork(time.Minute, time.Second, 1, night), 12))
		},
		until: night,
		want:  []string{"1h17m5.972s frozen", "5h2m8.972s asleep"},
	},
	{
		name: "page that posts to one address every 10s and every minute, stays",
		play: func(w *world) {
			w.posts("POST /graphql", true, both(clockwork(10*time.Second, 200*time.Millisecond, 1, evening), clockwork(time.Minute, 200*time.Millisecond, 1, evening)))
		},
		until: evening,
	},
	{
		name: "telemetry that is turned away and tried again at shorter pauses, wakes",
		play: func(w *world) {
			w.posts("POST /telemetry", true, append(clockwork(30*time.Second, 0, 1, 2*time.Hour),
				2*time.Hour+time.Second, 2*time.Hour+3*time.Second, 2*time.Hour+7*time.Second, 2*time.Hour+11*time.Minute))
		},
		until: 7 * time.Hour,
		want:  []string{"1h16m30s frozen", "2h0m1s running", "2h26m0s frozen", "6h11m3s asleep"},
	},
	{
		name: "telemetry of a page that is closed after 20 minutes, rests",
		play: func(w *world) {
			w.posts("POST /telemetry", true, clockwork(30*time.Second, 0, 1, 20*time.Minute))
		},
		until: night,
		want:  []string{"35m0s frozen", "4h20m3s asleep"},
	},
	{
		name: "page that refreshes itself every 60s, forgotten, rests",
		play: func(w *world) {
			w.posts("GET /", false, clockwork(time.Minute, 500*time.Millisecond, 1, night))
		},
		until: night,
		want:  []string{"1h17m2.711s frozen", "5h2m5.711s asleep"},
	},
	{
		name: "page that refreshes itself every 60s before its reader, stays",
		play: func(w *world) {
			w.posts("GET /", false, clockwork(time.Minute, 500*time.Millisecond, 1, evening))
			for at := 50 * time.Minute; at < evening; at += 50 * time.Minute {
				w.click(at)
			}
		},
		until: evening,
	},
	{
		name: "page that reloads itself every 5 min, forgotten, rests",
		play: func(w *world) {
			w.posts("GET /board", false, clockwork(5*time.Minute, time.Second, 1, night))
		},
		until: night,
		want:  []string{"1h29m59.147s frozen", "5h15m2.147s asleep"},
	},
	{
		name: "page that reloads itself every 5 min, and a person who reloads what it has come to, wakes",
		play: func(w *world) {
			w.posts("GET /board", false, clockwork(5*time.Minute, time.Second, 1, 7*time.Hour))
			w.posts("GET /board", false, []time.Duration{6 * time.Hour})
		},
		until: 7 * time.Hour,
		want:  []string{"1h29m59.147s frozen", "5h15m2.147s asleep", "6h0m1s running", "6h15m1s frozen"},
	},
	{
		name:  "person who saves by POST now and then for 3 hours, stays",
		play:  func(w *world) { w.posts("POST /save", true, person(2*time.Minute, 3*time.Hour)) },
		until: 3 * time.Hour,
	},
	{
		name:  "person who saves by POST now and then, and has gone home, rests",
		play:  func(w *world) { w.posts("POST /save", true, person(2*time.Minute, 3*time.Hour)) },
		until: 9 * time.Hour,
		want:  []string{"3h12m59.342s frozen", "6h58m2.342s asleep"},
	},
	{
		name: "person who saves by POST after a 7*time.Hour, wakes",
		play: func(w *world) {
			next := after(13*time.Hour, person(2*time.Minute, time.Hour))
			w.posts("POST /save", true, append(person(2*time.Minute, 3*time.Hour), next...))
		},
		until: 13*time.Hour + 30*time.Minute,
		want:  []string{"3h12m59.342s frozen", "6h58m2.342s asleep", "13h0m1s running"},
	},
}
