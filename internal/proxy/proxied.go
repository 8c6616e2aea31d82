package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
)

// proxied is one request inside its sandbox, from when it was opened to its end. It counts as a request in flight until it turns out
// to be a stream (an answer or an upload that goes on), and as a stream by what flows and by what cannot flow because the
// sandbox does not take it; then a sandbox through which nothing flows may be frozen under it, and is thawed before the
// next byte that goes in.
type proxied struct {
	responder
	proxy   *Proxy
	handle  access.Handle
	use     idle.Use        // zero for one that only looks
	session *access.Session // as it was opened
	woken   bool            // it was not awake when the request came
	since   time.Time       // when it was opened
	to      upstream        // where it goes
	out     *final          // what the answer is written to, once it is asked for

	lease  *access.Session                // what is held instead of session, if anything; the watch's own
	stream atomic.Pointer[access.Session] // what counts by its touches, while anything does
	transfer
}

// transfer is how far a request has come.
type transfer struct {
	answered atomic.Int64 // when the answer's head was there, in Unix nanoseconds
	sending  atomic.Bool  // the request's body has not come as a whole
	unread   atomic.Bool  // and will not: it is cut off, or not sent as HTTP has it
	inwards  pending      // what the visitor has sent and the sandbox has not taken
	outwards pending      // what the sandbox has said and the visitor has not taken
	slot     slot
}

// upstream is where a request goes inside a sandbox.
type upstream struct {
	host    string // portHost, tabHost or ideHost
	path    string
	rawPath string
}

type proxiedKey struct{}

// proxiedOf gives the stay that a request's ctx belongs to.
func proxiedOf(ctx context.Context) *proxied {
	s, ok := ctx.Value(proxiedKey{}).(*proxied)
	if !ok {
		panic("proxy: a request without its stay")
	}
	return s
}

// release ends the use, when nothing of the request goes on any more.
func (p *proxied) release() {
	p.session.Release()
	if p.lease != nil {
		p.lease.Release()
	}
}

// askAgain is how long a request may go on before its visitor's right to it is looked at again, and how long the answer to
// who somebody is may be kept. The question is a few indexed reads, so that a thousand streams cost next to nothing.
const askAgain = 2 * time.Second

// streamAfter is how long an answer or an upload goes on before it counts by its bytes.
const streamAfter = 5 * time.Second

// watch looks after a request that goes on for longer than askAgain; for all others it costs a timer. It ends the request
// by cancel when its visitor has signed out, has been disabled, or has lost the sandbox. The caller must call the returned
// stop, which ends ctx and waits for a look under route.
func (p *proxied) watch(ctx context.Context, cancel func()) (stop func()) {
	ended := make(chan struct{})
	timer := time.AfterFunc(askAgain, func() {
		defer close(ended)
		p.recheck(ctx, cancel)
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-ended
		}
	}
}

func (p *proxied) recheck(ctx context.Context, cancel func()) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		if !p.allowed(ctx) {
			cancel()
			if p.answered.Load() != 0 { // nor may a write that waits for the visitor go on
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

// allowed is generous when the question cannot be answered: a locked store must not cut people's terminals.
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

// reclassify makes a request in flight a stream, or a stream whose upload is over a request in flight again.
func (p *proxied) reclassify(ctx context.Context) {
	stream := p.stream.Load()
	goesOn := p.lasts(time.Now())
	if p.use.Kind == "" || isWebSocket(p.r) || goesOn == (stream != nil) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	use, open := p.use, p.handle.Open
	if goesOn {
		use.Kind, open = idle.Stream, p.handle.OpenStream
	}
	next, err := open(ctx, use)
	if err != nil {
		return // it counts as it did
	}
	p.stream.Store(nil)
	if goesOn {
		p.stream.Store(next)
	}
	p.release()
	p.lease = next
}

// lasts reports whether something has been flowing for long. While a program thinks nothing flows, and it is in use.
func (p *proxied) lasts(now time.Time) bool {
	if answered := p.answered.Load(); answered != 0 {
		return now.Sub(time.Unix(0, answered)) >= streamAfter
	}
	return p.sending.Load() && now.Sub(p.since) >= streamAfter
}
