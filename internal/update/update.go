// Package update puts sandboxes on the newest image of their template: one, or all of a template one after another.
//
// It says which sandboxes run an older image, which of them are in use, and whether one works afterwards. How the container is made anew and
// what has failed is taken back is the Manager's, and the snapshot before it internal/snapshot's. It knows nothing of HTTP and of SQL.
//
// Invariant: a sandbox that is in use is not updated unless that was asked for, one at a time is updated by a run, and none after as many
// have failed as the run allows. A run is on record before its first sandbox is touched; one that sandboxd's end has cut off is never resumed.
package update

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// Bounds.
const (
	KeptRuns    = 100  // of all templates and sandboxes
	MaxFailures = 1000 // that a run may allow
	logLines    = 20   // of a log that are kept of a failure
)

// State is where a run stands.
type State string

// The states of a run. All but Running are final.
const (
	Running   State = "running"
	Done      State = "done"      // its items say how it went
	Stopped   State = "stopped"   // as many sandboxes have failed as it allows
	Failed    State = "failed"    // nothing was begun: Problem says why
	Cancelled State = "cancelled" // by a person
	CutOff    State = "cut-off"   // sandboxd ended meanwhile
)

// ItemState is where one sandbox of a run stands.
type ItemState string

// The states of a sandbox in a run.
const (
	Waiting  ItemState = "waiting"
	Updating ItemState = "updating"
	Updated  ItemState = "updated"
	InUse    ItemState = "in-use"  // it was left alone; Problem says what uses it
	Broken   ItemState = "failed"  // Problem says why
	Skipped  ItemState = "skipped" // it was left alone for another reason, which Problem says
)

// Run is an update of one sandbox, or of all of a template that are on an older image. It is a value, but for Items.
type Run struct {
	ID          string // 16 hex digits
	Template    string
	SandboxID   string // of the only one; "" for all of the template
	By          string // user id
	Force       bool   // also sandboxes that are in use
	MaxFailures int    // it ends when so many have failed
	State       State
	Image       string // that the sandboxes are put on
	Problem     string // why it failed
	Began       time.Time
	Ended       time.Time // zero while it is Running
	Items       []Item    // by sandbox, in the order of their turns
}

// Item is what a run does for one sandbox.
type Item struct {
	SandboxID string    `json:"sandbox_id"`
	Sandbox   string    `json:"sandbox"` // its name then
	Owner     string    `json:"owner"`   // user id
	State     ItemState `json:"state"`
	Problem   string    `json:"problem,omitempty"`    // a sentence
	Log       []string  `json:"log,omitempty"`        // the last lines of what did not work
	TakenBack bool      `json:"taken_back,omitempty"` // it is as it was before
	Safety    string    `json:"safety,omitempty"`     // id of the snapshot that was taken before
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
}

// Count gives how many items are in a state.
func (r Run) Count(s ItemState) (n int) {
	for _, i := range r.Items {
		if i.State == s {
			n++
		}
	}
	return n
}

// Store keeps runs. Implementations pass StoreContract. Safe for concurrent use.
type Store interface {
	// Put adds a run, or changes the one with its id. Of more than KeptRuns it deletes the oldest.
	Put(ctx context.Context, r Run) error
	// List gives all, the newest first.
	List(ctx context.Context) ([]Run, error)
}

// Sandboxes is what this asks of sandbox.Manager.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Current(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Newest(template string) string
	StandingTo(s sandbox.Sandbox, newest string) sandbox.Standing
	Look(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, sandbox.Standing, error)
	Services(s sandbox.Sandbox) []catalog.Service
}

// Updater is what this asks of snapshot.Service.
type Updater interface {
	Update(ctx context.Context, box sandbox.Sandbox, u sandbox.Update) (safety snapshot.Snapshot, err error)
}

// Config holds what a Service needs. All fields are needed.
type Config struct {
	Store     Store
	Sandboxes Sandboxes
	Snapshots Updater
	Images    sandbox.Images
	Templates sandbox.Templates
	Guests    access.Links
	// InUse gives what uses a sandbox now. It may ask the engine, and takes some seconds at most.
	InUse func(ctx context.Context, s sandbox.Sandbox) []idle.Reason
	// Unused says at once whether nothing uses the sandbox with that id.
	Unused func(id string) bool
	// LastUse says when a sandbox was used last.
	LastUse func(s sandbox.Sandbox) time.Time
	// LastLines gives the last lines that a service of a sandbox has written since then, "" for all services.
	LastLines func(ctx context.Context, id, service string, since time.Time, most int) []string
	Log       *slog.Logger
}

// Change says that a run has begun, has come further or has ended.
type Change struct{ Run Run }

// NotFound says that there is no run of that sort.
func NotFound(of string) error {
	return fault.New(fault.NotFound, "%s was not updated yet, or so long ago that there is no record of it.", of)
}

const eventBuffer = 256

func newBus() *event.Bus[Change] { return event.NewBus[Change](eventBuffer) }
