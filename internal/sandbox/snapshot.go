package sandbox

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
)

// Taken is what a snapshot has of a sandbox.
type Taken struct {
	Sandbox Sandbox // as it was before
	Image   string  // from which a container with its root file system can be made
	Base    string  // as Sandbox.Base, of a sandbox that is made from Image
	Stats   archive.Stats
	Memory  int64         // bytes that are kept of its memory; 0 for none
	Still   bool          // nothing in it ran meanwhile
	Took    time.Duration // for which it did not run, if it was running before
}

// Snapshot has the home and the root file system of a sandbox kept under the id of a snapshot, and returns when that is done. A running
// sandbox is frozen meanwhile, unless the engine cannot. With memory, that of its programs is kept, too: all connections to it through sandboxd end
// for that. When ctx ends, or it fails, parts of it may be left. Kinds as for Capture, Snapshots and Checkpoints; Conflict with memory when
// it does not run or none can be kept.
func (k *keeper) Snapshot(ctx context.Context, ref Ref, id string, memory bool) (taken Taken, err error) {
	err = k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		return k.observed(ctx, ActionSnapshot, s.State, s, func() error {
			if memory {
				if err := k.keepsMemory(ctx, s); err != nil {
					return err
				}
			}
			return k.capture(ctx, s, capturing{phase: PhaseSnapshot, snapshot: id, hangUp: memory}, func(ctx context.Context, c Capture) error {
				taken = Taken{Sandbox: s, Still: c.Still, Base: k.containers.base(ctx, s)}
				return k.take(ctx, c, taking{id, memory}, &taken)
			})
		})
	})
	return taken, err
}

// taking says what is taken of a sandbox.
type taking struct {
	snapshot string
	memory   bool
}

// take copies the home, commits the root file system and keeps the memory at the same time.
func (k *keeper) take(ctx context.Context, c Capture, what taking, taken *Taken) error {
	began := time.Now()
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, commitLimit)
		defer cancel()
		taken.Image, err = k.snapshots.Commit(ctx, c.Sandbox.ID, what.snapshot)
		return err
	})
	both.Go(func() (err error) {
		if taken.Stats, err = c.Home.CopyOut(ctx, func(archive.Stats) {}); err == nil && what.memory {
			err = k.reportMemory(ctx, c.Sandbox.Ref())
		}
		return err
	})
	if what.memory {
		both.Go(func() (err error) {
			ctx, cancel := context.WithTimeout(ctx, memoryLimit)
			defer cancel()
			taken.Memory, err = k.checkpoints.Checkpoint(ctx, c.Sandbox.ID, what.snapshot)
			return err
		})
	}
	err := both.Wait()
	if c.Sandbox.State == Running {
		taken.Took = time.Since(began)
	}
	return err
}

// reportMemory tells that what is still to be kept of a sandbox is its memory.
func (k *keeper) reportMemory(ctx context.Context, ref Ref) error {
	now, err := k.Current(ctx, ref)
	if err == nil {
		k.report(now, Progress{Phase: PhaseMemory})
	}
	return err
}

// Revert makes a sandbox as a snapshot says: its home, its root file system and its overrides. It returns when that is done. One that
// runs or is frozen is stopped before; its state afterwards is that after a Restore, or with memory Running. When the memory cannot be brought
// back it is started without, and its Problem says so. When it fails before the home is replaced, nothing is
// changed; when sandboxd is ended meanwhile, the next Run finishes it. Kinds as for Restore; NotFound when there is no copy of a home.
func (k *keeper) Revert(ctx context.Context, ref Ref, to Revert) error {
	return k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		return k.observed(ctx, ActionRevert, s.State, s, func() (err error) {
			if s.CutOff, s.Revert = restored[s.State], to; to.Memory {
				s.CutOff = Running
			}
			if s, err = k.set(ctx, s, Restoring, ""); err != nil {
				return err
			}
			return k.revert(ctx, s)
		})
	})
}

// revert does what Revert says, from its stored intent, also after a crash.
func (k *keeper) revert(ctx context.Context, s Sandbox) error {
	err := k.containers.stopContainer(ctx, s)
	if err == nil {
		err = k.copyIn(ctx, s)
	}
	if err != nil && k.life.Err() == nil {
		return k.endRevert(context.WithoutCancel(ctx), s, err)
	}
	if err != nil {
		return err
	}
	return k.afterCopyIn(turnOf(ctx), s)
}

// endRevert ends one whose home could not be replaced for a cause: as it was, or as if nothing had happened when the new home was complete.
func (k *keeper) endRevert(ctx context.Context, s Sandbox, cause error) error {
	finished, err := k.settleHome(ctx, s)
	switch {
	case err != nil:
		return errors.Join(cause, err)
	case finished:
		return k.afterCopyIn(ctx, s)
	}
	s.Revert = Revert{}
	if s, err = k.set(ctx, s, Restoring, ""); err != nil {
		return errors.Join(cause, err)
	}
	return errors.Join(cause, k.afterRestore(ctx, s))
}

// afterCopyIn gives a sandbox that has its new home the rest of what it is to be.
func (k *keeper) afterCopyIn(ctx context.Context, s Sandbox) error {
	s.Root, s.Base, s.Overrides = s.Revert.Root, s.Revert.Base, s.Revert.Overrides
	err := k.containers.recreate(ctx, s) // also when it is made from that image already: files outside of the home have changed since
	if fault.Is(err, fault.NotFound) {
		return k.containers.fail(ctx, s, fault.Wrap(err, fault.NotFound,
			"Its home is restored, but the image for the rest of it is gone. Restore it to a snapshot, or restore the backup again."))
	}
	if err != nil {
		return err
	}
	return k.afterRestore(ctx, s)
}

// copyIn makes the home that of the snapshot that s is reverted to.
func (k *keeper) copyIn(ctx context.Context, s Sandbox) error {
	return k.fill(ctx, s, s.Revert.Snapshot, func(ctx context.Context, h Home) error {
		_, err := h.CopyIn(ctx, func(archive.Stats) {})
		return err
	})
}

// Inspect has look look at the home of a sandbox and at the copy that a snapshot has, by Compare or Versions, and returns when that is
// done. It changes nothing, and the sandbox may run meanwhile. Kinds as for Capture.
func (k *keeper) Inspect(ctx context.Context, ref Ref, snapshot string, look func(ctx context.Context, h Home) error) error {
	return k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		home, err := k.open(ctx, s, PhaseSnapshot, snapshot)
		if err != nil {
			return err
		}
		return errors.Join(look(ctx, home), home.Close())
	})
}
