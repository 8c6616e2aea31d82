package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// Action is a kind of work on a sandbox, as a Config's Observe is told of it.
type Action string

// The actions. The work of the pools, of reconciling, and what is resumed after a crash are none, but for a failure.
const (
	ActionCreate   Action = "create"
	ActionStart    Action = "start" // or a restart
	ActionWake     Action = "wake"  // from a state of rest, on use or by its owner
	ActionFreeze   Action = "freeze"
	ActionSleep    Action = "sleep"
	ActionStop     Action = "stop"
	ActionDelete   Action = "delete"
	ActionBackup   Action = "backup"  // its home is read
	ActionRestore  Action = "restore" // its home is replaced
	ActionSnapshot Action = "snapshot"
	ActionRevert   Action = "revert" // to a snapshot
	ActionUpdate   Action = "update" // to the image that its template gives now, and back when that fails
	ActionFail     Action = "fail"   // it has failed, for whatever reason: the row has it; this takes no time
)

// errUsedAgain is how a rest ends that a use has come between.
var errUsedAgain = fault.New(fault.Conflict, "It was used again meanwhile.")

// observed does work, and tells Observe of it.
func (o *operations) observed(ctx context.Context, a Action, was State, s Sandbox, work func() error) error {
	if o.observe == nil {
		return work()
	}
	done := o.observe(ctx, a, was, s)
	err := work()
	done(err)
	return err
}

// Asked gives the context of work, with the values of the context of its caller, who may leave before it ends.
func Asked(work, by context.Context) context.Context { return asked{work, by} }

type asked struct {
	context.Context
	by context.Context
}

// Value implements context.Context.
func (a asked) Value(key any) any {
	if v := a.Context.Value(key); v != nil {
		return v
	}
	return a.by.Value(key)
}

// upFrom is the action that takes a sandbox from a state to Running.
func upFrom(s State) Action {
	if s.Resting() {
		return ActionWake
	}
	return ActionStart
}
