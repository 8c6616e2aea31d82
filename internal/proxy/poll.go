package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

const (
	// observeHeader with the value 1 marks a probe: it uses nothing and wakes nothing.
	observeHeader = "X-Sandboxd-Observe"
	// stateHeader tells a probe, and whoever is not to wake a sandbox, how it stands.
	stateHeader = "X-Sandboxd-State"
	// pollSeconds is when something that repeats by itself may try again.
	pollSeconds = 60
	// maxDetail bounds what is told of a request.
	maxDetail = 80
)

// observes reports whether the request only looks.
func (v visit) observes() bool { return v.r.Header.Get(observeHeader) == "1" }

// use says what use of the sandbox the request is.
func (v visit) use(who visitor) idle.Use {
	u := idle.Use{Kind: idle.Web, Detail: detail(v.r.Method, v.r.URL.Path), Unattended: v.repeats(who)}
	switch {
	case isWebSocket(v.r) && v.target.Kind == hostname.Terminal:
		u.Kind, u.Detail = idle.Terminal, tabOf(v.r.URL.EscapedPath())
	case isWebSocket(v.r):
		u.Kind, u.Detail = idle.Stream, detail("WebSocket", v.r.URL.Path)
	case v.direct:
		u.Kind = idle.Direct
	}
	return u
}

// detail is what a person is told of a request: without its query, which may hold secrets, and without whatever could
// spoil a line.
func detail(what, path string) string {
	path = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, path[:min(len(path), 4*maxDetail)])
	if runes := []rune(path); len(runes) > maxDetail {
		path = string(runes[:maxDetail]) + "…"
	}
	return what + " " + path
}

// repeats reports whether the request may be a forgotten page's: made by a script or by the page itself, changing
// nothing, and the same as one within the last hour. Only browsers tell that, and a program with a token has somebody
// who wants it to run.
func (v visit) repeats(who visitor) bool {
	mode := v.r.Header.Get("Sec-Fetch-Mode")
	if who.byToken || mode == "" || mode == "navigate" || v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		return false
	}
	asks := []string{who.User.ID, who.Session, strconv.Itoa(v.target.Port), v.r.Method, v.r.URL.Path}
	return v.cfg.Tracker.Repeats(v.target.Name, strings.Join(asks, " "))
}

// joins reports whether a terminal's page comes back by itself, which wakes nothing.
func (v visit) joins() bool {
	return v.target.Kind == hostname.Terminal && isWebSocket(v.r) && v.r.URL.Query().Get("wake") == "0"
}

// mayWake reports whether a request that is no probe may wake the sandbox.
func (v visit) mayWake(u idle.Use, sb sandbox.Sandbox) bool {
	if v.joins() && sb.State.Resting() {
		return false
	}
	return !u.Unattended || !sb.State.Resting() || v.cfg.Tracker.Counts(v.target.Name)
}

// asleep tells a page that repeats itself that it wakes nobody.
func (v visit) asleep() notice {
	return notice{Status: http.StatusServiceUnavailable, Code: "asleep", Title: v.target.Name + " is asleep", Retry: pollSeconds,
		Text:  "A page that only repeats the same request does not wake it.",
		Hint:  "Reload the page.",
		Links: []link{v.dashboard("Open in the dashboard", v.target.Name)}}
}

// unseen tells a probe that the sandbox is not awake.
func (v visit) unseen(sb sandbox.Sandbox) notice {
	v.w.Header().Set(stateHeader, string(sb.State)) // it may have changed since it came in
	n := notice{Status: http.StatusServiceUnavailable, Code: "asleep", Title: v.target.Name + " is asleep", Retry: pollSeconds,
		Text: "A request that only observes does not wake it.", Hint: "Leave out the header " + observeHeader + " to wake it.",
		Links: []link{v.dashboard("Open in the dashboard", v.target.Name)}}
	if !sb.State.Resting() {
		n.Code, n.Title, n.Text = string(sb.State), v.target.Name+" is not awake", "It is "+string(sb.State)+"."
		n.Hint = ""
	}
	return n
}

// look goes to a sandbox that is awake without using it.
func (v visit) look(sb sandbox.Sandbox) (Entry, bool) {
	if sb.State != sandbox.Running {
		v.show(v.unseen(sb))
		return Entry{}, false
	}
	ctx := v.r.Context()
	entry, err := v.cfg.Doors.Look(ctx, v.target.Name)
	if err == nil {
		return entry, true
	}
	if now, gone := v.cfg.Sandboxes.Sandbox(ctx, v.target.Name); gone == nil && now.State != sandbox.Running {
		v.show(v.unseen(now))
	} else {
		v.refuse(err)
	}
	return Entry{}, false
}
