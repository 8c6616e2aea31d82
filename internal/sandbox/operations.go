package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// operations runs the work on sandboxes in the background, one operation per name at a time.
type operations struct {
	*records
	turns turns
	ping  func(ctx context.Context) error // whether the engine answers
	pings singleflight.Group              // one ping at a time, for all who wait
	life  context.Context                 // ends when Run ends; all operations end with it
	end   context.CancelFunc

	startsMu sync.Mutex
	starts   map[string]int // starts and restarts that have not ended, by the sandbox's id
}

func newOperations(s Store, ping func(context.Context) error, log *slog.Logger) *operations {
	life, end := context.WithCancel(context.Background())
	r := &records{rows: newRows(s), bus: event.NewBus[Event](eventBuffer), log: log, progress: map[string]Progress{}}
	return &operations{records: r, ping: ping, life: life, end: end, starts: map[string]int{}}
}

// operation works in the turn of a sandbox's name. It calls accept once its intent is stored, at the latest when it returns.
type operation func(ctx context.Context, accept func(Sandbox)) error

// change is an operation on a sandbox; s is the row as it is in its turn.
type change func(ctx context.Context, s Sandbox, accept func(Sandbox)) error

// on makes an operation of a change to the sandbox of ref: Gone when it is deleted by the time of its turn.
func (o *operations) on(ref Ref, c change) operation {
	return func(ctx context.Context, accept func(Sandbox)) error {
		s, err := o.Current(ctx, ref)
		if err != nil {
			return err
		}
		return c(ctx, s, accept)
	}
}

// unlessDeleting makes a change that refuses a sandbox that is being deleted.
func unlessDeleting(c change) change {
	return func(ctx context.Context, s Sandbox, accept func(Sandbox)) error {
		if s.State == Deleting {
			return fault.New(fault.Conflict, "%s is being deleted.", s.Name)
		}
		return c(ctx, s, accept)
	}
}

// Wait blocks until no operation on a sandbox is under way or in line, or ctx ends, and gives the row as it is then. Gone
// once it is deleted; Unavailable within ten seconds when the engine does not answer.
func (o *operations) Wait(ctx context.Context, ref Ref) (Sandbox, error) {
	ctx, release := o.whileAnswered(ctx)
	defer release()
	if err := o.turns.wait(ctx, ref.name); err != nil {
		return Sandbox{}, late(ctx, ref.name)
	}
	return o.Current(ctx, ref)
}

// pending is an operation that has been queued.
type pending struct {
	name     string
	accepted chan Sandbox
	ended    chan error // one error at most, then closed
}

// begin queues op for the sandbox of ref, for the caller whose context by is.
func (o *operations) begin(by context.Context, ref Ref, op operation) (pending, error) {
	p := pending{name: ref.name, accepted: make(chan Sandbox, 1), ended: make(chan error, 1)}
	accept := func(s Sandbox) {
		select {
		case p.accepted <- s:
		default:
		}
	}
	queued := o.turns.run(o.life, ref, func(ctx context.Context) {
		defer close(p.ended)
		if err := op(Asked(ctx, by), accept); err != nil {
			p.ended <- err
		}
	})
	if !queued {
		return p, ErrClosing
	}
	return p, nil
}

// ErrClosing is the error of what the end of sandboxd has refused.
var ErrClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// wait blocks until the operation is accepted or has ended, ctx ends, or after fires: then ok is false. An operation that
// was accepted gives the row of that moment, also when it has failed since.
func (p pending) wait(ctx context.Context, after <-chan time.Time) (s Sandbox, ok bool, err error) {
	select {
	case s = <-p.accepted:
		return s, true, nil
	case err = <-p.ended:
	case <-after:
		return Sandbox{}, false, nil
	case <-ctx.Done():
		return Sandbox{}, false, late(ctx, p.name)
	}
	select {
	case s = <-p.accepted:
		return s, true, nil
	default:
		return Sandbox{}, true, err
	}
}

// ErrNoAnswer is in the Unavailable fault of a caller who stopped waiting because the engine does not answer. The operation
// continues.
var ErrNoAnswer = errors.New("the engine does not answer")

// whileAnswered gives a context for waiting that ends with ctx, and with ErrNoAnswer when the engine does not answer. The
// caller must release it.
func (o *operations) whileAnswered(ctx context.Context) (waiting context.Context, release func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for refused := false; ; {
			select {
			case <-time.After(pulse):
			case <-waiting.Done():
				return
			}
			err := o.sharedPing(waiting)
			if err != nil && (refused || errors.Is(err, errHangs)) { // it is away for longer than a restart of it takes, or hangs
				cancel(errors.Join(ErrNoAnswer, err))
			}
			refused = err != nil
		}
	})
	return waiting, func() { cancel(nil); asking.Wait() }
}

var errHangs = errors.New("no answer to a ping in time")

