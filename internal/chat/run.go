package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/coderun"
	"sandboxd/internal/fault"
)

// Run is code of a conversation that a person runs: it is no turn, waits for none, and asks for nothing.
type Run struct {
	ID       string        `json:"id"`             // the sender's: the same again is one run
	User     string        `json:"user,omitempty"` // id of who runs it
	Item     int64         `json:"item"`           // whose text has the code
	Block    int           `json:"block"`          // which of its blocks of code it is, from 0; see coderun.Blocks
	Auto     bool          `json:"auto,omitempty"` // the message asked for it, see coderun.Asked
	Language string        `json:"language"`
	Code     string        `json:"code"`             // exactly what runs
	Status   string        `json:"status,omitempty"` // how it ended: "ok", "error", "timeout", "cancelled" or "interrupted"
	Problem  string        `json:"problem,omitempty"`
	Exit     *int          `json:"exit,omitempty"`
	Took     time.Duration `json:"took,omitempty"`
	Pictures []File        `json:"pictures,omitempty"` // that it made
}

// Ran is how code that was run has ended.
type Ran struct {
	Exit     int
	Pictures []File // PNG or JPEG
}

// Runner runs code in sandboxes. Safe for concurrent use.
type Runner interface {
	// Runs tells the languages that can be run by their names.
	Runs(language string) bool
	// Risky says whether code is such that it is not run without a press of a button.
	Risky(language, code string) bool
	// Run runs code to its end, which comes soon after ctx's. What the code writes is given to out while it does: InOutput for stdout, InText
	// for stderr, valid UTF-8. An error's message is for the person.
	Run(ctx context.Context, c Conversation, r Run, out func(stream Field, s string)) (Ran, error)
}

// Bounds of runs.
const (
	MaxRuns  = 4 // under way in one conversation
	MaxCode  = 256 << 10
	runLimit = 10 * time.Minute
	runPace  = 50 * time.Millisecond // between two changes that tell what a run writes
	runsBack = 50                    // items in which a run with the same ID is looked for
)

var errRunLimit = errors.New("the code took too long")

// Runs runs code of conversations. Safe for concurrent use.
type Runs struct {
	s *Service
	r Runner
}

// NewRuns makes the Runs of the conversations of s.
func NewRuns(s *Service, r Runner) *Runs { return &Runs{s, r} }

// running is a run under way. Guarded by live.mu, but for cancel and life.
type running struct {
	it           Item
	run          Run
	text, output strings.Builder
	life         context.Context
	cancel       context.CancelCauseFunc
}

// Start begins to run a block of code of a person's message or of the agent's answer: Run.ID, User, Item and Block say which. Run.Code, if
// there is any, is what the person sees: another block is not run. One with the ID of another is that one. Kinds: Invalid, NotFound, Conflict.
func (r *Runs) Start(ctx context.Context, id string, ask Run) (Item, error) {
	l, done, err := r.s.use(ctx, id)
	if err != nil {
		return Item{}, err
	}
	defer done()
	l.starting.Lock()
	defer l.starting.Unlock()
	if it, known, err := r.known(ctx, l, ask.ID); known || err != nil {
		return it, err
	}
	if ask, err = r.find(ctx, id, ask); err != nil {
		return Item{}, err
	}
	x, it, fresh, err := r.add(r.s.life, l, ask)
	if err != nil || !fresh {
		return it, err
	}
	if err := r.s.begin(l, func() { r.carryOut(l, x) }); err != nil {
		x.cancel(err)
		r.over(l, x, Ran{}, err, 0)
		return Item{}, errors.Join(err, l.commit(ctx))
	}
	return it, l.commit(ctx)
}

// known finds a run that was begun before: under way, or among the last items.
func (r *Runs) known(ctx context.Context, l *live, runID string) (Item, bool, error) {
	if runID == "" || len(runID) > 64 {
		return Item{}, false, fault.Field("id", "A run needs an id of at most 64 bytes.")
	}
	items, err := r.s.c.Store.Items(ctx, l.id, ItemQuery{Limit: runsBack})
	if err != nil {
		return Item{}, false, err
	}
	l.orphans(items)
	for _, it := range items {
		var had Run
		if it.Kind == RunItem && json.Unmarshal(it.Data, &had) == nil && had.ID == runID {
			return it, true, nil
		}
	}
	return Item{}, false, nil
}

