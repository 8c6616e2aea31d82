// Package ratelimit bounds how often something is done, for each key: a burst at once, and one more after each pause.
//
// It does not know what it counts, and it says nothing to people: its users word the refusal.
//
// Invariant: it remembers a bounded number of keys, and forgets first those that are as good as new.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const maxKeys = 10_000

// Keyed is a token bucket for each key. Safe for concurrent use.
type Keyed struct {
	Burst int           // at once
	Every time.Duration // and one more each

	mu sync.Mutex
	by map[string]*rate.Limiter
}

// Take counts one at key and gives 0, or the time until one more is allowed; then nothing is counted. giveBack undoes the
// count, for what turns out not to be limited. Take never waits.
func (k *Keyed) Take(key string) (wait time.Duration, giveBack func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	one := k.by[key]
	if one == nil {
		k.makeRoom(now)
		one = rate.NewLimiter(rate.Every(k.Every), k.Burst)
		k.by[key] = one
	}
	r := one.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, func() {}
	}
	return 0, func() { one.AllowN(time.Now(), -1) } // Cancel does nothing once the time has come
}

// makeRoom needs mu. It looks at everything, so it makes room for many.
func (k *Keyed) makeRoom(now time.Time) {
	if k.by == nil {
		k.by = map[string]*rate.Limiter{}
	}
	if len(k.by) < maxKeys {
		return
	}
	for key, one := range k.by {
		if one.TokensAt(now) >= float64(k.Burst) {
			delete(k.by, key)
		}
	}
	for key := range k.by {
		if len(k.by) <= maxKeys*9/10 {
			return
		}
		delete(k.by, key)
	}
}
