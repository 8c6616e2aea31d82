package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// Bounds of a thaw that a use waits for, and that nothing else would repeat.
const (
	thawTries = 3
	thawPause = 200 * time.Millisecond
)

// Awake gives a sandbox that runs. One that runs costs a look into memory; one at rest by our doing is woken, one that
// is on its way is waited for. Many callers share one wake, which goes on when ctx ends. A caller that does not want
// the sandbox to be put to rest again at once says that it uses it before it calls. Kinds: Conflict (it was stopped by
// its owner, or has failed; the message says so), Gone (deleted), Unavailable (the host is full, or the engine does not
// answer), Timeout.
func (m *Manager) Awake(ctx context.Context, ref Ref) (Sandbox, error) {
	stuck := false
	for {
		s, err := m.Current(ctx, ref)
		switch {
		case err != nil:
			return Sandbox{}, err
		case s.State == Running:
			return s, nil
		case s.State.Resting() || !s.State.Settled() && m.wakes.waiting(ref):
			return m.wake(ctx, ref)
		case s.State.Settled() || stuck:
			return s, dormant(s)
		}
		// What changes with nobody at work is looked at once more, since its operation may just have ended.
		stuck = !m.turns.busy(ref.name)
		if err := m.turns.wait(ctx, ref.name); err != nil {
			return s, late(ctx, ref.name)
		}
	}
}

// Thaw lets a frozen sandbox go on when somebody uses it, and returns when that is done: it may have been frozen from
// outside, under requests in flight. It changes nothing of one in another state. used says whether somebody does; it is
// asked in the sandbox's turn, so that it says no when a freeze that was under way has ended otherwise.
func (m *Manager) Thaw(ctx context.Context, ref Ref, used func() bool) (Sandbox, error) {
	return m.attend(ctx, ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State == Frozen && used() {
			s, err = m.thaw(ctx, s)
		}
		if err == nil {
			accept(s)
		}
		return err
	})
}

// dormant says why use does not wake s.
func dormant(s Sandbox) error {
	switch s.State {
	case Failed:
		return fault.New(fault.Conflict, "%s has failed, so use does not wake it: %s", s.Name, s.Problem)
	case Stopped, Stopping:
		return fault.New(fault.Conflict, "%s was stopped by its owner, so use does not wake it. Start it first.", s.Name)
	case Deleting:
		return fault.New(fault.Gone, "%s is being deleted.", s.Name)
	default:
		return fault.New(fault.Unavailable, "%s is %s. Try again in a moment.", s.Name, s.State)
	}
}

// wakes are the wakes under way: who comes later waits with the first.
type wakes struct {
	mu    sync.Mutex
	under map[Ref]*wake
}

// waiting reports whether a wake is under way or in line.
func (w *wakes) waiting(ref Ref) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.under[ref] != nil
}

// wake is one of them. What came of it is there once done is closed.
type wake struct {
	done chan struct{}
	s    Sandbox
	err  error
}

// wake waits until a sandbox has been woken.
func (m *Manager) wake(ctx context.Context, ref Ref) (Sandbox, error) {
	w, err := m.joinWake(ref)
	if err != nil {
		return Sandbox{}, err
	}
	select {
	case <-w.done:
		return w.s, w.err
	case <-ctx.Done():
		return Sandbox{}, fault.Wrap(ctx.Err(), fault.Timeout, "%s is still waking up. Try again in a moment.", ref.name)
	}
}

// joinWake gives the wake that is under way or in line, or lines one up.
func (m *Manager) joinWake(ref Ref) (*wake, error) {
	m.wakes.mu.Lock()
	defer m.wakes.mu.Unlock()
	if w := m.wakes.under[ref]; w != nil {
		return w, nil
	}
	w := &wake{done: make(chan struct{})}
	queued := m.turns.run(m.life, ref.name, func(ctx context.Context) {
		w.s, w.err = m.wakeNow(ctx, ref)
		m.wakes.mu.Lock()
		delete(m.wakes.under, ref)
		m.wakes.mu.Unlock()
		close(w.done)
	})
	if !queued {
		return nil, errClosing
	}
	if m.wakes.under == nil {
		m.wakes.under = map[Ref]*wake{}
	}
	m.wakes.under[ref] = w
	return w, nil
}

// wakeNow wakes a sandbox in its turn, and says what became of it as everybody will hear who asks from then on.
func (m *Manager) wakeNow(ctx context.Context, ref Ref) (Sandbox, error) {
	s, err := m.Current(ctx, ref)
	if err != nil {
		return s, err
	}
	switch s.State {
	case Running:
		return s, nil
	case Frozen:
		s, err = m.thaw(ctx, s)
	case Asleep, Sleeping:
		s, err = m.startIfRoom(ctx, s, func(Sandbox) {})
	default:
		return s, dormant(s)
	}
	if err == nil {
		return s, nil
	}
	if m.life.Err() != nil {
		return s, errors.Join(errClosing, err)
	}
	if now, rowErr := m.Current(ctx, ref); rowErr == nil {
		s = now
	}
	if s.State == Failed && !fault.Is(err, fault.Gone) {
		err = errors.Join(dormant(s), err)
	}
	return s, err
}

// startIfRoom starts s in its turn when the host has room for it; else s stays as it is.
func (m *Manager) startIfRoom(ctx context.Context, s Sandbox, accept func(Sandbox)) (Sandbox, error) {
	if err := m.room(ctx); err != nil {
		return s, err
	}
	return m.start(ctx, s, accept)
}

// thaw lets a frozen sandbox go on in its turn. One that the engine has lost is started. When the engine does not thaw
// it, s is what the engine says that it is.
func (m *Manager) thaw(ctx context.Context, s Sandbox) (Sandbox, error) {
	err := m.unfreeze(ctx, s.ID)
	switch {
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict):
		if s, err = m.set(ctx, s, Asleep, ""); err != nil {
			return s, err
		}
		return m.startIfRoom(ctx, s, func(Sandbox) {})
	case err != nil:
		if s, err = m.truth(ctx, s, err); s.State != Running {
			return s, err
		}
	}
	// It goes on, whether or not its guest answers: what runs in there is not ended for that.
	err = m.awaitGuest(ctx, s)
	if m.life.Err() != nil {
		return s, err
	}
	s, setErr := m.set(ctx, s, Running, "")
	if setErr != nil { // a full disk must not lock anybody out of what runs; the next look at everything keeps it
		m.c.Log.Warn("sandbox is thawed, but that cannot be kept", "sandbox", s.Name, "error", setErr)
	}
	return s, err
}

func (m *Manager) unfreeze(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if m.c.Freezer == nil {
		return m.c.Runtime.Start(ctx, id) // somebody else has frozen it
	}
	return m.c.Freezer.Thaw(ctx, id)
}

// truth finds out what became of s when an engine call has failed, and keeps that. It gives err back.
func (m *Manager) truth(ctx context.Context, s Sandbox, err error) (Sandbox, error) {
	if cause := context.Cause(ctx); cause != nil {
		return s, cause // of a delete, or the end of sandboxd
	}
	m.c.Log.Warn("engine call for a sandbox did not succeed", "sandbox", s.Name, "state", s.State, "error", err)
	if confirmErr := m.confirm(ctx, s, false); confirmErr != nil {
		return s, errors.Join(err, confirmErr)
	}
	now, rowErr := m.rows.ByName(ctx, s.Name)
	if rowErr != nil {
		return s, errors.Join(err, rowErr)
	}
	return now, err
}
