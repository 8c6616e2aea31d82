package proxy

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// claim is on what grounds a request may come to a sandbox: whoever makes it may use the sandbox as a whole, knows its
// terminal's password, or comes to a port that is open to them. What it finds out stands in it.
type claim struct {
	visit
	accounts Accounts
	password bool   // the host has a password of its own
	at       string // id of the sandbox that is there, also when the request may not come to it
}

// judge finds out from accounts who asks, and that they may use the sandbox, or else that the port is open to them.
func (v visit) judge(ctx context.Context, accounts Accounts) (*claim, error) {
	c := &claim{visit: v, accounts: accounts}
	c.who = visitor{}
	h, err := v.cfg.Access.Resolve(ctx, v.target.Name, c)
	c.handle = h
	return c, err
}

// Admits implements access.Claim.
func (c *claim) Admits(ctx context.Context, sb sandbox.Sandbox) error {
	c.at = sb.ID
	_, c.password = passwordOf(sb)
	c.password = c.password && c.target.Kind == hostname.Terminal
	who, err := c.insider(ctx, sb)
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.Forbidden, fault.NotFound:
		if out, ok, outErr := c.outsider(ctx, sb); ok || outErr != nil {
			who, err = out, outErr
		}
	}
	if err == nil {
		c.who = who
	}
	return err
}

// insider finds out who asks that may use the sandbox as a whole. One that is not theirs looks like one that is not there.
func (c *claim) insider(ctx context.Context, sb sandbox.Sandbox) (visitor, error) {
	who, err := c.identify(ctx, c.accounts, sb)
	if err == nil {
		err = c.checkOrigin(who)
	}
	if err == nil && !who.May(sb.Owner, sb.ID) {
		err = access.NotFound(sb.Name)
	}
	return who, err
}

// Missing implements access.Claim. Who is not known hears nothing of what is there.
func (c *claim) Missing(ctx context.Context, name string, deleted *sandbox.Tombstone) error {
	who, err := c.identify(ctx, c.accounts, sandbox.Sandbox{})
	if err == nil {
		err = c.checkOrigin(who)
	}
	switch {
	case err != nil:
		return err
	case deleted == nil || !who.May(deleted.Owner, deleted.ID):
		return access.NotFound(name)
	}
	return fault.New(fault.Gone, "It was deleted on %s and will not come back.", deleted.Deleted.UTC().Format("2 January 2006"))
}
