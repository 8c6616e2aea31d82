package activity

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Retention by default.
const (
	DefaultKeep = 180 * 24 * time.Hour
	MaxEntries  = 500_000 // about 200 MB
)

const (
	maxQueue   = 10_000 // entries that wait for the Store
	batchSize  = 1000
	writeEvery = 500 * time.Millisecond // so that an entry is on the disk within a second
	writeLimit = 15 * time.Second       // for what waits, with all batches
	closeLimit = 5 * time.Second        // for what is left at the end
	sweepEvery = time.Hour
	sweepLimit = 5 * time.Minute
	maxText    = 200 // bytes of a query's Text
)

// Config is what a Log works with.
type Config struct {
	Store Store
	Keep  time.Duration // how long entries are kept; DefaultKeep when 0
	Log   *slog.Logger  // nil for none
}

// Log takes entries and gives them back. Safe for concurrent use.
type Log struct {
	c    Config
	turn chan struct{} // held by who writes

	mu      sync.Mutex
	queue   []Entry // not in the Store yet, oldest first
	last    ID      // that was given to an entry
	begun   bool    // last is known
	flood   flood
	lost    int   // entries that could not be kept, and that no entry tells of yet
	lostAll int64 // the same since the start
	problem error // why the last batch was not written
}

// New makes a Log. Run starts it.
func New(c Config) *Log {
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Log{c: c, turn: make(chan struct{}, 1), flood: newFlood()}
}

// Add takes an entry; its ID, and a Time that is zero, are filled in, and its texts are cut and made fit for one line. It never waits:
// when the Store is too slow, or takes nothing, entries wait in memory, and those beyond a bound are only counted. What repeats too
// often is summed up; see Actions.
func (l *Log) Add(e Entry) {
	e = tidy(e, time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.flood.take(e) {
		l.push(e)
	}
}

// tidy gives e as it is kept.
func tidy(e Entry, now time.Time) Entry {
	if e.Time.Unix() <= 0 { // also what no Store can keep
		e.Time = now
	}
	e.ID, e.Time, e.Count = 0, e.Time.UTC().Truncate(time.Microsecond), max(e.Count, 1)
	e.Object, e.Problem = text.OneLine(e.Object, MaxObject), text.OneLine(e.Problem, MaxProblem)
	for _, s := range []*string{&e.UserID, &e.User, &e.Token, &e.From, &e.SandboxID, &e.Sandbox, &e.Owner, &e.Request} {
		*s = text.OneLine(*s, maxName)
	}
	return e
}

// push puts an entry into the queue if there is room. mu is held.
func (l *Log) push(e Entry) {
	if len(l.queue) >= maxQueue {
		l.lost += e.Count
		l.lostAll += int64(e.Count)
		return
	}
	l.queue = append(l.queue, e)
}

// note tells of entries that were lost, if there are any. mu is held.
func (l *Log) note(now time.Time) {
	n := l.lost
	if n == 0 || len(l.queue) >= maxQueue {
		return
	}
	l.lost = 0
	l.push(tidy(Entry{Via: Itself, Action: Lost, Outcome: Failed, Count: n,
		Problem: fmt.Sprintf("%d entries of before could not be kept: they could not be written, or came faster than that.", n)}, now))
	l.c.Log.Warn("entries of the activity log were lost", "entries", n)
}

// Run writes entries and deletes old ones until ctx ends; then it writes what is left, which takes a few seconds at most.
func (l *Log) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { l.sweep(ctx) })
	defer running.Wait()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.mu.Lock()
			l.end(l.flood.over(now))
			l.mu.Unlock()
			_ = l.flush(ctx, writeLimit) // it has told of the error, and the next one tries again
		case <-ctx.Done():
			l.mu.Lock()
			l.end(l.flood.all())
			l.mu.Unlock()
			_ = l.flush(context.WithoutCancel(ctx), closeLimit) // it has told of the error
			l.tellRest()
			return nil
		}
	}
}

// end takes the sums of windows. mu is held.
func (l *Log) end(sums []Entry) {
	for _, e := range sums {
		l.push(e)
	}
}

// tellRest says what could not be written at the end.
func (l *Log) tellRest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.queue) + l.lost; n > 0 {
		l.c.Log.Error("entries of the activity log are lost: they could not be written before the end", "entries", n)
	}
}

