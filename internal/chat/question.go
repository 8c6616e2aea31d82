package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// question is one that a turn has asked. Guarded by Turn.mu, but for done.
type question struct {
	it       *openItem
	ask      Ask
	answered bool
	old      bool          // of the turn before it was broken off
	waits    int           // callers of Ask
	done     chan struct{} // closed when it is answered
}

// plainID is what the ID of a question looks like in a path. Others, which agents make up, are replaced by ones that do.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// recall takes in a question that a turn had asked before it was broken off.
func recall(t *Turn, it Item) {
	q := &question{it: &openItem{Item: it}, old: true, done: make(chan struct{})}
	if json.Unmarshal(it.Data, &q.ask) != nil || q.ask.Lapsed {
		return
	}
	if q.answered = q.ask.Answer != ""; q.answered {
		close(q.done)
	} else {
		t.open[it.N] = q.it
	}
	t.questions[q.ask.ID] = q
}

// Ask asks the person, and waits for the answer: the id of a choice, or a text. The conversation is Asking until then, and its sandbox may
// fall asleep. A turn that continues and asks what it had asked before, with the same ID and the same words, asks nothing twice.
func (t *Turn) Ask(ctx context.Context, a Ask) (string, error) {
	p, err := t.Pose(a)
	if err != nil {
		return "", err
	}
	return p.Wait(ctx)
}

// Posed is a question that was asked. Wait must be called once.
type Posed struct {
	t *Turn
	q *question
}

// Pose asks as Ask does, and leaves the waiting to Wait.
func (t *Turn) Pose(a Ask) (*Posed, error) {
	if len(a.Title)+len(a.Text) > MaxText {
		return nil, fault.New(fault.TooLarge, "What is asked is too long to be shown.")
	}
	switch {
	case a.ID == "":
		a.ID = sandbox.NewID()
	case !plainID.MatchString(a.ID):
		sum := sha256.Sum256([]byte(a.ID))
		a.ID = hex.EncodeToString(sum[:8])
	}
	p := &Posed{t: t}
	t.tell(func() { p.q = questionOf(t, a) })
	return p, nil
}

// Wait waits for the answer.
func (p *Posed) Wait(ctx context.Context) (string, error) {
	t, q := p.t, p.q
	if err := t.Stored(ctx); q == nil || err != nil {
		p.unwait()
		if err == nil {
			err = errAnswered // the turn is over
		}
		return "", err
	}
	defer p.unwait()
	select {
	case <-q.done:
		t.mu.Lock()
		answer := q.ask.Answer
		t.mu.Unlock()
		return answer, t.Stored(ctx)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// questionOf finds the question that a repeats, or begins it; t.mu is held.
func questionOf(t *Turn, a Ask) *question {
	q := t.questions[a.ID]
	if q != nil && (!q.old || !q.repeats(a)) {
		if q.waits > 0 || !q.old { // an agent that names two alike
			a.ID = sandbox.NewID()
		}
		q = nil
	}
	if q == nil {
		for _, other := range t.questions { // what the agent does not ask again
			if other.old && other.waits == 0 {
				other.lapse(t)
			}
		}
		t.closeWords()
		q = &question{it: t.begin(Item{Kind: Question, Open: true, Data: encode(a)}), ask: a, done: make(chan struct{})}
	}
	t.questions[a.ID] = q
	q.old = false
	q.waits++
	t.asking()
	return q
}

// repeats reports whether a asks for just what the question asks. Leave for one command is none for another.
func (q *question) repeats(a Ask) bool {
	b := q.ask
	return a.ID == b.ID && a.Title == b.Title && a.Text == b.Text && a.Folder == b.Folder && slices.Equal(a.Choices, b.Choices)
}

// unwait notes that a caller of Ask does not wait any more. A question that it has not got an answer to lapses, unless sandboxd is shutting
// down and asks it again at its next start.
func (p *Posed) unwait() {
	t, q := p.t, p.q
	if q == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.waits = max(q.waits-1, 0); q.waits == 0 && t.s.life.Err() == nil {
		q.lapse(t)
	}
	if !t.over {
		t.asking()
		t.wake()
	}
}

// lapse completes a question without an answer; t.mu is held.
func (q *question) lapse(t *Turn) {
	if q.answered || !q.it.Open {
		return
	}
	q.ask.Lapsed = true
	q.it.Data, q.it.Open = encode(q.ask), false
	t.keep(q.it)
}

// asking sets the conversation's state by whether questions wait. While some do a person is waited for, and the sandbox is not kept awake;
// t.mu is held.
func (t *Turn) asking() {
	state := Working
	for _, q := range t.questions {
		if q.waits > 0 && !q.answered {
			state = Asking
		}
	}
	now := t.s.c.Now()
	t.l.change(func(l *live) {
		if l.c.State != state {
			l.header(now).become(state, now)
		}
	})
	t.awake(state == Working)
}

// answer answers a question that waits.
func (t *Turn) answer(id, text, user string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.questions[id]
	switch {
	case q == nil || q.answered || !q.it.Open, q.waits == 0 && !q.old: // an old one is about to be asked again
		return errAnswered
	case !q.ask.takes(text):
		return fault.Field("answer", "The answer is none of the choices.")
	}
	q.answered, q.ask.Answer, q.ask.By = true, text, user
	q.it.Data, q.it.Open = encode(q.ask), false
	t.keep(q.it)
	t.asking()
	close(q.done)
	return nil
}

func (a *Ask) takes(text string) bool {
	if text == "" {
		return false
	}
	for _, c := range a.Choices {
		if c.ID == text {
			return true
		}
	}
	return (len(a.Choices) == 0 || a.Free) && len(text) <= MaxMessage
}
