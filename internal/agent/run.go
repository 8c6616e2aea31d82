package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// errTime is why ctx ended when the turn's time is over.
var errTime = errors.New("the turn's time is over")

// What the loop tells the model.
const (
	goOn      = "Your answer was cut off. Continue exactly where it stopped."
	tooBig    = "Your answer was refused because it was too large. Say less at once: make several smaller calls."
	maxTooBig = 2 // times a turn
)

// run is a turn under way.
type run struct {
	Turn
	messages []Message // the whole transcript
	base     int       // how many of them were there before
	result   Result
	window   int     // what the model seems to take
	factor   float64 // tokens by the provider's count for each that we estimate
	tooBig   int
	overflow int
	loops    loops
	clock    *clock

	mu sync.Mutex // held while an event is given to Sink
}

// Run plays a turn until it ends, and says how. It returns when ctx ends and its tools have returned.
func Run(ctx context.Context, t Turn) Result {
	r := newRun(t)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.clock = newClock(r.Limits.Time, func() { cancel(errTime) })
	defer r.clock.pause()
	r.result.Ending, r.result.Err = r.play(ctx)
	r.result.Messages = r.messages[r.base:]
	return r.result
}

func newRun(t Turn) *run {
	if t.Limits.Steps <= 0 {
		t.Limits.Steps = DefaultSteps
	}
	if t.Limits.Time <= 0 {
		t.Limits.Time = DefaultTime
	}
	if t.Window <= 0 {
		t.Window = DefaultWindow
	}
	t.Retry = t.Retry.withDefaults()
	r := &run{Turn: t, messages: Repair(t.Messages), window: t.Window, factor: 1, loops: loops{}}
	r.base = len(r.messages)
	r.result.Priced = true
	r.calibrate()
	return r
}

// emit gives an event to the sink.
func (r *run) emit(e Event) {
	if r.Sink == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sink(e)
}

func (r *run) notice(format string, args ...any) {
	r.emit(Event{Kind: NoticeGiven, Text: fmt.Sprintf(format, args...)})
}

// add puts a message into the transcript.
func (r *run) add(m Message) {
	r.messages = append(r.messages, m)
	r.emit(Event{Kind: MessageAdded, Message: &m})
}

// play takes steps until one ends the turn.
func (r *run) play(ctx context.Context) (Ending, error) {
	for {
		if ending := r.limit(ctx); ending != "" {
			return ending, nil
		}
		r.prepare()
		if ending, err := r.fit(ctx); ending != "" {
			return ending, err
		}
		r.result.Steps++
		r.emit(Event{Kind: StepBegun, Step: r.result.Steps})
		if ending, err := r.step(ctx); ending != "" {
			return ending, err
		}
	}
}

// limit gives the limit that is reached.
func (r *run) limit(ctx context.Context) Ending {
	switch {
	case ctx.Err() != nil:
		return endingOf(ctx)
	case r.result.Steps >= r.Limits.Steps:
		return StepLimit
	case r.Limits.Tokens > 0 && r.result.Usage.Total() >= r.Limits.Tokens:
		return TokenLimit
	case r.Limits.Cost > 0 && r.result.Cost >= r.Limits.Cost:
		return CostLimit
	}
	return ""
}

// endingOf tells a turn's own deadline from its caller's wish.
func endingOf(ctx context.Context) Ending {
	if errors.Is(context.Cause(ctx), errTime) {
		return TimeLimit
	}
	return Cancelled
}

// prepare makes the transcript end with something that a model can answer.
func (r *run) prepare() {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if r.messages[i].Mark != nil {
			continue
		}
		if r.messages[i].Role == Assistant {
			r.add(auto(goOn))
		}
		return
	}
	r.add(auto("Begin."))
}

