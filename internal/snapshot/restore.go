package snapshot

import (
	"context"
	"errors"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Restore makes a sandbox as a snapshot of it is, and returns when that is done or ctx ends; then it continues. It takes a snapshot of
// what it replaces first, and gives that: nothing is restored without that, also when the sandbox has failed. One that cannot be kept
// because the engine has lost its container can be started, or the snapshot be cloned. NotFound when it is no snapshot of this sandbox;
// Conflict when that is not ready, or another one is being restored; other kinds as for sandbox.Manager's.
func (s *Service) Restore(ctx context.Context, box sandbox.Sandbox, id string) (safety Snapshot, err error) {
	return s.RestoreOf(ctx, box, box, id)
}

// RestoreOf is Restore with a snapshot of another sandbox, such as a clone of it. The snapshot and that sandbox must stay until it is done.
func (s *Service) RestoreOf(ctx context.Context, box, of sandbox.Sandbox, id string) (safety Snapshot, err error) {
	var to Snapshot
	begin := func() error {
		if s.restoring[box.ID] {
			return fault.New(fault.Conflict, "A snapshot is being restored to %s already, or it is being updated. Wait for that.", box.Name)
		}
		if to, err = s.use(id, of.ID); err != nil {
			return err
		}
		s.restoring[box.ID] = true
		s.setProblem(box.ID, nil)
		return nil
	}
	return detached(ctx, s, begin, func(life context.Context) (Snapshot, error) {
		safety, err := s.restore(life, box, to)
		s.mu.Lock()
		delete(s.restoring, box.ID)
		s.setProblem(box.ID, causeOf(life, err))
		s.mu.Unlock()
		s.release(to.ID)
		s.unheard(ctx, box, causeOf(life, err))
		return safety, err
	})
}

func (s *Service) restore(ctx context.Context, box sandbox.Sandbox, to Snapshot) (Snapshot, error) {
	if err := s.whole(ctx, to); err != nil {
		return Snapshot{}, err
	}
	safety, err := s.taken(ctx, box, Safety)
	if err != nil {
		return Snapshot{}, unkept(box, "restored", err)
	}
	defer s.release(safety.ID)
	err = s.Sandboxes.Revert(ctx, box.Ref(), sandbox.Revert{Snapshot: to.ID, Root: to.Image, Overrides: to.Origin.Overrides, Base: to.Origin.Base, Memory: to.Memory > 0})
	ctx = context.WithoutCancel(ctx)
	if err != nil { // the Manager may finish it yet
		return safety, errors.Join(err, s.headsOfReverts(ctx, box.ID))
	}
	return safety, s.setHead(ctx, box.ID, Head{Snapshot: to.ID, Undo: safety.ID})
}

// whole is a NotFound when the engine does not have all of a snapshot any more, because a volume or an image was removed by hand.
func (s *Service) whole(ctx context.Context, of Snapshot) error {
	copies, images, err := s.Parts.Parts(ctx)
	if err == nil && (!slices.Contains(copies, of.ID) || !slices.Contains(images, of.ID)) {
		return fault.New(fault.NotFound, "The engine does not have the files of this snapshot any more. Its volume or its image was removed by another program.")
	}
	return err
}

// unkept says that nothing was done because the present state could not be kept first.
func unkept(box sandbox.Sandbox, done string, err error) error {
	hint := ""
	if box.State == sandbox.Failed {
		hint = " Start the sandbox, or make a clone of the snapshot instead."
	}
	return fault.Wrap(err, fault.KindOf(err), "Nothing was %s, because no snapshot of the present state could be taken first: %s%s", done, fault.Message(err), hint)
}
