package proxy

import (
	"context"
	"iter"
	"net/http"

	"sandboxd/internal/catalog"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// portOf gives the port of the service of that name; 0 when there is none, or it has none.
func portOf(services []catalog.Service, name string) int {
	for _, s := range services {
		if s.Name == name {
			return s.Port
		}
	}
	return 0
}

// renamed gives the declared services whose former host was that of t: <service>-<name>, which may be read in several ways. It
// checks neither access nor whether a sandbox of that very name exists, which has precedence.
func renamed(ctx context.Context, in Finder, t hostname.Target) iter.Seq2[hostname.Target, sandbox.Sandbox] {
	return func(yield func(hostname.Target, sandbox.Sandbox) bool) {
		for at := range t.Name {
			if t.Kind != hostname.Terminal || t.Name[at] != '-' {
				continue
			}
			to := hostname.Target{Kind: hostname.Service, Name: t.Name[at+1:], Service: t.Name[:at]}
			sb, err := in.Sandbox(ctx, to.Name)
			if err != nil {
				continue
			}
			if to.Port = portOf(in.Services(sb), to.Service); to.Port != 0 && !yield(to, sb) {
				return
			}
		}
	}
}

// redirectHost redirects to the same path at another host. The answer is not cached: a sandbox may get this host's name.
func (a *responder) redirectHost(to hostname.Target) {
	a.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(a.w, a.r, a.hosts.Origin(to)+safePath(a.r.URL.RequestURI()), http.StatusTemporaryRedirect)
}