// find completes what is to be run from the text that is stored.
func (r *Runs) find(ctx context.Context, id string, ask Run) (Run, error) {
	items, err := r.s.c.Store.Items(ctx, id, ItemQuery{Before: ask.Item + 1, Limit: 1})
	if err != nil {
		return ask, err
	}
	if ask.Item < 1 || len(items) == 0 || items[0].N != ask.Item || items[0].Kind != Message && items[0].Kind != Text {
		return ask, fault.Field("item", "Item %d is no message and no answer.", ask.Item)
	}
	if items[0].Open {
		return ask, fault.New(fault.Conflict, "The agent is still writing this. Run it when it is done.")
	}
	blocks := coderun.Blocks(items[0].Text)
	if ask.Block < 0 || ask.Block >= len(blocks) {
		return ask, fault.Field("block", "There is no block of code %d in item %d.", ask.Block, ask.Item)
	}
	b, seen := blocks[ask.Block], ask.Code
	ask.Language, ask.Code = b.Named(), b.Code
	switch {
	case seen != "" && seen != b.Code:
		return ask, fault.New(fault.Conflict, "The code that you see is not the code that would run. Reload the page.")
	case strings.TrimSpace(b.Code) == "":
		return ask, fault.Field("block", "The block of code is empty.")
	case ask.Language == "":
		return ask, fault.Field("block", "It is not known which language this is. Write its name after the opening ```.")
	case !r.r.Runs(ask.Language):
		return ask, fault.Field("block", "Code of the language %.40q cannot be run.", ask.Language)
	case len(b.Code) > MaxCode:
		return ask, fault.Field("block", "Code of more than %d KiB is not run from the chat. Put it into a file.", MaxCode>>10)
	}
	return ask, nil
}

// add makes an item of a run that begins, under the life that is given. It is not fresh when one with its ID is under way.
func (r *Runs) add(life context.Context, l *live, ask Run) (x *running, it Item, fresh bool, err error) {
	now := r.s.c.Now()
	x = &running{run: ask}
	x.life, x.cancel = context.WithCancelCause(life)
	l.change(func(l *live) {
		for _, other := range l.runs {
			if other.run.ID == ask.ID {
				x.cancel(nil)
				x, it = other, other.it
				return
			}
		}
		switch {
		case l.gone:
			err = NotFound(l.id)
		case l.restoring:
			err = fault.New(fault.Conflict, "Files are being put back. Run it in a moment.")
		case l.full():
			err = errFull
		case len(l.runs) >= MaxRuns:
			err = fault.New(fault.Conflict, "%d runs are under way in this conversation. Stop one first.", MaxRuns)
		default:
			fresh = true
			c := l.header(now)
			c.Items++
			x.it = Item{N: c.Items, Turn: max(c.Turn, 1), Kind: RunItem, Data: encode(ask), Open: true, At: now}
			c.Used.Bytes += int64(len(x.it.Data))
			l.put(x.it)
			if l.runs == nil {
				l.runs = map[int64]*running{}
			}
			l.runs[x.it.N] = x
			it = x.it
		}
	})
	return x, it, fresh, err
}

