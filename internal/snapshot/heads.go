package snapshot

import (
	"context"

	"sandboxd/internal/fault"
)

// Head gives the id of the snapshot that the sandbox with that id is based on; "" for none.
func (r *records) Head(sandboxID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heads[sandboxID].Snapshot
}

// Undo gives the snapshot that the last restore of the sandbox with that id has taken before it; false when that is not there any more.
func (r *records) Undo(sandboxID string) (Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.shown(r.heads[sandboxID].Undo)
	if e == nil || e.leaving || e.State != Ready {
		return Snapshot{}, false
	}
	return e.Snapshot, true
}

// Restoring reports whether a snapshot is being restored to the sandbox with that id.
func (r *records) Restoring(sandboxID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restoring[sandboxID]
}

// Problem says why the last restore or clone of the sandbox with that id has failed; "" when it has not, or is forgotten.
func (r *records) Problem(sandboxID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problems[sandboxID]
}

// setProblem notes why a restore or a clone has failed, nil for none, and tells of it. It needs mu.
func (r *records) setProblem(sandboxID string, err error) {
	delete(r.problems, sandboxID)
	if err != nil {
		if len(r.problems) >= keptFailed {
			clear(r.problems)
		}
		r.problems[sandboxID] = fault.Message(err)
	}
	r.bus.Publish(Change{Restore: sandboxID})
}

// setHead says which snapshot a sandbox is as, in memory and in the store.
func (r *records) setHead(ctx context.Context, sandboxID string, h Head) error {
	return r.write(ctx, func(ctx context.Context) error {
		r.keepHead(ctx, sandboxID, h)
		return nil
	})
}

// keepHead is setHead within write. What the store cannot keep now the next sweep stores.
func (r *records) keepHead(ctx context.Context, sandboxID string, h Head) {
	r.mu.Lock()
	if h == (Head{}) {
		delete(r.heads, sandboxID)
	} else {
		r.heads[sandboxID] = h
	}
	r.mu.Unlock()
	if err := r.Store.SetHead(ctx, sandboxID, h); err != nil {
		r.Log.Warn("it is not stored yet which snapshot a sandbox is as", "error", err)
		r.mu.Lock()
		r.owed.heads[sandboxID] = true
		r.mu.Unlock()
		r.Nudge()
	}
}

// headsOfReverts sets the head of a sandbox, "" for all, that is still to be as a snapshot: the Manager finishes restores that were cut
// off.
func (r *records) headsOfReverts(ctx context.Context, sandboxID string) error {
	boxes, err := r.Sandboxes.All(ctx)
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if b.Revert.Snapshot == "" || sandboxID != "" && b.ID != sandboxID || r.Head(b.ID) == b.Revert.Snapshot {
			continue
		}
		if err := r.setHead(ctx, b.ID, Head{Snapshot: b.Revert.Snapshot, Undo: r.Head(b.ID)}); err != nil {
			return err
		}
	}
	return nil
}
