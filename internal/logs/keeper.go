package logs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/event"
)

const (
	writeEvery     = 800 * time.Millisecond // so that a line is on the disk within a second
	writeLimit     = 15 * time.Second       // for one batch
	closeLimit     = 5 * time.Second        // for what is left at the end
	sweepEvery     = time.Minute
	sweepLimit     = time.Minute
	batchBytes     = 8 << 20
	leastBatch     = BatchLines / 32 // lines; one that is too much for a slow disk is tried in parts
	queueBytes     = 32 << 20        // of lines that wait for the disk
	lineCost       = 160             // bytes that a line takes in memory besides its text
	budget         = 2 * time.Second
	searchesAtOnce = 3
	followEvery    = 100 * time.Millisecond
	followBytes    = 1 << 20 // of lines in one event
	followLag      = 32      // events that a reader may fall behind
)

// Config is what a Keeper works with.
type Config struct {
	Store  Store
	Limits Limits
	Log    *slog.Logger

	Budget time.Duration // of a search; 2 s when 0
	Queue  int           // bytes of lines that may wait for the disk; 32 MiB when 0
}

// Keeper takes lines of all sandboxes, keeps them in a Store, and gives them back. Safe for concurrent use.
type Keeper struct {
	c        Config
	bus      *event.Bus[[]Line]
	turn     chan struct{} // held by who writes or deletes, so that a deleted sandbox's lines do not come back
	searches chan struct{} // a place for each search under way: the Store's readers are few
	apart    chan struct{} // the place of SearchApart
	appended chan struct{} // wakes who publishes
	plenty   chan struct{} // wakes who writes

	mu      sync.Mutex
	last    ID
	queue   []Line // not in the Store yet, oldest first
	fresh   []Line // not published yet
	size    int    // bytes of the queue
	sizes   map[string]int
	dropped map[string]int // lines by sandbox that no line tells of yet
	lost    int64          // lines dropped since the start
	problem error          // why the last batch was not written
	most    int            // lines of the next batch; fewer after one that was not written
}

// New makes a Keeper. Run starts it.
func New(c Config) *Keeper {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Budget <= 0 {
		c.Budget = budget
	}
	if c.Queue <= 0 {
		c.Queue = queueBytes
	}
	return &Keeper{c: c, bus: event.NewBus[[]Line](followLag), turn: make(chan struct{}, 1), searches: make(chan struct{}, searchesAtOnce), apart: make(chan struct{}, 1), appended: make(chan struct{}, 1), plenty: make(chan struct{}, 1),
		most: BatchLines, last: c.Store.Last(), sizes: map[string]int{}, dropped: map[string]int{}}
}

// Append takes lines in the order in which they were written, and gives each its ID. It never waits. When the disk is too slow, or
// takes nothing, lines wait in memory, within a bound that sandboxes share; those beyond are dropped, and a line of the Service Own
// says how many.
func (k *Keeper) Append(lines ...Line) {
	now := time.Now()
	tidied := make([]Line, len(lines))
	for i, l := range lines {
		tidied[i] = tidy(l, now)
	}
	k.mu.Lock()
	for _, l := range tidied {
		k.note(l.Sandbox, now)
		if !k.push(l, now) {
			k.dropped[l.Sandbox]++
			k.lost++
		}
	}
	plenty := len(k.queue) >= BatchLines/2 || k.size >= batchBytes/2
	k.mu.Unlock()
	signal(k.appended)
	if plenty {
		signal(k.plenty)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push puts a line into the queue if there is room. A sandbox may have as much there as is left for others, so that one that
// writes too much leaves room for those that do not. mu is held.
func (k *Keeper) push(l Line, now time.Time) bool {
	n := len(l.Text) + lineCost
	if k.sizes[l.Sandbox]+n > k.c.Queue-k.size {
		return false
	}
	k.last = max(k.last+1, ID(now.UnixMicro()))
	l.ID = k.last
	k.queue, k.fresh = append(k.queue, l), append(k.fresh, l)
	k.size += n
	k.sizes[l.Sandbox] += n
	return true
}

// note puts a line in the place of those of a sandbox that were dropped, if there are any and there is room. mu is held.
func (k *Keeper) note(sandbox string, now time.Time) {
	n := k.dropped[sandbox]
	if n == 0 {
		return
	}
	text := fmt.Sprintf("%d lines were dropped here: they came faster than the disk takes them.", n)
	if k.problem != nil {
		text = fmt.Sprintf("%d lines were dropped here: they could not be written to the disk.", n)
	}
	if k.push(Line{Time: now.UTC().Truncate(time.Microsecond), Sandbox: sandbox, Service: Own, Level: Warn, Text: text}, now) {
		delete(k.dropped, sandbox)
		k.c.Log.Warn("log lines of a sandbox were dropped", "sandbox", sandbox, "lines", n)
	}
}

// Run writes lines, publishes them, and sweeps, until ctx ends; then it writes what is left, which takes a few seconds at most.
func (k *Keeper) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { k.publish(ctx) })
	running.Go(func() { k.sweep(ctx) })
	defer running.Wait()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.flush(ctx)
		case <-k.plenty:
			if k.Problem() == nil { // else with the next tick
				k.flush(ctx)
			}
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			defer cancel()
			k.flush(ctx)
			return nil
		}
	}
}

