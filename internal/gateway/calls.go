package gateway

import (
	"context"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of a call.
const (
	maxText  = 512           // bytes of a problem or a name
	maxCount = 1_000_000_000 // tokens of one sort: a provider that says more is wrong
	maxCost  = 1_000_000_000_000
	maxParts = 10_000 // of a period, in the usage
)

// record counts a call into budgets at once, and into the log and usage soon. It never waits. Each call that was admitted, or refused, is
// recorded once, when it is over. Its ID is set here.
func (s *Service) record(c Call) {
	c = c.bounded(s.c.Now())
	if !s.table().settings.LogContent {
		c.Request, c.Answer = "", ""
	}
	u := Usage{Tokens: c.Tokens, Cost: c.Cost}
	if c.Status >= 400 {
		u.Failed = 1
	}
	if c.Provider != "" {
		s.counts.mu.Lock()
		s.counts.add(c.User, c.Sandbox, c.Time, s.c.Now(), u)
		s.counts.mu.Unlock()
	}
	s.queue.add(c, s.c.Now())
}

// bounded gives the call with nothing in it that is larger than it may be.
func (c Call) bounded(now time.Time) Call {
	for _, t := range []*string{&c.User, &c.Sandbox, &c.Label, &c.Provider, &c.Protocol, &c.Asked, &c.Model, &c.Problem} {
		*t = text.OneLine(*t, maxText)
	}
	for _, n := range []*int64{&c.Tokens.Input, &c.Tokens.Output, &c.Tokens.CacheRead, &c.Tokens.CacheWrite} {
		*n = min(max(*n, 0), maxCount)
	}
	c.Cost = min(max(c.Cost, 0), maxCost)
	c.FirstByte, c.Took = max(c.FirstByte, 0), max(c.Took, 0)
	c.Request, c.Answer = c.Request[:min(len(c.Request), MaxContent)], c.Answer[:min(len(c.Answer), MaxContent)]
	if c.Time.IsZero() || c.Time.After(now) {
		c.Time = now
	}
	c.Time = c.Time.UTC().Truncate(time.Microsecond)
	return c
}

// Usage gives what was used. Kind: Invalid.
func (s *Service) Usage(ctx context.Context, q UsageQuery) ([]Usage, error) {
	switch {
	case !q.From.Before(q.To):
		return nil, fault.Field("to", "The end must be after the beginning.")
	case q.Step < 0 || q.Step%time.Hour != 0:
		return nil, fault.Field("step", "A step is a number of hours.")
	case q.Step > 0 && q.To.Sub(q.From)/q.Step > maxParts:
		return nil, fault.Field("step", "That are more than %d parts. Choose a longer step.", maxParts)
	}
	switch q.By {
	case "", "user", "sandbox", "model", "provider":
		return s.c.Store.Usage(ctx, q)
	}
	return nil, fault.Field("by", "Usage is grouped by user, sandbox, model or provider.")
}

// Calls gives calls, newest first, without what was asked and answered.
func (s *Service) Calls(ctx context.Context, q CallQuery) ([]Call, error) {
	const usual, most = 100, 1000
	if q.Limit <= 0 {
		q.Limit = usual
	}
	q.Limit = min(q.Limit, most)
	return s.c.Store.Calls(ctx, q)
}

// Call gives one, with what was asked and answered when that was kept. Kind: NotFound.
func (s *Service) Call(ctx context.Context, id string) (Call, error) { return s.c.Store.Call(ctx, id) }
