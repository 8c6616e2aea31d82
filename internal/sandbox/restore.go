package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// Restore has fill replace the home of a sandbox, and returns when that is done. One that runs or is frozen is stopped before; one
// that ran is started again, and one that was frozen or has failed is asleep or stopped afterwards. When fill fails or ctx ends, the
// home is as it was, unless all of the new one was on the disk already: then it is restored. One whose container is gone gets another
// one, from its template. Kinds as for Capture.
func (k *keeper) Restore(ctx context.Context, ref Ref, fill func(ctx context.Context, h Home) error) error {
	return k.restoreWhole(ctx, ref, nil, fill)
}

// RestoreWithRoot is Restore for the root file system, too: its container is made anew from an image with that. When the image cannot be
// made, nothing is changed and nothing is stopped. Kinds as for Restore and Layers.MakeImage.
func (k *keeper) RestoreWithRoot(ctx context.Context, ref Ref, root Rootfs, fill func(ctx context.Context, h Home) error) error {
	return k.restoreWhole(ctx, ref, &root, fill)
}

func (k *keeper) restoreWhole(ctx context.Context, ref Ref, root *Rootfs, fill func(ctx context.Context, h Home) error) error {
	return k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		return k.observed(ctx, ActionRestore, s.State, s, func() (err error) {
			was, i, exists := s, Instance{}, true
			if s.CutOff = restored[s.State]; s.State == Failed {
				if i, exists, err = k.containers.find(ctx, s.ID); err != nil {
					return err
				}
			}
			if !exists {
				s.CutOff = Failed // until its home is whole
			}
			if root != nil {
				s.Revert = Revert{Root: NewID(), Overrides: s.Overrides}
			}
			if s, err = k.set(ctx, s, Restoring, ""); err == nil && root != nil {
				s, err = k.prepareRoot(ctx, s, was, *root)
			}
			if err == nil {
				err = k.restore(ctx, s, !exists || i.Partial, fill)
			}
			return err
		})
	})
}

// restored is the state after a restore, by that before it.
var restored = map[State]State{Running: Running, Frozen: Asleep, Asleep: Asleep, Stopped: Stopped, Failed: Stopped}

// prepareRoot makes the image that s, which was as was says, is to be made from. When that fails it is as before.
func (k *keeper) prepareRoot(ctx context.Context, s, was Sandbox, root Rootfs) (Sandbox, error) {
	image, base, err := rootfiles{k}.makeRoot(ctx, s, s.Revert.Root, root)
	if err == nil {
		s.Revert.Root, s.Revert.Base = image, base
		return k.set(ctx, s, Restoring, "")
	}
	if k.life.Err() == nil {
		_, setErr := k.set(ctx, s, was.State, was.Problem)
		err = errors.Join(err, setErr)
	}
	return s, err
}

func (k *keeper) restore(ctx context.Context, s Sandbox, gone bool, fill func(context.Context, Home) error) error {
	err := k.containers.stopContainer(ctx, s)
	if err == nil && gone {
		if s.Revert.Root != "" {
			s.Root, s.Base, s.Revert = s.Revert.Root, s.Revert.Base, Revert{}
			s, err = k.set(ctx, s, Restoring, "")
		}
	}
	if err == nil && gone {
		err = k.containers.createContainer(ctx, s)
	}
	if err == nil {
		err = k.fill(ctx, s, "", fill)
	}
	if err == nil && (s.CutOff == Failed || s.Revert.Root != "") {
		if s.Revert.Filled = s.Revert.Root != ""; s.CutOff == Failed {
			s.CutOff = Stopped
		}
		s, err = k.set(ctx, s, Restoring, "")
	}
	if err != nil && k.life.Err() == nil {
		finished, endErr := k.endRestore(context.WithoutCancel(ctx), s)
		if finished { // it was too late to cut it off
			return endErr
		}
		return errors.Join(err, endErr)
	}
	if err != nil {
		return err
	}
	ctx = turnOf(ctx)
	if s.Revert.Filled {
		return k.afterCopyIn(ctx, s)
	}
	return k.afterRestore(ctx, s)
}

// fill has fill replace the home; snapshot is as for OpenHome.
func (k *keeper) fill(ctx context.Context, s Sandbox, snapshot string, fill func(context.Context, Home) error) error {
	k.report(s, Progress{Phase: PhaseRestore})
	home, err := k.open(ctx, s, PhaseRestore, snapshot)
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, home), home.Close())
}

// endRestore ends one that has failed or was cut off, also after a crash: the home is then the old one or the new one, which finished
// says when it matters. A revert is done again instead. When the engine does not answer the intent stays, and the next reconcile tries
// again.
func (k *keeper) endRestore(ctx context.Context, s Sandbox) (finished bool, err error) {
	switch {
	case s.CutOff == Deleting:
		if s, err = k.set(ctx, s, Deleting, ""); err == nil {
			err = k.remover.remove(ctx, s)
		}
		return false, err
	case s.CutOff == Failed:
		return k.endRefill(ctx, s)
	case s.Revert.Filled:
		return true, k.afterCopyIn(ctx, s)
	case s.Revert.Update:
		return false, k.takeBack(ctx, s)
	case s.Revert.Snapshot != "":
		err = k.containers.createContainer(ctx, s) // it may have been between the old and the new one
		if fault.Is(err, fault.NotFound) {
			return false, k.containers.fail(ctx, s, err)
		}
		if err != nil {
			return false, k.notYet(s, err)
		}
		return false, k.revert(ctx, s)
	}
	if err = k.containers.stopContainer(ctx, s); err == nil {
		finished, err = k.settleHome(ctx, s)
	}
	if fault.Is(err, fault.NotFound) {
		_, err = k.set(ctx, s, Failed, goneProblem)
		return false, err
	}
	if err != nil {
		return false, err
	}
	if s.Revert.Root != "" && finished {
		return true, k.afterCopyIn(ctx, s)
	}
	s.Revert = Revert{}
	return finished, k.afterRestore(ctx, s)
}

