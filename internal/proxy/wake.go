package proxy

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// How long a request waits for its sandbox and service, from its arrival.
const (
	pageAfter = 1500 * time.Millisecond // then a person sees a page that continues by itself
	wakeLimit = 60 * time.Second        // everything else is held
)

// patience is how long the request waits.
func (q *request) patience() time.Duration {
	if isNavigation(q.r) {
		return pageAfter
	}
	return wakeLimit
}

// deadline is when the request stops waiting.
func (q *request) deadline() time.Time { return q.begun.Add(q.patience()) }

// open registers the use, then wakes and opens the sandbox. If it cannot it answers, and gives false.
func (i *inbound) open(sb sandbox.Sandbox) (*access.Session, idle.Use, bool) {
	if i.observes() {
		session, ok := i.observe(sb)
		return session, idle.Use{}, ok
	}
	use := i.use()
	if !i.mayWake(use, sb) {
		i.refuseWake(sb.State)
		return nil, use, false
	}
	open := opener(i.handle.Open)
	if isWebSocket(i.r) {
		open = i.handle.OpenStream
	} else if sb.State == sandbox.Running { // nearly always, and then two contexts are saved
		if session, ok := i.handle.OpenNow(use); ok {
			return session, use, true
		}
	}
	step := "wake"
	if sb.State == sandbox.Running {
		step = "open"
	}
	ctx, opened := i.proxy.cfg.Step(i.asked(i.r.Context()), step)
	ctx, cancel := context.WithDeadline(ctx, i.deadline())
	defer cancel()
	session, err := i.openLimited(ctx, sb, open, use)
	opened(err)
	if err != nil {
		i.refuseOpen(ctx, sb, err)
		return nil, use, false
	}
	return session, use, true
}

// refuseOpen answers a request whose sandbox was not opened. sb is the sandbox as it was on the request's arrival.
func (i *inbound) refuseOpen(ctx context.Context, sb sandbox.Sandbox, err error) {
	now, rowErr := i.handle.Current(i.r.Context())
	if rowErr == nil {
		sb = now
	}
	n, closed := i.closedNotice(sb)
	switch {
	case ctx.Err() != nil && i.r.Context().Err() == nil:
		i.timedOut(sb)
	case closed && fault.Is(err, fault.Conflict):
		i.show(n)
	case sb.State != sandbox.Running && fault.Is(err, fault.Unavailable):
		i.show(i.noRoom(err))
	default:
		i.refuse(err)
	}
}

// timedOut answers a request at its deadline.
func (a *responder) timedOut(sb sandbox.Sandbox) {
	if isNavigation(a.r) {
		a.show(a.waiting(sb))
		return
	}
	a.refuse(fault.New(fault.Timeout, "%s is not ready yet. %s Try again in a moment.", a.target.Name, a.phase(sb)))
}

// noRoom says that a sandbox cannot be woken now, for a temporary reason.
func (a *responder) noRoom(err error) notice {
	text := fault.Message(err)
	if a.who.outside() {
		text = "There is no room for it just now, or it could not be started."
	}
	return notice{Status: http.StatusServiceUnavailable, Code: fault.Unavailable.String(), Waits: true, Retry: int(cmp.Or(fault.RetryAfter(err), fault.DefaultRetry).Seconds()),
		Title: a.target.Name + " cannot be woken now", Text: text,
		Links: []link{a.dashboard("Open in the dashboard", a.target.Name), a.dashboard("All sandboxes", "")}}
}
