package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// Bounds of a thaw that a use waits for, and that nothing else would repeat.
const (
	thawTries = 3
	thawPause = 200 * time.Millisecond
)

// restartEvery is how long a sandbox must have run for a second end by itself to be followed by a start.
const restartEvery = time.Hour

// rester freezes and thaws sandboxes, and puts them to sleep. Its unexported methods need the turn of the sandbox's name.
type rester struct {
	*operations
	settings   *settings
	containers *containers
	freezer    Freezer // nil when the engine cannot freeze
}

// Freeze freezes a running sandbox, and returns when that is done. It changes nothing of one in another state. unused says
// whether the sandbox still is; it is asked in the sandbox's turn, and once more when the sandbox is frozen: a use that has
// come in between finds it thawed again. nil freezes one in use too. Conflict when the engine cannot.
func (r *rester) Freeze(ctx context.Context, ref Ref, unused func() bool) (Sandbox, error) {
	if r.freezer == nil {
		return Sandbox{}, fault.New(fault.Conflict, "This container engine cannot freeze a sandbox.")
	}
	return r.attend(ctx, ref, r.on(ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State == Running && (unused == nil || unused()) {
			s, err = r.freezeObserved(ctx, s, unused)
		}
		if err == nil {
			accept(s)
		}
		return err
	}))
}

// freezeObserved is freeze, told to Observe.
func (r *rester) freezeObserved(ctx context.Context, s Sandbox, unused func() bool) (now Sandbox, err error) {
	// What observed gives is in err too, but for errUsedAgain, which is for the observer only.
	_ = r.observed(ctx, ActionFreeze, s.State, s, func() error {
		if now, err = r.freeze(ctx, s, unused); err == nil && now.State != Frozen {
			return errUsedAgain
		}
		return err
	})
	return now, err
}

// freeze freezes s. The row comes first: a use that finds it Running from before is registered already, so the second
// question counts it; a later use finds it Frozen and waits for the turn that thaws it.
func (r *rester) freeze(ctx context.Context, s Sandbox, unused func() bool) (Sandbox, error) {
	r.containers.leaves(ctx, s)
	s, err := r.set(ctx, s, Frozen, "")
	if err != nil {
		return s, err
	}
	freezing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := r.freezer.Freeze(freezing, s.ID); err != nil {
		return r.resync(ctx, s, err)
	}
	if unused == nil || unused() {
		return s, nil
	}
	return r.undoFreeze(ctx, s)
}

// undoFreeze thaws a sandbox that has just been frozen under a use. Nothing else would thaw it, so it is tried more than
// once.
func (r *rester) undoFreeze(ctx context.Context, s Sandbox) (Sandbox, error) {
	for try := 1; ; try++ {
		now, err := r.thaw(ctx, s)
		if err == nil || now.State != Frozen || try == thawTries {
			return now, err
		}
		select {
		case <-time.After(thawPause):
		case <-ctx.Done():
			return now, err
		}
	}
}

// Sleep puts a running or frozen sandbox to sleep, and returns when that is accepted; its processes end in the
// background. It changes nothing of one in another state. unused says whether the sandbox still is; it is asked in the
// sandbox's turn, and once more when a later use can see that it goes to sleep, before anything is ended. nil ends one
// in use too.
func (r *rester) Sleep(ctx context.Context, ref Ref, unused func() bool) (Sandbox, error) {
	return r.attend(ctx, ref, r.on(ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State != Running && s.State != Frozen || unused != nil && !unused() {
			accept(s)
			return nil
		}
		err = r.observed(ctx, ActionSleep, s.State, s, func() error { return r.sleep(ctx, s, unused, accept) })
		if errors.Is(err, errUsedAgain) {
			return nil // sleep has accepted it as it is
		}
		return err
	}))
}

// sleep puts s to sleep, or gives errUsedAgain.
func (r *rester) sleep(ctx context.Context, s Sandbox, unused func() bool, accept func(Sandbox)) error {
	was := s.State
	s, err := r.set(ctx, s, Sleeping, "")
	if err != nil {
		return err
	}
	if unused != nil && !unused() {
		if s, err = r.set(ctx, s, was, ""); err != nil {
			return err
		}
		accept(s)
		return errUsedAgain
	}
	accept(s)
	if was == Running {
		r.containers.leaves(ctx, s)
	}
	_, err = r.containers.finishStop(ctx, s)
	return err
}

// Thaw thaws a frozen sandbox that is in use, and returns when that is done: it may have been frozen from outside, under
// requests in flight. It changes nothing of one in another state. used says whether it is in use; it is asked in the
// sandbox's turn, so that it says no when a freeze that was under way has ended otherwise.
func (r *rester) Thaw(ctx context.Context, ref Ref, used func() bool) (Sandbox, error) {
	return r.attend(ctx, ref, r.on(ref, func(ctx context.Context, s Sandbox, accept func(Sandbox)) (err error) {
		if s.State == Frozen && used() {
			err = r.observed(ctx, ActionWake, Frozen, s, func() error { s, err = r.thaw(ctx, s); return err })
		}
		if err == nil {
			accept(s)
		}
		return err
	}))
}