// endRefill is endRestore for a sandbox of which the engine had nothing: unless all of its new home is there, what was made is removed again.
func (k *keeper) endRefill(ctx context.Context, s Sandbox) (finished bool, err error) {
	finished, err = k.settleHome(ctx, s)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if finished {
		_, err = k.set(ctx, s, Stopped, "")
		return true, err
	}
	if err = k.containers.remove(ctx, s.ID); err == nil {
		_, err = k.set(ctx, s, Failed, lostProblem)
	}
	return false, err
}

// settleHome finishes or undoes what was cut off while it replaced the home, and says whether it has finished it.
func (k *keeper) settleHome(ctx context.Context, s Sandbox) (finished bool, err error) {
	err = k.fill(ctx, s, "", func(ctx context.Context, h Home) (err error) {
		finished, err = h.Settle(ctx)
		return err
	})
	return finished, err
}

// afterRestore gives a sandbox whose home is whole the state that it is to have.
func (k *keeper) afterRestore(ctx context.Context, s Sandbox) error {
	switch {
	case s.Revert.Memory && s.CutOff == Running:
		return k.startFrom(ctx, s)
	case s.CutOff == Running:
		_, err := k.containers.finishStart(ctx, s, s.CutOff)
		return err
	}
	_, err := k.set(ctx, s, s.CutOff, "")
	return err
}

// Origin is what a new sandbox is made from.
type Origin struct {
	Overrides  Overrides
	Fill       func(ctx context.Context, h Home) error // makes its home
	Snapshot   string                                  // id of the one that Fill copies in; "" for none
	Memory     bool                                    // it is started with the memory that Snapshot has
	Root       string                                  // as Sandbox.Root
	Rootfs     *Rootfs                                 // of which its root file system is made; nil for Root, or its template's
	Base       string                                  // as Sandbox.Base
	ClonedFrom string                                  // as Sandbox.ClonedFrom
}

// CreateFrom creates a sandbox, with no more than this host has, and has its home filled before it starts; it returns when that runs.
// Its home has no limit when other limits are given and that is 0, or when there is no storage pool.
// When the home cannot be filled, or ctx ends before, nothing is left of it. Kinds as for Create and Restore; Conflict when the name is
// taken.
func (k *keeper) CreateFrom(ctx context.Context, r Request, from Origin) (Sandbox, error) {
	r.Limits = k.settings.within(r.Limits)
	s, err := k.settings.plan(r)
	if err != nil {
		return s, err
	}
	if r.Limits != (Limits{}) { // an original without a limit may have more than the template's allows
		s.Spec.Limits.Disk = r.Limits.Disk
	}
	if err := catalog.CheckServices(from.Overrides.Services); err != nil {
		return s, err
	}
	s.Overrides, s.Root, s.ClonedFrom, s.State, s.CutOff = from.Overrides, from.Root, from.ClonedFrom, Restoring, Deleting
	if s.Base = from.Base; from.Rootfs != nil {
		s.Root = NewID() // of the image that is to be made
	}
	for attempt := range autoTries {
		if r.Name == "" {
			s.ID, s.Name = NewID(), autoName(attempt)
		}
		err = k.performFor(ctx, s.Ref(), func(ctx context.Context, _ func(Sandbox)) error { return k.createFrom(ctx, s, from) })
		if r.Name != "" || !errors.Is(err, errTaken) {
			break
		}
	}
	if err != nil {
		return s, err
	}
	return k.Current(ctx, s.Ref())
}

func (k *keeper) createFrom(ctx context.Context, s Sandbox, from Origin) error {
	return k.observed(ctx, ActionCreate, "", s, func() error {
		err := k.containers.checkRoom(ctx)
		if err == nil {
			err = k.rows.Insert(ctx, s)
		}
		if fault.Is(err, fault.Conflict) {
			return errors.Join(err, errTaken)
		}
		if err != nil {
			return err
		}
		k.publish(Event{Sandbox: s})
		if from.Rootfs != nil {
			s.Root, s.Base, err = rootfiles{k}.makeRoot(ctx, s, s.Root, *from.Rootfs)
			if err == nil {
				s, err = k.set(ctx, s, Restoring, "")
			}
		}
		if err == nil {
			err = k.containers.createContainer(ctx, s)
		}
		if err == nil {
			err = k.fill(ctx, s, from.Snapshot, from.Fill)
		}
		if err == nil {
			s.CutOff = Running // its home is whole from here on
			if from.Memory {
				s.Revert = Revert{Snapshot: from.Snapshot, Root: from.Root, Overrides: from.Overrides, Base: from.Base, Memory: true}
			}
			s, err = k.set(ctx, s, Restoring, "")
		}
		if err == nil {
			return k.afterRestore(turnOf(ctx), s)
		}
		if k.life.Err() == nil {
			_, endErr := k.endRestore(context.WithoutCancel(ctx), s)
			err = errors.Join(err, endErr)
		}
		return err
	})
}
