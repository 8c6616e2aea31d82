package proxy

import (
	"net/http"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// A host outlives its sandboxes: who deletes one gives its name back, and somebody else may take it. What programs of the
// former one have left in browsers there (a service worker above all, which answers for the whole host and sees what its
// pages do) would then act within the new owner's session. So each browser that signs in at a host is given a cookie that
// names the sandbox, and when it comes to another one there, or for the first time (it may have been an outsider before),
// the answer that gives it a session empties the storage of that origin first: service workers, IndexedDB, localStorage.
//
// That answer is the come-back from the dashboard, since it is ours and comes before the first page of the sandbox. A session that is older than the sandbox, such as after a
// delete and a create of the same name, is led that way once more. The browser asks for a worker's script without asking the
// worker, so a former worker that keeps navigations from us ends there: such a request is refused, and empties too.
//
// Not "cookies", which would clear those of all sibling hosts, the dashboard's too. Outsiders have nothing at stake but the
// very port that they were let into. At a terminal there is no reason for a worker, so none is let in; VS Code needs one.

// tenantCookie names the cookie that says at which sandbox a browser has signed in at this host.
func (p *Proxy) tenantCookie() string { return p.cookieName(ourCookies + "_box") }

// tenantSeconds is the longest that browsers keep a cookie: the storage that it speaks of is kept for as long.
const tenantSeconds = 400 * 24 * 60 * 60

// tenant reports whether the browser has signed in at this very sandbox, or else at another one, at this host.
func (v visit) tenant(sandboxID string) (same, other bool) {
	for i, c := range v.r.CookiesNamed(v.tenantCookie()) {
		if c.Value == sandboxID && sandboxID != "" || i >= maxCandidates { // a neighbour may have set many of the name, see session
			return true, false
		}
		other = true
	}
	return false, other
}

// moveIn makes the browser forget what another sandbox has left at this host.
func (v visit) moveIn(sandboxID string) {
	if same, _ := v.tenant(sandboxID); !same {
		v.setCookie(v.tenantCookie(), sandboxID, tenantSeconds)
		v.emptyStorage()
	}
}

func (v visit) emptyStorage() { v.w.Header().Set("Clear-Site-Data", `"storage"`) }

// fetchesWorker reports whether a browser asks for the script of a service worker. No page can make it say so, or not.
func fetchesWorker(r *http.Request) bool { return r.Header.Get("Service-Worker") == "script" }

// staleWorker reports whether a browser asks for the script of a worker that another sandbox has left at this host. Where
// there is no sandbox it answers as where there is one, so that nobody learns which.
func (v visit) staleWorker(sandboxID string) bool {
	_, other := v.tenant(sandboxID)
	return other && fetchesWorker(v.r) && v.target.Kind != hostname.Terminal
}

// evicts answers, and reports true, when the browser still has what another sandbox has left at this host.
func (v visit) evicts(who visitor, sb sandbox.Sandbox) bool {
	_, other := v.tenant(sb.ID)
	switch {
	case v.target.Kind == hostname.Terminal || !other:
		return false
	case v.staleWorker(sb.ID):
		v.refuseWorker("This service worker belongs to a sandbox that is gone.")
		return true
	case isNavigation(v.r) && !who.outside() && !who.byHeader():
		v.redirect(v.handover())
		return true
	}
	return false
}

// refuseWorker keeps a service worker out, also one that is there already.
func (v visit) refuseWorker(why string) {
	v.emptyStorage()
	v.refuse(fault.New(fault.Forbidden, "%s", why))
}
