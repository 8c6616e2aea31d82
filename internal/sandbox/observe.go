package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// Action is a kind of work on a sandbox, as a Config's Observe is told of it.
type Action string

// The actions. The work of the pools, of reconciling, and what is resumed after a crash are none.
const (
	ActionCreate Action = "create"
	ActionStart  Action = "start" // or a restart
	ActionWake   Action = "wake"  // from a state of rest, on use or by its owner
	ActionFreeze Action = "freeze"
	ActionSleep  Action = "sleep"
	ActionStop   Action = "stop"
	ActionDelete Action = "delete"
)

// errUsedAgain is how a rest ends that a use has come between.
var errUsedAgain = fault.New(fault.Conflict, "It was used again meanwhile.")

// observed does work, and tells Observe of it.
func (o *operations) observed(ctx context.Context, a Action, was State, work func() error) error {
	if o.observe == nil {
		return work()
	}
	done := o.observe(ctx, a, was)
	err := work()
	done(err)
	return err
}

// upFrom is the action that takes a sandbox from a state to Running.
func upFrom(s State) Action {
	if s.Resting() {
		return ActionWake
	}
	return ActionStart
}
