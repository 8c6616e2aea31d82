package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// A page that is left open keeps asking, perhaps with nobody there. The rule: a request with a token is attended; so are, unless
// they come at equal pauses as a timer's do, a page that is opened, anything but a GET, and what no page asks for. All else is
// unattended: within an hour of the last attended use it counts, and thaws what is frozen; it never starts what is asleep. A
// page's WebSocket is opened unattended; what is sent on it is judged as it comes (tunnel.admit).

// attended reports whether a person or program makes the request on purpose, as far as it tells, and notes it.
func (i *inbound) attended() bool {
	switch {
	case i.who.byHeader(), i.connects(), i.r.Header.Get("Sec-Fetch-User") == "?1":
		return true
	case i.rejoins(), i.prefetches(), !i.deliberate():
		return false
	}
	return !i.proxy.cfg.Tracker.Heartbeat(i.handle.ID(), i.pollKey())
}

// prefetches reports whether a browser loads a page before it is asked for.
func (q *request) prefetches() bool {
	return strings.Contains(q.r.Header.Get("Sec-Purpose")+q.r.Header.Get("Purpose"), "prefetch")
}

// deliberate judges by what browsers say. Chromium and Firefox mark what a person navigates to, Chromium also a reload by the
// browser's button, and never one by the page; Safari does not, and on plain HTTP beyond localhost none says anything. There
// a page that is opened is told by what it accepts, and what a page asks for by its Referer.
func (q *request) deliberate() bool {
	h := q.r.Header
	switch mode := h.Get("Sec-Fetch-Mode"); {
	case isWebSocket(q.r):
		return !q.hasOrigin()
	case q.r.Method != http.MethodGet && q.r.Method != http.MethodHead && q.r.Method != http.MethodOptions:
		return true
	case mode == "navigate": // a page may load anew what is shown within it
		dest := h.Get("Sec-Fetch-Dest")
		return dest == "" || dest == "document"
	case mode != "":
		return false
	}
	return acceptsHTML(q.r) || h.Get("Referer") == "" && !q.hasOrigin()
}

// pollKey says who asks for what, and whether as a page. Outsiders are told apart by where they come from.
func (q *request) pollKey() string {
	who := q.who.User.ID + " " + q.who.Session
	if q.who.outside() {
		who = q.network() + " " + q.who.share
	}
	return strings.Join([]string{who, strconv.Itoa(q.target.Port), q.r.Method, strconv.FormatBool(acceptsHTML(q.r)), q.r.URL.Path}, " ")
}

// mayWake reports whether a request that is no probe may wake the sandbox.
func (i *inbound) mayWake(u idle.Use, sb sandbox.Sandbox) bool {
	if !u.Unattended || !sb.State.Resting() {
		return true
	}
	return sb.State == sandbox.Frozen && !i.rejoins() && i.proxy.cfg.Tracker.Counts(i.handle.ID())
}

// ownSocket is the query at which our own terminal page opens its WebSocket. It says wake=0 to whatever it does by
// itself; ttyd's page cannot tell.
const ownSocket = "page=sandboxd"

// connects reports whether a person has asked our own terminal page to connect.
func (q *request) connects() bool {
	return q.target.Kind == hostname.Terminal && isWebSocket(q.r) && q.r.URL.Query().Get("page") == "sandboxd" && !q.rejoins()
}

// rejoins reports whether a terminal's page says that it comes back by itself.
func (q *request) rejoins() bool {
	return q.target.Kind == hostname.Terminal && isWebSocket(q.r) && q.r.URL.Query().Get("wake") == "0"
}
