package program

import (
	"time"

	"sandboxd/internal/chat"
)

// Limits bound one turn of an agent. 0 means no limit.
type Limits struct {
	Tokens int64         // of one request: the most that the agent says it has in context, which is less than the turn takes in all
	Cost   int64         // millionths of a dollar, as the agent tells it; one that tells nothing has no such limit
	Time   time.Duration // without that in which a person is asked
}

// spent is what a turn has taken since it was begun or resumed.
type spent struct {
	Tokens int64         `json:"tokens,omitempty"`
	Cost   int64         `json:"cost,omitempty"`
	Time   time.Duration `json:"time,omitempty"`
}

// watch adds the time since it was last called, unless a person was asked then, and stops the agent at a limit.
func (r *run) watch() {
	now := time.Now()
	if !r.watched.IsZero() && !r.idle {
		r.s.Spent.Time += now.Sub(r.watched)
	}
	r.watched, r.idle = now, len(r.s.Asked) > 0
	if why := r.d.c.Limits.reached(r.s.Spent); why != "" && r.s.Limit == "" && !r.over && r.problem == nil && r.cancelled.IsZero() {
		r.s.Limit = why
		r.cancel()
	}
}

// reached says which limit is reached; "" for none.
func (l Limits) reached(s spent) string {
	switch {
	case l.Time > 0 && s.Time >= l.Time:
		return chat.AtTime
	case l.Cost > 0 && s.Cost >= l.Cost:
		return chat.AtMoney
	case l.Tokens > 0 && s.Tokens >= l.Tokens:
		return chat.AtTokens
	}
	return ""
}

// left is how long the turn may still take, at most wait.
func (r *run) left(wait time.Duration) time.Duration {
	if r.d.c.Limits.Time <= 0 || r.idle || !r.cancelled.IsZero() {
		return wait
	}
	return min(wait, max(r.d.c.Limits.Time-r.s.Spent.Time, 0))
}
