package sandbox

import (
	"context"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// goneProblem is why a sandbox failed whose container somebody removed.
const goneProblem = "The engine does not have its container any more; somebody or something removed it. Start makes it anew."

// backoff is the wait before the engine is watched again after it was lost.
const backoff = time.Second

// Run keeps the list true until ctx ends: it finishes what a crash has cut off, watches the engine, and looks at
// everything again whenever the engine comes back and once a minute. When ctx ends it takes no more operations, ends
// those under way (their intent is kept) and returns when they have ended.
func (m *Manager) Run(ctx context.Context) error {
	defer m.turns.close()
	defer m.end()
	for {
		err := m.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.setEngine(fault.Wrap(err, fault.Unavailable, "The container engine does not answer. Start it; sandboxd goes on by itself when it is back."))
		m.c.Log.Warn("engine lost", "error", err)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return nil
		}
	}
}

// watch follows the engine until it is lost or ctx ends.
func (m *Manager) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready := make(chan struct{})
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		m.sweep(ctx, ready, cancel)
	}()
	err := m.c.Runtime.Watch(ctx, func() { close(ready) }, m.observe)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(err)
	<-swept
	return err
}

// sweep looks at everything once the watch is on, and then from time to time. An engine that cannot be listed counts
// as lost.
func (m *Manager) sweep(ctx context.Context, ready <-chan struct{}, lost context.CancelCauseFunc) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	back := true
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	for {
		if err := m.Reconcile(ctx, back); err != nil {
			lost(err)
			return
		}
		m.setEngine(nil)
		back = false
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Manager) setEngine(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engineErr = err
}

// Reconcile compares what is kept with what the engine has, once, and starts an operation for every sandbox where
// they differ. With back, sandboxes that should run and do not are started (the engine or sandboxd was away);
// without, they have ended by themselves and are kept as failed. It does not wait for the operations.
func (m *Manager) Reconcile(ctx context.Context, back bool) error {
	asked := time.Now().UTC()
	listing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	instances, err := m.c.Runtime.List(listing)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	rows, _, err := m.c.Store.List(listing, Filter{})
	if err != nil {
		return fmt.Errorf("list rows: %w", err)
	}
	found := make(map[string]Instance, len(instances))
	for _, i := range instances {
		found[i.ID] = i
	}
	for _, s := range rows {
		i, ok := found[s.ID]
		delete(found, s.ID)
		m.compare(s, i, ok, look{at: asked, back: back})
	}
	for _, i := range found {
		m.turns.run(m.life, i.Name, func(ctx context.Context) { m.adopt(ctx, i) })
	}
	return nil
}

// look is the circumstance of a comparison: when the engine was asked, and whether it was away before.
type look struct {
	at   time.Time
	back bool
}

// compare starts an operation when s's row and its instance differ. Inside its turn it leaves alone what has changed
// since the look.
func (m *Manager) compare(s Sandbox, i Instance, exists bool, l look) {
	if !differs(s.State, i, exists) && !(l.back && s.State == Running) {
		return
	}
	m.turns.run(m.life, s.Name, func(ctx context.Context) {
		now, err := m.Sandbox(ctx, s.Name)
		if err != nil || now.ID != s.ID || now.Changed.After(l.at) {
			return
		}
		if err := m.repair(ctx, now, i, exists, l.back); err != nil {
			m.c.Log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "state", now.State, "error", err)
		}
	})
}

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
		return !runs
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
	whole, runs := i.stands(exists)
	switch s.State {
	case Creating:
		return m.build(ctx, s)
	case Starting:
		return m.resume(ctx, s)
	case Stopping:
		_, err := m.halt(ctx, s)
		return err
	case Deleting:
		return m.remove(ctx, s)
	case Running:
		return m.repairRunning(ctx, s, i, exists, back)
	case Failed:
		if runs {
			stopping, cancel := context.WithTimeout(ctx, engineLimit)
			defer cancel()
			return m.c.Runtime.Stop(stopping, s.ID, stopGrace)
		}
	case Stopped, Asleep:
		return m.repairStopped(ctx, s, runs, whole)
	}
	return nil
}

func (m *Manager) repairRunning(ctx context.Context, s Sandbox, i Instance, exists, back bool) error {
	whole, runs := i.stands(exists)
	switch {
	case runs:
		return m.expect(s)
	case !whole:
		_, err := m.set(ctx, s, Failed, goneProblem)
		return err
	case back:
		s, err := m.set(ctx, s, Starting, "")
		if err != nil {
			return err
		}
		return m.resume(ctx, s)
	default:
		_, err := m.set(ctx, s, Failed, ended(i))
		return err
	}
}

// repairStopped handles what somebody changed behind our back while a sandbox was at rest.
func (m *Manager) repairStopped(ctx context.Context, s Sandbox, runs, whole bool) error {
	if runs {
		m.c.Log.Info("sandbox was started from outside", "sandbox", s.Name)
		if err := m.expect(s); err != nil {
			return err
		}
		_, err := m.set(ctx, s, Running, "")
		return err
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

// observe handles the engine's word that an instance has changed. It must not block the watch.
func (m *Manager) observe(i Instance) {
	at := time.Now().UTC()
	m.turns.run(m.life, i.Name, func(ctx context.Context) {
		s, err := m.Sandbox(ctx, i.Name)
		if err != nil || s.ID != i.ID || s.Changed.After(at) || !s.State.Settled() {
			return
		}
		if i.Running == (s.State == Running) && !i.Partial {
			return
		}
		if err := m.confirm(ctx, s); err != nil {
			m.c.Log.Warn("change of a sandbox cannot be confirmed", "sandbox", s.Name, "error", err)
		}
	})
}

// confirm asks the engine anew before an event is believed, since events come late.
func (m *Manager) confirm(ctx context.Context, s Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	all, err := m.c.Runtime.List(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID == s.ID {
			return m.repair(ctx, s, i, true, false)
		}
	}
	return m.repair(ctx, s, Instance{}, false, false)
}

// adopt takes in an instance of ours that has no row: the database was lost or is an old copy. It is never removed
// unasked, since it holds somebody's work.
func (m *Manager) adopt(ctx context.Context, i Instance) {
	if _, err := m.Sandbox(ctx, i.Name); !fault.Is(err, fault.NotFound) {
		return
	}
	now := time.Now().UTC()
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
	if err := m.c.Store.Insert(ctx, s); err != nil {
		m.c.Log.Error("take in a sandbox", "sandbox", i.Name, "error", err)
		return
	}
	m.publish(Event{Sandbox: s})
	if err := m.repair(ctx, s, i, true, false); err != nil {
		m.c.Log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "error", err)
	}
}
