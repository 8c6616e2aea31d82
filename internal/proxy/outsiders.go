package proxy

import (
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// Who may not use a sandbox may still use a port of it that is public, or shared by a link. Such an outsider is known by the
// port's visibility, or by the share, and by nothing else.
//
// A public port asks nobody for anything, so nothing of ours is at stake when a page of another website makes a browser send
// a request there: what it could do by that it can do without the browser. Its cross-origin rules (CORS, preflights, the
// Origin of a WebSocket) are the program's own, as on any public host; whoever is signed in here and comes from elsewhere
// comes as anybody. A share's cookie is a credential like ours for people, so where it is what lets a request in, the
// request must come from the port's own pages: sandboxes are neighbours on one site. A share's secret in a header is no
// browser's doing.
//
// A share opens the host <port>-<name> and no other, so its cookie is bound to one host by what it opens.

// outsider is what lets somebody in who may not use the sandbox. The zero value is for those who may.
type outsider struct {
	anybody bool   // the port is public
	share   string // id of the share
	byLink  bool   // by the share's secret in a header
}

// outside reports whether the visitor may use this port alone.
func (o outsider) outside() bool { return o.anybody || o.share != "" }

// outsider finds out whether the port is open to somebody who may not use the sandbox. ok is false when it is not; the error
// is one of the store's, or says that a share's cookie was sent by a foreign page.
func (c *claim) outsider(ctx context.Context, sb sandbox.Sandbox) (who caller, ok bool, err error) {
	if c.target.Port == 0 {
		return who, false, nil
	}
	if c.proxy.cfg.Ports.Public(sb.ID, c.target.Port) {
		who.anybody = true
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

// answersFor reports whether the user who has opened a port may do so: who is locked out, or has lost the sandbox, gives
// nobody access to it.
func answersFor(ctx context.Context, accounts Accounts, user string, sb sandbox.Sandbox) (bool, error) {
	u, err := accounts.User(ctx, user)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !u.Disabled && auth.Principal{User: u}.May(sb.Owner, sb.ID), err
}

// shownShare gives the share of the port that the request shows.
func (c *claim) shownShare(sb sandbox.Sandbox) (share sandbox.Share, byLink, ok bool) {
	if c.target.Kind != hostname.Port {
		return share, false, false
	}
	if secrets := c.r.Header.Values(hostname.ShareHeader); len(secrets) == 1 {
		share, _, ok = c.proxy.cfg.Ports.Redeem(sb.ID, c.target.Port, secrets[0])
		return share, true, ok
	}
	for i, cookie := range c.cookies(shareCookie) { // a neighbour may have set one of the name, see session
		if i >= maxCandidates {
			break
		}
		if share, ok = c.proxy.cfg.Ports.Admits(sb.ID, c.target.Port, cookie.Value); ok {
			return share, false, true
		}
	}
	return share, false, false
}

// forOutsider is a notice as it is told to outsiders: without what only those can do who may use the sandbox.
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
