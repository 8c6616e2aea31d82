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

// How long a request waits for its sandbox and for the service that it asks for, from when it came.
const (
	pageAfter = 1500 * time.Millisecond // then a person sees a page that continues by itself
	wakeLimit = 60 * time.Second        // everything else is held
)

// fullSeconds is when to try again on a host that is full.
const fullSeconds = 10

// patience is how long this request waits.
func (v visit) patience() time.Duration {
	if isNavigation(v.r) {
		return pageAfter
	}
	return wakeLimit
}

// deadline is when this request stops waiting to be let through.
func (v visit) deadline() time.Time { return v.begun.Add(v.patience()) }

// open opens the sandbox: the use is registered first, then the sandbox is woken. It answers whom it does not lead in.
func (v visit) open(sb sandbox.Sandbox) (*access.Session, idle.Use, bool) {
	if v.observes() {
		session, ok := v.look(sb)
		return session, idle.Use{}, ok
	}
	use := v.use()
	if !v.mayWake(use, sb) {
		v.leave(sb.State)
		return nil, use, false
	}
	open := opener(v.handle.Open)
	if isWebSocket(v.r) {
		open = v.handle.OpenStream
	}
	ctx, cancel := context.WithDeadline(v.r.Context(), v.deadline())
	defer cancel()
	session, err := v.knock(ctx, sb, open, use)
	if err != nil {
		v.shut(ctx, sb, err)
		return nil, use, false
	}
	return session, use, true
}

// shut answers a request whose sandbox was not opened before ctx ended. sb is the sandbox as it was when it came.
func (v visit) shut(ctx context.Context, sb sandbox.Sandbox, err error) {
	now, rowErr := v.handle.Current(v.r.Context())
	if rowErr == nil {
		sb = now
	}
	n, closed := v.closedNotice(sb)
	switch {
	case ctx.Err() != nil && v.r.Context().Err() == nil:
		v.late(sb)
	case closed && fault.Is(err, fault.Conflict):
		v.show(n)
	case sb.State != sandbox.Running && fault.Is(err, fault.Unavailable):
		v.show(v.full(err))
	default:
		v.refuse(err)
	}
}

// late answers a request that has waited for as long as it may.
func (v visit) late(sb sandbox.Sandbox) {
	if isNavigation(v.r) {
		v.show(v.waiting(sb))
		return
	}
	v.refuse(fault.New(fault.Timeout, "%s is not ready yet. %s Try again in a moment.", v.target.Name, v.phase(sb)))
}

// full tells that a sandbox cannot be woken just now, for a reason that passes.
func (v visit) full(err error) notice {
	text := fault.Message(err)
	if v.who.outside() {
		text = "There is no room for it just now, or it could not be started."
	}
	return notice{Status: http.StatusServiceUnavailable, Code: fault.Unavailable.String(), Waits: true, Retry: cmp.Or(int(fault.RetryAfter(err).Seconds()), fullSeconds),
		Title: v.target.Name + " cannot be woken now", Text: text,
		Links: []link{v.dashboard("Open in the dashboard", v.target.Name), v.dashboard("All sandboxes", "")}}
}
