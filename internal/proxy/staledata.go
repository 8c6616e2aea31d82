package proxy

import (
	"net/http"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// A host outlives its sandboxes: after a delete, another owner may take the name. Data that the former sandbox's programs left in
// browsers (above all a service worker, which answers for the whole host and sees what its pages do) would then act within the new
// owner's session. So each browser that signs in at a host gets a cookie with the sandbox's id. If the id is another one or missing
// (the browser may have been an outsider's), the answer that sets the session also clears the origin's storage: service workers,
// IndexedDB, localStorage.
//
// That answer is the redirect back from the dashboard: it is ours, and precedes the sandbox's first page. A session older than the
// sandbox, as after a delete and a create of the same name, is redirected through the dashboard again. Browsers fetch a worker's
// script past the worker, so a former worker that intercepts navigations ends there: we refuse that request and clear the storage.
//
// "cookies" is not cleared: that would clear those of all sibling hosts, the dashboard's too. Outsiders risk nothing but the port
// that they may use. A terminal needs no service worker, so none is allowed there; VS Code needs one.

// sandboxSeconds is the longest that browsers keep a cookie, which is as long as they keep the storage.
const sandboxSeconds = 400 * 24 * 60 * 60

// signedInAt reports whether the browser signed in at this sandbox, or else at another one of this host.
func (q *request) signedInAt(sandboxID string) (same, other bool) {
	for i, c := range q.cookies(sandboxCookie) {
		if c.Value == sandboxID && sandboxID != "" || i >= auth.MaxShown { // a neighbour may have set many of the name, see session
			return true, false
		}
		other = true
	}
	return false, other
}

// clearOthers makes the browser clear the data of other sandboxes at this host.
func (s *signIn) clearOthers(sandboxID string) {
	if same, _ := s.signedInAt(sandboxID); !same {
		s.setCookie(sandboxCookie, sandboxID, sandboxSeconds)
		s.clearStorage()
	}
}

// clearStorage makes the browser empty the storage of this origin.
func (a *responder) clearStorage() { a.w.Header().Set("Clear-Site-Data", `"storage"`) }

// fetchesWorker reports whether a browser fetches the script of a service worker. Pages cannot set or remove the header.
func fetchesWorker(r *http.Request) bool { return r.Header.Get("Service-Worker") == "script" }

// staleWorker reports whether a browser fetches the script of a worker of another sandbox at this host. It does not reveal whether
// the host has a sandbox.
func (q *request) staleWorker(sandboxID string) bool {
	_, other := q.signedInAt(sandboxID)
	return other && fetchesWorker(q.r) && q.target.Kind != hostname.Terminal
}

// clearsStale answers the request and reports true if the browser still has data of another sandbox at this host.
func (s *signIn) clearsStale(sb sandbox.Sandbox) bool {
	_, other := s.signedInAt(sb.ID)
	switch {
	case s.target.Kind == hostname.Terminal || !other:
		return false
	case s.staleWorker(sb.ID):
		s.refuseWorker("This service worker belongs to a sandbox that is gone.")
		return true
	case isNavigation(s.r) && !s.who.outside() && !s.who.byHeader():
		s.redirect(s.handoverURL())
		return true
	}
	return false
}

// refuseWorker refuses a service worker, and removes an installed one.
func (a *responder) refuseWorker(why string) {
	a.clearStorage()
	a.refuse(fault.New(fault.Forbidden, "%s", why))
}