// thaw thaws s. One that the engine has lost is started. When the engine does not thaw it, the result has the state that the
// engine tells.
func (r *rester) thaw(ctx context.Context, s Sandbox) (Sandbox, error) {
	err := r.thawContainer(ctx, s.ID)
	switch {
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict):
		if s, err = r.set(ctx, s, Asleep, ""); err != nil {
			return s, err
		}
		return r.containers.startIfRoom(ctx, s, func(Sandbox) {})
	case err != nil:
		if s, err = r.resync(ctx, s, err); s.State != Running {
			return s, err
		}
	}
	// It runs, whether or not its guest answers: its processes are not ended for that.
	err = r.containers.awaitGuest(ctx, s)
	if r.life.Err() != nil {
		return s, err
	}
	s, setErr := r.set(ctx, s, Running, "")
	if setErr != nil { // a full disk must not lock people out of a sandbox that runs; the next reconcile stores it
		r.log.Warn("sandbox is thawed, but that cannot be stored", "sandbox", s.Name, "error", setErr)
	}
	return s, err
}

func (r *rester) thawContainer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if r.freezer == nil {
		return r.containers.runtime.Start(ctx, id) // it was frozen from outside
	}
	return r.freezer.Thaw(ctx, id)
}

// resync stores the state that the engine tells of s after a call has failed with err, which it gives back.
func (r *rester) resync(ctx context.Context, s Sandbox, err error) (Sandbox, error) {
	if cause := context.Cause(ctx); cause != nil {
		return s, cause // of a delete, or the end of sandboxd
	}
	r.log.Warn("engine call for a sandbox did not succeed", "sandbox", s.Name, "state", s.State, "error", err)
	i, exists, findErr := r.containers.find(ctx, s.ID)
	if findErr == nil {
		findErr = r.syncState(ctx, s, i, exists)
	}
	now, rowErr := r.rows.ByName(ctx, s.Name)
	if findErr != nil || rowErr != nil {
		return s, errors.Join(err, findErr, rowErr)
	}
	return now, err
}

// syncState stores the state that the engine tells of a settled sandbox.
func (r *rester) syncState(ctx context.Context, s Sandbox, i Instance, exists bool) (err error) {
	whole, runs := i.stands(exists)
	switch {
	case runs && s.State == Failed: // as by "docker start", or after a stop that did not succeed
		r.log.Info("failed sandbox was started from outside", "sandbox", s.Name)
		_, err = r.containers.start(ctx, s, func(Sandbox) {})
	case runs:
		return r.syncRunning(ctx, s, i)
	case s.State == Failed:
	case !exists:
		_, err = r.set(ctx, s, Failed, lostProblem)
	case !whole:
		_, err = r.set(ctx, s, Failed, goneProblem)
	case s.State == Running && r.restarts(s.ID, i):
		if r.containers.checkRoom(ctx) != nil { // it wakes on use
			_, err = r.set(ctx, s, Asleep, "")
			break
		}
		r.log.Warn("sandbox is started again", "sandbox", s.Name, "cause", ended(i))
		if s, err = r.containers.start(ctx, s, func(Sandbox) {}); err == nil {
			_, err = r.set(ctx, s, Running, ended(i)+" and started again. Programs and terminals in it ended.")
		}
	case s.State == Running:
		_, err = r.set(ctx, s, Failed, ended(i)+".")
	case s.State == Frozen: // it wakes on use as if it had been asleep
		_, err = r.set(ctx, s, Asleep, "")
	}
	return err
}

// restarts says whether a sandbox that has ended by itself is started again: when its guest was killed or has crashed, once
// within restartEvery.
func (r *rester) restarts(id string, i Instance) bool {
	if i.OOM || i.ExitCode == 0 {
		return false
	}
	last, before := r.containers.restarted.Swap(id, time.Now())
	return !before || time.Since(last.(time.Time)) > restartEvery
}

// syncRunning takes over a sandbox whose processes are there: its guest may dial in, and its row says whether it is frozen.
func (r *rester) syncRunning(ctx context.Context, s Sandbox, i Instance) error {
	if err := r.settings.expect(s); err != nil {
		return err
	}
	now := Running
	if i.Frozen {
		now = Frozen
	}
	switch {
	case now != s.State:
		r.log.Info("sandbox was changed from outside", "sandbox", s.Name, "state", s.State, "now", now)
		_, err := r.set(ctx, s, now, "")
		return err
	case now == Running && r.settings.pushPending(s.ID):
		return r.settings.push(ctx, s)
	}
	return nil
}

// goneProblem is why a sandbox failed whose container was removed from outside.
const goneProblem = "Its container no longer exists; something outside sandboxd removed it."

// lostProblem is why a sandbox failed of which the engine has nothing, such as after a restore of the server on another machine.
const lostProblem = "The engine has neither its container nor its home: they were removed from outside, or the server was restored on another machine. " +
	"Restore its home from a backup, or start it with an empty one."

// ended says why an instance that should run has ended, as a sentence without its full stop.
func ended(i Instance) string {
	if i.OOM {
		return "It ended because it used more memory than its limit"
	}
	how := "ended"
	if i.ExitCode == ExitKilled {
		how = "was killed"
	}
	return fmt.Sprintf("It %s (exit code %d)", how, i.ExitCode)
}
