package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/ratelimit"
)

const (
	maxQueued  = 20_000                 // calls that wait to be kept
	maxHeld    = 64 << 20               // bytes of contents of theirs
	batchCalls = 500                    // that are kept at once
	collectFor = 200 * time.Millisecond // more calls, once there is one
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	lastLimit  = 10 * time.Second // for what waits at the end
	heavyCalls = 20_000           // after so many, or with so much content, the store is swept at once
	heavyBytes = 64 << 20
)

// A sandbox, or a token, that calls all the time must not push the calls of others out of the log: what is beyond is counted only.
const (
	loggedBurst = 600
	loggedEvery = time.Second / 4
)

// queue holds calls on their way to the store. Nothing that adds one waits.
type queue struct {
	logged *ratelimit.Keyed
	ready  chan struct{} // has something when there are calls
	heavy  chan struct{} // has something when the store is to be swept

	mu      sync.Mutex
	calls   []Call
	held    int   // bytes of their contents
	dropped int64 // calls, since that was told
	bare    int64 // calls whose content was dropped, since that was told
	last    int64 // time of the last ID, in microseconds
}

func newQueue() *queue {
	return &queue{
		logged: &ratelimit.Keyed{Burst: loggedBurst, Every: loggedEvery},
		ready:  make(chan struct{}, 1), heavy: make(chan struct{}, 1),
	}
}

// add puts a call to those that wait, with an ID if it is to be in the log. When there are too many it is dropped, and counted.
func (q *queue) add(c Call, now time.Time) {
	wait, _ := q.logged.Take(c.User + "/" + c.Sandbox + "/" + c.Label)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) >= maxQueued {
		q.dropped++
		return
	}
	c.ID = ""
	if wait == 0 {
		q.last = max(q.last+1, now.UnixMicro())
		c.ID = newCallID(q.last)
	}
	size := len(c.Request) + len(c.Answer)
	if size > 0 && (c.ID == "" || q.held+size > maxHeld) {
		c.Request, c.Answer, size = "", "", 0
		q.bare++
	}
	q.held += size
	q.calls = append(q.calls, c)
	nudge(q.ready)
}

// newCallID gives an ID that sorts by time. Its end keeps apart what was recorded before and after a clock was set back.
func newCallID(micro int64) string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%014x", micro) + hex.EncodeToString(b[:])
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take gives the first calls that wait.
func (q *queue) take() []Call {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.calls), batchCalls)
	list := append([]Call(nil), q.calls[:n]...)
	clear(q.calls[:n]) // their contents are not kept alive
	if q.calls = q.calls[n:]; len(q.calls) == 0 {
		q.calls = nil
	}
	for _, c := range list {
		q.held -= len(c.Request) + len(c.Answer)
	}
	return list
}

// run writes calls to the store until ctx ends, and then those that wait.
func (q *queue) run(ctx context.Context, store Store, log *slog.Logger) {
	w := queueWriter{queue: q, store: store, log: log}
	for ctx.Err() == nil {
		select {
		case <-q.ready:
			pause(ctx, collectFor)
			w.write(ctx, context.WithoutCancel(ctx)) // a batch that was begun is finished
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
	defer cancel()
	w.write(last, last)
	if left := int64(len(w.batch) + len(q.calls)); left > 0 {
		log.Error("calls of models could not be kept", "calls", left)
	}
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// queueWriter writes what is in a queue.
type queueWriter struct {
	*queue
	store Store
	log   *slog.Logger
	batch []Call // taken, and not kept yet
	count int    // kept since the last sweep
	bytes int
}

// write empties the queue, and asks the store under asking. While that does not answer it tries again, until ctx ends.
func (w *queueWriter) write(ctx, asking context.Context) {
	defer w.tell()
	for wait := retryFirst; ; {
		if len(w.batch) == 0 {
			w.batch = w.take()
		}
		if len(w.batch) == 0 {
			return
		}
		err := w.add(asking)
		if err == nil {
			wait = retryFirst
			continue
		}
		if ctx.Err() != nil {
			return
		}
		w.log.Warn("cannot keep calls of models now", "calls", len(w.batch), "again_after", wait, "error", err)
		w.tell()
		pause(ctx, wait)
		wait = min(2*wait, retryMost)
	}
}

// add puts the batch to the store. A batch that it refuses is dropped, so that it does not hold up the others.
func (w *queueWriter) add(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	err := w.store.AddCalls(ctx, w.batch)
	switch kind := fault.KindOf(err); {
	case err == nil:
		w.weigh()
	case kind == fault.Unavailable || kind == fault.Timeout || ctx.Err() != nil:
		return err
	default:
		w.log.Error("calls of models could not be kept", "calls", len(w.batch), "error", err)
	}
	w.batch = nil
	return nil
}

// weigh asks for a sweep when much was kept.
func (w *queueWriter) weigh() {
	w.count += len(w.batch)
	for _, c := range w.batch {
		w.bytes += len(c.Request) + len(c.Answer)
	}
	if w.count >= heavyCalls || w.bytes >= heavyBytes {
		w.count, w.bytes = 0, 0
		nudge(w.heavy)
	}
}

// tell logs what was dropped.
func (w *queueWriter) tell() {
	w.mu.Lock()
	dropped, bare := w.dropped, w.bare
	w.dropped, w.bare = 0, 0
	w.mu.Unlock()
	if dropped > 0 {
		w.log.Error("calls of models were not kept: too many came at once", "calls", dropped)
	}
	if bare > 0 {
		w.log.Warn("contents of calls of models were not kept: too many came at once", "calls", bare)
	}
}
