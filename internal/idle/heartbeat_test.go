package idle

import (
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
		"once an hour":    {[]time.Duration{3600, 3600, 3600, 3600, 3600}, []int{9}, false},
		"empty ones":      {[]time.Duration{25, 25, 25, 25, 25}, []int{0}, true},
	} {
		var b Heartbeats
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
