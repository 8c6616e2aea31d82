package sandbox

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
)

// How long things may take. Each bounds one call or one operation, so that nothing hangs for ever.
const (
	acceptLimit = 100 * time.Millisecond // how long a caller waits for its operation to be accepted
	reportEvery = 100 * time.Millisecond // between two reports of a build
	imageLimit  = 45 * time.Minute       // building a large template from nothing on a slow line
	engineLimit = 90 * time.Second       // one call to the engine
	memoryLimit = 6 * time.Minute        // keeping a memory, or starting with one
	hangUpLimit = 5 * time.Second        // ending the connection of a guest
	commitLimit = 10 * time.Minute       // keeping a root file system that has changed much
	readyLimit  = 60 * time.Second       // from the container's start to the guest's report
	quotaLimit  = 30 * time.Second       // limiting a home
	storeLimit  = 15 * time.Second       // one write to the store
	claimLimit  = 5 * time.Second        // to make a pooled sandbox usable, before one is created instead
	stopGrace   = 5 * time.Second        // between asking a sandbox to end and ending it
	roomLimit   = 10 * time.Second       // checking that the host has room, and making some
	recheck     = time.Minute            // between two passes of reconciling
	pulse       = 3 * time.Second        // between two questions whether the engine still answers, while a caller waits
	pingLimit   = 6 * time.Second        // for its answer: with pulse, a caller hears in less than ten seconds
)

// eventBuffer is how many events a subscriber may fall behind: some seconds of a burst of creates.
const eventBuffer = 512

// Config holds the dependencies of a Manager. All fields are needed but those that say otherwise.
type Config struct {
	Store   Store
	Runtime Runtime
	Guests  Guests
	// Checkpoints keeps the memory of sandboxes; nil for none.
	Checkpoints Checkpoints
	Images      Images
	Templates   Templates
	// Labels gives the routing labels of a sandbox.
	Labels func(id, name string) map[string]string
	// Volumes gives those that a sandbox is to have beside its home, by target. It must not block. nil for none.
	Volumes func(s Sandbox) []Mount
	// Host is the capacity of this host; no sandbox gets more.
	Host Limits
	// Quota limits the homes; nil where there is no storage pool, and then a request that asks for a limit is refused.
	Quota Quota
	Log   *slog.Logger
	// Times knows how long the phases of a create took the last time; nil for nothing.
	Times *pace.Times
	// Freezer freezes sandboxes; nil when the engine cannot.
	Freezer Freezer
	// Homes opens the homes of sandboxes for backups and restores.
	Homes Homes
	// Snapshots holds their parts on the engine.
	Snapshots Snapshots
	// Layers holds what they have changed of their images.
	Layers Layers
	// Rest is when unused sandboxes are put to rest if neither they nor their template say; a time that it leaves open
	// is never.
	Rest catalog.Rest
	// Room is asked before a container is started, not before a thaw: an Unavailable fault when the host is full. nil
	// when there always is room. It must not wait for an operation on the sandbox that it is asked for.
	Room func(ctx context.Context) error
	// Leave is called in the turn of a running sandbox before its processes are frozen or ended, when nobody waits for it any
	// more. It may block for some seconds. nil for none.
	Leave func(ctx context.Context, s Sandbox)
	// Observe is told when an action begins in its turn, of the sandbox s, which was in that state ("" before a create), and
	// through done how it ended. ctx has the values of the context of the caller who has asked for it; for wakes it is that
	// context itself. Both calls must not block. nil for none.
	Observe func(ctx context.Context, a Action, was State, s Sandbox) (done func(error))
}

// Manager is the one writer of sandboxes. Its methods are safe for concurrent use. A method that changes something
// returns as soon as the change is accepted and its intent is stored; the work continues in the background under its own
// deadline, also when the caller leaves. Wait waits for it.
//
// Each step is a type of its own, whose exported methods are the Manager's.
type Manager struct {
	*operations // finds sandboxes, and runs one operation per name
	*settings   // changes label, services, IDE, times of rest and the limit of the home
	*creator    // creates
	*pools      // keeps sandboxes that were created in advance
	*power      // starts and stops by the owner's wish
	*rester     // freezes, thaws and puts to sleep
	*waker      // wakes on use
	*remover    // deletes
	*keeper     // reads and replaces homes
	*orphans    // adopts and removes containers without a row
	*mounts     // says which volumes sandboxes have
	*reconciler // follows the engine
	*containers // makes, starts and stops them
}

// New makes a Manager. It does no I/O; Run keeps it in step with the engine.
func New(c Config) *Manager {
	o := newOperations(c.Store, c.Runtime.Ping, c.Log)
	o.observe, o.times = c.Observe, c.Times
	s := &settings{
		operations: o, templates: c.Templates, guests: c.Guests, host: c.Host, runtime: c.Runtime, quota: c.Quota,
		rest: c.Rest.Over(catalog.Rest{FreezeAfter: catalog.Never, StopAfter: catalog.Never}),
	}
	cs := &containers{
		operations: o, settings: s, runtime: c.Runtime, guests: c.Guests, images: c.Images, labels: c.Labels, room: c.Room, leave: c.Leave,
		mounts: &mounts{want: c.Volumes, have: map[string][]Mount{}},
	}
	r := &rester{operations: o, settings: s, containers: cs, freezer: c.Freezer}
	del := &remover{operations: o, settings: s, containers: cs}
	k := &keeper{operations: o, settings: s, containers: cs, rester: r, remover: del, homes: c.Homes, snapshots: c.Snapshots, layers: c.Layers, checkpoints: c.Checkpoints}
	health := &health{err: errNotWatched}
	p := &pools{operations: o, pool: newPool(), settings: s, containers: cs, rester: r, remover: del, health: health}
	left := &orphans{operations: o, settings: s, containers: cs, found: map[string]Instance{}, taken: map[string]bool{}}
	return &Manager{
		orphans: left, mounts: cs.mounts, containers: cs,
		operations: o, settings: s, rester: r, remover: del, keeper: k, pools: p,
		creator:    &creator{operations: o, settings: s, containers: cs, pools: p},
		power:      &power{operations: o, containers: cs, rester: r},
		waker:      &waker{operations: o, containers: cs, rester: r, wakes: map[Ref]*wake{}},
		reconciler: &reconciler{operations: o, settings: s, containers: cs, rester: r, remover: del, keeper: k, pools: p, orphans: left, health: health},
	}
}

var errNotWatched = fault.New(fault.Unavailable, "The container engine has not answered yet. Try again in a moment.")
