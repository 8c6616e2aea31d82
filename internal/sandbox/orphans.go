package sandbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// orphans are the instances with our label that have no row: the database was lost, or is an older copy. They are left as
// they are until an admin adopts or removes them.
type orphans struct {
	*operations
	settings   *settings
	containers *containers

	mu    sync.Mutex
	found map[string]Instance // by id, at the last reconcile
	taken map[string]bool     // ids that are being adopted or removed, or have been
}

// Orphans gives, by name, the instances without a row that the last reconcile has found.
func (o *orphans) Orphans() []Instance {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Collect(maps.Values(o.found))
	all = slices.DeleteFunc(all, func(i Instance) bool { return o.taken[i.ID] })
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// OnEngine gives the ids of all sandboxes that the engine has a part of, also of orphans. Kinds as for Runtime.
func (o *orphans) OnEngine(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	all, err := o.containers.runtime.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(all))
	for _, i := range all {
		ids[i.ID] = true
	}
	return ids, nil
}

// Adopt stores a row for an orphan, which belongs to owner from then on. name is "" for the name that it has. One that runs
// keeps running, and is ready once its guest has reported. It returns once the row is stored. Kinds: NotFound; Conflict of
// the field "name" when another sandbox has it; Invalid.
func (o *orphans) Adopt(ctx context.Context, id, name, owner string) (Sandbox, error) {
	i, err := o.take(id)
	if err != nil {
		return Sandbox{}, err
	}
	s := o.row(i, cmp.Or(name, i.Name), owner)
	if err := hostname.CheckName(s.Name); err != nil {
		o.giveBack(id)
		return Sandbox{}, err
	}
	return o.attend(ctx, s.Ref(), func(ctx context.Context, accept func(Sandbox)) error {
		_, exists, err := o.containers.find(ctx, id)
		if err == nil && !exists {
			err = errNoOrphan
		}
		if err == nil {
			err = o.rows.Insert(ctx, s)
		}
		if err != nil {
			o.giveBack(id)
		}
		if fault.Is(err, fault.Conflict) {
			return &fault.Error{Kind: fault.Conflict, Field: "name", Err: err,
				Message: "Another sandbox has the name " + s.Name + ". Choose another name for this one."}
		}
		if err != nil {
			return err
		}
		o.log.Info("adopted a sandbox that had no record", "sandbox", s.Name, "id", id, "found_as", i.Name)
		o.publish(Event{Sandbox: s})
		accept(s)
		if s.State == Starting {
			_, err = o.containers.finishStart(ctx, s, s.State)
		}
		return err
	})
}

// row is what is stored of an orphan that is adopted. What its creator had asked for besides its template is not known.
func (o *orphans) row(i Instance, name, owner string) Sandbox {
	now := stamp()
	s := Sandbox{
		ID: i.ID, Name: name, Owner: owner, State: Stopped, Created: now, Changed: now,
		Spec: Spec{Template: i.Template},
	}
	if i.Template == "" {
		s.Spec.Image = i.Image
	}
	t, err := o.settings.template(s.Spec)
	if err != nil { // its template is gone; it has its container all the same
		t = catalog.PlainImage(i.Image)
	}
	if s.Spec.Limits, err = o.settings.limits(Limits{}, t.Size); err != nil {
		o.log.Warn("adopted sandbox does not fit this host", "sandbox", name, "error", err)
	}
	switch _, runs := i.stands(true); {
	case runs:
		s.State = Starting
	case i.Partial:
		s.State, s.Problem = Failed, "Only its volume was found. Start creates its container again."
	}
	return s
}

// RemoveOrphan ends an orphan and removes its container, volume and link. It returns when that is done. NotFound when there
// is no such orphan.
func (o *orphans) RemoveOrphan(ctx context.Context, id string) error {
	i, err := o.take(id)
	if err != nil {
		return err
	}
	_, err = o.attend(ctx, Ref{id, i.Name}, func(ctx context.Context, _ func(Sandbox)) error {
		err := o.containers.remove(ctx, id)
		if err == nil {
			err = o.rows.Delete(ctx, id) // there may be tokens for it
		}
		if err != nil {
			o.giveBack(id)
		}
		return err
	})
	return err
}

var errNoOrphan = fault.New(fault.NotFound, "There is no such sandbox without a record on the engine.")

// take gives an orphan to one caller.
func (o *orphans) take(id string) (Instance, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, ok := o.found[id]
	if !ok || o.taken[id] {
		return Instance{}, errNoOrphan
	}
	o.taken[id] = true
	return i, nil
}

func (o *orphans) giveBack(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.taken, id)
}

// note stores what a reconcile has found without a row. It asks the engine again: a delete may have removed one, and then
// its row, between the look at the engine and the look at the rows.
func (o *orphans) note(ctx context.Context, found map[string]Instance) error {
	if len(found) > 0 {
		now, err := o.containers.runtime.List(ctx)
		if err != nil {
			return err
		}
		still := map[string]Instance{}
		for _, i := range now {
			if _, ok := found[i.ID]; ok {
				still[i.ID] = i
			}
		}
		found = still
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, i := range found {
		if _, known := o.found[id]; !known && !o.taken[id] {
			o.log.Warn("found a sandbox without a record; adopt or remove it", "sandbox", i.Name, "id", id)
		}
	}
	o.found = found
	return nil
}
