package proxy

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
)

// proxied is a request from when its sandbox is open to its end. It keeps the sandbox in use while it is in flight. When it lasts
// it becomes a stream (a long answer or upload), which counts by the bytes that flow and by those that the sandbox does not read.
// An idle stream's sandbox may be frozen, and is thawed before the next byte goes in.
type proxied struct {
	responder
	proxy   *Proxy
	handle  access.Handle
	use     idle.Use        // zero for a probe
	session *access.Session // as it was opened
	woken   bool            // it was not awake when the request arrived
	since   time.Time       // when it was opened
	to      upstream        // where it goes
	out     *final          // what the answer is written to, from forward on
	head    func(error)     // ends the step of a trace, from forward on

	checks sync.WaitGroup                 // ends with the watch
	lease  *access.Session                // held in place of session after reclassify; only the watch uses it
	stream atomic.Pointer[access.Session] // nil while the request is in flight
	transfer
}

// transfer is the progress of a request.
type transfer struct {
	answered atomic.Int64 // when the answer's head arrived, in Unix nanoseconds
	sending  atomic.Bool  // the request's body is not complete
	unread   atomic.Bool  // and never will be: it is cut off, or no valid HTTP
	inwards  pending      // sent by the client, not read by the sandbox
	outwards pending      // sent by the sandbox, not read by the client
	slot     slot
}

// upstream is where a request goes inside a sandbox.
type upstream struct {
	host    string // portHost, tabHost or ideHost
	path    string
	rawPath string
}

type proxiedKey struct{}

// proxiedOf gives the proxied request of a context.
func proxiedOf(ctx context.Context) *proxied {
	s, ok := ctx.Value(proxiedKey{}).(*proxied)
	if !ok {
		panic("proxy: a context without its request")
	}
	return s
}

// release ends the use, after the request has ended.
func (p *proxied) release() {
	p.session.Release()
	if p.lease != nil {
		p.lease.Release()
	}
}

// askAgain is how often a request's access is checked again, and how long a credential's owner is remembered. A check is a few
// indexed reads, so that a thousand streams cost next to nothing.
const askAgain = 2 * time.Second

// streamAfter is how long an answer or an upload lasts before it counts by its bytes.
const streamAfter = 5 * time.Second

// watch rechecks a request that lasts longer than askAgain; any other costs a timer. It cancels the request when its caller has
// signed out, was disabled, or lost the sandbox. The returned stop ends ctx and waits for a check under way; it must be called.
func (p *proxied) watch(ctx context.Context, cancel func()) (stop func()) {
	p.checks.Add(1)
	timer := time.AfterFunc(askAgain, func() {
		defer p.checks.Done()
		p.recheck(ctx, cancel)
	})
	return func() {
		cancel()
		if !timer.Stop() {
			p.checks.Wait()
		}
	}
}

func (p *proxied) recheck(ctx context.Context, cancel func()) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		if !p.allowed(ctx) {
			cancel()
			if p.answered.Load() != 0 { // end a write that waits for the client, too
				_ = http.NewResponseController(p.w).SetWriteDeadline(time.Now()) // fails once the connection is gone
			}
			return
		}
		p.reclassify(ctx)
		p.touchBlocked(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// allowed reports whether the caller still has access. It says yes when the check fails: a locked store must not cut terminals.
func (p *proxied) allowed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	now, err := p.proxy.judge(ctx, *p.request, p.proxy.cfg.Accounts)
	if now.target != p.target { // the service has another port
		return false
	}
	if err == nil && (now.who.User.ID != p.who.User.ID || now.handle.ID() != p.handle.ID()) {
		return false
	}
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.NotFound, fault.Gone, fault.Forbidden:
		return false
	}
	return true
}

// reclassify turns a request in flight into a stream, and a stream whose upload is over back into a request in flight.
func (p *proxied) reclassify(ctx context.Context) {
	stream := p.stream.Load()
	long := p.lasts(time.Now())
	if p.use.Kind == "" || isWebSocket(p.r) || long == (stream != nil) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	use, open := p.use, p.handle.Open
	if long {
		use.Kind, open = idle.Stream, p.handle.OpenStream
	}
	next, err := open(ctx, use)
	if err != nil {
		return // it counts as before
	}
	p.stream.Store(nil)
	if long {
		p.stream.Store(next)
	}
	p.release()
	p.lease = next
}

// lasts reports whether bytes have been flowing for long. While a program works on its answer none flow, and it is in use.
func (p *proxied) lasts(now time.Time) bool {
	if answered := p.answered.Load(); answered != 0 {
		return now.Sub(time.Unix(0, answered)) >= streamAfter
	}
	return p.sending.Load() && now.Sub(p.since) >= streamAfter
}
