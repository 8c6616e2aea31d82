package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// stands tells whether the engine has all of an instance, and whether that runs.
func (i Instance) stands(exists bool) (whole, runs bool) {
	whole = exists && !i.Partial
	return whole, whole && i.Running
}

// differs reports whether a row in state s and its instance cannot both be right, or work is under way.
func differs(s State, i Instance, exists bool) bool {
	whole, runs := i.stands(exists)
	switch s {
	case Running:
		return !runs || i.Frozen
	case Frozen:
		return !runs || !i.Frozen
	case Stopped, Asleep:
		return !whole || runs
	case Failed:
		return runs
	default:
		return true
	}
}

// repair brings row and engine together, in s's turn.
func (r *reconciler) repair(ctx context.Context, s Sandbox, i Instance, exists, back bool) error {
	if _, runs := i.stands(exists); s.Pooled && s.State != Deleting && (!runs || s.State == Creating || s.State == Starting) {
		// After a power cut the store may have lost the last moments, a claim among them: a sandbox that has not run without
		// a break since then may hold its owner's work, so no other create may claim it.
		return r.pools.discard(ctx, s.Ref())
	}
	switch s.State {
	case Creating:
		return r.containers.create(ctx, s)
	case Starting:
		_, err := r.containers.finishStart(ctx, s, s.State)
		return err
	case Stopping, Sleeping:
		_, err := r.containers.finishStop(ctx, s)
		return err
	case Deleting:
		return r.remover.remove(ctx, s)
	}
	if whole, runs := i.stands(exists); s.State == Running && back && whole && !runs {
		_, err := r.containers.start(ctx, s, func(Sandbox) {})
		return err
	}
	return r.rester.follow(ctx, s, i, exists)
}

// adopt takes in an instance of ours that has no row: the database was lost or is an old copy. It is never removed
// unasked, since it holds somebody's work.
func (r *reconciler) adopt(ctx context.Context, i Instance) {
	if _, err := r.rows.ByName(ctx, i.Name); !fault.Is(err, fault.NotFound) {
		return
	}
	now := stamp()
	s := Sandbox{
		ID: i.ID, Name: i.Name, Label: "recovered", State: Stopped, Created: now, Changed: now,
		Spec: Spec{Template: i.Template, Limits: r.settings.host},
	}
	if i.Template == "" {
		s.Spec.Image = i.Image
	}
	if i.Partial {
		s.State, s.Problem = Failed, "It was found on the engine without a record, and not complete. Start makes it whole, delete removes it."
	}
	r.log.Warn("found a sandbox on the engine that has no record; taking it in", "sandbox", i.Name, "id", i.ID)
	if err := r.rows.Insert(ctx, s); err != nil {
		r.log.Error("take in a sandbox", "sandbox", i.Name, "error", err)
		return
	}
	r.publish(Event{Sandbox: s})
	if err := r.repair(ctx, s, i, true, false); err != nil {
		r.log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "error", err)
	}
}