// flush writes all that is there by now. A Store that fails is asked again the next time.
func (k *Keeper) flush(ctx context.Context) {
	for until := k.lastID(); ; {
		n, last, err := k.writeBatch(ctx)
		k.noteProblem(ctx, err)
		if n == 0 || err != nil || last >= until {
			return
		}
	}
}

// writeBatch writes the oldest lines of the queue, and takes them out of it.
func (k *Keeper) writeBatch(ctx context.Context) (n int, last ID, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if err := k.take(ctx); err != nil {
		return 0, 0, err
	}
	defer k.release()
	batch := k.batch()
	if len(batch) == 0 {
		return 0, 0, nil
	}
	if err := k.c.Store.Add(ctx, batch); err != nil {
		return 0, 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range batch {
		k.forget(&k.queue[i])
	}
	clear(k.queue[:len(batch)])
	k.queue = k.queue[len(batch):]
	now := time.Now()
	for sandbox := range k.dropped {
		k.note(sandbox, now)
	}
	return len(batch), batch[len(batch)-1].ID, nil
}

// forget takes a line's bytes off the account. mu is held.
func (k *Keeper) forget(l *Line) {
	n := len(l.Text) + lineCost
	k.size -= n
	if k.sizes[l.Sandbox] -= n; k.sizes[l.Sandbox] <= 0 {
		delete(k.sizes, l.Sandbox)
	}
}

// batch gives a copy of the oldest lines of the queue.
func (k *Keeper) batch() []Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, size := 0, 0
	for n < len(k.queue) && n < k.most && size < batchBytes {
		size += len(k.queue[n].Text)
		n++
	}
	return slices.Clone(k.queue[:n])
}

func (k *Keeper) take(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keeper) release() { <-k.turn }

// noteProblem logs that lines cannot be written, or can again, once each.
func (k *Keeper) noteProblem(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	before, waiting, tried := k.problem, len(k.queue), k.most
	k.problem, k.most = err, BatchLines
	if err != nil {
		k.most = max(tried/2, leastBatch)
	}
	k.mu.Unlock()
	switch {
	case before == nil && err != nil:
		k.c.Log.Error("log lines cannot be written; they wait in memory, and the newest are dropped when there are too many", "waiting", waiting, "error", err)
	case before != nil && err == nil:
		k.c.Log.Info("log lines can be written again", "waiting", waiting)
	}
}

// Problem gives why lines cannot be written now, or nil.
func (k *Keeper) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// Dropped gives how many lines were dropped since the start.
func (k *Keeper) Dropped() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost
}

// waiting gives the lines in scope that are not in the Store yet, oldest first. One may have come into it meanwhile.
func (k *Keeper) waiting(scope Scope) (out []Line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.queue {
		if scope.Has(l.Sandbox) {
			out = append(out, l)
		}
	}
	return out
}

func (k *Keeper) lastID() ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// sweep deletes what is beyond the limits, each minute until ctx ends.
func (k *Keeper) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			limited, cancel := context.WithTimeout(ctx, sweepLimit)
			err := k.c.Store.Sweep(limited, k.c.Limits, now)
			cancel()
			if err != nil && ctx.Err() == nil {
				k.c.Log.Warn("old log lines are not deleted", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Delete forgets all lines of a sandbox. Lines that are appended afterwards are kept again: end their collection first. Kind:
// Unavailable; then some are left, and it can be called again.
func (k *Keeper) Delete(ctx context.Context, sandbox string) error {
	if err := k.take(ctx); err != nil {
		return err
	}
	defer k.release()
	k.mu.Lock()
	gone := func(l Line) bool { return l.Sandbox == sandbox }
	for i := range k.queue {
		if gone(k.queue[i]) {
			k.forget(&k.queue[i])
		}
	}
	k.queue, k.fresh = slices.DeleteFunc(k.queue, gone), slices.DeleteFunc(k.fresh, gone)
	delete(k.dropped, sandbox)
	k.mu.Unlock()
	return k.c.Store.Delete(ctx, sandbox)
}

// Usage gives what each sandbox in scope takes, by its id, and what the files take on the disk. Lines of the last second may be
// missing. Kind: Unavailable.
func (k *Keeper) Usage(ctx context.Context, scope Scope) (each []Use, disk int64, err error) {
	each, disk, err = k.c.Store.Usage(ctx)
	return slices.DeleteFunc(each, func(u Use) bool { return !scope.Has(u.Sandbox) }), disk, err
}
