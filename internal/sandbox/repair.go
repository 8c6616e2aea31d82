package sandbox

import (
	"context"
	"fmt"

	"sandboxd/internal/fault"
)

// goneProblem is why a sandbox failed whose container somebody removed.
const goneProblem = "The engine does not have its container any more; somebody or something removed it. Start makes it anew."

// stands tells whether the engine has all of an instance, and whether that runs.
func (i Instance) stands(exists bool) (whole, runs bool) {
	whole = exists && !i.Partial
	return whole, whole && i.Running
}

// differs reports whether a row in state s and its instance cannot both be right, or work is under way.
func differs(s State, i Instance, exists bool) bool {
	whole, runs := i.stands(exists)
	switch s {
	case Running:
		return !runs || i.Frozen
	case Frozen:
		return !runs || !i.Frozen
	case Stopped, Asleep:
		return !whole || runs
	case Failed:
		return runs
	default:
		return true
	}
}

// repair brings row and engine together, in s's turn.
func (m *Manager) repair(ctx context.Context, s Sandbox, i Instance, exists, back bool) error {
	if _, runs := i.stands(exists); s.Pooled && s.State != Deleting && (!runs || s.State == Creating || s.State == Starting) {
		// After a power cut the store may have lost the last moments, a claim among them: what has not run without a
		// break since then may hold somebody's work, so nobody else is given it.
		return m.discard(ctx, s.ID, s.Name)
	}
	switch s.State {
	case Creating:
		return m.build(ctx, s)
	case Starting:
		_, err := m.finishStart(ctx, s, s.State)
		return err
	case Stopping, Sleeping:
		_, err := m.finishStop(ctx, s)
		return err
	case Deleting:
		return m.remove(ctx, s)
	case Running:
		return m.repairRunning(ctx, s, i, exists, back)
	case Frozen:
		return m.repairFrozen(ctx, s, i, exists)
	case Failed:
		if _, runs := i.stands(exists); runs {
			stopping, cancel := context.WithTimeout(ctx, engineLimit)
			defer cancel()
			return m.c.Runtime.Stop(stopping, s.ID, stopGrace)
		}
	case Stopped, Asleep:
		return m.repairStopped(ctx, s, i, exists)
	}
	return nil
}

func (m *Manager) repairRunning(ctx context.Context, s Sandbox, i Instance, exists, back bool) error {
	whole, runs := i.stands(exists)
	switch {
	case runs:
		return m.goOn(ctx, s, i)
	case !whole:
		_, err := m.set(ctx, s, Failed, goneProblem)
		return err
	case back:
		_, err := m.start(ctx, s, func(Sandbox) {})
		return err
	default:
		_, err := m.set(ctx, s, Failed, ended(i))
		return err
	}
}

// goOn takes in an instance whose processes are there: its guest may dial in, and the row tells whether they stand still.
func (m *Manager) goOn(ctx context.Context, s Sandbox, i Instance) error {
	if err := m.expect(s); err != nil {
		return err
	}
	now := Running
	if i.Frozen {
		now = Frozen
	}
	if now == s.State {
		return m.settle(ctx, s)
	}
	m.c.Log.Info("sandbox was changed from outside", "sandbox", s.Name, "state", s.State, "now", now)
	_, err := m.set(ctx, s, now, "")
	return err
}

// repairFrozen handles a frozen sandbox that stands still no more. One whose processes have ended, also because the
// engine or the host was away, wakes on use as if it had been asleep.
func (m *Manager) repairFrozen(ctx context.Context, s Sandbox, i Instance, exists bool) error {
	whole, runs := i.stands(exists)
	switch {
	case runs:
		return m.goOn(ctx, s, i)
	case !whole:
		_, err := m.set(ctx, s, Failed, goneProblem)
		return err
	default:
		_, err := m.set(ctx, s, Asleep, "")
		return err
	}
}

// repairStopped handles what somebody changed behind our back while a sandbox did not run.
func (m *Manager) repairStopped(ctx context.Context, s Sandbox, i Instance, exists bool) error {
	whole, runs := i.stands(exists)
	if runs {
		return m.goOn(ctx, s, i)
	}
	if !whole {
		_, err := m.set(ctx, s, Failed, goneProblem)
		return err
	}
	return nil
}

// ended says why an instance that should run has ended.
func ended(i Instance) string {
	if i.OOM {
		return "It ended because it used more memory than its limit. Start it again, or make it anew with more memory."
	}
	return fmt.Sprintf("It ended by itself (exit code %d). Start it again.", i.ExitCode)
}

// adopt takes in an instance of ours that has no row: the database was lost or is an old copy. It is never removed
// unasked, since it holds somebody's work.
func (m *Manager) adopt(ctx context.Context, i Instance) {
	if _, err := m.rows.ByName(ctx, i.Name); !fault.Is(err, fault.NotFound) {
		return
	}
	now := stamp()
	s := Sandbox{
		ID: i.ID, Name: i.Name, Label: "recovered", State: Stopped, Created: now, Changed: now,
		Spec: Spec{Template: i.Template, Limits: m.c.Host},
	}
	if i.Template == "" {
		s.Spec.Image = i.Image
	}
	if i.Partial {
		s.State, s.Problem = Failed, "It was found on the engine without a record, and not complete. Start makes it whole, delete removes it."
	}
	m.c.Log.Warn("found a sandbox on the engine that has no record; taking it in", "sandbox", i.Name, "id", i.ID)
	if err := m.rows.Insert(ctx, s); err != nil {
		m.c.Log.Error("take in a sandbox", "sandbox", i.Name, "error", err)
		return
	}
	m.publish(Event{Sandbox: s})
	if err := m.repair(ctx, s, i, true, false); err != nil {
		m.c.Log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "error", err)
	}
}
