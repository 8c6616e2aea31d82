// Package idle says when a sandbox is in use, what uses it, and since when nothing does; and it puts unused ones to rest.
//
// A request in flight, a running command, a call of a model and a hold count until they end, however long and quiet. A stream, a
// WebSocket and a terminal count when bytes flow, not because they are open. Use that a forgotten page may have made is unattended: it counts for
// an hour after the last deliberate action of a person or a program, and not at all after the sandbox was put to rest by hand.
// Work inside counts by itself: before a sandbox is put to rest, the engine is asked for its use of processor, network and disk.
// Dashboards, lists, metrics, health checks and probes are no use.
//
// It does not decide whether a use is attended (its callers do; it only recognises equal pauses), keeps no history, wakes
// nothing except a sandbox frozen behind its back under a request in flight or a stream, and changes no state itself:
// sandbox.Manager does, and asks again inside its turn.
//
// Invariant: a sandbox without a use has a time since when it is unused. So a use is registered before the sandbox is asked to
// be awake, an attended use never moves that time back, and a use that has ended is never named as a reason.
package idle

import (
	"slices"
	"time"
)

// Kind is what sort of thing uses a sandbox. The names are the API's.
type Kind string

// The kinds.
const (
	Web      Kind = "web"      // a request through sandboxd's proxy
	Stream   Kind = "stream"   // an event stream, a WebSocket, a long answer
	Terminal Kind = "terminal" // input or output of a terminal
	Exec     Kind = "exec"     // a command that runs
	Files    Kind = "files"    // reading or writing files
	Held     Kind = "hold"     // declared, for a limited time
	Model    Kind = "model"    // a program in it waits for a model; like work, it is nobody's attention
	Agent    Kind = "agent"    // an agent works in it, in a conversation
	Work     Kind = "work"     // processor, network or disk in use
)

var kinds = []Kind{Web, Stream, Terminal, Exec, Files, Held, Model, Agent, Work}

// kindSet is a set of kinds, one bit each. Kinds that are not ours share a bit.
type kindSet uint16

func (k Kind) bit() kindSet {
	if i := slices.Index(kinds, k); i >= 0 {
		return 1 << i
	}
	return 1 << len(kinds)
}

const (
	// Attention is how long after the last attended use unattended use counts: as long as a person may read a page or watch a
	// terminal without touching it.
	Attention = time.Hour
	// Pulse is how long a moment of use shows as one, so that a page does not flicker between two keys or packets.
	Pulse = 15 * time.Second
)

// Use is one use of a sandbox.
type Use struct {
	Kind   Kind
	Detail string // what a person is told beside the kind: "GET /lab", "main", "make test"; cleaned and cut when it is shown
	// Unattended marks what may be a forgotten page's doing. It counts only while the sandbox's last attended use is at
	// most Attention ago, and not between Dismiss and the next attended use.
	Unattended bool
	// Looks marks what a page of the sandbox does to show what is in it, as when it opens. It counts like any other use, but the sandbox
	// is not thought of as having been used by it (access.Control.Noting).
	Looks bool
}

// Reason is something that uses a sandbox now.
type Reason struct {
	Kind   Kind
	Detail string // one line of at most 120 bytes without control characters; it may be a stranger's words
	Since  time.Time
	Until  time.Time // when it ends by itself; zero where that is not known
	More   int       // how many it stands for that are not named, which Detail says; else 0
}

// Status is what the tracker knows of a sandbox at one moment.
type Status struct {
	Because []Reason  // what uses it now, oldest first, at most 16, and one at least of each kind
	Idle    time.Time // since when nothing does; zero while Because is not empty

	// The forecast without new use: from free on it is unused, and idle since last. free is zero while a use lasts whose end is
	// unknown; last is now then.
	last, free time.Time
}

// Change says that the kinds of use that a sandbox is in have changed; Tracker.Status has the present ones.
type Change struct {
	ID string // the sandbox's
}
