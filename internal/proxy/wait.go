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

// A person who opens a sandbox that is not there at once sees a page that stays as it is until the sandbox is, and then
// loads the same address again: with its fragment, and without a step in the history. The page asks waitPath, each time
// for at most waitLimit; without scripts it reloads now and then.

// waitPath is where a waiting page asks whether to go on.
const waitPath = hostname.OwnPath + "/wait"

const waitLimit = 2 * time.Second

// waiting is the page's content.
func (v visit) waiting(sb sandbox.Sandbox) notice {
	n := notice{Status: http.StatusServiceUnavailable, Code: "waking", Title: "Waking " + v.target.Name + "…", Text: v.phase(sb),
		Waits: true, Retry: retrySeconds, Links: []link{v.dashboard("Open in the dashboard", v.target.Name)}}
	if sb.State == sandbox.Creating {
		n.Title = v.target.Name + " is being made…"
	}
	return n
}

// phase says how far the sandbox is, in a sentence.
func (v visit) phase(sb sandbox.Sandbox) string {
	switch v.cfg.Sandboxes.Progress(sb.ID).Phase {
	case sandbox.PhaseImage:
		return "Its image is being made, which may take minutes the first time."
	case sandbox.PhaseVolume:
		return "Its container is being made."
	case sandbox.PhaseStart:
		return "It is being started."
	case sandbox.PhaseReady:
		return "It has started and is about to answer."
	}
	if sb.State == sandbox.Running {
		return "It is awake, and the program that was asked for is about to answer."
	}
	return "It will be here in a moment."
}

// waitAnswer is what a waiting page is told.
type waitAnswer struct {
	Go    bool   `json:"go"`              // load the address again
	Text  string `json:"text,omitempty"`  // show this meanwhile
	Again int    `json:"again,omitempty"` // ask again after so many seconds; at once without it
	Stay  bool   `json:"stay,omitempty"`  // ask no more
}

// wait answers a waiting page. What it keeps awake by that is unattended: the visit that it came from was not.
func (v visit) wait() {
	ctx, cancel := context.WithTimeout(v.r.Context(), waitLimit)
	defer cancel()
	v, sb, ok := v.recognise()
	if !ok {
		return
	}
	body, err := json.Marshal(v.progress(ctx, sb))
	if err != nil {
		v.refuse(err)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	v.write(http.StatusOK, body)
}

// progress waits until ctx ends at most.
func (v visit) progress(ctx context.Context, sb sandbox.Sandbox) waitAnswer {
	use := idle.Use{Kind: idle.Web, Detail: "a page that waits", Unattended: true}
	if _, closed := v.closedNotice(sb); closed {
		return waitAnswer{Go: true}
	}
	if sb.State.Resting() && !v.cfg.Tracker.Counts(v.handle.ID()) {
		return waitAnswer{Text: v.target.Name + " is " + atRest(sb.State) + ". Reload the page to wake it.", Stay: true}
	}
	session, err := v.knock(ctx, sb, v.handle.Open, use)
	if err == nil {
		defer session.Release()
		err = v.awaitService(ctx, session)
	}
	now, rowErr := v.handle.Current(v.r.Context())
	switch {
	case err == nil, rowErr != nil:
		return waitAnswer{Go: true}
	case ctx.Err() != nil:
		return waitAnswer{Text: v.phase(now)}
	case fault.Is(err, fault.Unavailable):
		n := v.full(err)
		return waitAnswer{Text: n.Text, Again: n.Retry}
	}
	return waitAnswer{Go: true} // the page itself says why
}

// awaitService returns when the service that the host leads to answers, or is known not to exist.
func (v visit) awaitService(ctx context.Context, session *access.Session) error {
	sb := session.Sandbox()
	if v.target.Port == 0 || !v.fresh(sb, false) {
		return nil
	}
	return v.pools.of(sb.ID, session.Guest).gate(v.target.Port).await(ctx)
}
