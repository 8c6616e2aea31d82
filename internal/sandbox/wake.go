package sandbox

import (
	"context"
	"errors"
	"sync"

	"sandboxd/internal/fault"
)

// waker wakes sandboxes on use.
type waker struct {
	*operations
	containers *containers
	rester     *rester

	mu    sync.Mutex
	wakes map[Ref]*wake // under way or in line
}

// Awake gives a sandbox that runs. One that runs costs a look into memory; one at rest is woken, one that is starting,
// or whose start is in line, is waited for. Many callers share one wake, which continues when ctx ends. A caller registers its use
// first, so that the sandbox is not put to rest again at once. Kinds: Conflict (it was stopped by
// its owner, or has failed; the message says so), Gone (deleted), Unavailable (the host is full, or the engine does not
// answer), Timeout.
func (w *waker) Awake(ctx context.Context, ref Ref) (Sandbox, error) {
	stuck := false
	for {
		starts := w.Starts(ref.id) // asked first: the row of one that has ended is read after it
		s, err := w.Current(ctx, ref)
		switch {
		case err != nil:
			return Sandbox{}, err
		case s.State == Running:
			return s, nil
		case s.State.Resting() || !s.State.Settled() && w.waking(ref):
			return w.wake(ctx, ref)
		case s.State.Settled() && !starts || stuck:
			return s, unwakeable(s)
		}
		// Without an operation under way the row is read once more, since its operation may just have ended.
		stuck = !w.turns.busy(ref.name)
		waiting, release := w.whileAnswered(ctx)
		err = w.turns.wait(waiting, ref.name)
		release()
		if err != nil {
			return s, late(waiting, ref.name)
		}
	}
}

// unwakeable says why use does not wake s.
func unwakeable(s Sandbox) error {
	switch s.State {
	case Failed:
		return fault.New(fault.Conflict, "%s has failed: %s Start it again or delete it.", s.Name, s.Problem)
	case Stopped, Stopping:
		return fault.New(fault.Conflict, "%s was stopped by its owner, so use does not wake it. Start it first.", s.Name)
	case Deleting:
		return fault.New(fault.Gone, "%s is being deleted.", s.Name)
	default:
		return fault.New(fault.Unavailable, "%s is %s. Try again in a moment.", s.Name, s.State)
	}
}

// wake is one of a sandbox, for all that wait for it.
type wake struct {
	done chan struct{} // closed once the result is there
	s    Sandbox
	err  error
}

// wake waits until a sandbox has been woken.
func (w *waker) wake(ctx context.Context, ref Ref) (Sandbox, error) {
	one, err := w.joinWake(ctx, ref)
	if err != nil {
		return Sandbox{}, err
	}
	ctx, release := w.whileAnswered(ctx)
	defer release()
	select {
	case <-one.done:
		return one.s, one.err
	case <-ctx.Done():
		return Sandbox{}, late(ctx, ref.name)
	}
}

// waking reports whether a wake of a sandbox is under way or in line.
func (w *waker) waking(ref Ref) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakes[ref] != nil
}

// joinWake gives the wake that is under way or in line, or queues one, for the caller whose context by is.
func (w *waker) joinWake(by context.Context, ref Ref) (*wake, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.wakes[ref]; one != nil {
		return one, nil
	}
	one := &wake{done: make(chan struct{})}
	queued := w.turns.run(w.life, ref, func(ctx context.Context) {
		one.s, one.err = w.wakeNow(ctx, by, ref)
		w.mu.Lock()
		delete(w.wakes, ref)
		w.mu.Unlock()
		close(one.done)
	})
	if !queued {
		return nil, ErrClosing
	}
	w.wakes[ref] = one
	return one, nil
}

// wakeNow wakes a sandbox in its turn. The row and error that it gives are those of all later callers too.
func (w *waker) wakeNow(ctx, by context.Context, ref Ref) (Sandbox, error) {
	s, err := w.Current(ctx, ref)
	if err != nil {
		return s, err
	}
	if s.State == Running {
		return s, nil
	}
	if !s.State.Resting() {
		return s, unwakeable(s)
	}
	err = w.observed(by, ActionWake, s.State, s, func() (err error) {
		if s.State == Frozen {
			s, err = w.rester.thaw(ctx, s)
		} else {
			s, err = w.containers.startIfRoom(ctx, s, func(Sandbox) {})
		}
		return err
	})
	if err == nil {
		return s, nil
	}
	if w.life.Err() != nil {
		return s, errors.Join(ErrClosing, err)
	}
	if now, rowErr := w.Current(ctx, ref); rowErr == nil {
		s = now
	}
	w.publish(Event{Sandbox: s, Failed: err})
	if s.State == Failed && !fault.Is(err, fault.Gone) {
		err = errors.Join(unwakeable(s), err)
	}
	return s, err
}
