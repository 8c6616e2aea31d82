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

// sandboxSeconds is the longest that browsers keep a cookie: the storage that it speaks of is kept for as long.
const sandboxSeconds = 400 * 24 * 60 * 60

// signedInAt reports whether the browser has signed in at this very sandbox, or else at another one, at this host.
func (q *request) signedInAt(sandboxID string) (same, other bool) {
	for i, c := range q.cookies(sandboxCookie) {
		if c.Value == sandboxID && sandboxID != "" || i >= maxCandidates { // a neighbour may have set many of the name, see session
			return true, false
		}
		other = true
	}
	return false, other
}

// clearOthers makes the browser forget what another sandbox has left at this host.
func (s *signIn) clearOthers(sandboxID string) {
	if same, _ := s.signedInAt(sandboxID); !same {
		s.setCookie(sandboxCookie, sandboxID, sandboxSeconds)
		s.clearStorage()
	}
}

// clearStorage makes the browser empty the storage of this origin.
func (a *responder) clearStorage() { a.w.Header().Set("Clear-Site-Data", `"storage"`) }

// fetchesWorker reports whether a browser asks for the script of a service worker. No page can make it say so, or not.
func fetchesWorker(r *http.Request) bool { return r.Header.Get("Service-Worker") == "script" }

// staleWorker reports whether a browser asks for the script of a worker that another sandbox has left at this host. Where
// there is no sandbox it answers as where there is one, so that nobody learns which.
func (q *request) staleWorker(sandboxID string) bool {
	_, other := q.signedInAt(sandboxID)
	return other && fetchesWorker(q.r) && q.target.Kind != hostname.Terminal
}

// clearsStale answers, and reports true, when the browser still has what another sandbox has left at this host.
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

// refuseWorker keeps a service worker out, also one that is there already.
func (a *responder) refuseWorker(why string) {
	a.clearStorage()
	a.refuse(fault.New(fault.Forbidden, "%s", why))
}