// sharedPing asks the engine for a sign of life, or joins a ping that is under way. It gives errHangs after pingLimit, and nil when ctx
// ends first.
func (o *operations) sharedPing(ctx context.Context) error {
	pinged := o.pings.DoChan("", func() (any, error) {
		ctx, end := context.WithTimeoutCause(o.life, pingLimit, errHangs)
		defer end()
		err := o.ping(ctx)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		return nil, err
	})
	select {
	case p := <-pinged:
		return p.Err
	case <-ctx.Done():
		return nil
	}
}

// late is the answer to a caller who leaves before an operation has ended.
func late(ctx context.Context, name string) error {
	if err := context.Cause(ctx); errors.Is(err, ErrNoAnswer) {
		return fault.Wrap(err, fault.Unavailable, "The container engine does not answer. %s is still being worked on; ask again later.", name)
	}
	return fault.Wrap(ctx.Err(), fault.Timeout, "%s is still being worked on. Ask again later.", name)
}

// do queues a change, and returns once it is accepted, has failed before that, or acceptLimit is over: then it gives the row
// as it is.
func (o *operations) do(ctx context.Context, ref Ref, c change) (Sandbox, error) {
	return o.submit(ctx, ref, o.on(ref, c))
}

// doStart is do for a change that starts a sandbox: Starts reports it until it has ended.
func (o *operations) doStart(ctx context.Context, ref Ref, c change) (Sandbox, error) {
	o.countStarts(ref.id, 1)
	return o.submit(ctx, ref, func(ctx context.Context, accept func(Sandbox)) error {
		defer o.countStarts(ref.id, -1)
		return o.on(ref, unlessDeleting(c))(ctx, accept)
	})
}

func (o *operations) countStarts(id string, more int) {
	o.startsMu.Lock()
	defer o.startsMu.Unlock()
	if o.starts[id] += more; o.starts[id] == 0 {
		delete(o.starts, id)
	}
}

// Starts reports whether a start or a restart of the sandbox with this id, by its owner's wish, is under way or in line.
func (o *operations) Starts(id string) bool {
	o.startsMu.Lock()
	defer o.startsMu.Unlock()
	return o.starts[id] > 0
}

// submit queues op, and returns as do does.
func (o *operations) submit(ctx context.Context, ref Ref, op operation) (Sandbox, error) {
	p, err := o.begin(ctx, ref, op)
	if err != nil {
		return Sandbox{}, err
	}
	s, ok, err := p.wait(ctx, time.After(acceptLimit))
	if ok || err != nil {
		return s, err
	}
	return o.Current(ctx, ref)
}

// attend queues an operation, and returns once it is accepted or has failed before that, however long that takes.
func (o *operations) attend(ctx context.Context, ref Ref, op operation) (Sandbox, error) {
	p, err := o.begin(ctx, ref, op)
	if err != nil {
		return Sandbox{}, err
	}
	ctx, release := o.whileAnswered(ctx)
	defer release()
	s, _, err := p.wait(ctx, nil)
	return s, err
}

// perform works in the turn of a sandbox's name and waits for the end.
func (o *operations) perform(ctx context.Context, ref Ref, work func(ctx context.Context) error) error {
	p, err := o.begin(ctx, ref, func(ctx context.Context, _ func(Sandbox)) error { return work(ctx) })
	if err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// performFor queues an operation and waits for its end. The operation ends when ctx does; one that has not begun by then never does.
func (o *operations) performFor(ctx context.Context, ref Ref, op operation) error {
	var decided atomic.Bool
	p, err := o.begin(ctx, ref, func(life context.Context, accept func(Sandbox)) error {
		if decided.Swap(true) {
			return nil
		}
		life, cancel := context.WithCancelCause(context.WithValue(life, turnKey{}, life))
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		err := op(life, accept)
		if cause := context.Cause(life); err != nil && errors.Is(cause, errDeleted) && !errors.Is(err, errDeleted) {
			return errors.Join(cause, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case err = <-p.ended:
		return err
	case <-ctx.Done():
	}
	if !decided.Swap(true) {
		return context.Cause(ctx)
	}
	return <-p.ended
}

// turnKey is where the context of an operation has that of its turn.
type turnKey struct{}

// turnOf gives the context of a turn, of that of an operation in it which performFor does: it outlives who asked for the operation, for
// what has to be finished once it is begun. A delete ends it, and so does the end of sandboxd.
func turnOf(ctx context.Context) context.Context {
	if turn, ok := ctx.Value(turnKey{}).(context.Context); ok {
		return turn
	}
	return ctx
}

// fail stores s as failed for the reason that err gives, unless the operation was cut off by the end of sandboxd: then
// the intent stays, and the next start of sandboxd finishes it.
func (o *operations) fail(ctx context.Context, s Sandbox, err error) error {
	if o.life.Err() != nil {
		return err
	}
	o.log.Warn("sandbox failed", "sandbox", s.Name, "error", err)
	s.Cause = fault.KindOf(err)
	_, setErr := o.set(ctx, s, Failed, fault.Message(err))
	return errors.Join(err, setErr)
}
