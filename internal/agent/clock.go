package agent

import (
	"sync"
	"time"
)

// clock measures the time of a turn. It is stopped while a person is asked: they may be asleep.
type clock struct {
	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	since   time.Time
	running bool
}

// newClock starts a clock, which calls expired after d.
func newClock(d time.Duration, expired func()) *clock {
	return &clock{timer: time.AfterFunc(d, expired), left: d, since: time.Now(), running: true}
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running && c.timer.Stop() {
		c.running = false
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.running, c.since = true, time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
