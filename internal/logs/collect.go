package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	firstPause   = 250 * time.Millisecond // before a sandbox that gave no lines is asked again; each further one is twice as long
	longestPause = 15 * time.Second
	recentLines  = 50 // in which the last one of a guest is found
	deleteLimit  = time.Minute
	lastLines    = 15 * time.Second // for what a sandbox still writes when it is to end
)

// How much of a sandbox is read. Its guest keeps to less, but a sandbox may speak for it; what is above waits there.
const (
	readLines      = 6000 // in a second
	readLinesBurst = 30_000
	readBytes      = 3 << 20 // in a second
	readBytesBurst = 4 << 20
)

// Sandboxes is what a Collector asks of sandbox.Manager.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// Follow gives the lines of a running sandbox's services that are later than after to emit, and then those that come, until ctx
// or the connection ends. Their Sandbox is set by the Collector. Kinds: NotFound when its guest is too old to tell.
type Follow func(ctx context.Context, sandbox string, after time.Time, emit func([]Line) error) error

// Collector reads the lines of all running sandboxes into a Keeper, and deletes those of deleted ones, unless they are kept.
type Collector struct {
	keeper    *Keeper
	sandboxes Sandboxes
	follow    Follow
	log       *slog.Logger

	running sync.WaitGroup
	readers map[string]*reader // by sandbox; of Run alone
}

// reader reads the lines of one sandbox.
type reader struct {
	cancel  context.CancelFunc
	asked   bool          // to end; of Run alone
	leaving chan struct{} // closed then
	ended   chan struct{}
}

// leave has it end with the connection: a sandbox that is to end may have more to say. It is cut off after lastLines.
func (r *reader) leave() {
	if !r.asked {
		r.asked = true
		close(r.leaving)
		time.AfterFunc(lastLines, r.cancel)
	}
}

// NewCollector makes one. Run starts it.
func NewCollector(k *Keeper, s Sandboxes, f Follow, log *slog.Logger) *Collector {
	return &Collector{keeper: k, sandboxes: s, follow: f, log: log, readers: map[string]*reader{}}
}

// Run reads until ctx ends. Its Keeper must run longer.
func (c *Collector) Run(ctx context.Context) error {
	defer c.running.Wait()
	changes := c.sandboxes.Subscribe()
	defer func() { changes.Close() }()
	c.relist(ctx)
	for {
		select {
		case e, ok := <-changes.C:
			if !ok { // there were too many at once
				changes = c.sandboxes.Subscribe()
				c.relist(ctx)
				continue
			}
			c.see(ctx, e.Sandbox, e.Deleted)
		case <-ctx.Done():
			return nil
		}
	}
}

// relist looks at all sandboxes anew. One that was deleted meanwhile is found by its lines.
func (c *Collector) relist(ctx context.Context) {
	all, _, err := c.sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn("the sandboxes cannot be listed for their logs", "error", err)
		}
		return
	}
	there := map[string]bool{}
	for _, s := range all {
		there[s.ID] = true
		c.see(ctx, s, false)
	}
	for id := range c.readers {
		if !there[id] {
			c.see(ctx, sandbox.Sandbox{ID: id}, true)
		}
	}
	uses, _, err := c.keeper.Usage(ctx, All())
	if err != nil && ctx.Err() == nil {
		c.log.Warn("the logs of deleted sandboxes cannot be found", "error", err)
	}
	for _, u := range uses {
		if !there[u.Sandbox] {
			c.see(ctx, sandbox.Sandbox{ID: u.Sandbox}, true)
		}
	}
}

// see reads what runs, and lets go of what does not. The lines of a deleted one are deleted once its reader has ended: none comes
// back.
func (c *Collector) see(ctx context.Context, s sandbox.Sandbox, deleted bool) {
	r := c.readers[s.ID]
	up := !deleted && !s.Pooled && (s.State == sandbox.Running || s.State == sandbox.Frozen)
	switch {
	case up && (r == nil || r.asked):
		c.readers[s.ID] = c.read(ctx, s.ID, r)
	case !up && r != nil:
		r.leave()
	}
	if !deleted {
		return
	}
	delete(c.readers, s.ID)
	c.running.Go(func() {
		if r != nil {
			<-r.ended
		}
		ctx, cancel := context.WithTimeout(ctx, deleteLimit)
		defer cancel()
		if err := c.keeper.DeleteUnlessKept(ctx, s.ID); err != nil && ctx.Err() == nil {
			c.log.Warn("the log of a deleted sandbox is still there; it is deleted at the next start", "sandbox", s.ID, "error", err)
		}
	})
}

// read begins to read the lines of a sandbox, once the reader before has ended, if there was one.
func (c *Collector) read(ctx context.Context, id string, before *reader) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{cancel: cancel, leaving: make(chan struct{}), ended: make(chan struct{})}
	c.running.Go(func() {
		defer close(r.ended)
		defer cancel()
		if before != nil {
			<-before.ended
		}
		c.readAll(ctx, id, r.leaving)
	})
	return r
}

// readAll reads a sandbox's lines, from where it ended, until ctx ends, also when the connection is lost meanwhile. Once leaving is
// closed it ends with the connection; between two it looks once more.
func (c *Collector) readAll(ctx context.Context, id string, leaving <-chan struct{}) {
	var after time.Time
	known, pace := false, newPace()
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		if !known {
			at, err := c.newest(ctx, id)
			after, known = at, err == nil
		}
		if known {
			err := c.follow(ctx, id, after, func(lines []Line) error {
				for i := range lines {
					lines[i].Sandbox = id
					after = lines[i].Time
				}
				if now := time.Now(); after.After(now) { // its guest tells nonsense
					after = now
				}
				c.keeper.Append(lines...)
				pause = firstPause
				return pace.wait(ctx, lines)
			})
			if fault.Is(err, fault.NotFound) {
				return // until it is started again, with a newer guest
			}
			select {
			case <-leaving:
				return
			default:
			}
		}
		select {
		case <-time.After(pause):
		case <-leaving:
		case <-ctx.Done():
		}
	}
}

// newest is the time of the last line that a sandbox's guest has told, zero for none.
func (c *Collector) newest(ctx context.Context, id string) (time.Time, error) {
	for q := (Query{Scope: Only(id), Limit: recentLines}); ; {
		r, err := c.keeper.Search(ctx, q)
		if err != nil {
			return time.Time{}, err
		}
		for _, l := range r.Lines {
			if l.Service != Own {
				return l.Time, nil
			}
		}
		if q.Before = r.Next; r.Next == 0 {
			return time.Time{}, nil
		}
	}
}

// pace bounds how fast the lines of one sandbox are read.
type pace struct{ lines, bytes *rate.Limiter }

func newPace() pace {
	return pace{rate.NewLimiter(readLines, readLinesBurst), rate.NewLimiter(readBytes, readBytesBurst)}
}

// wait waits until more lines may be read after these.
func (p pace) wait(ctx context.Context, lines []Line) error {
	bytes := 0
	for _, l := range lines {
		bytes += len(l.Text)
	}
	if err := takeAll(ctx, p.lines, len(lines)); err != nil {
		return err
	}
	return takeAll(ctx, p.bytes, bytes)
}

// takeAll takes n, however large.
func takeAll(ctx context.Context, l *rate.Limiter, n int) error {
	for n > 0 {
		part := min(n, l.Burst())
		if err := l.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
