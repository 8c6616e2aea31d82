package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// afterClaim is how long a pool is left alone after a claim: seldom does one come alone, and making the next sandbox takes
// what claiming needs.
const afterClaim = time.Second

// RunPools keeps the pools of the templates that list gives until ctx ends: now, a moment after one of them was
// claimed, and once a minute, while the engine is there.
func (m *Manager) RunPools(ctx context.Context, list func() []catalog.Template) error {
	for {
		wait := recheck
		if m.EngineHealth() != nil {
			wait = backoff
		} else if err := m.FillPools(ctx, list()); err != nil && ctx.Err() == nil {
			m.c.Log.Warn("pools cannot be looked at", "error", err)
		}
		select {
		case <-time.After(wait):
		case <-m.pool.nudge:
			select { // whoever claims one is served first
			case <-time.After(afterClaim):
			case <-ctx.Done():
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Manager) wakePools() {
	select {
	case m.pool.nudge <- struct{}{}:
	default:
	}
}

// FillPools looks at the pools of all templates once: it drops what is too many or not as it would be made now, and
// makes what is missing. It returns when that is begun; the work goes on in the background, templates side by side.
func (m *Manager) FillPools(ctx context.Context, templates []catalog.Template) error {
	list, _, err := m.c.Store.List(ctx, Filter{Pooled: true})
	if err != nil {
		return fmt.Errorf("list pooled sandboxes: %w", err)
	}
	m.pool.wish(templates)
	names := map[string]bool{}
	for _, s := range list {
		names[s.Spec.Template] = true
	}
	for _, t := range templates {
		names[t.Name] = names[t.Name] || t.Standby.Pool > 0
	}
	for name, needed := range names {
		if needed && !m.reconcilePoolLater(name) {
			return errClosing
		}
	}
	return nil
}

// reconcilePoolLater has a template's pool looked at in the background, once more when that is under way. false when sandboxd is
// shutting down.
func (m *Manager) reconcilePoolLater(template string) bool {
	p := &m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, under := p.reconciling[template]; under {
		p.reconciling[template] = true
		return true
	}
	// No sandbox has such a name, so this line is the pool's own.
	queued := m.turns.run(m.life, "pool of "+template, func(ctx context.Context) { m.reconcilePool(ctx, template) })
	if queued {
		p.reconciling[template] = false
	}
	return queued
}

// reconcilePool looks at a template's pool until nothing is left to do.
func (m *Manager) reconcilePool(ctx context.Context, template string) {
	for {
		more, err := m.reconcilePoolOnce(ctx, template)
		if err != nil && ctx.Err() == nil {
			m.c.Log.Warn("pool of a template is not as it should be", "template", template, "error", err)
		}
		if !m.pool.next(template, more && err == nil && ctx.Err() == nil) {
			return
		}
	}
}

// next reports whether a template's pool has to be looked at again at once.
func (p *pool) next(template string, more bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if more || p.reconciling[template] {
		p.reconciling[template] = false
		return true
	}
	delete(p.reconciling, template)
	return false
}

// reconcilePoolOnce drops what a template's pool should not have, offers what it has, and makes one if one is missing; then
// there may be more to do.
func (m *Manager) reconcilePoolOnce(ctx context.Context, template string) (more bool, err error) {
	list, _, err := m.c.Store.List(ctx, Filter{Pooled: true})
	if err != nil {
		return false, fmt.Errorf("list pooled sandboxes: %w", err)
	}
	m.pool.retain(template, list)
	want := m.pool.wanted(template)
	var model Sandbox
	if want > 0 {
		if m.pool.waits(template) {
			return false, nil
		}
		if model, err = m.model(ctx, template); err != nil {
			m.pool.made(template, err)
			return false, err
		}
		want = m.pool.wanted(template) // making the image may have taken long
	}
	have := 0
	for _, s := range list {
		if s.Spec.Template != template || s.State == Deleting {
			continue
		}
		if have < want && fits(s, model) {
			have++
			err = errors.Join(err, m.present(ctx, s))
		} else if dropErr := m.drop(ctx, s); !errors.Is(dropErr, errClaimed) {
			err = errors.Join(err, dropErr)
		}
	}
	if have >= want || err != nil {
		return false, err
	}
	return m.addWarm(ctx, model)
}

// model is the pooled sandbox that would be made now, without its name. Its image is there.
func (m *Manager) model(ctx context.Context, template string) (Sandbox, error) {
	s, err := m.plan(Request{Template: template})
	if err != nil {
		return s, err
	}
	t, err := m.template(s.Spec)
	if err != nil {
		return s, err
	}
	making, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	if _, err := m.c.Images.Ensure(making, t, func(catalog.BuildEvent) {}); err != nil {
		return s, err
	}
	s.Pooled = true
	s.Fingerprint, err = m.fingerprint(s.Spec)
	return s, err
}

// fits reports whether a pooled sandbox is, or is about to be, as one that would be made now.
func fits(s, model Sandbox) bool {
	switch s.State {
	case Creating, Running, Frozen:
		return s.Fingerprint == model.Fingerprint && s.Spec.Equal(model.Spec) && s.Own.empty()
	default:
		return false
	}
}

// present offers a pooled sandbox to who claims it, frozen when the engine can. One that is still being made is left
// to who makes it.
func (m *Manager) present(ctx context.Context, s Sandbox) error {
	if !s.State.Settled() {
		return nil
	}
	if s.State == Running && m.c.Freezer != nil {
		err := m.perform(ctx, s.Name, func(ctx context.Context) error {
			now, err := m.rows.ByName(ctx, s.Name)
			if err != nil || now.ID != s.ID || !now.Pooled || now.State != Running {
				return err
			}
			_, err = m.freeze(ctx, now, nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	m.pool.offer(s)
	return nil
}

// addWarm makes one more pooled sandbox like model, if the host has room for it.
func (m *Manager) addWarm(ctx context.Context, model Sandbox) (more bool, err error) {
	// Room may have taken one of these back to make some: then this is not the time.
	if err := m.room(ctx); err != nil || m.pool.waits(model.Spec.Template) {
		return false, nil
	}
	err = m.make(ctx, model)
	m.pool.made(model.Spec.Template, err)
	return err == nil, err
}

var errTaken = errors.New("name is taken")

// make makes a pooled sandbox like model, under a name that is free, and offers it. What cannot be made is removed.
func (m *Manager) make(ctx context.Context, s Sandbox) error {
	for attempt := range autoTries {
		s.ID, s.Name, s.Created = NewID(), autoName(attempt), stamp()
		s.Changed = s.Created
		err := m.perform(ctx, s.Name, func(ctx context.Context) error { return m.makeNamed(ctx, s) })
		if !errors.Is(err, errTaken) {
			return err
		}
	}
	return errTaken
}

func (m *Manager) makeNamed(ctx context.Context, s Sandbox) error {
	err := m.rows.Insert(ctx, s)
	if fault.Is(err, fault.Conflict) {
		return errTaken
	}
	if err != nil {
		return err
	}
	if err = m.build(ctx, s); err == nil {
		// The template may have changed while it was read twice.
		if now, mouldErr := m.fingerprint(s.Spec); mouldErr != nil || now != s.Fingerprint {
			err = errors.Join(errors.New("template has changed meanwhile"), mouldErr)
		}
	}
	row, rowErr := m.rows.ByName(ctx, s.Name)
	if err = errors.Join(err, rowErr); err != nil || row.State != Running {
		return errors.Join(err, m.discard(ctx, s.ID, s.Name))
	}
	if m.c.Freezer != nil {
		if _, err := m.freeze(ctx, row, nil); err != nil {
			return errors.Join(err, m.discard(ctx, s.ID, s.Name))
		}
	}
	m.pool.offer(s)
	return nil
}

// RenewPool has a template's pooled sandboxes made anew by and by, although nothing that can be seen of the template
// has changed: its image was rebuilt under the same reference.
func (m *Manager) RenewPool(ctx context.Context, template string) error {
	list, _, err := m.c.Store.List(ctx, Filter{Pooled: true})
	if err != nil {
		return fmt.Errorf("list pooled sandboxes: %w", err)
	}
	for _, s := range list {
		if s.Spec.Template != template || s.State == Deleting {
			continue
		}
		if dropErr := m.drop(ctx, s); !errors.Is(dropErr, errClaimed) {
			err = errors.Join(err, dropErr)
		}
	}
	m.wakePools()
	return err
}

// DropPooled gives the host back what one pooled sandbox takes, the oldest first, and has none made for some minutes.
// false when there is none to give back. It waits for the removal, but for no sandbox that is being made.
func (m *Manager) DropPooled(ctx context.Context) (bool, error) {
	list, _, err := m.c.Store.List(ctx, Filter{Pooled: true})
	if err != nil {
		return false, fmt.Errorf("list pooled sandboxes: %w", err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i]; s.State == Running || s.State == Frozen {
			m.pool.hold()
			if err := m.drop(ctx, s); !errors.Is(err, errClaimed) {
				return err == nil, err
			}
		}
	}
	return false, nil
}
