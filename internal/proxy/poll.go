package proxy

import (
	"net/http"

	"sandboxd/internal/access"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

const (
	// stateHeader tells a probe, and whoever is not to wake a sandbox, how it stands.
	stateHeader = "X-Sandboxd-State"
	// pollSeconds is when something that repeats by itself may try again.
	pollSeconds = 60
	// maxDetail bounds what is told of a request.
	maxDetail = 80
)

// observes reports whether the request only looks.
func (v visit) observes() bool { return v.r.Header.Get(hostname.ObserveHeader) == "1" }

// use says what use of the sandbox the request is.
func (v visit) use() idle.Use {
	u := idle.Use{Kind: idle.Web, Detail: detail(v.r.Method, v.r.URL.Path), Unattended: !v.attended()}
	switch {
	case isWebSocket(v.r) && v.target.Kind == hostname.Terminal:
		u.Kind, u.Detail = idle.Terminal, tabOf(v.r.URL.EscapedPath())
	case v.toEditor():
		u.Kind, u.Detail = idle.Stream, "VS Code"
	case isWebSocket(v.r):
		u.Kind, u.Detail = idle.Stream, detail("WebSocket", v.r.URL.Path)
	}
	return u
}

// detail is what a person is told of a request: without its query, which may hold secrets, and without whatever could
// spoil a line.
func detail(what, path string) string { return what + " " + text.Excerpt(path, maxDetail) }

// atRest is what a sandbox at rest is called.
func atRest(state sandbox.State) string {
	if state == sandbox.Frozen {
		return string(sandbox.Frozen)
	}
	return string(sandbox.Asleep)
}

// resting tells whom it does not wake that the sandbox is at rest. Its code is "frozen" or "asleep".
func (v visit) resting(state sandbox.State, why, hint string) notice {
	word := atRest(state)
	return notice{Status: http.StatusServiceUnavailable, Code: word, Title: v.target.Name + " is " + word, Retry: pollSeconds,
		Text: why, Hint: hint, Links: []link{v.dashboard("Open in the dashboard", v.target.Name)}}
}

// leave tells a page that repeats itself that it wakes nobody.
func (v visit) leave(state sandbox.State) {
	v.w.Header().Set(stateHeader, string(state))
	n := v.resting(state, "What a page asks for by itself does not wake it.", "Reload the page.")
	if isNavigation(v.r) { // a click is a person's
		n.Links = append([]link{v.here("Wake it")}, n.Links...)
	}
	v.show(n)
}

// unseen tells a probe that the sandbox is not awake.
func (v visit) unseen(sb sandbox.Sandbox) notice {
	v.w.Header().Set(stateHeader, string(sb.State)) // it may have changed since it came in
	n := v.resting(sb.State, "A request that only observes does not wake it.", "Leave out the header "+hostname.ObserveHeader+" to wake it.")
	if !sb.State.Resting() {
		n.Code, n.Title, n.Text = string(sb.State), v.target.Name+" is not awake", "It is "+string(sb.State)+"."
		n.Hint = ""
	}
	return n
}

// look goes to a sandbox that is awake without using it.
func (v visit) look(sb sandbox.Sandbox) (*access.Session, bool) {
	if sb.State != sandbox.Running {
		v.show(v.unseen(sb))
		return nil, false
	}
	ctx := v.r.Context()
	session, err := v.handle.Look(ctx)
	if err == nil {
		return session, true
	}
	if now, gone := v.handle.Current(ctx); gone == nil && now.State != sandbox.Running {
		v.show(v.unseen(now))
	} else {
		v.refuse(err)
	}
	return nil, false
}
