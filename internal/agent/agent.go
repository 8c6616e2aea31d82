// Package agent runs one turn of a conversation with a language model: it streams the model's answer, runs the tools that it calls,
// feeds it their results, and repeats that until the model ends its turn or a limit is reached.
//
// It is pure: it keeps nothing, knows no provider, no sandbox and no person. The transcript is its caller's, who gets each event and each
// message as it comes; providers are behind Model, which package agent's drivers implement; tools and permissions are functions.
//
// Invariant: what Run has added to a transcript can be sent to every provider, however the turn ended: each tool call has one result.
package agent

import (
	"context"
	"time"
)

// Turn is what Run works on.
type Turn struct {
	Model    Model
	System   string    // the system prompt
	Messages []Message // the transcript so far; Run repairs a copy of it first
	Tools    []Tool

	// Permit is asked before each call of a known tool with valid arguments, one call at a time and in order. It may block as long as
	// ctx lives, such as to ask a person. Nil permits all. An error ends the turn: with Cancelled when ctx has ended, else with Failed.
	Permit func(ctx context.Context, call Call, tool Tool) (Decision, error)
	// Sink gets each event in order, one at a time; the turn waits for it. Nil drops them.
	Sink func(Event)
	// Price gives what usage costs in millionths of a dollar, and whether that is known. Nil means that it is not.
	Price func(Usage) (cost int64, known bool)

	Limits   Limits
	Window   int         // how many tokens the model takes in and gives out at once; 0 means DefaultWindow
	Output   int         // how many it may give out in one step; 0 leaves it to the provider
	Effort   string      // how hard it should think: "", "low", "medium" or "high"; "" leaves it to the provider
	NoImages bool        // the model cannot see; pictures are replaced by a line that says so
	Report   func(error) // gets errors of tools and their panics, for the log; nil drops them
	Retry    Retry
}

// Limits bound one turn. Each ends it cleanly: Run can be called again with the transcript to continue.
type Limits struct {
	Steps  int           // requests to the model, those for summaries not included; 0 means DefaultSteps
	Tokens int64         // in and out, cached ones included; 0 means no limit
	Cost   int64         // millionths of a dollar; 0 means no limit
	Time   time.Duration // without that of Permit; 0 means DefaultTime
}

// Retry says how often and how fast a request that failed before anything of its answer came is sent again.
type Retry struct {
	Tries   int           // in all; 0 means 5
	Base    time.Duration // the first wait, doubled each time; 0 means one second
	Longest time.Duration // a provider that asks for a longer wait ends the turn; 0 means two minutes
}

// Defaults.
const (
	DefaultWindow = 128_000
	DefaultSteps  = 200
	DefaultTime   = 4 * time.Hour
)

// Decision is the answer of Permit.
type Decision struct {
	Allow  bool
	Reason string // why not, for the model; "" for none
	End    bool   // a refusal that also ends the turn
}

// Ending says why a turn ended.
type Ending string

// The endings. All but Done can be continued by another Run with the same transcript.
const (
	Done       Ending = "done"        // the model ended its turn
	Cancelled  Ending = "cancelled"   // ctx ended
	Failed     Ending = "failed"      // Result.Err says why
	Refused    Ending = "refused"     // a person refused a call and ended the turn
	Declined   Ending = "declined"    // the model or its provider's filter will not answer this
	Looped     Ending = "looped"      // the model makes the same call again and again
	CutOff     Ending = "cut_off"     // the answer reached the most that the model may give out in one step
	StepLimit  Ending = "step_limit"  // Limits.Steps
	TokenLimit Ending = "token_limit" // Limits.Tokens
	CostLimit  Ending = "cost_limit"  // Limits.Cost
	TimeLimit  Ending = "time_limit"  // Limits.Time
	SizeLimit  Ending = "size_limit"  // more text in one step than MaxText
	TooLong    Ending = "too_long"    // what must be sent does not fit into the model's window, even shortened
)

// Resumable reports whether the turn was left unfinished.
func (e Ending) Resumable() bool { return e != Done }

// Result is what came of a turn.
type Result struct {
	Messages []Message // what it has added, in order; the same as in its events
	Ending   Ending
	Err      error // why it failed, a *ModelError when the provider did; nil unless Ending is Failed or TooLong
	Usage    Usage
	Cost     int64 // millionths of a dollar
	Priced   bool  // Cost is all of it; false when a price was not known
	Steps    int
}

// Bounds of what a model may send in one step. Providers' streams are bounded by package transport too.
const (
	MaxText      = 1 << 20 // bytes of text and of thinking, each
	MaxArguments = 1 << 20 // bytes of the arguments of one call
	MaxCalls     = 64      // more calls are ignored, and the model is told
	maxParts     = 2000    // of text and thinking by turns, and of calls
	maxName      = 128     // bytes of a tool's name
	maxParallel  = 8       // calls that run at once
)
