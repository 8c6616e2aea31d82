package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// backoff is the wait before the engine is watched again after it was lost.
const backoff = time.Second

// freezing is longer than freezing takes: an older look at a frozen sandbox may have been from before it was.
const freezing = 2 * engineLimit

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

// Recall lets the guests of all sandboxes that are awake dial in, so that those can be used before the engine has been
// looked at. It gives the ids of all sandboxes that there are, also of the pooled ones. To be called once, before Run.
func (m *Manager) Recall(ctx context.Context) (ids map[string]bool, err error) {
	rows, err := m.all(ctx)
	if err != nil {
		return nil, err
	}
	ids = make(map[string]bool, len(rows))
	for id, s := range rows {
		ids[id] = true
		if s.State == Running || s.State == Frozen {
			err = errors.Join(err, m.expect(s))
		}
	}
	return ids, err
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
	rows, err := m.all(listing)
	if err != nil {
		return err
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

// all gives every row, once. The pooled ones are asked for first: what is claimed in between is then there twice, and
// nothing is missed.
func (m *Manager) all(ctx context.Context) (map[string]Sandbox, error) {
	rows := map[string]Sandbox{}
	for _, pooled := range []bool{true, false} {
		list, _, err := m.c.Store.List(ctx, Filter{Pooled: pooled})
		if err != nil {
			return nil, fmt.Errorf("list rows: %w", err)
		}
		for _, s := range list {
			rows[s.ID] = s
		}
	}
	return rows, nil
}

// look is the circumstance of a comparison: when the engine was asked, and whether it was away before.
type look struct {
	at   time.Time
	back bool
}

// compare starts an operation when s's row and its instance differ. Inside its turn it leaves alone what has changed
// since the look.
func (m *Manager) compare(s Sandbox, i Instance, exists bool, l look) {
	if !differs(s.State, i, exists) && !m.own.owes(s.ID) && !(l.back && (s.State == Running || s.State == Frozen)) {
		return
	}
	m.turns.run(m.life, s.Name, func(ctx context.Context) {
		now, err := m.rows.ByName(ctx, s.Name)
		if err != nil || now.ID != s.ID || now.Changed.After(l.at) {
			return
		}
		// A row is Frozen before the engine is asked, so the look may be from between the two.
		if now.State == Frozen && differs(Frozen, i, exists) && l.at.Sub(now.Changed) < freezing {
			err = m.confirm(ctx, now, l.back)
		} else {
			err = m.repair(ctx, now, i, exists, l.back)
		}
		if err != nil {
			m.c.Log.Warn("repair of a sandbox did not succeed", "sandbox", s.Name, "state", now.State, "error", err)
		}
	})
}

// observe handles the engine's word that an instance has changed. It must not block the watch.
func (m *Manager) observe(i Instance) {
	at := time.Now().UTC()
	m.turns.run(m.life, i.Name, func(ctx context.Context) {
		s, err := m.rows.ByName(ctx, i.Name)
		if err != nil || s.ID != i.ID || s.Changed.After(at) || !s.State.Settled() || !differs(s.State, i, true) {
			return
		}
		if err := m.confirm(ctx, s, false); err != nil {
			m.c.Log.Warn("change of a sandbox cannot be confirmed", "sandbox", s.Name, "error", err)
		}
	})
}

// confirm asks the engine anew before an event or an old look is believed, and brings row and engine together.
func (m *Manager) confirm(ctx context.Context, s Sandbox, back bool) error {
	listing, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	all, err := m.c.Runtime.List(listing)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID == s.ID {
			return m.repair(ctx, s, i, true, back)
		}
	}
	return m.repair(ctx, s, Instance{}, false, back)
}
