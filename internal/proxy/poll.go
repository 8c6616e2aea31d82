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
func (q *request) observes() bool { return q.r.Header.Get(hostname.ObserveHeader) == "1" }

// use says what use of the sandbox the request is.
func (i *inbound) use() idle.Use {
	u := idle.Use{Kind: idle.Web, Detail: detail(i.r.Method, i.r.URL.Path), Unattended: !i.attended()}
	switch {
	case isWebSocket(i.r) && i.target.Kind == hostname.Terminal:
		u.Kind, u.Detail = idle.Terminal, tabOf(i.r.URL.EscapedPath())
	case i.toEditor():
		u.Kind, u.Detail = idle.Stream, "VS Code"
	case isWebSocket(i.r):
		u.Kind, u.Detail = idle.Stream, detail("WebSocket", i.r.URL.Path)
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
func (a *responder) resting(state sandbox.State, why, hint string) notice {
	word := atRest(state)
	return notice{Status: http.StatusServiceUnavailable, Code: word, Title: a.target.Name + " is " + word, Retry: pollSeconds,
		Text: why, Hint: hint, Links: []link{a.dashboard("Open in the dashboard", a.target.Name)}}
}

// refuseWake tells a page that repeats itself that it wakes nobody.
func (a *responder) refuseWake(state sandbox.State) {
	a.w.Header().Set(stateHeader, string(state))
	n := a.resting(state, "What a page asks for by itself does not wake it.", "Reload the page.")
	if isNavigation(a.r) { // a click is a person's
		n.Links = append([]link{a.here("Wake it")}, n.Links...)
	}
	a.show(n)
}

// notAwake tells a probe that the sandbox is not awake.
func (a *responder) notAwake(sb sandbox.Sandbox) notice {
	a.w.Header().Set(stateHeader, string(sb.State)) // it may have changed since it came in
	n := a.resting(sb.State, "A request that only observes does not wake it.", "Leave out the header "+hostname.ObserveHeader+" to wake it.")
	if !sb.State.Resting() {
		n.Code, n.Title, n.Text = string(sb.State), a.target.Name+" is not awake", "It is "+string(sb.State)+"."
		n.Hint = ""
	}
	return n
}

// observe goes to a sandbox that is awake without using it.
func (i *inbound) observe(sb sandbox.Sandbox) (*access.Session, bool) {
	if sb.State != sandbox.Running {
		i.show(i.notAwake(sb))
		return nil, false
	}
	ctx := i.r.Context()
	session, err := i.handle.Look(ctx)
	if err == nil {
		return session, true
	}
	if now, gone := i.handle.Current(ctx); gone == nil && now.State != sandbox.Running {
		i.show(i.notAwake(now))
	} else {
		i.refuse(err)
	}
	return nil, false
}
