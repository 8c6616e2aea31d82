package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	readLimit   = 10 * time.Second // for one reading of all
	writeLimit  = 15 * time.Second // for one batch, and for a sweep
	sweepEvery  = time.Hour
	maxPending  = 10 * time.Minute // of points that wait in memory for a disk that takes none
	closeLimit  = 5 * time.Second  // for what is left at the end
	tickBacklog = 4
)

// Sandboxes is what a Recorder asks of sandbox.Manager.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// Config is what a Recorder works with.
type Config struct {
	Source    Source
	Every     time.Duration // between two readings; at least FineStep
	Sandboxes Sandboxes
	Store     Store
	Log       *slog.Logger

	HostUsage func(ctx context.Context) (Reading, error) // of the whole host; nil when it cannot be told
	HostNow   func(ctx context.Context) (Host, error)    // what a Host has besides the figures of a point; nil when it cannot be told
}

// Recorder reads the usage of running sandboxes and of the host, and keeps it: each reading for FineLife in memory, sums of
// MediumStep for MediumLife and of CoarseStep for CoarseLife in the Store. Safe for concurrent use.
type Recorder struct {
	c     Config
	ticks *event.Bus[Tick]

	mu      sync.Mutex
	tracks  map[string]*track
	pending []Batch // not in the Store yet, oldest first
	next    Batch   // what the next one will have; its Seq is not set
	seq     int64   // of the last batch that was made
	lost    int     // batches that were dropped since the Store took one
	problem error   // why the last reading failed

	unwritten bool // the last batch was not; only flush uses it
}

// New makes a Recorder. Run starts it.
func New(c Config) *Recorder {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Every = max(c.Every, FineStep)
	return &Recorder{c: c, ticks: event.NewBus[Tick](tickBacklog), tracks: map[string]*track{}}
}

// Subscribe tells of every reading from now on. The caller must Close it.
func (r *Recorder) Subscribe() *event.Subscription[Tick] { return r.ticks.Subscribe() }