// step asks the model once and does what it wants.
func (r *run) step(ctx context.Context) (Ending, error) {
	c := newCollector(r.emit, r.messages)
	c.most = r.bytesLeft()
	finish, err := r.ask(ctx, r.request(), c.take)
	r.count(finish.Usage, c.bytes)
	m := Message{ID: newID(), Role: Assistant, Parts: c.finish(err == nil && finish.Stop == StopEnd)}
	if !finish.Usage.zero() {
		m.Usage = &finish.Usage
	}
	if len(m.Parts) > 0 {
		r.add(m)
	}
	calls := m.calls()
	if err != nil {
		r.answerAll(calls, "The turn ended before this call was made. Nothing was done.")
		return r.failed(ctx, err)
	}
	if finish.Stop == StopDecline {
		r.answerAll(calls, "The answer was declined before this call was made. Nothing was done.")
		return Declined, nil
	}
	if len(calls) == 0 {
		return r.stopped(finish.Stop, len(m.Parts) == 0)
	}
	return r.act(ctx, calls, len(c.ignored))
}

// bytesLeft gives how many bytes an answer may have until the turn's tokens are spent; 0 for any number.
func (r *run) bytesLeft() int64 {
	if r.Limits.Tokens <= 0 {
		return 0
	}
	return max(1, (r.Limits.Tokens-r.result.Usage.Total())*bytesPerToken)
}

// stopped says what follows from an answer without calls.
func (r *run) stopped(why Stop, empty bool) (Ending, error) {
	switch why {
	case StopLength:
		return CutOff, nil
	case StopWindow:
		return r.narrow()
	}
	if empty {
		r.notice("The model's answer was empty.")
	}
	return Done, nil
}

// failed says what follows from a request that failed.
func (r *run) failed(ctx context.Context, err error) (Ending, error) {
	switch code := CodeOf(err); {
	case ctx.Err() != nil:
		return endingOf(ctx), nil
	case errors.Is(err, errTokensSpent):
		return TokenLimit, nil
	case errors.Is(err, errTooMuchText):
		return SizeLimit, nil
	case r.refusedPictures(err):
		return "", nil
	case code == Overflow:
		return r.narrow()
	case code == TooLarge && r.tooBig < maxTooBig:
		r.tooBig++
		r.add(auto(tooBig))
		return "", nil
	}
	return Failed, err
}

// count adds what a request has used, estimated where the provider did not say.
func (r *run) count(u Usage, bytes int64) {
	if u.zero() && bytes == 0 {
		return
	}
	if u.Context() == 0 {
		u.Input, u.Estimated = int64(r.used()), true
	} else {
		r.calibrateBy(u)
	}
	if u.Output == 0 && bytes > 0 {
		u.Output, u.Estimated = (bytes+bytesPerToken-1)/bytesPerToken, true
	}
	r.charge(u)
}

// charge adds usage to the turn's, and tells it.
func (r *run) charge(u Usage) {
	cost, known := int64(0), false
	if r.Price != nil {
		cost, known = r.Price(u)
	}
	r.result.Usage = r.result.Usage.Plus(u)
	r.result.Cost += cost
	r.result.Priced = r.result.Priced && known
	r.emit(Event{Kind: UsageAdded, Usage: &u, Cost: cost, NoPrice: !known, Context: int(u.Total())})
}

func (u Usage) zero() bool { return u.Total() == 0 }

// withDefaults fills in what is not set.
func (t Retry) withDefaults() Retry {
	if t.Tries <= 0 {
		t.Tries = 5
	}
	if t.Base <= 0 {
		t.Base = time.Second
	}
	if t.Longest <= 0 {
		t.Longest = 2 * time.Minute
	}
	return t
}

// tooLong is the error of a transcript that cannot be made to fit.
func (r *run) tooLong() (Ending, error) {
	return TooLong, fault.New(fault.TooLarge, "This conversation does not fit into the model's window of %s tokens, even shortened. Send less at once, or use a model with a larger window.",
		grouped(int64(r.window)))
}
