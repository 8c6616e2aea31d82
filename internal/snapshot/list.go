package snapshot

import (
	"cmp"
	"context"
	"slices"

	"sandboxd/internal/fault"
)

// List gives the snapshots that are wanted, the newest first.
func (r *records) List(wanted func(Snapshot) bool) []Snapshot {
	r.mu.Lock()
	var list []Snapshot
	for id := range r.all {
		if e := r.shown(id); e != nil {
			list = append(list, e.Snapshot)
		}
	}
	r.mu.Unlock()
	list = slices.DeleteFunc(list, func(snap Snapshot) bool { return !wanted(snap) })
	slices.SortFunc(list, func(a, b Snapshot) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Snapshot gives one. NotFound if there is none of that id.
func (r *records) Snapshot(id string) (Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.shown(id); e != nil {
		return e.Snapshot, nil
	}
	return Snapshot{}, NotFound(id)
}

// shown gives the snapshot of an id that people may know of, or nil. It needs mu.
func (r *records) shown(id string) *entry {
	if e := r.all[id]; e != nil && !e.forgotten && e.Kind != Passing {
		return e
	}
	return nil
}

// NotFound says that there is no such snapshot, or none that may be seen.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "There is no snapshot %.64q. It may have been deleted, or was too old.", id)
}

// Edit changes what people call a snapshot. One that is Automatic or Safety is Manual from then on if it has a name, so that it stays.
// Invalid names the field that is wrong; NotFound, Conflict of one that has failed; other kinds as for Store.
func (r *records) Edit(ctx context.Context, id, name, note string) (Snapshot, error) {
	name, note, err := checkText(name, note)
	if err != nil {
		return Snapshot{}, err
	}
	var row Snapshot
	err = r.write(ctx, func(ctx context.Context) error {
		r.mu.Lock()
		e := r.shown(id)
		if e != nil {
			row = e.Snapshot
		}
		r.mu.Unlock()
		if e == nil {
			return NotFound(id)
		}
		if row.State == Failed {
			return fault.New(fault.Conflict, "The snapshot has failed: there is nothing to name.")
		}
		if row.Name, row.Note = name, note; name != "" {
			row.Kind = Manual
		}
		if err := r.Store.Update(ctx, row); err != nil {
			return err
		}
		r.mu.Lock()
		e.Snapshot = row
		r.mu.Unlock()
		r.announce(e)
		return nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	return row, nil
}

// use notes that a restore or a clone needs a snapshot of a sandbox, so that it stays. The caller releases it. It needs mu.
func (r *records) use(id, sandboxID string) (Snapshot, error) {
	e := r.shown(id)
	switch {
	case e == nil || e.SandboxID != sandboxID || e.leaving:
		return Snapshot{}, NotFound(id)
	case e.State != Ready:
		return Snapshot{}, fault.New(fault.Conflict, "The snapshot is not ready: %s.", e.State)
	}
	e.uses++
	return e.Snapshot, nil
}

// release takes back use. What was to be deleted meanwhile is deleted by the next sweep.
func (r *records) release(id string) {
	r.mu.Lock()
	if e := r.all[id]; e != nil {
		e.uses--
	}
	r.mu.Unlock()
	r.Nudge()
}

// announce tells of a snapshot, or that it is gone.
func (r *records) announce(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind != Passing && !e.forgotten {
		r.bus.Publish(Change{Snapshot: e.Snapshot, Deleted: r.all[e.ID] != e})
	}
}

// forgetFailed drops the oldest of too many that have failed. It needs mu.
func (r *records) forgetFailed() {
	var oldest *entry
	failed := 0
	for _, e := range r.all {
		if e.State != Failed {
			continue
		}
		if failed++; oldest == nil || e.Created.Before(oldest.Created) {
			oldest = e
		}
	}
	if failed > keptFailed {
		delete(r.all, oldest.ID)
	}
}
