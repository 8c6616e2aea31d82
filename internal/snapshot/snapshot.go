// Package snapshot keeps what sandboxes were like: it takes snapshots of them, also while they run, makes them as they were again, and
// makes clones.
//
// How a home is copied and a root file system kept is the engine's, and freezing the sandbox meanwhile the Manager's. It knows nothing of
// HTTP. Unlike a backup, a snapshot is on the engine's own disk, and is deleted with its sandbox.
//
// Invariant: a snapshot is offered only once all of it is on the engine, and nothing of one stays there that has no row, but for the
// image that a sandbox is made from.
package snapshot

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/sandbox"
)

// Bounds.
const (
	MaxName    = 64   // runes
	MaxNote    = 1000 // runes
	MaxClones  = 20   // of one request
	KeptSafety = 10   // of a sandbox, that restores have taken
)

// Kind says who wanted a snapshot.
type Kind string

// The kinds.
const (
	Manual    Kind = "manual"    // stays until it is deleted
	Automatic Kind = "automatic" // the oldest are deleted when there are too many, or they are too old
	Safety    Kind = "safety"    // taken by a restore or an update, so that it can be undone; the last ten are kept
	Passing   Kind = "passing"   // for a clone; deleted when that is made, and not listed
)

// State says how far a snapshot is.
type State string

// The states of a snapshot.
const (
	Making State = "making"
	Ready  State = "ready"
	Failed State = "failed" // nothing is left of it but what is listed, until the next restart
)

// Snapshot is one of a sandbox. It is a value.
type Snapshot struct {
	ID        string // 16 hex digits
	SandboxID string
	Owner     string // user id, of the sandbox
	Name      string // for people, may be ""
	Note      string
	Parent    string // id of the snapshot that the sandbox was based on when this one was taken; "" for none
	Kind      Kind
	Created   time.Time
	State     State
	Problem   string // why it failed, for a person
	Stats     archive.Stats
	Still     bool          // nothing in it ran meanwhile
	Took      time.Duration // while nothing in it ran
	Memory    int64         // bytes that are kept of its memory, with which it is started again; 0 for none
	Image     string        // from which a container with its root file system can be made
	Origin    Origin
}

// Origin is what the sandbox was set to then, for clones.
type Origin struct {
	Name      string // of the sandbox
	Label     string
	Spec      sandbox.Spec
	Overrides sandbox.Overrides
	Rest      RestTimes
	Base      string // as sandbox.Sandbox.Base, of one that is made from the snapshot's image
}

// RestTimes are catalog.Rest as it is kept.
type RestTimes struct {
	FreezeAfter time.Duration
	StopAfter   time.Duration
}

// Store keeps snapshots. All methods are safe for concurrent use. Kinds: NotFound, Conflict (the id is taken), Unavailable.
type Store interface {
	Insert(ctx context.Context, s Snapshot) error
	// Update replaces the row of s.ID; NotFound if there is none.
	Update(ctx context.Context, s Snapshot) error
	// Delete removes one, and gives those that came after it, and the sandboxes that are based on it, its parent. A Head whose
	// Undo it is, or that is given its parent, has no Undo from then on. Deleting a missing one is no error.
	Delete(ctx context.Context, id string) error
	// List gives all, in no order.
	List(ctx context.Context) ([]Snapshot, error)
	// Heads gives those of all sandboxes that have one, by the sandbox's id.
	Heads(ctx context.Context) (map[string]Head, error)
	// SetHead changes that of a sandbox; the zero value removes it.
	SetHead(ctx context.Context, sandboxID string, h Head) error
}

// Head says where a sandbox stands among its snapshots. The zero value says nothing.
type Head struct {
	Snapshot string // id of the one that the sandbox is based on; "" for none
	Undo     string // id of the one that the last restore took before; "" for none, or when that is deleted
}

// Sandboxes is what this asks of sandbox.Manager.
type Sandboxes interface {
	Snapshot(ctx context.Context, ref sandbox.Ref, id string, memory bool) (sandbox.Taken, error)
	Revert(ctx context.Context, ref sandbox.Ref, to sandbox.Revert) error
	Update(ctx context.Context, ref sandbox.Ref, u sandbox.Update) error
	CreateFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin) (sandbox.Sandbox, error)
	Inspect(ctx context.Context, ref sandbox.Ref, snapshot string, look func(context.Context, sandbox.Home) error) error
	OnEngine(ctx context.Context) (map[string]bool, error)
	All(ctx context.Context) (map[string]sandbox.Sandbox, error)
}

// Config holds what a Service needs. All fields but Memories are needed.
type Config struct {
	Store     Store
	Sandboxes Sandboxes
	Parts     sandbox.Snapshots
	Memories  sandbox.Checkpoints // nil where no memory is kept
	Keep      time.Duration       // how long an automatic one is kept
	Automatic int                 // automatic ones of a sandbox that are kept
	Most      int                 // manual ones of a sandbox: then none is taken but for a restore or a clone
	// Failed is told of a snapshot that could not be taken, and of a restore, a clone or a template that failed after its caller had left.
	// It may be called several times at once, and must not block.
	Failed func(of sandbox.Sandbox, err error)
	Log    *slog.Logger
}

// Change says that a snapshot has changed or is gone, or that something about the restores to a sandbox has.
type Change struct {
	Snapshot Snapshot
	Deleted  bool
	Restore  string // the sandbox's id, also of an update; there is no Snapshot then
}

// Ask asks for a snapshot.
type Ask struct {
	Name string
	Note string // may have several lines
	Kind Kind   // Manual or Automatic; "" for Manual
	// Memory has the memory of its programs kept, too.
	Memory bool
}

// CloneAsk asks for clones.
type CloneAsk struct {
	Owner    string // user id, of the clones
	Name     string // of the one, or what the names of several begin with; "" for automatic ones
	Count    int    // 1 to MaxClones
	Snapshot string // its id; "" for the sandbox as it is
}
