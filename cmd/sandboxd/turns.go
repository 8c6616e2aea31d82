package main

import (
	"math"
	"time"

	"github.com/spf13/pflag"

	"sandboxd/internal/agent"
	"sandboxd/internal/fault"
)

// mostDollars is the most that a limit in dollars can be.
const mostDollars = 1_000_000

func (c *Config) turnFlags(f *pflag.FlagSet) {
	f.IntVar(&c.TurnSteps, "turn-steps", agent.DefaultSteps, "requests to the model that a turn of sandboxd's own agent may make; 0 for no limit")
	f.Int64Var(&c.TurnTokens, "turn-tokens", 0, "tokens that a turn of an agent may take, in and out; 0 for no limit")
	f.Float64Var(&c.TurnDollars, "turn-dollars", 0, "dollars that a turn of an agent may cost, such as 2.50, where the price is known; 0 for no limit")
	f.DurationVar(&c.TurnTime, "turn-time", agent.DefaultTime, "how long a turn of an agent may take, without the time in which it waits for an answer of a person; 0 for no limit")
}

func (c *Config) checkTurns() error {
	switch {
	case c.TurnSteps < 0:
		return fault.Field("turn-steps", "--turn-steps is %d; it must be a number of steps, or 0 for no limit.", c.TurnSteps)
	case c.TurnTokens < 0:
		return fault.Field("turn-tokens", "--turn-tokens is %d; it must be a number of tokens, or 0 for no limit.", c.TurnTokens)
	case !(c.TurnDollars >= 0 && c.TurnDollars <= mostDollars): // NaN too
		return fault.Field("turn-dollars", "--turn-dollars is %v; it must be between 0 for no limit and %d.", c.TurnDollars, mostDollars)
	case c.TurnTime < 0:
		return fault.Field("turn-time", "--turn-time is %s; it must be a duration such as \"4h\", or 0 for no limit.", c.TurnTime)
	}
	return nil
}

// turnLimits gives the limits of a turn of an agent, of which package agent takes 0 steps and no time for its own.
func (c *Config) turnLimits() agent.Limits {
	l := agent.Limits{Steps: c.TurnSteps, Tokens: c.TurnTokens, Cost: int64(math.Ceil(c.TurnDollars * 1e6)), Time: c.TurnTime}
	if l.Steps == 0 {
		l.Steps = math.MaxInt
	}
	if l.Time == 0 {
		l.Time = noEnd
	}
	return l
}

// noEnd is longer than any turn.
const noEnd = 100 * 365 * 24 * time.Hour
