// Package activity keeps who did what, when, from where, by which way, and on which sandbox.
//
// It judges nobody and knows no HTTP and no SQL: the parts that are asked add entries, a Store keeps them, and a Scope says whose entries a reader
// may see. What programs write is logs' business, and how much they use is that of metrics.
//
// Invariant: Add never waits, and an entry is never changed: the oldest are deleted by age and number alone. An entry that could
// not be kept is counted, and an entry says how many. No entry outside of a Scope leaves the package.
package activity

import (
	"context"
	"strconv"
	"time"

	"sandboxd/internal/fault"
)

// Limits of an entry's texts, in bytes. What is longer is cut.
const (
	MaxObject  = 256
	MaxProblem = 512
	maxName    = 64 // of all others
)

// ID names an entry for ever. A later entry has a larger one.
type ID int64

// String gives the ID as it stands in a link and in the API.
func (i ID) String() string { return strconv.FormatInt(int64(i), 10) }

// ParseID reads what String gives. Kind: Invalid.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || ID(n).String() != s {
		return 0, fault.New(fault.Invalid, "This is not the number of an entry.")
	}
	return ID(n), nil
}

// Via is the way by which the caller came.
type Via string

// The ways.
const (
	Page    Via = "page"     // the dashboard, in a browser
	API     Via = "api"      // a token
	SSH     Via = "ssh"      // an SSH client, also through a token
	Address Via = "address"  // a sandbox's own address
	Agent   Via = "agent"    // a language model
	Itself  Via = "sandboxd" // nobody: sandboxd did it by its own rules
)

// Outcome is how an action ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // who asked may not, or asked for what cannot be
	Failed  Outcome = "failed"  // sandboxd, the engine or the sandbox could not
)

// Action is what was done: a noun and a verb, such as "sandbox.create". See Actions for all of them.
type Action string

// Entry is one thing that a user did.
type Entry struct {
	ID   ID // 0 before it is added
	Time time.Time

	UserID, User string // "" for nobody who is known; User is the name at that time
	Token        string // id of the API token that was shown; "" for none
	Via          Via
	From         string // the client's IP address; "" when sandboxd did it itself

	Action    Action
	SandboxID string // "" for what is about none
	Sandbox   string // its name at that time
	Owner     string // user id of its owner at that time
	Object    string // what else it is about: a service, a port, a path, a command, another user
	Outcome   Outcome
	Problem   string // what who asked was told; "" when it was done
	Request   string // id of the request, as in sandboxd's log; "" for none
	Count     int    // how often, for what happens so often that it is summed up; else 1
}

// Scope says whose entries a reader may see: all of them, or those by User and those about sandboxes that User owned then. With
// SandboxID, only those about that sandbox. The zero Scope sees nothing.
type Scope struct {
	All       bool
	User      string // user id
	SandboxID string
}

// Has reports whether a reader may see an entry.
func (s Scope) Has(e Entry) bool {
	mine := s.User != "" && (e.UserID == s.User || e.Owner == s.User)
	return (s.All || mine) && (s.SandboxID == "" || e.SandboxID == s.SandboxID)
}

// Query asks for the newest entries. An empty field wants any.
type Query struct {
	Scope        Scope
	Sandbox      string // name or id
	User         string // name
	Via          Via
	Action       string // an Action, or a noun with its dot: "sandbox."
	Outcome      Outcome
	Text         string    // part of the sandbox's name, the user's name, the object or the problem; A to Z in lower or upper case
	Since, Until time.Time // within [Since, Until)
	Before       ID        // only entries before this one; 0 begins with the newest
	Limit        int       // DefaultLimit when 0, at most MaxLimit
}

// Limits of a query.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Store keeps entries. Implementations pass activitytest.StoreContract. Safe for concurrent use. Kinds: Unavailable (locked, full or
// gone; its content is intact).
type Store interface {
	// Last gives the largest ID that was ever kept; 0 for none.
	Last(ctx context.Context) (ID, error)
	// Add keeps entries, all or none; those whose ID is not above the largest one kept are left out, so that a batch may be added twice.
	Add(ctx context.Context, entries []Entry) error
	// Find gives entries, newest first, at most q.Limit.
	Find(ctx context.Context, q Query) ([]Entry, error)
	// Sweep deletes entries from before a time, and the oldest beyond a number of them; it says how many it has deleted.
	Sweep(ctx context.Context, before time.Time, most int) (int, error)
}