// carryOut runs code, has what it writes stored meanwhile, and returns when it has ended and that is stored.
func (r *Runs) carryOut(l *live, x *running) {
	l.mu.Lock()
	c := l.c
	l.mu.Unlock()
	defer r.s.c.Hold(c.Sandbox)()
	ctx, stop := context.WithTimeoutCause(x.life, runLimit, errRunLimit)
	defer stop()
	defer x.cancel(nil)
	kick := make(chan struct{}, 1)
	var storing sync.WaitGroup
	storing.Go(func() { r.store(ctx, l, kick) })
	began := r.s.c.Now()
	ran, err := r.guarded(ctx, c, x.run, func(stream Field, s string) {
		l.change(func(l *live) { x.write(l, stream, s) })
		select {
		case kick <- struct{}{}:
		default:
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stop()
	storing.Wait()
	r.over(l, x, ran, err, r.s.c.Now().Sub(began))
	r.s.settle(l)
	l.change(func(l *live) { delete(l.runs, x.it.N) })
}

// guarded runs code, and turns a panic into an error as drive does.
func (r *Runs) guarded(ctx context.Context, c Conversation, run Run, out func(Field, string)) (ran Ran, err error) {
	defer r.s.recovers("a run of code panicked", c.ID, &err)
	return r.r.Run(ctx, c, run, out)
}

// store stores what a run writes, from time to time.
func (r *Runs) store(ctx context.Context, l *live, kick <-chan struct{}) {
	for {
		select {
		case <-kick:
		case <-ctx.Done():
			return
		}
		_ = l.commit(ctx) // what is refused is in the next one, and in settle's at last
		select {
		case <-time.After(runPace):
		case <-ctx.Done():
			return
		}
	}
}

// write keeps what a run has written, up to a bound for each stream; l.mu is held.
func (x *running) write(l *live, stream Field, s string) {
	b := &x.output
	if stream == InText {
		b = &x.text
	}
	at := b.Len()
	if s = roomFor(at, strings.ToValidUTF8(s, "\uFFFD")); s == "" {
		return
	}
	b.WriteString(s)
	*x.it.field(stream) = b.String()
	l.c.Used.Bytes += int64(len(s))
	l.extend(x.it.N, stream, at, b.String())
}

// over says how a run has ended.
func (r *Runs) over(l *live, x *running, ran Ran, err error, took time.Duration) {
	l.change(func(l *live) {
		run := &x.run
		run.Took, run.Pictures = took, ran.Pictures
		switch {
		case err == nil:
			run.Exit, run.Status = &ran.Exit, "ok"
			if ran.Exit != 0 {
				run.Status = "error"
			}
		case errors.Is(err, errRunLimit):
			run.Status = "timeout"
		case errors.Is(err, errCancelled):
			run.Status = "cancelled"
		case errors.Is(err, errClosing):
			run.Status = "interrupted"
		default:
			run.Status, run.Problem = "error", fault.Message(err)
		}
		x.it.Data, x.it.Open = encode(run), false
		l.header(r.s.c.Now()).Used.Bytes += int64(len(x.it.Data))
		l.put(x.it)
	})
}

// Cancel ends a run by the number of its item. One that has ended, or is none, is no error. Kind: NotFound.
func (r *Runs) Cancel(ctx context.Context, id string, n int64) error {
	l, done, err := r.s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	l.change(func(l *live) {
		if x := l.runs[n]; x != nil {
			x.cancel(errCancelled)
		}
	})
	return nil
}

// endRuns ends the runs of a conversation; l.mu is held.
func (l *live) endRuns(cause error) {
	for _, x := range l.runs {
		x.cancel(cause)
	}
}

// orphans shows runs that are open, but not under way, as interrupted: a crash has left them.
func (l *live) orphans(items []Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range items {
		if it := &items[i]; it.Kind == RunItem && it.Open && l.runs[it.N] == nil {
			it.interrupt()
		}
	}
}

// First makes of d a driver that first runs the code of a person's message when the message asks for that. What came of it, and of what the
// person has run since their last message, is at the end of Turn.Message.
func (r *Runs) First(d Driver) Driver { return runsFirst{r, d} }

type runsFirst struct {
	r *Runs
	d Driver
}

// Turn implements Driver.
func (f runsFirst) Turn(ctx context.Context, t *Turn) error {
	if !t.Again() {
		if err := f.r.asked(ctx, t); err != nil {
			return err
		}
	}
	notes, err := f.r.notes(ctx, t)
	if err != nil {
		return err
	}
	t.message.Text += notes
	return f.d.Turn(ctx, t)
}

// asked runs the code of the turn's message, when it asks for that.
func (r *Runs) asked(ctx context.Context, t *Turn) error {
	block, yes := coderun.Asked(t.message.Text, r.r.Runs)
	if !yes {
		return nil
	}
	b := coderun.Blocks(t.message.Text)[block]
	if len(b.Code) > MaxCode || r.r.Risky(b.Named(), b.Code) {
		return nil
	}
	if err := t.Checkpoint(ctx); err != nil {
		return err
	}
	items, err := r.s.c.Store.Items(ctx, t.l.id, ItemQuery{Turn: t.number})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(items, func(it Item) bool { return it.Kind == Message })
	if at < 0 {
		return nil
	}
	ask := Run{ID: "auto-" + cmp.Or(t.message.ID, t.l.id), User: t.message.User, Item: items[at].N, Block: block, Auto: true, Language: b.Named(), Code: b.Code}
	x, _, fresh, err := r.add(t.life, t.l, ask)
	if err != nil || !fresh {
		return nil // too many runs, or no room: the model sees the code, and may run it
	}
	r.carryOut(t.l, x)
	return context.Cause(ctx)
}

// notes tells a model of the runs of this turn, and of the one before, that it does not know.
func (r *Runs) notes(ctx context.Context, t *Turn) (string, error) {
	var b strings.Builder
	for _, turn := range []int64{t.number - 1, t.number} {
		if turn < 1 {
			continue
		}
		items, err := r.s.c.Store.Items(ctx, t.l.id, ItemQuery{Turn: turn})
		if err != nil {
			return "", err
		}
		t.l.orphans(items)
		for _, it := range items {
			if note, auto := it.RunNote(); note != "" && !it.Undone && auto == (turn == t.number) {
				b.WriteString("\n\n" + note)
			}
		}
	}
	return b.String(), nil
}
