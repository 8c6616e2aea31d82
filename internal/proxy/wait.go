package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// A person who opens a sandbox that is not ready sees a waiting page. When the sandbox is ready, the page loads the same address
// again, with its fragment and without a step in the history. It polls waitPath, for at most waitLimit each time; without scripts it
// reloads now and then.

// waitPath is what a waiting page polls.
const waitPath = hostname.OwnPath + "/wait"

const waitLimit = 2 * time.Second

// waiting is the waiting page's content.
func (a *responder) waiting(sb sandbox.Sandbox) notice {
	n := notice{Status: http.StatusServiceUnavailable, Code: "waking", Title: "Waking " + a.target.Name + "…", Text: a.phase(sb),
		Waits: true, Retry: retrySeconds, Links: []link{a.dashboard("Open in the dashboard", a.target.Name)}}
	if sb.State == sandbox.Creating {
		n.Title = a.target.Name + " is being created…"
	}
	return n
}

// phase says in a sentence how far the sandbox's start is.
func (a *responder) phase(sb sandbox.Sandbox) string {
	switch a.sandboxes.Progress(sb.ID).Phase {
	case sandbox.PhaseImage:
		return "Its image is being built, which may take minutes the first time."
	case sandbox.PhaseVolume:
		return "Its container is being created."
	case sandbox.PhaseStart:
		return "It is being started."
	case sandbox.PhaseReady:
		return "It has started and is about to answer."
	}
	if sb.State == sandbox.Running {
		return "It is awake, and the program that was asked for is about to answer."
	}
	return "It will be ready in a moment."
}

// waitAnswer is the answer to a waiting page.
type waitAnswer struct {
	Go    bool   `json:"go"`              // load the address again
	Text  string `json:"text,omitempty"`  // show this
	Again int    `json:"again,omitempty"` // poll again after so many seconds; at once without it
	Stay  bool   `json:"stay,omitempty"`  // poll no more
}

// serveWait answers a waiting page. Its use is unattended: the request that showed the page was judged already.
func (i *inbound) serveWait() {
	ctx, cancel := context.WithTimeout(i.r.Context(), waitLimit)
	defer cancel()
	sb, ok := i.authorize()
	if !ok {
		return
	}
	body, err := json.Marshal(i.awaitOpen(ctx, sb))
	if err != nil {
		i.refuse(err)
		return
	}
	h := i.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	i.write(http.StatusOK, body)
}

// awaitOpen opens the sandbox and waits for the service, until ctx ends.
func (i *inbound) awaitOpen(ctx context.Context, sb sandbox.Sandbox) waitAnswer {
	use := idle.Use{Kind: idle.Web, Detail: "a page that waits", Unattended: true}
	if _, closed := i.closedNotice(sb); closed {
		return waitAnswer{Go: true}
	}
	if sb.State.Resting() && !i.proxy.cfg.Tracker.Counts(i.handle.ID()) {
		return waitAnswer{Text: i.target.Name + " is " + atRest(sb.State) + ". Reload the page to wake it.", Stay: true}
	}
	session, err := i.openLimited(i.asked(ctx), sb, i.handle.Open, use)
	if err == nil {
		defer session.Release()
		err = i.awaitService(ctx, session)
	}
	now, rowErr := i.handle.Current(i.r.Context())
	switch {
	case err == nil, rowErr != nil:
		return waitAnswer{Go: true}
	case ctx.Err() != nil:
		return waitAnswer{Text: i.phase(now)}
	case fault.Is(err, fault.Unavailable):
		n := i.noRoom(err)
		return waitAnswer{Text: n.Text, Again: n.Retry}
	}
	return waitAnswer{Go: true} // the page itself says why
}

// awaitService returns when the host's service answers, or is known not to exist.
func (i *inbound) awaitService(ctx context.Context, session *access.Session) error {
	sb := session.Sandbox()
	if i.target.Port == 0 || !fresh(sb, false) {
		return nil
	}
	return i.proxy.pools.of(sb.ID, session.Guest).gate(i.target.Port).await(ctx)
}
