package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
)

// Times of streams.
const (
	beatEvery  = 15 * time.Second // so that proxies between do not take silence for death
	writeLimit = 20 * time.Second // a client that takes nothing for so long is gone
	checkEvery = 2 * time.Second  // how soon an open stream ends after access is lost; a check is one small read
)

// How much one user may have open of each kind, so that nobody takes every connection.
const (
	maxOpen     = 200
	maxLimited  = 24          // by a token for one sandbox alone; all of a user's such tokens together have maxOpen, apart from the user's own
	maxFollowed = 3 * maxOpen // by all pages
)

// The kinds of requests that last, each with a share of its own: one kind cannot use up another's.
const (
	streams   = "streams"
	commands  = "commands and connections"
	fileCalls = "requests about files"
	followed  = "live parts of pages"
)

// flow is a response that is written bit by bit. Safe for concurrent use.
type flow struct {
	ctl *http.ResponseController

	mu  sync.Mutex
	w   http.ResponseWriter
	err error // the first failure; nothing is written after it
}

// openFlow sends the head of a stream. From here on errors can only be told within it.
func (r *request) openFlow(contentType string) *flow {
	f := &flow{w: r.w, ctl: http.NewResponseController(r.w)}
	r.liftDeadlines()
	r.head.Set("Content-Type", contentType)
	r.head.Set("Cache-Control", "no-cache, no-transform")
	r.head.Set("X-Accel-Buffering", "no")
	r.w.WriteHeader(http.StatusOK)
	return f
}

// liftDeadlines lifts the server's own deadlines from this request, which bounds itself: a read deadline that passes would
// look as if the client had hung up. Only a body that is not here yet, and will be of no use, keeps its own. Where
// deadlines are not supported there are none.
func (r *request) liftDeadlines() {
	ctl := http.NewResponseController(r.w)
	if r.arrived() {
		_ = ctl.SetReadDeadline(time.Time{})
	}
	_ = ctl.SetWriteDeadline(time.Time{})
}

// write sends b at once. It fails when the client is gone or takes nothing for a while.
func (f *flow) write(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if err := f.ctl.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		f.err = err
		return err
	}
	if _, f.err = f.w.Write(b); f.err == nil {
		f.err = f.ctl.Flush()
	}
	return f.err
}

// line sends v as one line of JSON.
func (f *flow) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	return f.write(append(b, '\n'))
}

// lines sends n lines in pieces, so that they are never held as a whole.
func (f *flow) lines(n int, each func(b []byte, i int) []byte) error {
	var b []byte
	for i := range n {
		if b = each(b, i); len(b) < bodyPiece && i < n-1 {
			continue
		}
		if err := f.write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	return nil
}

// event sends a server-sent event. data may have several lines.
func (f *flow) event(kind, data string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "event: %s\n", kind)
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	return f.write([]byte(b.String()))
}

// events takes what a stream tells, as server-sent events (flow) or on a channel of a page's live connection. Safe for
// concurrent use. It fails when the client is gone or takes nothing for a while.
type events interface {
	event(kind, data string) error
}

// eventJSON sends an event whose data is v as JSON.
func eventJSON(out events, kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return out.event(kind, string(b))
}

// comment sends what clients of server-sent events ignore.
func (f *flow) comment(text string) error { return f.write([]byte(": " + text + "\n\n")) }

// pump tells what happens until ctx ends or it fails.
type pump func(ctx context.Context, out events) error

// watch adapts a stream of server-sent events for programs. begin does everything that can fail and gives
// what then writes; release is called at the very end. ctx ends when the client leaves or when its session or token is
// not good any more.
func (s *liveHandlers) watch(begin opener) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		return admit(s, r, streams, begin, func(ctx context.Context, end func(), p pump) error {
			f := r.openFlow("text/event-stream; charset=utf-8")
			defer s.keepBeating(ctx, end, func() error { return f.comment("beat") })()
			if err := p(ctx, f); err != nil && ctx.Err() == nil && f.err == nil {
				return err // the head is out: this only reaches the log
			}
			return nil
		})
	}
}

