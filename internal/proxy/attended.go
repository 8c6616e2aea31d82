package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// A page that is left open keeps sending requests, perhaps with no one there. The rule: a request with a token is attended. So are
// a page being opened, any method but GET, and a request that no page makes, unless they come at equal pauses as a timer's do. All
// else is unattended: within an hour of the last attended use it counts and thaws a frozen sandbox; it never wakes one that is
// asleep. A page's WebSocket is opened unattended; each message on it is judged as it comes (tunnel.admit).

// attended reports whether a person or program makes the request on purpose, as far as it shows, and notes it.
func (i *inbound) attended() bool {
	switch {
	case i.who.byHeader(), i.connects(), i.r.Header.Get("Sec-Fetch-User") == "?1":
		return true
	case i.rejoins(), i.prefetches(), !i.deliberate():
		return false
	}
	return !i.proxy.cfg.Tracker.Heartbeat(i.handle.ID(), i.pollKey())
}

// prefetches reports whether a browser loads the page in advance.
func (q *request) prefetches() bool {
	return strings.Contains(q.r.Header.Get("Sec-Purpose")+q.r.Header.Get("Purpose"), "prefetch")
}

// deliberate judges by the headers of browsers. Chromium and Firefox mark a person's navigation; Chromium also marks a reload by
// the browser's button, and never one by the page. Safari marks neither, and on plain HTTP beyond localhost no browser does. There
// Accept tells a page being opened, and Referer a page's own request.
func (q *request) deliberate() bool {
	h := q.r.Header
	switch mode := h.Get("Sec-Fetch-Mode"); {
	case isWebSocket(q.r):
		return !q.hasOrigin()
	case q.r.Method != http.MethodGet && q.r.Method != http.MethodHead && q.r.Method != http.MethodOptions:
		return true
	case mode == "navigate": // a page may reload its frames by itself
		dest := h.Get("Sec-Fetch-Dest")
		return dest == "" || dest == "document"
	case mode != "":
		return false
	}
	return acceptsHTML(q.r) || h.Get("Referer") == "" && !q.hasOrigin()
}

// pollKey identifies a repeated request: its caller, what it asks for, and whether as a page. Outsiders differ by network.
func (q *request) pollKey() string {
	who := q.who.User.ID + " " + q.who.Session
	if q.who.outside() {
		who = q.network() + " " + q.who.share
	}
	return strings.Join([]string{who, strconv.Itoa(q.target.Port), q.r.Method, strconv.FormatBool(acceptsHTML(q.r)), q.r.URL.Path}, " ")
}

// mayWake reports whether the request may wake the sandbox. It is not asked for probes.
func (i *inbound) mayWake(u idle.Use, sb sandbox.Sandbox) bool {
	if !u.Unattended || !sb.State.Resting() {
		return true
	}
	return sb.State == sandbox.Frozen && !i.rejoins() && i.proxy.cfg.Tracker.Counts(i.handle.ID())
}

// ownSocket is the query with which our own terminal page opens its WebSocket. It adds wake=0 when it reconnects by itself;
// ttyd's page cannot.
const ownSocket = "page=sandboxd"

// connects reports whether our own terminal page connects because a person asked it to.
func (q *request) connects() bool {
	return q.target.Kind == hostname.Terminal && isWebSocket(q.r) && q.r.URL.Query().Get("page") == "sandboxd" && !q.rejoins()
}

// rejoins reports whether a terminal's page says that it reconnects by itself.
func (q *request) rejoins() bool {
	return q.target.Kind == hostname.Terminal && isWebSocket(q.r) && q.r.URL.Query().Get("wake") == "0"
}
