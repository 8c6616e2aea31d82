package snapshot

import (
	"context"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Update puts a sandbox on the image that its template gives now, and returns when that is done or ctx ends; then it continues. It takes a
// snapshot of the sandbox first, and gives that: what fails is taken back by it, and a restore to it undoes what has succeeded. u.Back is
// set by it. Kinds as for Restore and sandbox.Manager's Update.
func (s *Service) Update(ctx context.Context, box sandbox.Sandbox, u sandbox.Update) (safety Snapshot, err error) {
	begin := func() error {
		if s.restoring[box.ID] {
			return fault.New(fault.Conflict, "A snapshot is being restored to %s, or it is being updated already. Wait for that.", box.Name)
		}
		s.restoring[box.ID] = true
		s.setProblem(box.ID, nil)
		return nil
	}
	return detached(ctx, s, begin, func(ctx context.Context) (Snapshot, error) {
		safety, err := s.update(ctx, box, u)
		s.mu.Lock()
		delete(s.restoring, box.ID)
		s.setProblem(box.ID, nil) // which tells of it; why it failed is for who has asked
		s.mu.Unlock()
		return safety, err
	})
}

func (s *Service) update(ctx context.Context, box sandbox.Sandbox, u sandbox.Update) (Snapshot, error) {
	safety, err := s.taken(ctx, box, Safety)
	if err != nil {
		return Snapshot{}, unkept(box, "updated", err)
	}
	defer s.release(safety.ID)
	u.Back = sandbox.Revert{Snapshot: safety.ID, Root: safety.Image, Overrides: safety.Origin.Overrides, Base: safety.Origin.Base}
	err = s.Sandboxes.Update(ctx, box.Ref(), u)
	if err != nil { // it is as the snapshot is, which the head says already, or the Manager will make it so
		return safety, err
	}
	return safety, s.setHead(context.WithoutCancel(ctx), box.ID, Head{Snapshot: safety.ID, Undo: safety.ID})
}
