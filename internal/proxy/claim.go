package proxy

import (
	"context"
	"errors"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// claim is the grounds of a request for a sandbox: its caller may use the whole sandbox, knows its terminal's password, or asks
// for a port that is open to them. It holds what judging it found out.
type claim struct {
	request
	proxy    *Proxy
	accounts Accounts
	handle   access.Handle
	password bool            // the host has a password of its own
	at       string          // id of the sandbox of that name, even one that the caller may not use
	movedTo  hostname.Target // the new host of a service that was at this one, or the zero target
}

// judge identifies the caller with accounts, and checks that they may use the sandbox or at least the port.
func (p *Proxy) judge(ctx context.Context, q request, accounts Accounts) (c *claim, err error) {
	c = &claim{request: q, proxy: p, accounts: accounts}
	c.who = caller{}
	c.handle, err = p.cfg.Access.Resolve(ctx, q.target.Name, c)
	return c, err
}

// Admits implements access.Claim.
func (c *claim) Admits(ctx context.Context, sb sandbox.Sandbox) error {
	c.at = sb.ID
	_, c.password = passwordOf(sb)
	c.password = c.password && c.target.Kind == hostname.Terminal
	if c.target.Kind == hostname.Service {
		c.target.Port = portOf(c.proxy.cfg.Sandboxes.Services(sb), c.target.Service)
	}
	who, err := c.insider(ctx, sb)
	if err == nil {
		c.who = who
		return nil
	}
	switch kind := fault.KindOf(err); {
	case kind == fault.Unauthenticated, kind == fault.Forbidden, kind == fault.NotFound, errors.Is(err, auth.ErrMixed):
		if out, ok, outErr := c.outsider(ctx, sb); ok || outErr != nil {
			who, err = out, outErr
		}
	}
	if err == nil {
		c.who = who
	}
	return err
}

// insider identifies a caller who may use the whole sandbox. A sandbox of another owner looks like none, and so does one without
// the service that the host names.
func (c *claim) insider(ctx context.Context, sb sandbox.Sandbox) (caller, error) {
	who, err := c.identify(ctx, c.accounts, sb)
	if err == nil {
		err = c.checkOrigin(who)
	}
	if err == nil && (!who.May(sb.Owner, sb.ID) || c.target.Kind == hostname.Service && c.target.Port == 0) {
		err = access.NotFound(sb.Name)
	}
	return who, err
}

// Missing implements access.Claim. Unknown callers learn nothing. Those who may use a service are redirected from its former host
// to its present one.
func (c *claim) Missing(ctx context.Context, name string, deleted *sandbox.Tombstone) error {
	who, err := c.identify(ctx, c.accounts, sandbox.Sandbox{})
	if err == nil {
		err = c.checkOrigin(who)
	}
	for to, sb := range renamed(ctx, c.proxy.cfg.Sandboxes, c.target) {
		if err == nil && who.May(sb.Owner, sb.ID) || c.proxy.cfg.Ports.Public(sb.ID, to.Port) {
			c.movedTo = to
			break
		}
	}
	switch {
	case err != nil:
		return err
	case deleted == nil || !who.May(deleted.Owner, deleted.ID):
		return access.NotFound(name)
	}
	return fault.New(fault.Gone, "It was deleted on %s and will not come back.", deleted.Deleted.UTC().Format("2 January 2006"))
}
