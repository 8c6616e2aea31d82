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
func (v visit) attended() bool {
	switch {
	case v.who.byHeader(), v.wished(), v.r.Header.Get("Sec-Fetch-User") == "?1":
		return true
	case v.joins(), v.ahead(), !v.acts():
		return false
	}
	return !v.cfg.Tracker.Heartbeat(v.handle.ID(), v.what())
}

// ahead reports whether a browser loads a page before it is asked for.
func (v visit) ahead() bool {
	return strings.Contains(v.r.Header.Get("Sec-Purpose")+v.r.Header.Get("Purpose"), "prefetch")
}

// acts judges by what browsers say. Chromium and Firefox mark what a person navigates to, Chromium also a reload by the
// browser's button, and never one by the page; Safari does not, and on plain HTTP beyond localhost none says anything. There
// a page that is opened is told by what it accepts, and what a page asks for by its Referer.
func (v visit) acts() bool {
	h := v.r.Header
	switch mode := h.Get("Sec-Fetch-Mode"); {
	case isWebSocket(v.r):
		return !v.hasOrigin()
	case v.r.Method != http.MethodGet && v.r.Method != http.MethodHead && v.r.Method != http.MethodOptions:
		return true
	case mode == "navigate": // a page may load anew what is shown within it
		dest := h.Get("Sec-Fetch-Dest")
		return dest == "" || dest == "document"
	case mode != "":
		return false
	}
	return acceptsHTML(v.r) || h.Get("Referer") == "" && !v.hasOrigin()
}

// what says who asks for what, and whether as a page. Outsiders are told apart by where they come from.
func (v visit) what() string {
	who := v.who.User.ID + " " + v.who.Session
	if v.who.outside() {
		who = v.from() + " " + v.who.share
	}
	return strings.Join([]string{who, strconv.Itoa(v.target.Port), v.r.Method, strconv.FormatBool(acceptsHTML(v.r)), v.r.URL.Path}, " ")
}

// mayWake reports whether a request that is no probe may wake the sandbox.
func (v visit) mayWake(u idle.Use, sb sandbox.Sandbox) bool {
	if !u.Unattended || !sb.State.Resting() {
		return true
	}
	return sb.State == sandbox.Frozen && !v.joins() && v.cfg.Tracker.Counts(v.handle.ID())
}

// ownSocket is the query at which our own terminal page opens its WebSocket. It says wake=0 to whatever it does by
// itself; ttyd's page cannot tell.
const ownSocket = "page=sandboxd"

// wished reports whether a person has asked our own terminal page to connect.
func (v visit) wished() bool {
	return v.target.Kind == hostname.Terminal && isWebSocket(v.r) && v.r.URL.Query().Get("page") == "sandboxd" && !v.joins()
}

// joins reports whether a terminal's page says that it comes back by itself.
func (v visit) joins() bool {
	return v.target.Kind == hostname.Terminal && isWebSocket(v.r) && v.r.URL.Query().Get("wake") == "0"
}
