package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// Update puts a sandbox on another image of its template.
type Update struct {
	// Image is the reference of that image, which the engine has: nothing is built while the sandbox is stopped.
	Image string
	// Back is what it is made again when the update fails or is cut off: a snapshot of it as it is. Root is that snapshot's image.
	Back Revert
	// Unused says whether nothing uses it; it is asked in the sandbox's turn, once a later use can see that it is updated and before
	// anything is ended. nil updates one in use too.
	Unused func() bool
	// Check says whether the updated sandbox, which runs and whose guest is ready, works. Its error is why not. It must end with ctx.
	Check func(ctx context.Context, s Sandbox) error
}

var (
	// ErrInUse is in the Conflict of an update that has not begun, because something uses the sandbox.
	ErrInUse = errors.New("it is in use")
	// ErrTakenBack is in the error of an update that has failed, after which the sandbox is as it was before.
	ErrTakenBack = errors.New("the update was taken back")
)

// Update stops a sandbox, makes its container anew from u.Image and the template as it is at the beginning, with the same home, starts it and
// has it checked. It returns when that is done. What its container had changed outside of the home is gone then, also where it was made from a
// snapshot. It runs afterwards if it ran before; one that was frozen is asleep, and one that has failed is stopped. When it does not start,
// is not ready in time or Check fails, it is reverted to u.Back, and the error has ErrTakenBack and the cause; when sandboxd is ended
// meanwhile, the next Run reverts it, as soon as its template can be read. Kinds as for Revert; Invalid when its template cannot be read,
// Conflict with ErrInUse, Unavailable when the host has no room for a sandbox that
// does not run, and those of Check.
func (k *keeper) Update(ctx context.Context, ref Ref, u Update) error {
	return k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		return k.observed(ctx, ActionUpdate, s.State, s, func() error {
			if s.State != Running && s.State != Frozen {
				if err := k.containers.checkRoom(ctx); err != nil {
					return err
				}
			}
			return k.update(ctx, s, u)
		})
	})
}

func (k *keeper) update(ctx context.Context, s Sandbox, u Update) error {
	t, err := k.containers.template(s)
	if err != nil {
		return err
	}
	k.containers.held.Store(s.ID, held{t, u.Image})
	defer k.containers.held.Delete(s.ID)
	was := s
	s.CutOff, s.Revert = restored[s.State], u.Back
	s.Revert.Update = true
	if s, err = k.set(ctx, s, Restoring, ""); err != nil { // from here on it is reverted, unless the update succeeds
		return err
	}
	if u.Unused != nil && !u.Unused() {
		_, err := k.set(ctx, s, was.State, was.Problem)
		return errors.Join(fault.Wrap(ErrInUse, fault.Conflict, "%s is in use.", s.Name), err)
	}
	if err = k.renew(ctx, s, u.Check); err == nil || k.life.Err() != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errDeleted) { // the delete is next in line
		return err
	}
	k.log.Warn("update of a sandbox failed; it is put back", "sandbox", s.Name, "error", err)
	if backErr := k.takeBack(context.WithoutCancel(ctx), s); backErr != nil {
		return fault.Wrap(errors.Join(err, backErr), fault.KindOf(err), "%s %s", fault.Message(err), fault.Message(backErr))
	}
	return errors.Join(err, ErrTakenBack)
}

// takeBack makes s what it was before an update that has failed or was cut off, also after a crash. What moves the home is made from the
// image of the container, and that of the update may be what does not work: so the container is made anew first. When something of that
// fails the intent stays, and the next reconcile tries again. The message of the error is a sentence that says so.
func (k *keeper) takeBack(ctx context.Context, s Sandbox) error {
	whole := s
	whole.Root, whole.Base = s.Revert.Root, s.Revert.Base
	err := k.containers.stopContainer(ctx, s)
	if err == nil {
		err = k.containers.recreate(ctx, whole)
	}
	if err == nil {
		err = k.copyIn(ctx, s)
	}
	if fault.Is(err, fault.NotFound) {
		if _, exists, findErr := k.containers.find(ctx, s.ID); findErr == nil && !exists {
			return k.containers.fail(ctx, s, fault.Wrap(err, fault.NotFound, lostProblem))
		}
		return k.containers.fail(ctx, s, fault.Wrap(err, fault.NotFound,
			"Its update failed, and the snapshot that was taken before is gone, so it cannot be put back. Start it as it is, or restore it to another snapshot."))
	}
	if err != nil {
		return k.notYet(s, err)
	}
	err = k.afterCopyIn(ctx, s)
	return fault.Wrap(err, fault.KindOf(err), "It is put back, but not wholly: %s", fault.Message(err))
}

// notYet says that s is not put back because of err, and gives that as an error.
func (k *keeper) notYet(s Sandbox, err error) error {
	why := clean(fault.Message(err))
	k.log.Warn("sandbox is not put back yet", "sandbox", s.Name, "error", err)
	k.report(s, Progress{Phase: PhaseRestore, Detail: "Not put back yet: " + why + " Trying again."})
	return fault.Wrap(err, fault.KindOf(err), "It is not put back yet: %s That is tried again.", why)
}

// renew makes the container of s anew, and stores that the update has succeeded, which nothing takes back from then on.
func (k *keeper) renew(ctx context.Context, s Sandbox, check func(context.Context, Sandbox) error) error {
	fresh := s
	fresh.Root, fresh.Base = "", ""
	err := k.containers.stopContainer(ctx, s)
	if err == nil {
		err = k.containers.recreate(ctx, fresh)
	}
	if err == nil {
		err = k.containers.startContainer(ctx, fresh)
	}
	if err == nil {
		err = k.containers.awaitReady(ctx, fresh)
	}
	if err == nil && check != nil {
		k.report(fresh, Progress{Phase: PhaseCheck})
		err = check(ctx, fresh)
	}
	if err != nil {
		return err
	}
	switch end := s.CutOff; end {
	case Running:
		_, err = k.set(ctx, fresh, Running, "")
		return err
	case Asleep:
		fresh, err = k.set(ctx, fresh, Sleeping, "")
	default:
		fresh, err = k.set(ctx, fresh, Stopping, "")
	}
	if err != nil {
		return err
	}
	if _, err := k.containers.finishStop(ctx, fresh); err != nil {
		k.log.Warn("updated sandbox does not stop yet", "sandbox", s.Name, "error", err) // the next reconcile tries again
	}
	return nil
}
