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

// stay is one request inside its sandbox, from when it was opened to its end. It counts as a request in flight until it turns out
// to be a stream (an answer or an upload that goes on), and as a stream by what flows and by what cannot flow because the
// sandbox does not take it; then a sandbox through which nothing flows may be frozen under it, and is thawed before the
// next byte that goes in.
type stay struct {
	visit
	use     idle.Use        // zero for one that only looks
	session *access.Session // as it was opened
	woken   bool            // it was not awake when the request came
	since   time.Time       // when it was opened
	way     passage
	out     *final // what the answer is written to, once it is asked for

	lease  *access.Session                // what is held instead of session, if anything; the watch's own
	stream atomic.Pointer[access.Session] // what counts by its touches, while anything does
	course
}

// course is how far a request has come.
type course struct {
	answered atomic.Int64 // when the answer's head was there, in Unix nanoseconds
	sending  atomic.Bool  // the request's body has not come as a whole
	unread   atomic.Bool  // and will not: it is cut off, or not sent as HTTP has it
	inwards  pending      // what the visitor has sent and the sandbox has not taken
	outwards pending      // what the sandbox has said and the visitor has not taken
	slot     slot
}

// passage is where a request goes inside a sandbox.
type passage struct {
	upstream string // portHost or tabHost
	path     string
	rawPath  string
}

type stayKey struct{}

// stayOf gives the stay that a request's ctx belongs to.
func stayOf(ctx context.Context) *stay {
	s, ok := ctx.Value(stayKey{}).(*stay)
	if !ok {
		panic("proxy: a request without its stay")
	}
	return s
}

// release ends the use, when nothing of the request goes on any more.
func (s *stay) release() {
	s.session.Release()
	if s.lease != nil {
		s.lease.Release()
	}
}

// askAgain is how long a request may go on before its visitor's right to it is looked at again, and how long the answer to
// who somebody is may be kept. The question is a few indexed reads, so that a thousand streams cost next to nothing.
const askAgain = 2 * time.Second

// streamAfter is how long an answer or an upload goes on before it counts by its bytes.
const streamAfter = 5 * time.Second

// watch looks after a request that goes on for longer than askAgain; for all others it costs a timer. It ends the request
// by cancel when its visitor has signed out, has been disabled, or has lost the sandbox. The caller must call the returned
// stop, which ends ctx and waits for a look under way.
func (s *stay) watch(ctx context.Context, cancel func()) (stop func()) {
	ended := make(chan struct{})
	timer := time.AfterFunc(askAgain, func() {
		defer close(ended)
		s.keepLooking(ctx, cancel)
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-ended
		}
	}
}

func (s *stay) keepLooking(ctx context.Context, cancel func()) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		if !s.stillMay(ctx) {
			cancel()
			if s.answered.Load() != 0 { // nor may a write that waits for the visitor go on
				_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now()) // fails once the connection is gone
			}
			return
		}
		s.turn(ctx)
		s.hold(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stillMay is generous when the question cannot be answered: a locked store must not cut people's terminals.
func (s *stay) stillMay(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	now, err := s.judge(ctx, s.cfg.Accounts)
	if now.target != s.target { // the service has another port
		return false
	}
	if err == nil && (now.who.User.ID != s.who.User.ID || now.handle.ID() != s.handle.ID()) {
		return false
	}
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.NotFound, fault.Gone, fault.Forbidden:
		return false
	}
	return true
}

// turn makes a request in flight a stream, or a stream whose upload is over a request in flight again.
func (s *stay) turn(ctx context.Context) {
	stream := s.stream.Load()
	goesOn := s.goesOn(time.Now())
	if s.use.Kind == "" || isWebSocket(s.r) || goesOn == (stream != nil) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	use, open := s.use, s.handle.Open
	if goesOn {
		use.Kind, open = idle.Stream, s.handle.OpenStream
	}
	next, err := open(ctx, use)
	if err != nil {
		return // it counts as it did
	}
	s.stream.Store(nil)
	if goesOn {
		s.stream.Store(next)
	}
	s.release()
	s.lease = next
}

// goesOn reports whether something has been flowing for long. While a program thinks nothing flows, and it is in use.
func (s *stay) goesOn(now time.Time) bool {
	if answered := s.answered.Load(); answered != 0 {
		return now.Sub(time.Unix(0, answered)) >= streamAfter
	}
	return s.sending.Load() && now.Sub(s.since) >= streamAfter
}
