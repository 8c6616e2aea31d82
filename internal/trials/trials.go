// Package trials has several agents try the same: it sends one message to agents in clones of a sandbox, shows what each of them did, and
// makes the sandbox as the clone is that a person keeps.
//
// It takes no snapshots, makes no sandboxes and knows no agents: the services for these do that. It answers no requests.
//
// Invariant: what is being made, kept or deleted is stored first, so that a restart of sandboxd knows every clone and finishes it.
package trials

import (
	"context"
	"strings"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// State is what becomes of a trial.
type State string

// The states of a trial.
const (
	Making    State = "making"   // its clones are being made
	Open      State = "open"     // a person can keep one
	Keeping   State = "keeping"  // the sandbox is being made as one of them is
	Deleting  State = "deleting" // the clones that are not kept are being deleted
	Kept      State = "kept"
	Cancelled State = "cancelled"
	Failed    State = "failed" // no clone could be made
)

// Over reports whether nothing more becomes of it.
func (s State) Over() bool { return s == Kept || s == Cancelled || s == Failed }

// Trial is one message, and the clones that got it. It is a value: do not change its Clones.
type Trial struct {
	ID       string // 16 hex digits
	Sandbox  string // id
	Name     string // of the sandbox
	Owner    string // user id, of the clones and their conversations
	Text     string
	Agent    string
	Model    string
	Mode     chat.Mode
	State    State
	Problem  string // why it failed, or why what was tried last did; for a person
	Snapshot string // id of the one that the clones are made from
	Kept     string // id of the clone that the sandbox is made as; "" for none
	Created  time.Time
	Clones   []Clone
}

// Clone is one of a trial's.
type Clone struct {
	Name         string `json:"name"`
	Sandbox      string `json:"sandbox,omitempty"`      // id; "" until it is made
	Conversation string `json:"conversation,omitempty"` // id; "" until there is one
	Sent         bool   `json:"sent,omitempty"`         // its agent has the message
	Problem      string `json:"problem,omitempty"`      // why it could not be made, for a person
}

// Store keeps trials. Implementations pass trialstest.StoreContract. Safe for concurrent use.
type Store interface {
	// Trials gives all, the oldest first.
	Trials(ctx context.Context) ([]Trial, error)
	// Put adds one, or replaces the one with its id. Kind: NotFound when its sandbox or its owner is gone, and it with them.
	Put(ctx context.Context, t Trial) error
	// Delete deletes one; none is no error.
	Delete(ctx context.Context, id string) error
}

// Limits.
const (
	MinClones   = 2
	MaxClones   = 8        // of one trial
	MaxText     = 64 << 10 // bytes of a message
	MostAtATime = 16       // clones of a person, of trials that are not over
	keptOver    = 20       // trials of a sandbox that are over; the oldest are forgotten
)

// Ask asks for a trial. Agent, Model and Mode are as for a conversation.
type Ask struct {
	Owner string // user id
	Text  string
	Count int
	Agent string
	Model string
	Mode  chat.Mode
}

func (a Ask) check() error {
	switch {
	case a.Count < MinClones || a.Count > MaxClones:
		return fault.Field("n", "The number of tries is from %d to %d.", MinClones, MaxClones)
	case strings.TrimSpace(a.Text) == "":
		return fault.Field("text", "The message is empty.")
	case len(a.Text) > MaxText:
		return fault.Field("text", "The message for several tries has at most %d KiB. Put the text into a file of the sandbox.", MaxText>>10)
	}
	return nil
}

// Of says that a sandbox is a clone of a trial.
type Of struct {
	Trial string // id
	Owner string // user id, of the trial
	Name  string // of the sandbox that it is a try of
	N     int    // from 1
}

// NotFound says that there is no such trial, or none that may be seen.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "There are no tries %.64q of this sandbox.", id)
}
