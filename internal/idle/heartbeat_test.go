package idle

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHeartbeats_AreRegularAndOfOneSize(t *testing.T) {
	for what, c := range map[string]struct {
		pauses []time.Duration
		sizes  []int
		want   bool // of the last
	}{
		"regular":         {[]time.Duration{25, 25, 25, 25, 25}, []int{9}, true},
		"nearly regular":  {[]time.Duration{25, 26, 24, 27, 25}, []int{9}, true},
		"too few":         {[]time.Duration{25, 25, 25}, []int{9}, false},
		"irregular":       {[]time.Duration{25, 7, 40, 25, 11}, []int{9}, false},
		"a press between": {[]time.Duration{25, 25, 25, 25, 7}, []int{9}, false},
		"two kinds":       {[]time.Duration{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, []int{9, 12}, true},
		"many sizes":      {[]time.Duration{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
		"typing":          {[]time.Duration{0, 0, 0, 0, 0, 0}, []int{9}, false},
		"twelve at once":  {[]time.Duration{30, 0, 0, 0, 30, 0, 0, 30, 30, 0, 30, 0, 0}, []int{9}, true},
		"each half hour":  {[]time.Duration{1800, 1800, 1801, 1800, 1799}, []int{9}, true},
		"once an hour":    {[]time.Duration{3600, 3600, 3600, 3600, 3600}, []int{9}, false},
		"empty ones":      {[]time.Duration{25, 25, 25, 25, 25}, []int{0}, true},
	} {
		var b Heartbeats[int]
		now := time.Now()
		got := false
		for i, pause := range c.pauses {
			now = now.Add(pause * time.Second)
			got = b.Is(c.sizes[i%len(c.sizes)], now)
		}
		if got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestHeartbeats_ATimerIsOneAndAPersonIsNot has both go on all day: of what comes nothing counts after a while, or there never
// is an hour in which nothing counts.
func TestHeartbeats_ATimerIsOneAndAPersonIsNot(t *testing.T) {
	const day = 10 * time.Hour
	var chance *rand.Rand
	moody := func(every time.Duration) func() time.Duration {
		return func() time.Duration { return time.Second + time.Duration(chance.ExpFloat64()*float64(every)) }
	}
	steady := func(every, jitter time.Duration) func() time.Duration {
		return func() time.Duration { return every - jitter + time.Duration(chance.Int64N(int64(2*jitter+1))) }
	}
	for what, c := range map[string]struct {
		pause func() time.Duration
		timer bool
	}{
		"each second":                {steady(time.Second, 100*time.Millisecond), true},
		"every 10s":                  {steady(10*time.Second, time.Second), true},
		"every 30s":                  {steady(30*time.Second, 2*time.Second), true},
		"every 5 min":                {steady(5*time.Minute, time.Second), true},
		"every half hour":            {steady(30*time.Minute, time.Second), true},
		"a person who does much, 5s": {moody(5 * time.Second), false},
		"now and then, 20s":          {moody(20 * time.Second), false},
		"now and then, 2 min":        {moody(2 * time.Minute), false},
		"now and then, 8 min":        {moody(8 * time.Minute), false},
		"a habit, 10 min ± 4 min":    {steady(10*time.Minute, 4*time.Minute), false},
	} {
		chance = rand.New(rand.NewPCG(1, 2)) // the same for each case, whichever comes first
		var h Heartbeats[string]
		var counted, longest time.Duration
		began := time.Now()
		for at := time.Duration(0); at < day; at += c.pause() {
			if longest = max(longest, at-counted); !h.Is("post", began.Add(at)) {
				counted = at
			}
		}
		if c.timer && counted > 3*time.Hour || !c.timer && longest > Attention {
			t.Errorf("%s: counted last at %s; nothing counted for %s", what, counted, longest)
		}
	}
}
