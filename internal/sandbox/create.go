package sandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sandboxd/internal/fault"
)

// autoTries is how many automatic names are tried before a create gives up; the later ones have ten thousand times
// as many variants, so more never helps.
const autoTries = 20

// creator creates sandboxes.
type creator struct {
	*operations
	settings   *settings
	containers *containers
	pools      *pools
}

// Create creates a sandbox: its row is stored as Creating when it returns, the rest follows in the background. A create
// of a name that exists with the same owner and spec gives that one, created false; with another it is a Conflict. One
// that leaves name, limits and environment open gets a sandbox that its template's pool has ready, if there is one.
// Invalid names the field that is wrong, NotFound the templates there are; Unavailable when the host is full.
func (c *creator) Create(ctx context.Context, r Request) (s Sandbox, created bool, err error) {
	s, err = c.settings.plan(r)
	if err != nil {
		return Sandbox{}, false, err
	}
	if r.Name != "" {
		return c.createNamed(ctx, s, r.Limits.Disk == 0)
	}
	if r.claims() {
		if got, claimed, err := c.pools.claim(ctx, s); claimed || err != nil {
			return got, claimed, err
		}
	}
	for attempt := range autoTries {
		s.ID, s.Name = NewID(), autoName(attempt)
		got, created, err := c.createNamed(ctx, s, true)
		if err == nil && created || err != nil && !fault.Is(err, fault.Conflict) {
			return got, created, err
		}
	}
	return Sandbox{}, false, fault.New(fault.Conflict, "No automatic name was free. Give the sandbox a name.")
}

// createNamed queues the create of s. While the name's old sandbox is still being deleted it gives that one, and the
// new one follows. anyDisk is as for sameAsked.
func (c *creator) createNamed(ctx context.Context, s Sandbox, anyDisk bool) (got Sandbox, created bool, err error) {
	var decided atomic.Bool // by the turn, or by a refusal before it came
	p, err := c.begin(ctx, s.Ref(), func(ctx context.Context, accept func(Sandbox)) error {
		if decided.Swap(true) {
			return nil
		}
		return c.createNow(ctx, s, anyDisk, accept)
	})
	for err == nil {
		var ok bool
		if got, ok, err = p.wait(ctx, time.After(acceptLimit)); ok || err != nil {
			break
		}
		got, err = c.rows.ByName(ctx, s.Name)
		if fault.Is(err, fault.NotFound) || err == nil && got.State == Deleting && (got.Pooled || got.Owner != s.Owner) {
			err = nil // its turn is about to come
			continue
		}
		if err == nil && got.State != Deleting {
			err = sameAsked(got, s, anyDisk)
		}
		if err != nil && decided.Swap(true) {
			err = nil // its turn has come meanwhile, and decides
			continue
		}
		break
	}
	return got, err == nil && got.ID == s.ID, err
}

// createNow creates s in its turn. When its name is taken it gives that sandbox, or a Conflict.
func (c *creator) createNow(ctx context.Context, s Sandbox, anyDisk bool, accept func(Sandbox)) error {
	old, err := c.rows.ByName(ctx, s.Name)
	if err == nil {
		if err = sameAsked(old, s, anyDisk); err == nil {
			accept(old)
		}
		return err
	}
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return c.observed(ctx, ActionCreate, "", s, func() error {
		err := c.containers.checkRoom(ctx)
		if err == nil {
			err = c.rows.Insert(ctx, s)
		}
		if err != nil {
			return err
		}
		c.publish(Event{Sandbox: s})
		accept(s)
		return c.containers.create(ctx, s)
	})
}

// sameAsked is a Conflict unless old is of the same owner and spec as s. Of another owner's sandbox it tells nothing more. With
// anyDisk no limit was asked for on the home: an old one from before there was a storage pool is the same then.
func sameAsked(old, s Sandbox, anyDisk bool) error {
	if old.Owner != s.Owner || old.Pooled {
		return &fault.Error{Kind: fault.Conflict, Field: "name", Message: "The name " + s.Name + " is taken. Choose another name."}
	}
	if anyDisk && (old.Spec.Limits.Disk == 0 || s.Spec.Limits.Disk == 0) {
		s.Spec.Limits.Disk = old.Spec.Limits.Disk
	}
	if !old.Spec.Equal(s.Spec) {
		return &fault.Error{Kind: fault.Conflict, Field: "name",
			Message: fmt.Sprintf("You already have a sandbox %q with other settings. Choose another name, or delete that one.", s.Name)}
	}
	return nil
}
