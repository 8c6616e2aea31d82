package gateway

import (
	"context"
	"sync"
	"time"
)

// counters hold what each user and each sandbox has used in the current day and month. What was used before sandboxd has started comes
// from the store.
type counters struct {
	mu     sync.Mutex
	month  time.Time // that is counted; with another one all is forgotten
	latest time.Time // that was told
	stale  bool      // the clock was set back: what was used is to be read from the store
	by     map[subject]*used
}

// setBack is how far a clock goes back that was set, and not just asked for by one who came later.
const setBack = time.Minute

// subject is a user or a sandbox.
type subject struct {
	scope Scope
	id    string
}

// used is what a subject has used.
type used struct {
	day        time.Time // that today is about
	today, all Usage     // of the day and of the month
}

// begin gives when the period around a time began.
func (p Period) begin(at time.Time) time.Time {
	y, m, d := at.UTC().Date()
	if p == Month {
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// end gives when the period ends that began then.
func (p Period) end(began time.Time) time.Time {
	if p == Month {
		return began.AddDate(0, 1, 0)
	}
	return began.AddDate(0, 0, 1)
}

// load reads what was used in the current month.
func (c *counters) load(ctx context.Context, store Store, now time.Time) error {
	fresh := counters{month: Month.begin(now), latest: now, by: map[subject]*used{}}
	day := Day.begin(now)
	for _, scope := range []Scope{PerUser, PerSandbox} {
		for _, from := range []time.Time{fresh.month, day} {
			list, err := store.Usage(ctx, UsageQuery{From: from, To: Month.end(fresh.month), By: string(scope), Served: true})
			if err != nil {
				return err
			}
			for _, u := range list {
				if u.Key == "" {
					continue
				}
				of := fresh.of(subject{scope, u.Key}, day)
				if from.Equal(day) {
					of.today = u
				}
				if from.Equal(fresh.month) {
					of.all = u
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.month, c.latest, c.stale, c.by = fresh.month, fresh.latest, false, fresh.by
	return nil
}

// of gives what a subject has used, with mu: today is about the day.
func (c *counters) of(s subject, day time.Time) *used {
	if c.by == nil {
		c.by = map[subject]*used{}
	}
	u := c.by[s]
	if u == nil {
		u = &used{day: day}
		c.by[s] = u
	}
	if u.day.Before(day) {
		u.day, u.today = day, Usage{}
	}
	return u
}

// add counts what a user and a sandbox have used at a time, with mu. What belongs to a period that is over is not counted to it.
func (c *counters) add(user, sandbox string, at, now time.Time, u Usage) {
	day := c.roll(now)
	if at.Before(c.month) {
		return
	}
	for _, s := range []subject{{PerUser, user}, {PerSandbox, sandbox}} {
		if s.id == "" {
			continue
		}
		of := c.of(s, day)
		of.all.plus(u)
		if !at.Before(of.day) {
			of.today.plus(u)
		}
	}
}

// roll forgets the months before, with mu, and gives the day. When a clock that was ahead is set right it forgets all: or nothing more would
// count until the day comes that it told.
func (c *counters) roll(now time.Time) time.Time {
	switch {
	case c.latest.Sub(now) > setBack:
		c.by, c.stale = nil, true
	case now.Before(c.latest): // it was asked for earlier
		now = c.latest
	}
	c.latest = now
	if month := Month.begin(now); !month.Equal(c.month) {
		c.month, c.by = month, nil
	}
	return Day.begin(now)
}

// isStale reports whether what was used is to be read from the store.
func (c *counters) isStale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale
}

// standing gives budgets with what is used of them, with mu.
func (c *counters) standing(bounds []bound, now time.Time) []Standing {
	day := c.roll(now)
	list := make([]Standing, 0, len(bounds))
	for _, b := range bounds {
		at := Standing{Budget: b.Budget}
		if u := c.by[subject{b.Scope, b.who}]; u != nil && b.Period == Month {
			at.Used = u.all
		} else if u != nil && !u.day.Before(day) {
			at.Used = u.today
		}
		at.Used.From, at.Used.Key, at.Used.Label = b.Period.begin(now), b.who, ""
		at.Ends = b.Period.end(at.Used.From)
		list = append(list, at)
	}
	return list
}

// plus adds what was used.
func (u *Usage) plus(o Usage) {
	u.Requests += o.Requests
	u.Failed += o.Failed
	u.Tokens.Input += o.Tokens.Input
	u.Tokens.Output += o.Tokens.Output
	u.Tokens.CacheRead += o.Tokens.CacheRead
	u.Tokens.CacheWrite += o.Tokens.CacheWrite
	u.Cost += o.Cost
}
