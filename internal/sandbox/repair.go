package sandbox

import "context"

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
	if _, runs := i.stands(exists); s.Pooled && s.State != Deleting && (!runs || i.Strayed || s.State == Creating || s.State == Starting) {
		// After a power cut the store may have lost the last moments, a claim among them: a sandbox that has not run without
		// a break since then may hold its owner's work, so no other create may claim it.
		return r.pools.discard(ctx, s.Ref())
	}
	switch s.State {
	case Creating:
		return r.containers.create(ctx, s)
	case Starting:
		return r.containers.finishRestart(ctx, s)
	case Stopping, Sleeping:
		_, err := r.containers.finishStop(ctx, s)
		return err
	case Deleting:
		return r.remover.remove(ctx, s)
	case Capturing:
		return r.keeper.endCapture(ctx, s)
	case Restoring:
		return r.keeper.endCutOff(ctx, s)
	}
	if _, runs := i.stands(exists); runs && i.Strayed {
		return r.fetchBack(ctx, s)
	}
	if whole, runs := i.stands(exists); s.State == Running && back && whole && !runs {
		_, err := r.containers.start(ctx, s, func(Sandbox) {})
		return err
	}
	return r.rester.syncState(ctx, s, i, exists)
}

// fetchBack restarts a sandbox that has strayed, which gives it this server's link folder.
func (r *reconciler) fetchBack(ctx context.Context, s Sandbox) error {
	r.log.Warn("sandbox is restarted: the data folder was moved, and its container has the former one", "sandbox", s.Name)
	r.containers.mounts.drop(s.ID)
	if err := r.containers.restart(ctx, s, func(Sandbox) {}); err != nil {
		return err
	}
	s, err := r.rows.ByName(ctx, s.Name)
	if err == nil && s.State == Running {
		_, err = r.set(ctx, s, Running, "It was restarted, since the data folder was moved. Programs and terminals in it ended.")
	}
	return err
}
