package snapshot

import (
	"context"
	"sync"

	"sandboxd/internal/event"
	"sandboxd/internal/semaphore"
)

// records are the snapshots, and what is known of their sandboxes.
type records struct {
	Config
	bus    *event.Bus[Change]
	places semaphore.Keyed
	nudged chan struct{} // asks for a sweep

	mu        sync.Mutex
	all       map[string]*entry // by id
	heads     map[string]Head   // by the sandbox's id
	restoring map[string]bool   // by the sandbox's id
	problems  map[string]string // by the sandbox's id
	owed      owed
}

// owed is what the store has refused to keep, and is asked to again by the next sweep.
type owed struct {
	deletes map[string]bool // of rows, by id: their parts stay until then
	heads   map[string]bool // by the sandbox's id
}

// entry is a snapshot and the work on it. records.mu guards it.
type entry struct {
	Snapshot
	cancel    context.CancelCauseFunc
	inserted  chan struct{} // closed when its row is stored, or could not be
	stored    bool
	done      chan struct{} // closed when it is made, or has failed
	err       error         // why it failed
	memory    bool          // that of its programs is to be kept
	uses      int           // restores and clones that need it
	forgotten bool          // it was deleted while it was made: nobody sees it, and nothing is to be left of it
	leaving   bool          // its row is being deleted
}

// Nudge has Run sweep soon: sandboxes may have been deleted that Forget was not called for.
func (r *records) Nudge() {
	select {
	case r.nudged <- struct{}{}:
	default:
	}
}

// Subscribe gives all changes from now on. The caller must Close it.
func (r *records) Subscribe() *event.Subscription[Change] { return r.bus.Subscribe() }

// write makes one change of the rows at a time. It is not cut off when ctx ends after it has begun.
func (r *records) write(ctx context.Context, change func(ctx context.Context) error) error {
	release, err := r.places.Acquire(ctx, "write", 1, -1)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	return change(ctx)
}