// admit serves a long-lived client, within its share of what and for as long as it has access. begin does everything that
// can fail. hold serves what begin gave until it ends; end makes it end. What begin gives to release is released last.
func admit[T any](
	s *liveHandlers, r *request, what string, begin func(ctx context.Context, r *request) (T, func(), error),
	hold func(ctx context.Context, end func(), t T) error,
) error {
	leave, err := s.open.enter(r.who, what)
	if err != nil {
		return err
	}
	defer leave()
	ctx, end := s.whileAllowed(r.http.Context(), r)
	defer end()
	t, release, err := begin(ctx, r)
	if err != nil {
		return whyEnded(ctx, err)
	}
	defer release()
	return hold(ctx, end, t)
}

// whileAllowed gives a context that ends when the caller loses access; the cause says why. The caller must call
// end, which ends it too, and waits.
func (s *liveHandlers) whileAllowed(ctx context.Context, r *request) (allowed context.Context, end func()) {
	allowed, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		every(allowed, s.check, func() error {
			err := s.accessLost(allowed, r)
			if err != nil {
				cancel(err)
			}
			return err
		})
	})
	return allowed, func() { cancel(nil); running.Wait() }
}

// keepBeating calls beat now and then, and end when it fails. It does not wait for the checks of whileAllowed, nor they for
// it: a client that takes nothing holds up a beat. The caller must call stop, which waits.
func (s *liveHandlers) keepBeating(ctx context.Context, end func(), beat func() error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if every(ctx, s.beat, beat) != nil {
			end()
		}
	})
	return func() { cancel(); running.Wait() }
}

// every calls do each time that pace has passed, until it fails, whose error it gives, or ctx ends.
func every(ctx context.Context, pace time.Duration, do func() error) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := do(); err != nil {
			return err
		}
	}
}

// accessLost says why the session or token of a long-lived request is not good any more, or nil. What cannot be told
// now counts as good: the store may be busy.
func (s *liveHandlers) accessLost(ctx context.Context, r *request) error {
	who, err := s.identify(ctx, r, r.access)
	switch {
	case err != nil:
	case who.User.ID != r.who.User.ID, who.User.Role != r.who.User.Role, who.SandboxID != r.who.SandboxID:
		return fault.New(fault.Unavailable, "What you may do has changed. Connect again.")
	default:
		err = r.access.check(who)
	}
	switch {
	case fault.Is(err, fault.Unauthenticated), fault.Is(err, fault.Forbidden), fault.Is(err, fault.NotFound):
		return err
	}
	return nil
}

// whyEnded gives why ctx ended where err only says that it did.
func whyEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// counter bounds what each user has open of each kind. Safe for concurrent use.
type counter struct {
	most  int // of one user and kind
	users semaphore.Keyed
}

// enter counts one of what in. The caller must call leave. It never waits.
func (n *counter) enter(who auth.Principal, what string) (leave func(), err error) {
	if !who.LimitedToken() {
		leave, err = n.users.Acquire(context.Background(), what+" "+who.User.ID, n.most, 0)
		return leave, fault.Wrap(err, fault.Limited, "You have %d %s open. Close some first.", n.most, what)
	}
	all, err := n.users.Acquire(context.Background(), what+" by limited tokens "+who.User.ID, n.most, 0)
	if err != nil {
		return nil, fault.Wrap(err, fault.Limited, "Your tokens for one sandbox have %d %s open together. Close some first.", n.most, what)
	}
	one, err := n.users.Acquire(context.Background(), what+" "+who.Token, maxLimited, 0)
	if err != nil {
		all()
		return nil, fault.Wrap(err, fault.Limited, "You have %d %s open. Close some first.", maxLimited, what)
	}
	return func() { one(); all() }, nil
}
