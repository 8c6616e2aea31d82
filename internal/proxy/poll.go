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
	// stateHeader has the sandbox's state, for probes and for requests that may not wake it.
	stateHeader = "X-Sandboxd-State"
	// pollSeconds is when an automatic request may try again.
	pollSeconds = 60
	// maxDetail bounds the description of a request.
	maxDetail = 80
)

// observes reports whether the request is a probe.
func (q *request) observes() bool { return q.r.Header.Get(hostname.ObserveHeader) == "1" }

// use is the use of the sandbox that the request makes.
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

// detail describes a request in one line, without its query, which may hold secrets.
func detail(what, path string) string { return what + " " + text.Excerpt(path, maxDetail) }

// atRest names the state of a sandbox at rest.
func atRest(state sandbox.State) string {
	if state == sandbox.Frozen {
		return string(sandbox.Frozen)
	}
	return string(sandbox.Asleep)
}

// resting says that the sandbox is at rest and was not woken. Its code is "frozen" or "asleep".
func (a *responder) resting(state sandbox.State, why, hint string) notice {
	word := atRest(state)
	return notice{Status: http.StatusServiceUnavailable, Code: word, Title: a.target.Name + " is " + word, Retry: pollSeconds,
		Text: why, Hint: hint, Links: []link{a.dashboard("Open in the dashboard", a.target.Name)}}
}

// refuseWake answers an automatic request, which does not wake the sandbox.
func (a *responder) refuseWake(state sandbox.State) {
	a.w.Header().Set(stateHeader, string(state))
	n := a.resting(state, "What a page asks for by itself does not wake it.", "Reload the page.")
	if isNavigation(a.r) { // a person may click
		n.Links = append([]link{a.here("Wake it")}, n.Links...)
	}
	a.show(n)
}

// notAwake answers a probe of a sandbox that is not awake.
func (a *responder) notAwake(sb sandbox.Sandbox) notice {
	a.w.Header().Set(stateHeader, string(sb.State)) // it may have changed meanwhile
	n := a.resting(sb.State, "A request that only observes does not wake it.", "Leave out the header "+hostname.ObserveHeader+" to wake it.")
	if !sb.State.Resting() {
		n.Code, n.Title, n.Text = string(sb.State), a.target.Name+" is not awake", "It is "+string(sb.State)+"."
		n.Hint = ""
	}
	return n
}

// observe opens an awake sandbox for a probe, which is no use of it.
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
