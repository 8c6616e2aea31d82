package idle_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/idle"
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

// somebody gives when a person asks: now and then, on average every so often.
func somebody(every, until time.Duration) []time.Duration {
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

// TestBeats_APageAsksInARhythmAndAPersonDoesNot has a page and a person ask for the same all day, each by itself. The day
// has to be one in which nothing counts after a while, or one in which there never is an hour in which nothing counts.
func TestBeats_APageAsksInARhythmAndAPersonDoesNot(t *testing.T) {
	const day = 10 * time.Hour
	late := clockwork(time.Minute, time.Second, 1, day)
	for i := 20; i < len(late); i += 50 {
		late[i] += 12 * time.Second
	}
	lost := clockwork(30*time.Second, time.Second, 1, day)
	lost = append(lost[:40:40], lost[43:]...)
	slowed := append(clockwork(5*time.Second, 0, 1, 10*time.Minute), clockwork(time.Minute, 0, 1, day)[11:]...)
	habit := clockwork(10*time.Minute, 4*time.Minute, 1, day)
	for name, c := range map[string]struct {
		at   []time.Duration
		rest time.Duration // when the last that counts has come at the latest; zero for never an hour without
	}{
		"each second":                {clockwork(time.Second, 100*time.Millisecond, 1, day), time.Minute},
		"every 10s ± 2s":             {clockwork(10*time.Second, 2*time.Second, 1, day), 10 * time.Minute},
		"every 30s ± 2s":             {clockwork(30*time.Second, 2*time.Second, 1, day), 10 * time.Minute},
		"every 30s in two tabs":      {clockwork(30*time.Second, 2*time.Second, 2, day), 15 * time.Minute},
		"every 30s in five tabs":     {clockwork(30*time.Second, 100*time.Millisecond, 5, day), 15 * time.Minute},
		"every 5 min":                {clockwork(5*time.Minute, time.Second, 1, day), 40 * time.Minute},
		"every half hour":            {clockwork(30*time.Minute, time.Second, 1, day), 4 * time.Hour},
		"every minute, some late":    {late, 2 * time.Hour},
		"every 30s, three lost":      {lost, time.Hour},
		"every 5s, then in the back": {slowed, time.Hour},
		"twice a second":             {clockwork(500*time.Millisecond, 100*time.Millisecond, 1, day), time.Minute},
		"every 30s, six at once":     {clicks(clockwork(30*time.Second, time.Second, 1, day), 6), 10 * time.Minute},
		"every 30s, seven at once":   {clicks(clockwork(30*time.Second, time.Second, 1, day), 7), 10 * time.Minute},
		"every minute, 12 at once":   {clicks(clockwork(time.Minute, time.Second, 1, day), 12), 15 * time.Minute},
		"every 3s and every 10s":     {both(clockwork(3*time.Second, 0, 1, day), clockwork(10*time.Second, 0, 1, day)), 10 * time.Minute},
		"every 5s and every 30s":     {both(clockwork(5*time.Second, 100*time.Millisecond, 1, day), clockwork(30*time.Second, 100*time.Millisecond, 1, day)), 10 * time.Minute},
		"every 10s and every minute": {both(clockwork(10*time.Second, 200*time.Millisecond, 1, day), clockwork(time.Minute, 200*time.Millisecond, 1, day)), 15 * time.Minute},
		"every 30s and every 5 min":  {both(clockwork(30*time.Second, time.Second, 1, day), clockwork(5*time.Minute, time.Second, 1, day)), time.Hour},
		"a click beside a 10s poll":  {both(clockwork(10*time.Second, 100*time.Millisecond, 1, day), somebody(4*time.Minute, day)), 0},
		"somebody who does much, 5s": {somebody(5*time.Second, day), 0},
		"now and then, 20s":          {somebody(20*time.Second, day), 0},
		"now and then, 2 min":        {somebody(2*time.Minute, day), 0},
		"now and then, 8 min":        {somebody(8*time.Minute, day), 0},
		"8 min, five at once":        {clicks(somebody(8*time.Minute, day), 5), 0},
		"8 min, seven at once":       {clicks(somebody(8*time.Minute, day), 7), 0},
		"8 min, twenty at once":      {clicks(somebody(8*time.Minute, day), 20), 0},
		"a habit, 10 min ± 4 min":    {habit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, began := idle.New(), time.Now()
				var counted, longest time.Duration
				for _, at := range c.at {
					time.Sleep(time.Until(began.Add(at)))
					if longest = max(longest, at-counted); !tracker.Beats(box, "post") {
						counted = at
					}
				}
				if c.rest == 0 && longest > idle.Attention || c.rest != 0 && counted > c.rest {
					t.Errorf("counted last at %s; nothing counted for %s", counted, longest)
				}
			})
		})
	}
}

