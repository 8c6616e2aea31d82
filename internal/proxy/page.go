package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
)

// A page that is left open goes on asking, and nobody may be there. The rule: a page's request is unattended when it reads
// the same once more within the hour, or when requests of its kind come in a rhythm, or each when the one before is
// answered. All else is attended: whatever a person certainly does, a program with a token, what is new, and what comes
// between the beats.

// asker is who makes a request, as far as it tells.
type asker string

const (
	bySomebody asker = "somebody" // a person for certain, or a program that somebody wants to run
	byTab      asker = "tab"      // a page is shown: a person wants it, or it loads itself anew
	byScript   asker = "script"   // a page's script, or what belongs to a page
)

// asker judges by what browsers say. Chromium and Firefox mark what a person navigates to, Chromium also a reload by the
// browser's button, and never one by the page; Safari does not, and on plain HTTP beyond localhost none says anything.
// There a page is told by what it accepts, a WebSocket by its Origin, and a terminal's page by its Referer.
func (v visit) asker() asker {
	h := v.r.Header
	mode := h.Get("Sec-Fetch-Mode")
	switch {
	case v.who.byHeader(), v.wished(), h.Get("Sec-Fetch-User") == "?1":
		return bySomebody
	case mode == "navigate":
		return v.shown()
	case mode != "":
		return byScript
	case isWebSocket(v.r) && !v.hasOrigin():
		return bySomebody
	case isWebSocket(v.r):
		return byScript
	case acceptsHTML(v.r):
		return byTab
	case v.target.Kind == hostname.Terminal && h.Get("Referer") == "":
		return bySomebody
	}
	return byScript
}

// shown tells a tab's page from one inside of another, which that one may load anew whatever is shown there.
func (v visit) shown() asker {
	if dest := v.r.Header.Get("Sec-Fetch-Dest"); dest == "" || dest == "document" {
		return byTab
	}
	return byScript
}

// repeats reports whether the request may be a forgotten page's, and notes it. What a terminal's page asks for by itself
// always may, since whoever opens one navigates to it.
func (v visit) repeats() bool {
	by := v.asker()
	reads := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	switch {
	case by == bySomebody:
		return false
	case v.target.Kind == hostname.Terminal:
		return by == byScript && reads
	}
	what := v.how() + " " + v.r.URL.Path + "?" + lasting(v.r.URL.RawQuery)
	again := by == byScript && reads && !v.navigates() && v.cfg.Tracker.Repeats(v.target.Name, what)
	if v.beats(v.kind(by), by, again) {
		return true
	}
	return by == byScript && reads && v.cutOff()
}

// how says who asks for something, and how. Outsiders are told apart by where they come from.
func (v visit) how() string {
	who := v.who.User.ID + " " + v.who.Session
	if v.who.outside() {
		who = v.from() + " " + v.who.share
	}
	return strings.Join([]string{who, strconv.Itoa(v.target.Port), v.r.Method}, " ")
}

// kind is what requests of a page that come by themselves have in common.
func (v visit) kind(by asker) string {
	return v.how() + " " + string(by) + " " + shape(v.r.URL.Path)
}

// heldFor is how long a request waits for its answer when that says what has happened meanwhile. A page that was answered
// sooner and asks again at once need not be told of: that is one beat.
const heldFor = time.Second

// waited notes that a request that was held has ended: a page that waits for what happens asks again. One that has ended
// because the sandbox is put to rest was turned away.
func (v visit) waited(u idle.Use) {
	by := v.asker()
	if by != byScript || v.target.Kind == hostname.Terminal {
		return
	}
	kind := v.kind(by)
	if u.Unattended && v.turnedAway() {
		v.cfg.Tracker.TurnAway(v.target.Name, kind, true)
		return
	}
	v.cfg.Tracker.Answered(v.target.Name, kind)
}

// beats reports whether the request is one of its kind that come by themselves. A WebSocket is opened once more, and not
// in a rhythm.
func (v visit) beats(kind string, by asker, again bool) bool {
	name, tracker := v.target.Name, v.cfg.Tracker
	switch {
	case isWebSocket(v.r):
		return tracker.Repeats(name, kind) || again
	case again:
		return true
	case !tracker.Beats(name, kind):
		return false
	case v.turnedAway():
		// Our page takes the place of one that loaded itself anew, so the next to load it is a person. A script tries again.
		tracker.TurnAway(name, kind, by == byScript)
	}
	return true
}

// turnedAway reports whether an unattended request that comes now is refused.
func (v visit) turnedAway() bool {
	sb, err := v.handle.Current(v.r.Context())
	return err == nil && !v.mayWake(idle.Use{Unattended: true}, sb)
}

// cutFor is how long after a stop the pages that it has cut off look for their sandbox, also where a browser lets the
// timers of a tab in the background strike once a minute only.
const cutFor = 2 * time.Minute

// cutOff reports whether the sandbox has just been put to sleep, with nobody there: what reads something new then has
// noticed that.
func (v visit) cutOff() bool {
	if v.cfg.Tracker.Counts(v.target.Name) {
		return false
	}
	sb, err := v.handle.Current(v.r.Context())
	return err == nil && sb.State.Sleeps() && time.Since(sb.Changed) < cutFor
}

// idLength is the longest part of a path that is taken for a word.
const idLength = 24

// shape is a path without what changes from one request to the next: parts that have digits, or are too long for a word,
// stand for any such.
func shape(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if len(part) > idLength || strings.ContainsAny(part, "0123456789") {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, "/")
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
