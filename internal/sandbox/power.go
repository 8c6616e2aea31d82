package sandbox

import "context"

// power starts and stops sandboxes by the wish of their owners.
type power struct {
	*operations
	containers *containers
	rester     *rester
}

// Start starts a stopped, sleeping or failed sandbox, and thaws a frozen one. Starting one that runs is no error.
// Unavailable when the host is full.
func (p *power) Start(ctx context.Context, ref Ref) (Sandbox, error) {
	return p.doStart(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if s.State == Running {
			accept(s)
			return nil
		}
		return p.observed(ctx, upFrom(s.State), s.State, s, func() (err error) {
			if s.State != Frozen {
				_, err = p.containers.startIfRoom(ctx, s, accept)
			} else if s, err = p.rester.thaw(ctx, s); err == nil {
				accept(s)
			}
			return err
		})
	})
}

// Stop stops a sandbox by its owner's wish: use does not wake it. Stopping one that is stopped is no error; a failed one has
// nothing to stop, and stays failed. Of one that is asleep only the wish is stored.
func (p *power) Stop(ctx context.Context, ref Ref) (Sandbox, error) {
	return p.do(ctx, ref, unlessDeleting(func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if s.State == Stopped || s.State == Failed {
			accept(s)
			return nil
		}
		return p.observed(ctx, ActionStop, s.State, s, func() (err error) {
			if s.State != Asleep {
				_, err = p.containers.stop(ctx, s, accept)
			} else if s, err = p.set(ctx, s, Stopped, ""); err == nil {
				accept(s)
			}
			return err
		})
	}))
}

// Restart stops a sandbox and starts it again; one that does not run is started. One that it has stopped itself has room.
func (p *power) Restart(ctx context.Context, ref Ref) (Sandbox, error) {
	return p.doStart(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		return p.observed(ctx, ActionStart, s.State, s, func() error {
			if s.State != Running && s.State != Frozen {
				_, err := p.containers.startIfRoom(ctx, s, accept)
				return err
			}
			return p.containers.restart(ctx, s, accept)
		})
	})
}
