package sandbox

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// errClaimed says that a sandbox is not pooled, or not any more.
var errClaimed = errors.New("not in the pool")

// claim gives the owner of s a pooled sandbox, when there is one that is as s would be created now. ok is false when there
// is none, or it could not be thawed: then s has to be created.
func (p *pools) claim(ctx context.Context, s Sandbox) (got Sandbox, ok bool, err error) {
	if p.empty(s.Spec.Template) {
		return Sandbox{}, false, nil
	}
	fingerprint, err := p.containers.fingerprint(s.Spec)
	if err != nil {
		return Sandbox{}, false, nil // creating s tells of the error
	}
	defer p.wakePools()
	for {
		one, found := p.take(s.Spec.Template, fingerprint)
		if !found {
			return Sandbox{}, false, nil
		}
		got, err = p.attend(ctx, one, func(ctx context.Context, accept func(Sandbox)) error {
			return p.assign(ctx, one, s, accept)
		})
		switch {
		case err == nil:
			return got, true, nil
		case errors.Is(err, errClaimed):
			continue
		case ctx.Err() != nil || errors.Is(err, ErrClosing) || errors.Is(err, ErrNoAnswer): // it may still succeed
			return Sandbox{}, false, err
		}
		p.log.Warn("pooled sandbox could not be claimed; creating one instead", "sandbox", one.name, "error", err)
		_, err = p.begin(ctx, one, func(ctx context.Context, _ func(Sandbox)) error { return p.discard(ctx, one) })
		return Sandbox{}, false, err
	}
}

// assign gives a pooled sandbox the owner of s, in its turn: thawed first, so that it can be used once it is published.
// After a crash before the row is stored it still has no owner.
func (p *pools) assign(ctx context.Context, one Ref, s Sandbox, accept func(Sandbox)) error {
	row, err := p.rows.ByName(ctx, one.name)
	if err != nil || row.ID != one.id || !row.Pooled || !row.Overrides.Empty() || row.State != Running && row.State != Frozen {
		return errors.Join(errClaimed, err)
	}
	return p.observed(ctx, ActionCreate, "", row, func() error { return p.assignNow(ctx, row, s, accept) })
}

// assignNow gives the pooled sandbox row the owner of s.
func (p *pools) assignNow(ctx context.Context, row, s Sandbox, accept func(Sandbox)) (err error) {
	thawing, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	if row.State == Frozen {
		err = p.rester.thawContainer(thawing, row.ID)
	}
	if err == nil {
		err = p.containers.guests.Ready(thawing, row.ID)
	}
	if err != nil {
		return err
	}
	row.Owner, row.Label, row.Rest, row.Created = s.Owner, s.Label, s.Rest, s.Created
	row.Pooled, row.Fingerprint = false, ""
	if row, err = p.set(ctx, row, Running, ""); err != nil {
		return err
	}
	accept(row)
	return nil
}

// discard deletes a sandbox in its turn if it still is pooled, else it gives errClaimed.
func (p *pools) discard(ctx context.Context, ref Ref) error {
	if err := p.life.Err(); err != nil {
		return err
	}
	s, err := p.rows.ByName(ctx, ref.name)
	if fault.Is(err, fault.NotFound) || err == nil && (s.ID != ref.id || !s.Pooled) {
		return errClaimed
	}
	if err != nil {
		return err
	}
	p.withdraw(s)
	if s, err = p.set(ctx, s, Deleting, ""); err != nil {
		return err
	}
	return p.remover.remove(ctx, s)
}

// drop deletes a pooled sandbox; dropped is false when it has an owner by now.
func (p *pools) drop(ctx context.Context, s Sandbox) (dropped bool, err error) {
	p.withdraw(s)
	err = p.perform(ctx, s.Ref(), func(ctx context.Context) error { return p.discard(ctx, s.Ref()) })
	if errors.Is(err, errClaimed) {
		return false, nil
	}
	return err == nil, err
}
