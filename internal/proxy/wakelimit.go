package proxy

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// How often a sandbox is woken by those whom nobody knows. Whoever may use it is not bounded by this.
const (
	wakeBurst   = 30               // wakes of one sandbox at once
	wakeEvery   = time.Minute      // and one more each
	failedPause = 10 * time.Second // after a wake that came to nothing; doubles
	failedMost  = 5 * time.Minute
	maxLimited  = 4096 // sandboxes remembered
)

// wakeLimiter bounds the wakes of outsiders by sandbox. The zero value is ready for use.
type wakeLimiter struct {
	mu sync.Mutex
	by map[string]wakes // by sandbox id
}

type wakes struct {
	rest  time.Time // since when the sandbox was at rest that may be woken: all who find it so wake it together
	free  time.Time // when all wakes will be forgotten again
	fails int       // in a row
	until time.Time // when one may be tried again after those
	used  time.Time
}

// take says whether an outsider may wake sb now. Limited when it was woken too often, Unavailable when that has failed.
func (s *wakeLimiter) take(sb sandbox.Sandbox, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[sb.ID]
	if now.Before(one.until) {
		return fault.Later(fault.Unavailable, one.until.Sub(now), "%s could not be woken just now. It is tried again in a while.", sb.Name)
	}
	one.used = now
	if !one.rest.Equal(sb.Changed) || one.rest.IsZero() {
		if one.free.Before(now) {
			one.free = now
		}
		if wait := one.free.Sub(now) - (wakeBurst-1)*wakeEvery; wait > 0 {
			return fault.Later(fault.Limited, wait, "%s is woken too often. Try again in a minute.", sb.Name)
		}
		one.free, one.rest = one.free.Add(wakeEvery), sb.Changed
	}
	s.keep(sb.ID, one)
	return nil
}

// ended notes what came of a wake.
func (s *wakeLimiter) ended(id string, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[id]
	switch {
	case err == nil:
		one.fails = 0
	case now.Before(one.until): // one of many who waited for the same
		return
	default:
		one.until = now.Add(min(failedPause<<min(one.fails, 10), failedMost))
		one.fails++
	}
	s.keep(id, one)
}

// keep needs mu. When there are too many, what is as good as forgotten goes, and everything when that is not enough.
func (s *wakeLimiter) keep(id string, one wakes) {
	if len(s.by) >= maxLimited {
		kept := map[string]wakes{}
		for other, have := range s.by {
			if time.Since(have.used) < failedMost {
				kept[other] = have
			}
		}
		if s.by = kept; len(kept) >= maxLimited {
			clear(s.by)
		}
	}
	if s.by == nil {
		s.by = map[string]wakes{}
	}
	s.by[id] = one
}

// opener opens the sandbox that a request may use.
type opener func(context.Context, idle.Use) (*access.Session, error)

// openLimited opens the sandbox, for outsiders within bounds. sb is the sandbox as it was when the request came.
func (i *inbound) openLimited(ctx context.Context, sb sandbox.Sandbox, open opener, use idle.Use) (*access.Session, error) {
	if !i.who.outside() || !sb.State.Resting() {
		return open(ctx, use)
	}
	if err := i.proxy.wakes.take(sb, time.Now()); err != nil {
		return nil, err
	}
	session, err := open(ctx, use)
	if err == nil || ctx.Err() == nil { // else it was given up, or goes on
		i.proxy.wakes.ended(sb.ID, err, time.Now())
	}
	return session, err
}
