package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

var errDeleted = fault.New(fault.Gone, "It was deleted before it was ready.")

// remover deletes sandboxes.
type remover struct {
	*operations
	settings   *settings
	containers *containers
}

// Delete ends a sandbox and removes everything of it, its volume too. It interrupts its create, start, wake or way to
// sleep, and what is done with its home. Gone when it is deleted already.
func (r *remover) Delete(ctx context.Context, ref Ref) (Sandbox, error) {
	if s, err := r.Current(ctx, ref); err != nil {
		return Sandbox{}, err
	} else if s.State == Creating || s.State == Starting || s.State.Resting() || s.State.moves() {
		r.turns.interrupt(ref, errDeleted)
	}
	return r.do(ctx, ref, r.delete)
}

// Cancel ends the create of a sandbox and removes what there is of it. Conflict when it was too late: the sandbox stays as it is then.
func (r *remover) Cancel(ctx context.Context, ref Ref) (Sandbox, error) {
	s, err := r.Current(ctx, ref)
	if err == nil && s.State != Creating {
		err = tooLate(s)
	}
	if err != nil {
		return Sandbox{}, err
	}
	r.turns.interrupt(ref, errDeleted)
	ended, err := r.do(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if s.State != Creating && s.State != Deleting {
			return tooLate(s)
		}
		return r.delete(ctx, s, accept)
	})
	if fault.Is(err, fault.Gone) { // it was quick
		s.State = Deleting
		return s, nil
	}
	return ended, err
}

func tooLate(s Sandbox) error {
	return fault.New(fault.Conflict, "%s is not being created any more. Delete it if you do not need it.", s.Name)
}

func (r *remover) delete(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
	return r.observed(ctx, ActionDelete, s.State, s, func() error {
		s, err := r.set(ctx, s, Deleting, "")
		if err != nil {
			return err
		}
		accept(s)
		return r.remove(ctx, s)
	})
}

// remove finishes a delete whose intent is stored: first everything outside, the row last. When the engine does not
// answer the intent stays, and the next reconcile tries again.
func (r *remover) remove(ctx context.Context, s Sandbox) error {
	err := r.containers.remove(ctx, s.ID)
	if err == nil {
		deleting, cancel := context.WithTimeout(ctx, storeLimit)
		defer cancel()
		err = r.rows.Delete(deleting, s.ID)
	}
	if err != nil {
		r.log.Warn("sandbox is not deleted yet", "sandbox", s.Name, "error", err)
		r.report(s, Progress{Detail: "Not deleted yet: " + clean(fault.Message(err)) + " Trying again."})
		return err
	}
	r.clearProgress(s.ID)
	r.settings.unpushed.Delete(s.ID)
	r.publish(Event{Sandbox: s, Deleted: true})
	return nil
}
