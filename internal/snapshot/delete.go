package snapshot

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"sandboxd/internal/fault"
)

// Delete deletes a snapshot; what the engine has of it is removed soon after. One that is being made is cancelled and forgotten. NotFound;
// Conflict while it is being restored or cloned; other kinds as for Store.
func (r *records) Delete(ctx context.Context, id string) error {
	r.mu.Lock()
	e := r.shown(id)
	if e == nil {
		r.mu.Unlock()
		return NotFound(id)
	}
	if e.State != Ready {
		r.forget(e)
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	return r.remove(ctx, e, "")
}

// forget drops a snapshot that is not Ready, and cancels it. It needs mu.
func (r *records) forget(e *entry) {
	if e.Kind != Passing {
		r.bus.Publish(Change{Snapshot: e.Snapshot, Deleted: true})
	}
	if e.State == Making {
		e.forgotten = true
		e.cancel(errCancelled)
		return
	}
	delete(r.all, e.ID)
}

// remove deletes a snapshot that is Ready, if it is there and still of that kind, "" for any. Conflict when it is in use.
func (r *records) remove(ctx context.Context, e *entry, only Kind) error {
	return r.write(ctx, func(ctx context.Context) error {
		r.mu.Lock()
		spared, used := r.all[e.ID] != e || only != "" && e.Kind != only, e.uses > 0
		e.leaving = !spared && !used
		r.mu.Unlock()
		if spared {
			return nil
		}
		if used {
			return fault.New(fault.Conflict, "The snapshot is being restored, cloned or made into a template. Wait for that.")
		}
		err := r.Store.Delete(ctx, e.ID)
		r.mu.Lock()
		defer r.mu.Unlock()
		if e.leaving = false; err != nil {
			return err
		}
		r.removed(e)
		return nil
	})
}

// removed does in memory what Store.Delete does, and tells of it. It needs mu.
func (r *records) removed(e *entry) {
	delete(r.all, e.ID)
	if e.Kind != Passing {
		r.bus.Publish(Change{Snapshot: e.Snapshot, Deleted: true})
	}
	for _, child := range r.all {
		if child.Parent == e.ID {
			child.Parent = e.Parent
			r.bus.Publish(Change{Snapshot: child.Snapshot})
		}
	}
	for id, h := range r.heads {
		if h.Snapshot == e.ID { // it was not restored to that one last, so there is nothing to undo
			h = Head{Snapshot: e.Parent}
		}
		if h.Undo == e.ID {
			h.Undo = ""
		}
		if r.heads[id] = h; h == (Head{}) {
			delete(r.heads, id)
		}
	}
	r.Nudge()
}

// Forget deletes the snapshots of a sandbox that was deleted. Those that clones are being made of go when these are made. Kinds as for
// Store: then the next sweep deletes what is left.
func (r *records) Forget(ctx context.Context, sandboxID string) error {
	var ready []*entry
	r.mu.Lock()
	delete(r.problems, sandboxID)
	_, hasHead := r.heads[sandboxID]
	for _, e := range r.all {
		switch {
		case e.SandboxID != sandboxID || e.forgotten:
		case e.State != Ready:
			r.forget(e)
		case e.uses == 0:
			ready = append(ready, e)
		}
	}
	r.mu.Unlock()
	defer r.Nudge() // it may have been the last one that was made from an image
	var err error
	if hasHead { // first: each deletion would change it
		err = r.setHead(ctx, sandboxID, Head{})
	}
	return errors.Join(err, r.removeAll(ctx, ready, ""))
}

// removeAll deletes those that are in no use and still of that kind, "" for any.
func (r *records) removeAll(ctx context.Context, list []*entry, only Kind) (err error) {
	for _, e := range list {
		if oneErr := r.remove(ctx, e, only); !fault.Is(oneErr, fault.Conflict) {
			err = errors.Join(err, oneErr)
		}
	}
	return err
}

// prune deletes the automatic snapshots of a sandbox, "" for all, that are too many or too old, and the oldest that restores have taken.
func (r *records) prune(ctx context.Context, sandboxID string) error {
	return errors.Join(
		r.removeAll(ctx, r.surplus(sandboxID, Automatic, r.Automatic, r.Keep), Automatic),
		r.removeAll(ctx, r.surplus(sandboxID, Safety, KeptSafety, math.MaxInt64), Safety))
}

// surplus gives the snapshots of a kind that are older than keep, and of each sandbox all but the newest. What a restore that can be
// undone was to, and what undoes it, is not among them.
func (r *records) surplus(sandboxID string, kind Kind, most int, keep time.Duration) (list []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := map[string][]*entry{}
	for _, e := range r.all {
		if e.Kind == kind && e.State == Ready && (sandboxID == "" || e.SandboxID == sandboxID) {
			of[e.SandboxID] = append(of[e.SandboxID], e)
		}
	}
	for _, all := range of {
		slices.SortFunc(all, func(a, b *entry) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
		for i, e := range all {
			if h := r.heads[e.SandboxID]; h.Undo != "" && (e.ID == h.Snapshot || e.ID == h.Undo) {
				continue
			}
			if e.uses == 0 && (i >= most || time.Since(e.Created) > keep) {
				list = append(list, e)
			}
		}
	}
	return list
}