func TestBeats_AClickBetweenThemIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 20 {
			tracker.Beats(box, "graphql")
			time.Sleep(30 * time.Second)
		}
		if !tracker.Beats(box, "graphql") {
			t.Error("a beat counts")
		}
		time.Sleep(12 * time.Second)
		if tracker.Beats(box, "graphql") {
			t.Error("a click does not count")
		}
		time.Sleep(18 * time.Second)
		for range 20 {
			tracker.Beats(box, "graphql")
			time.Sleep(30 * time.Second)
		}
		if !tracker.Beats(box, "graphql") {
			t.Error("a beat counts, long after the click")
		}
		time.Sleep(idle.Attention + 1)
		if tracker.Beats(box, "graphql") || tracker.Beats("other", "graphql") {
			t.Error("what is new does not count")
		}
	})
}

func TestBeats_WhatComesAtOnceIsJudgedAsItsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 20 {
			tracker.Beats(box, "query")
			time.Sleep(30 * time.Second)
		}
		for _, c := range []struct {
			after time.Duration
			own   bool
		}{{0, true}, {12 * time.Second, false}, {17 * time.Second, true}} {
			time.Sleep(c.after)
			for i := range 10 {
				if got := tracker.Beats(box, "query"); got != c.own {
					t.Errorf("the %d. after %s is the page's own: %v", i+1, c.after, got)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	})
}

// TestAnswered_APageAsksAgainAtOnceAndAPersonDoesNot has each request held, as the answer comes when something happens.
func TestAnswered_APageAsksAgainAtOnceAndAPersonDoesNot(t *testing.T) {
	for what, c := range map[string]struct {
		again time.Duration // how long after the answer the next comes, on average
		short int           // every so manyth is answered at once; zero for none
		own   bool
	}{
		"a long poll": {100 * time.Millisecond, 0, true},
		"a long poll, sometimes answered at once":   {300 * time.Millisecond, 3, true},
		"a long poll that takes its time":           {1500 * time.Millisecond, 0, true},
		"somebody who reads the answer":             {30 * time.Second, 0, false},
		"somebody who reads many an answer quickly": {6 * time.Second, 0, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, began, chance := idle.New(), time.Now(), rand.New(rand.NewPCG(5, 6))
				var counted, longest time.Duration
				for i := 1; time.Since(began) < 5*time.Hour; i++ {
					at := time.Since(began)
					if longest = max(longest, at-counted); !tracker.Beats(box, "poll") {
						counted = at
					}
					if c.short == 0 || i%c.short > 0 {
						time.Sleep(time.Second + time.Duration(chance.ExpFloat64()*float64(20*time.Second)))
						tracker.Answered(box, "poll")
					}
					pause := c.again
					if !c.own {
						pause = time.Duration(chance.ExpFloat64() * float64(c.again))
					}
					time.Sleep(pause)
				}
				if c.own && counted > 15*time.Minute || !c.own && longest > 15*time.Minute {
					t.Errorf("counted last at %s; nothing counted for %s", counted, longest)
				}
			})
		})
	}
}

func TestAnswered_WhatSomebodyDoesBesideALongPollCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for i := range 20 {
			if got := tracker.Beats(box, "rpc"); got != (i > 4) {
				t.Errorf("the %d. is the page's own: %v", i+1, got)
			}
			time.Sleep(time.Duration(5+i*i) * time.Second)
			tracker.Answered(box, "rpc")
		}
		time.Sleep(7 * time.Second)
		if tracker.Beats(box, "rpc") {
			t.Error("what comes long after an answer does not count")
		}
	})
}

func TestTurnAway_WhatTriesAgainIsAPageUntilSomebodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		tracker.TurnAway(box, "retries", true)
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 17 * time.Second, 50 * time.Minute} {
			time.Sleep(pause)
			if !tracker.Beats(box, "retries") {
				t.Errorf("it counts after %s", pause)
			}
		}
		tracker.Touch(box, command)
		if tracker.Beats(box, "retries") {
			t.Error("it does not count when somebody is there")
		}
	})
}

func TestTurnAway_WhatDoesNotTryAgainHasNoRhythmAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 20 {
			tracker.Beats(box, "reload")
			time.Sleep(time.Minute)
		}
		if !tracker.Beats(box, "reload") {
			t.Error("a beat counts")
		}
		tracker.TurnAway(box, "reload", false)
		time.Sleep(time.Minute)
		if tracker.Beats(box, "reload") {
			t.Error("a person who reloads does not count")
		}
	})
}

func TestBeats_EndlessKindsTakeNoMemory(t *testing.T) {
	tracker := idle.New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100_000 {
		tracker.Beats(box, fmt.Sprint("kind ", i))
		tracker.TurnAway(box, fmt.Sprint("other ", i), true)
		tracker.Answered(box, fmt.Sprint("third ", i))
	}
	for range 10_000 {
		tracker.Beats(box, "the same")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("it has grown by %d bytes", grown)
	}
	runtime.KeepAlive(tracker)
}
