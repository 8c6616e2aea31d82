package guest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/scrub"
	"sandboxd/internal/wire"
)

// answerLimit is how long a program may let a request wait without a byte, as through sandboxd's own proxy: a long poll may
// take its time; a hung program may not keep its sandbox awake for ever.
const answerLimit = 10 * time.Minute

// errSilent ends a request that has waited for answerLimit.
var errSilent = errors.New("the program is silent")

// flow notes what goes through the gateway. Safe for concurrent use.
type flow struct {
	began time.Time
	last  atomic.Int64 // when a byte that counts last flowed, as nanoseconds since began; 0 when none ever did

	mu    sync.Mutex
	calls map[*call]struct{} // that count
}

func newFlow() *flow { return &flow{began: time.Now(), calls: map[*call]struct{}{}} }

// call is one request on its way through. Safe for concurrent use.
type call struct {
	flow     *flow
	counts   bool
	last     atomic.Int64 // when a byte of it last flowed, as nanoseconds since flow.began
	taken    atomic.Bool  // the program has all of it, or wants no more
	answered atomic.Bool  // its answer has begun
}

func (f *flow) begin(r *http.Request) *call {
	c := &call{flow: f, counts: r.Header.Get(wire.UnattendedHeader) != "1"}
	c.taken.Store(r.ContentLength == 0)
	c.touch()
	if c.counts {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls[c] = struct{}{}
	}
	return c
}

func (c *call) end() {
	c.touch()
	c.flow.mu.Lock()
	defer c.flow.mu.Unlock()
	delete(c.flow.calls, c)
}

func (c *call) touch() {
	now := max(int64(time.Since(c.flow.began)), 1)
	c.last.Store(now)
	if c.counts {
		c.flow.last.Store(now)
	}
}

// silence is how long no byte of it has flowed.
func (c *call) silence() time.Duration {
	return time.Since(c.flow.began) - time.Duration(c.last.Load())
}

// waits reports whether its program has something to do for it.
func (c *call) waits() bool {
	return !(c.taken.Load() && c.answered.Load()) && c.silence() < answerLimit
}

// bound gives a ctx that ends with errSilent when the answer does not begin in time. The caller must call over.
func (c *call) bound(parent context.Context) (ctx context.Context, over func()) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{call: c, cancel: cancel, due: time.Now().Add(answerLimit)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(answerLimit, w.look)
	return ctx, w.stop
}

// watch ends a call that waits for too long.
type watch struct {
	call   *call
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer // nil when it is over
	due   time.Time
}

// look ends the call, or looks again when it may have waited for too long. A program that was frozen in the meantime could
// not answer: it gets all its time again.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil || w.call.answered.Load() {
		return
	}
	left := answerLimit - w.call.silence()
	if thaw.Frozen(w.due) {
		left = answerLimit
	}
	if left <= 0 {
		w.cancel(errSilent)
		return
	}
	w.due = time.Now().Add(left)
	w.timer.Reset(left)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.timer = nil
	w.cancel(nil)
}

func (f *flow) now() wire.DirectActivity {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := wire.DirectActivity{InFlight: len(f.calls), Idle: -1}
	for c := range f.calls {
		if c.waits() {
			a.Waiting++
		}
	}
	if last := f.last.Load(); last > 0 {
		a.Idle = max(time.Since(f.began)-time.Duration(last), 0)
	}
	return a
}

// flowing is a body whose bytes count. The trailers that follow an answer's are scrubbed before anybody can see them.
type flowing struct {
	io.ReadCloser
	call *call
	res  *http.Response // nil for a request's
}

// Read reads.
func (b *flowing) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.call.touch()
	}
	if err != nil {
		b.over()
	}
	return n, err
}

// Close is an end too: closing may read what is left.
func (b *flowing) Close() error {
	err := b.ReadCloser.Close()
	b.over()
	return err
}

func (b *flowing) over() {
	if b.res == nil {
		b.call.taken.Store(true)
		return
	}
	scrub.Trailer(b.res.Trailer)
}

func (g *Guest) serveActivity(w http.ResponseWriter, _ *http.Request) {
	answer(w, &wire.Activity{Direct: g.gateway.flow.now()})
}
