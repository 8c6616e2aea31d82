package proxy

import (
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// An outsider may not use the sandbox, but may use one port of it that is public or shared by a link. The port's visibility or the
// share is all that identifies them.
//
// A public port needs no credentials, so a page of another website gains nothing by making a browser send a request there. The
// cross-origin rules (CORS, preflights, the Origin of a WebSocket) are the program's own, as on any public host; a signed-in person
// whose request comes from elsewhere counts as an outsider. A share's cookie is a credential like a session, so a request that needs
// it must come from the port's own pages: sandboxes are neighbours on one site. No browser sends a share's secret in a header.
//
// A share opens the host <port>-<name> and no other, so its cookie is bound to that host.

// outsider says how a caller may use one port without the sandbox. The zero value is for those who may use the sandbox.
type outsider struct {
	anyone bool   // the port is public
	share  string // id of the share
	byLink bool   // by the share's secret in a header
}

// outside reports whether the caller may use this port alone.
func (o outsider) outside() bool { return o.anyone || o.share != "" }

// outsider reports as ok whether the port is open to a caller who may not use the sandbox. The error is one of the store's, or says
// that a foreign page sent a share's cookie.
func (c *claim) outsider(ctx context.Context, sb sandbox.Sandbox) (who caller, ok bool, err error) {
	if c.target.Port == 0 {
		return who, false, nil
	}
	if c.proxy.cfg.Ports.Public(sb.ID, c.target.Port) {
		who.anyone = true
		ok, err = answersFor(ctx, c.accounts, sb.Owner, sb)
		return who, ok, err
	}
	share, byLink, ok := c.shownShare(sb)
	if ok {
		ok, err = answersFor(ctx, c.accounts, share.Owner, sb)
	}
	if !ok || err != nil {
		return who, false, err
	}
	who.outsider = outsider{share: share.ID, byLink: byLink}
	return who, true, c.checkOrigin(who)
}

// answersFor reports whether the user who opened a port still may: a disabled user, or one who lost the sandbox, gives no access.
func answersFor(ctx context.Context, accounts Accounts, user string, sb sandbox.Sandbox) (bool, error) {
	u, err := accounts.User(ctx, user)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !u.Disabled && auth.Principal{User: u}.May(sb.Owner, sb.ID), err
}

// shownShare gives the port's share whose secret or cookie the request has.
func (c *claim) shownShare(sb sandbox.Sandbox) (share sandbox.Share, byLink, ok bool) {
	if c.target.Kind != hostname.Port {
		return share, false, false
	}
	if secrets := c.r.Header.Values(hostname.ShareHeader); len(secrets) == 1 {
		share, _, ok = c.proxy.cfg.Ports.Redeem(sb.ID, c.target.Port, secrets[0])
		return share, true, ok
	}
	for _, p := range c.shownPasses() {
		if share, ok = c.proxy.cfg.Ports.Admits(sb.ID, c.target.Port, p.pass); ok {
			return share, false, true
		}
	}
	return share, false, false
}

// forOutsider removes from a notice, if the caller is an outsider, what only users of the sandbox can do.
func (a *responder) forOutsider(n notice) notice {
	if !a.who.outside() {
		return n
	}
	n.Hint, n.Sample = "", ""
	var here []link
	for _, l := range n.Links {
		if l.toOrigin(a.hosts.Origin(a.target)) {
			here = append(here, l)
		}
	}
	n.Links = here
	return n
}
