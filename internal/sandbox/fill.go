package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// afterClaim is how long a pool is left alone after a claim: claims often come in bursts, and creating the next sandbox
// takes resources that they need.
const afterClaim = time.Second

// pools keeps sandboxes that were created in advance, a pool for each template that wants one.
type pools struct {
	*operations
	*pool
	settings   *settings
	containers *containers
	rester     *rester
	remover    *remover
	health     *health
}

// RunPools keeps the pools of the templates that list gives until ctx ends: now, a moment after a claim, and once a minute,
// while the engine is there.
func (p *pools) RunPools(ctx context.Context, list func() []catalog.Template) error {
	for {
		wait := recheck
		if p.health.EngineHealth() != nil {
			wait = backoff
		} else if err := p.FillPools(ctx, list()); err != nil && ctx.Err() == nil {
			p.log.Warn("pools cannot be reconciled", "error", err)
		}
		select {
		case <-time.After(wait):
		case <-p.nudge:
			select { // further claims first
			case <-time.After(afterClaim):
			case <-ctx.Done():
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *pools) wakePools() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// pooled lists the pooled sandboxes of a template, "" for all, but those that are being deleted.
func (p *pools) pooled(ctx context.Context, template string) ([]Sandbox, error) {
	list, _, err := p.List(ctx, Filter{Pooled: true})
	if err != nil {
		return nil, fmt.Errorf("list pooled sandboxes: %w", err)
	}
	return slices.DeleteFunc(list, func(s Sandbox) bool {
		return s.State == Deleting || template != "" && s.Spec.Template != template
	}), nil
}

// FillPools reconciles the pools of all templates once: it drops sandboxes that are too many or differ from one that would
// be created now, and creates missing ones. It does not wait for that work, which runs for all templates at the same time.
func (p *pools) FillPools(ctx context.Context, templates []catalog.Template) error {
	list, err := p.pooled(ctx, "")
	if err != nil {
		return err
	}
	p.resize(templates)
	names := map[string]bool{}
	for _, s := range list {
		names[s.Spec.Template] = true
	}
	for _, t := range templates {
		names[t.Name] = names[t.Name] || t.Standby.Pool > 0
	}
	for name, needed := range names {
		if needed && !p.reconcilePoolLater(name) {
			return ErrClosing
		}
	}
	return nil
}

// reconcilePoolLater reconciles a template's pool in the background, once more when that is under way. false when sandboxd
// is shutting down.
func (p *pools) reconcilePoolLater(template string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, under := p.reconciling[template]; under {
		p.reconciling[template] = true
		return true
	}
	// No sandbox has such a name, so these turns are the pool's own.
	queued := p.turns.run(p.life, Ref{name: "pool of " + template}, func(ctx context.Context) { p.reconcilePool(ctx, template) })
	if queued {
		p.reconciling[template] = false
	}
	return queued
}

// reconcilePool reconciles a template's pool until nothing is left to do.
func (p *pools) reconcilePool(ctx context.Context, template string) {
	for {
		more, err := p.reconcilePoolOnce(ctx, template)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("pool of a template cannot be reconciled", "template", template, "error", err)
		}
		if !p.next(template, more && err == nil && ctx.Err() == nil) {
			return
		}
	}
}

// next reports whether a template's pool needs another pass at once.
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

// reconcilePoolOnce drops the surplus of a template's pool, offers the rest, and creates one if one is missing; then there
// may be more to do.
func (p *pools) reconcilePoolOnce(ctx context.Context, template string) (more bool, err error) {
	list, err := p.pooled(ctx, template)
	if err != nil {
		return false, err
	}
	p.keep(template, func(id string) bool { return slices.ContainsFunc(list, func(s Sandbox) bool { return s.ID == id }) })
	want := p.wanted(template)
	var model Sandbox
	if want > 0 {
		if p.waits(template) {
			return false, nil
		}
		if model, err = p.model(ctx, template); err != nil {
			p.created(template, err)
			return false, err
		}
		want = p.wanted(template) // building the image may have taken long
	}
	have := 0
	for _, s := range list {
		var oneErr error
		if have < want && fits(s, model) {
			have++
			oneErr = p.offerFrozen(ctx, s)
		} else {
			_, oneErr = p.drop(ctx, s)
		}
		err = errors.Join(err, oneErr)
	}
	if have >= want || err != nil {
		return false, err
	}
	return p.createOne(ctx, model)
}

// model is the pooled sandbox that would be created now, without its name. Its image is there.
func (p *pools) model(ctx context.Context, template string) (Sandbox, error) {
	s, err := p.settings.plan(Request{Template: template})
	if err != nil {
		return s, err
	}
	t, err := p.settings.template(s.Spec)
	if err != nil {
		return s, err
	}
	building, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	if _, err := p.containers.images.Ensure(building, t, func(catalog.BuildEvent) {}); err != nil {
		return s, err
	}
	s.Pooled = true
	s.Fingerprint, err = p.containers.fingerprint(s.Spec)
	return s, err
}

// fits reports whether a pooled sandbox is, or is about to be, as one that would be created now.
func fits(s, model Sandbox) bool {
	switch s.State {
	case Creating, Running, Frozen:
		return s.Fingerprint == model.Fingerprint && s.Spec.Equal(model.Spec) && s.Overrides.Empty()
	default:
		return false
	}
}

// offerFrozen offers a pooled sandbox, frozen when the engine can. One that is still being created is left to its create.
func (p *pools) offerFrozen(ctx context.Context, s Sandbox) error {
	if !s.State.Settled() {
		return nil
	}
	if s.State == Running && p.rester.freezer != nil {
		err := p.perform(ctx, s.Ref(), func(ctx context.Context) error {
			now, err := p.rows.ByName(ctx, s.Name)
			if err != nil || now.ID != s.ID || !now.Pooled || now.State != Running {
				return err
			}
			_, err = p.rester.freeze(ctx, now, nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	p.offer(s)
	return nil
}

// createOne creates one more pooled sandbox like model, if the host has room for it.
func (p *pools) createOne(ctx context.Context, model Sandbox) (more bool, err error) {
	// To make room, one of these may have been dropped: then none is created for now.
	if err := p.containers.checkRoom(ctx); err != nil || p.waits(model.Spec.Template) {
		return false, nil
	}
	err = p.createPooled(ctx, model)
	p.created(model.Spec.Template, err)
	return err == nil, err
}

var errTaken = errors.New("name is taken")

// createPooled creates a pooled sandbox like model, under a name that is free, and offers it. A failed one is removed.
func (p *pools) createPooled(ctx context.Context, s Sandbox) error {
	for attempt := range autoTries {
		s.ID, s.Name, s.Created = NewID(), autoName(attempt), stamp()
		s.Changed = s.Created
		err := p.perform(ctx, s.Ref(), func(ctx context.Context) error { return p.createNamed(ctx, s) })
		if !errors.Is(err, errTaken) {
			return err
		}
	}
	return errTaken
}

func (p *pools) createNamed(ctx context.Context, s Sandbox) error {
	err := p.rows.Insert(ctx, s)
	if fault.Is(err, fault.Conflict) {
		return errTaken
	}
	if err != nil {
		return err
	}
	if err = p.containers.create(ctx, s); err == nil {
		// The template may have changed while it was read twice.
		if now, printErr := p.containers.fingerprint(s.Spec); printErr != nil || now != s.Fingerprint {
			err = errors.Join(errors.New("template has changed meanwhile"), printErr)
		}
	}
	row, rowErr := p.rows.ByName(ctx, s.Name)
	err = errors.Join(err, rowErr)
	if err == nil && row.State == Running && p.rester.freezer != nil {
		row, err = p.rester.freeze(ctx, row, nil)
	}
	if err != nil || row.State != Running && row.State != Frozen {
		return errors.Join(err, p.discard(ctx, s.Ref()))
	}
	p.offer(s)
	return nil
}

// RenewPool replaces a template's pooled sandboxes one after another, although the template has not changed: its image was
// built again under the same reference.
func (p *pools) RenewPool(ctx context.Context, template string) error {
	list, err := p.pooled(ctx, template)
	for _, s := range list {
		_, dropErr := p.drop(ctx, s)
		err = errors.Join(err, dropErr)
	}
	p.wakePools()
	return err
}

// DropPooled removes one pooled sandbox for its memory, the oldest first, and has none created for some minutes. false when
// there is none to remove. It waits for the removal, but for no sandbox that is being created.
func (p *pools) DropPooled(ctx context.Context) (bool, error) {
	list, err := p.pooled(ctx, "")
	for _, s := range slices.Backward(list) {
		if s.State == Running || s.State == Frozen {
			p.hold()
			if dropped, err := p.drop(ctx, s); dropped || err != nil {
				return dropped, err
			}
		}
	}
	return false, err
}