// Run reads and keeps figures until ctx ends; then it writes what is left, which takes a few seconds at most.
func (r *Recorder) Run(ctx context.Context) error {
	changes := r.c.Sandboxes.Subscribe()
	defer func() { changes.Close() }()
	if err := r.begin(ctx); err != nil {
		return nil // ctx has ended
	}
	var running sync.WaitGroup
	running.Go(func() { r.write(ctx) })
	defer running.Wait()
	r.relist(ctx)
	tick := time.NewTicker(r.c.Every)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-changes.C:
			if !ok { // there were too many at once
				changes = r.c.Sandboxes.Subscribe()
				r.relist(ctx)
				continue
			}
			r.see(e.Sandbox, e.Deleted, false)
		case <-tick.C:
			r.read(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// begin learns which batch the Store had last. It waits for a Store that does not answer.
func (r *Recorder) begin(ctx context.Context) error {
	for {
		asked, cancel := context.WithTimeout(ctx, writeLimit)
		seq, err := r.c.Store.Last(asked)
		cancel()
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seq = seq
			return nil
		}
		r.c.Log.Warn("the history of figures cannot be used yet", "error", err)
		select {
		case <-time.After(MediumStep):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// relist reads all sandboxes anew: at the start, and after changes were missed.
func (r *Recorder) relist(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	all, _, err := r.c.Sandboxes.List(asked, sandbox.Filter{})
	if err != nil {
		r.c.Log.Warn("the sandboxes cannot be listed for their figures", "error", err)
		return
	}
	there := map[string]bool{HostID: true}
	for _, s := range all {
		there[s.ID] = true
		r.see(s, false, true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.tracks {
		if !there[id] {
			r.drop(id)
		}
	}
}

// see notes the state of a sandbox. One that is found in the list was there before: that it runs is no start.
func (r *Recorder) see(s sandbox.Sandbox, deleted, found bool) {
	if s.Pooled {
		return // it is nobody's yet
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if deleted {
		r.drop(s.ID)
		return
	}
	t := r.tracks[s.ID]
	known := t != nil
	if !known {
		t = &track{}
		r.tracks[s.ID] = t
	}
	c, changed := t.enter(s.State, time.Now())
	if found && !known {
		c.Mark = ""
	}
	if changed {
		r.next.Changes = append(r.next.Changes, SandboxChange{s.ID, c})
	}
}

// drop lets go of a sandbox that is gone. mu is held.
func (r *Recorder) drop(id string) {
	t := r.tracks[id]
	if t == nil {
		return
	}
	r.keep(id, t.coarse.close(t.medium.close(nil, Medium), Coarse))
	if c, changed := t.enter(sandbox.Deleting, time.Now()); changed {
		r.next.Changes = append(r.next.Changes, SandboxChange{id, c})
	}
	delete(r.tracks, id)
}

// keep puts rows into the next batch. mu is held.
func (r *Recorder) keep(id string, spans []tierSpan) {
	for _, s := range spans {
		r.next.Rows = append(r.next.Rows, TierRow{id, s.tier, s.span.row()})
	}
}

// read takes one reading of all that run.
func (r *Recorder) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ids := r.running()
	var found map[string]Reading
	var err error
	if len(ids) > 0 {
		found, err = r.c.Source.Read(ctx, ids)
	}
	r.noteProblem(ctx, err)
	if r.c.HostUsage != nil {
		if host, err := r.c.HostUsage(ctx); err == nil {
			r.take(HostID, host)
		} else if ctx.Err() == nil {
			r.c.Log.Debug("figures of the host", "error", err)
		}
	}
	for id, now := range found {
		r.take(id, now)
	}
	r.ticks.Publish(Tick{Time: time.Now()})
}

// noteProblem logs that the source fails or works again, once each.
func (r *Recorder) noteProblem(ctx context.Context, err error) {
	if ctx.Err() != nil && !fault.Is(err, fault.Timeout) {
		return
	}
	r.mu.Lock()
	before := r.problem
	r.problem = err
	r.mu.Unlock()
	switch {
	case before == nil && err != nil:
		r.c.Log.Warn("no figures of sandboxes can be read", "error", err)
	case before != nil && err == nil:
		r.c.Log.Info("figures of sandboxes can be read again")
	}
}

// Problem gives why the last reading failed, or nil.
func (r *Recorder) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

// running gives those that a source is to be asked for.
func (r *Recorder) running() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id, t := range r.tracks {
		if t.asked() {
			ids = append(ids, id)
		}
	}
	return ids
}

// take notes a reading of one that was there when it was asked for.
func (r *Recorder) take(id string, now Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracks[id]
	if t == nil && id == HostID {
		t = &track{}
		r.tracks[id] = t
	}
	if t == nil || id != HostID && !t.asked() {
		return // it has gone or come to rest meanwhile
	}
	rows, kills := t.read(now)
	r.keep(id, rows)
	if kills > 0 {
		t.kills += int64(kills)
		r.next.Changes = append(r.next.Changes, SandboxChange{id, Change{Time: now.Time.Round(0), State: t.state, Mark: OOMKilled}})
	}
}

// write writes a batch each MediumStep, and sweeps each hour, until ctx ends; then what is left.
func (r *Recorder) write(ctx context.Context) {
	tick := time.NewTicker(MediumStep)
	defer tick.Stop()
	var swept time.Time
	for {
		select {
		case now := <-tick.C:
			r.flush(ctx, false)
			if now.Sub(swept) >= sweepEvery || now.Before(swept) {
				swept = now
				r.sweep(ctx)
			}
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			defer cancel()
			r.flush(ctx, true)
			return
		}
	}
}

// flush writes all that is over, and with all of it also what is not. A Store that fails is asked again the next time.
func (r *Recorder) flush(ctx context.Context, all bool) {
	r.gather(time.Now(), all)
	for {
		b, ok := r.oldest()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, writeLimit)
		err := r.c.Store.Add(ctx, b)
		cancel()
		if err != nil {
			r.unwritten = true
			r.c.Log.Warn("figures cannot be written; they wait in memory", "batches", r.waiting(), "error", err)
			return
		}
		if r.unwritten {
			r.unwritten = false
			r.c.Log.Info("figures can be written again", "batches", r.waiting())
		}
		if lost := r.written(b.Seq); lost > 0 {
			r.c.Log.Error("figures of a time are lost: the disk took none for too long", "lost", time.Duration(lost)*MediumStep)
		}
	}
}

// gather makes a batch of what is over at now.
func (r *Recorder) gather(now time.Time, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, t := range r.tracks {
		if all {
			r.keep(id, t.coarse.close(t.medium.close(nil, Medium), Coarse))
			continue
		}
		late := now.Add(-r.c.Every) // a reading that is on its way still belongs to it
		r.keep(id, t.coarse.over(t.medium.over(nil, Medium, late), Coarse, late))
		t.forget(now)
	}
	if len(r.next.Rows) == 0 && len(r.next.Changes) == 0 {
		return
	}
	r.seq++
	r.next.Seq = r.seq
	r.pending = append(r.pending, r.next)
	r.next = Batch{}
	if most := int(maxPending / MediumStep); len(r.pending) > most {
		r.lost += len(r.pending) - most
		r.pending = append([]Batch(nil), r.pending[len(r.pending)-most:]...)
	}
}

func (r *Recorder) oldest() (Batch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return Batch{}, false
	}
	return r.pending[0], true
}

func (r *Recorder) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// written lets go of the batches that the Store has, and gives how many were lost before.
func (r *Recorder) written(seq int64) (lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pending) > 0 && r.pending[0].Seq <= seq {
		r.pending = r.pending[1:]
	}
	lost, r.lost = r.lost, 0
	return lost
}

func (r *Recorder) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if err := r.c.Store.Sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
		r.c.Log.Warn("old figures are not deleted", "error", err)
	}
}
