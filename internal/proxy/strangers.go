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
	strangeBurst = 30               // wakes of one sandbox at once
	strangeEvery = time.Minute      // and one more each
	failedPause  = 10 * time.Second // after a wake that came to nothing; doubles
	failedMost   = 5 * time.Minute
	maxStrange   = 4096 // sandboxes remembered
)

// strangers bounds the wakes of outsiders by sandbox. The zero value is ready for use.
type strangers struct {
	mu sync.Mutex
	by map[string]stranger // by sandbox id
}

type stranger struct {
	rest  time.Time // since when the sandbox was at rest that may be woken: all who find it so wake it together
	free  time.Time // when all wakes will be forgotten again
	fails int       // in a row
	until time.Time // when one may be tried again after those
	used  time.Time
}

// take says whether an outsider may wake sb now. Limited when it was woken too often, Unavailable when that has failed.
func (s *strangers) take(sb sandbox.Sandbox, now time.Time) error {
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
		if wait := one.free.Sub(now) - (strangeBurst-1)*strangeEvery; wait > 0 {
			return fault.Later(fault.Limited, wait, "%s is woken too often. Try again in a minute.", sb.Name)
		}
		one.free, one.rest = one.free.Add(strangeEvery), sb.Changed
	}
	s.keep(sb.ID, one)
	return nil
}

// ended notes what came of a wake.
func (s *strangers) ended(id string, err error, now time.Time) {
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
func (s *strangers) keep(id string, one stranger) {
	if len(s.by) >= maxStrange {
		kept := map[string]stranger{}
		for other, have := range s.by {
			if time.Since(have.used) < failedMost {
				kept[other] = have
			}
		}
		if s.by = kept; len(kept) >= maxStrange {
			clear(s.by)
		}
	}
	if s.by == nil {
		s.by = map[string]stranger{}
	}
	s.by[id] = one
}

// opener opens the sandbox that a request may use.
type opener func(context.Context, idle.Use) (*access.Session, error)

// knock opens the sandbox, for outsiders within bounds. sb is the sandbox as it was when the request came.
func (v visit) knock(ctx context.Context, sb sandbox.Sandbox, open opener, use idle.Use) (*access.Session, error) {
	if !v.who.outside() || !sb.State.Resting() {
		return open(ctx, use)
	}
	if err := v.strangers.take(sb, time.Now()); err != nil {
		return nil, err
	}
	session, err := open(ctx, use)
	if err == nil || ctx.Err() == nil { // else it was given up, or goes on
		v.strangers.ended(sb.ID, err, time.Now())
	}
	return session, err
}
