package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/ratelimit"
	"sandboxd/internal/sandbox"
)

// How often outsiders may wake a sandbox. Its users have no such limit.
const (
	wakeBurst   = 30               // wakes of one sandbox at once
	wakeEvery   = time.Minute      // and one more each
	failedPause = 10 * time.Second // after a failed wake; doubles
	failedMost  = 5 * time.Minute
	maxLimited  = 4096 // sandboxes remembered
)

// wakeLimiter limits the wakes of each sandbox by outsiders.
type wakeLimiter struct {
	rate ratelimit.Keyed // by sandbox id

	mu sync.Mutex
	by map[string]wakes // by sandbox id
}

func newWakeLimiter() *wakeLimiter {
	return &wakeLimiter{rate: ratelimit.Keyed{Burst: wakeBurst, Every: wakeEvery}, by: map[string]wakes{}}
}

type wakes struct {
	rest  time.Time // when the sandbox to be woken came to rest: its many requests are one wake
	fails int       // in a row
	until time.Time // when the next may be tried
}

// take counts an outsider's wake of sb. Limited when it was woken too often, Unavailable for a while after a failed wake.
func (s *wakeLimiter) take(sb sandbox.Sandbox, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[sb.ID]
	if now.Before(one.until) {
		return fault.Later(fault.Unavailable, one.until.Sub(now), "%s could not be woken just now. It is tried again in a while.", sb.Name)
	}
	if !one.rest.Equal(sb.Changed) || one.rest.IsZero() {
		if wait, _ := s.rate.Take(sb.ID); wait > 0 {
			return fault.Later(fault.Limited, wait, "%s is woken too often. Try again in a minute.", sb.Name)
		}
		one.rest = sb.Changed
	}
	s.keep(sb.ID, one)
	return nil
}

// ended notes the result of a wake.
func (s *wakeLimiter) ended(id string, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[id]
	switch {
	case err == nil:
		one.fails = 0
	case now.Before(one.until): // one of many requests for the same wake
		return
	default:
		one.until = now.Add(min(failedPause<<min(one.fails, 10), failedMost))
		one.fails++
	}
	s.keep(id, one)
}

// keep stores one; it needs mu. When there are too many, it forgets all others: some are then counted once more.
func (s *wakeLimiter) keep(id string, one wakes) {
	if len(s.by) >= maxLimited {
		clear(s.by)
	}
	s.by[id] = one
}

// limit does wake, which wakes sb if it is at rest, for outsiders within the bounds. sb is the sandbox as it was before.
func (s *wakeLimiter) limit(ctx context.Context, who caller, sb sandbox.Sandbox, wake func() error) error {
	if !who.outside() || !sb.State.Resting() {
		return wake()
	}
	if err := s.take(sb, time.Now()); err != nil {
		return err
	}
	err := wake()
	if err == nil || ctx.Err() == nil && !errors.Is(err, sandbox.ErrNoAnswer) { // else the client left, or the wake continues
		s.ended(sb.ID, err, time.Now())
	}
	return err
}

// opener is Open or OpenStream of a handle.
type opener func(context.Context, idle.Use) (*access.Session, error)

// openLimited opens the sandbox, for outsiders within the limiter's bounds. sb is the sandbox as it was on the request's arrival.
func (i *inbound) openLimited(ctx context.Context, sb sandbox.Sandbox, open opener, use idle.Use) (session *access.Session, err error) {
	err = i.proxy.wakes.limit(ctx, i.who, sb, func() (err error) {
		session, err = open(ctx, use)
		return err
	})
	return session, err
}