// flush writes all that is there by now.
func (l *Log) flush(ctx context.Context, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-limited.Done():
		return fault.Wrap(limited.Err(), fault.Unavailable, "The activity log is busy. Try again in a moment.")
	}
	l.mu.Lock()
	todo := len(l.queue)
	l.mu.Unlock()
	for more := true; more; {
		n, err := l.writeBatch(limited)
		if err == nil || ctx.Err() == nil { // else the caller has left, which is no problem of the Store's
			l.noteProblem(err)
		}
		if err != nil {
			return err
		}
		todo -= n
		more = n > 0 && todo > 0
	}
	return nil
}

// writeBatch writes the oldest entries of the queue, and takes them out of it. One that fails is tried again with the same IDs.
// The turn is held.
func (l *Log) writeBatch(ctx context.Context) (int, error) {
	if err := l.begin(ctx); err != nil {
		return 0, err
	}
	batch := l.batch()
	if len(batch) == 0 {
		return 0, nil
	}
	if err := l.c.Store.Add(ctx, batch); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.queue[:len(batch)])
	if l.queue = l.queue[len(batch):]; len(l.queue) == 0 {
		l.queue = nil // and not the memory of a queue that was long
	}
	l.note(time.Now())
	return len(batch), nil
}

// begin finds out after which ID to go on. The turn is held.
func (l *Log) begin(ctx context.Context) error {
	l.mu.Lock()
	begun := l.begun
	l.mu.Unlock()
	if begun {
		return nil
	}
	last, err := l.c.Store.Last(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.begun = last, true
	return nil
}

// batch gives a copy of the oldest entries of the queue, each with its ID.
func (l *Log) batch() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(time.Now())
	n := min(len(l.queue), batchSize)
	for i := range l.queue[:n] {
		if l.queue[i].ID == 0 {
			l.last++
			l.queue[i].ID = l.last
		}
	}
	return slices.Clone(l.queue[:n])
}

// noteProblem logs that entries cannot be written, or can again, once each.
func (l *Log) noteProblem(err error) {
	l.mu.Lock()
	before, waiting := l.problem, len(l.queue)
	l.problem = err
	l.mu.Unlock()
	switch {
	case before == nil && err != nil:
		l.c.Log.Error("the activity log cannot be written; entries wait in memory, and the newest are lost when there are too many", "waiting", waiting, "error", err)
	case before != nil && err == nil:
		l.c.Log.Info("the activity log can be written again", "waiting", waiting)
	}
}

// Problem gives why entries cannot be written now, or nil.
func (l *Log) Problem() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.problem
}

// Lost gives how many entries could not be kept since the start.
func (l *Log) Lost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostAll
}

// sweep deletes what is beyond the retention, at the start and each hour, until ctx ends.
func (l *Log) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, sweepLimit)
		n, err := l.c.Store.Sweep(limited, time.Now().Add(-l.c.Keep), MaxEntries)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			l.c.Log.Warn("old entries of the activity log are not deleted", "error", err)
		case n > 0:
			l.c.Log.Info("old entries of the activity log were deleted", "entries", n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Find gives the newest entries that q asks for, newest first, also those that were added this moment, unless the Store takes none
// now. next is the Before that continues; 0 when there are no more. Kinds: Invalid, Unavailable.
func (l *Log) Find(ctx context.Context, q Query) (entries []Entry, next ID, err error) {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	switch {
	case q.Limit < 0 || q.Limit > MaxLimit:
		return nil, 0, fault.Field("limit", "The limit must be a number from 1 to %d.", MaxLimit)
	case len(q.Text) > maxText:
		return nil, 0, fault.Field("q", "The text to search for is longer than %d bytes.", maxText)
	}
	l.mu.Lock()
	l.end(l.flood.seen())
	l.mu.Unlock()
	if err := l.flush(ctx, closeLimit); err != nil && ctx.Err() != nil {
		return nil, 0, err
	}
	most := q.Limit
	q.Limit++ // to see whether there are more
	if entries, err = l.c.Store.Find(ctx, q); err != nil {
		return nil, 0, err
	}
	if len(entries) > most {
		entries = entries[:most]
		next = entries[most-1].ID
	}
	return entries, next, nil
}
