package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
)

// Turn is one turn under way, as its Driver sees it. What it is told is shown and stored in the order of the calls. Safe for concurrent
// use; of no use once Driver.Turn has returned.
type Turn struct {
	s       *Service
	l       *live
	life    context.Context
	cancel  context.CancelCauseFunc
	number  int64
	message Queued
	again   bool // see Again
	kick    chan struct{}
	steered bool // ended for a message that is to be taken up at once; guarded by live.mu
	pointed bool // a checkpoint was taken, or could not be; guarded by pointing
	point   *openItem
	// pointing has room for the one who takes a checkpoint.
	pointing chan struct{}
	together atomic.Bool // see Together

	mu        sync.Mutex
	open      map[int64]*openItem // that are not complete
	words     int64               // the open item of Text or Thinking; 0 for none
	questions map[string]*question
	release   func() // of what keeps the sandbox awake; nil for nothing
	failed    error  // why nothing more is kept
	over      bool   // its driver has returned
}

// openItem is an item whose texts grow. They are only the views of what was written: so to write more copies nothing.
type openItem struct {
	Item
	text, output strings.Builder
}

// newTurn makes a turn. before are the items of one that continues: its questions may still be open, and its checkpoint not taken.
func newTurn(s *Service, l *live, number int64, m Queued, before []Item) *Turn {
	t := &Turn{s: s, l: l, number: number, message: m, again: before != nil, kick: make(chan struct{}, 1), pointing: make(chan struct{}, 1),
		open: map[int64]*openItem{}, questions: map[string]*question{}}
	t.life, t.cancel = context.WithCancelCause(s.life)
	for _, it := range before {
		switch it.Kind {
		case Question:
			recall(t, it)
		case Checkpoint:
			var p Point
			if json.Unmarshal(it.Data, &p) == nil && p == (Point{}) { // it was being taken
				t.point = &openItem{Item: it}
			} else {
				t.pointed = true
			}
		}
	}
	return t
}

// Number is the turn's.
func (t *Turn) Number() int64 { return t.number }

// Message is what the person said, and what came of code that they ran, see Runs.First.
func (t *Turn) Message() Queued { return t.message }

// Again reports whether the turn was broken off before, by the end of sandboxd or a failure, and now continues: what it did until then is
// among its Items.
func (t *Turn) Again() bool { return t.again }

// Conversation is the conversation as it is now.
func (t *Turn) Conversation() Conversation {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.l.c
}

// Items gives all items so far that were not undone, those of this turn included.
func (t *Turn) Items(ctx context.Context) ([]Item, error) {
	if err := t.Stored(ctx); err != nil {
		return nil, err
	}
	all, err := t.s.c.Store.Items(ctx, t.l.id, ItemQuery{})
	kept := all[:0]
	for _, it := range all {
		if !it.Undone {
			kept = append(kept, it)
		}
	}
	return kept, err
}

// Memory gives what the driver keeps of this conversation, and SetMemory replaces it.
func (t *Turn) Memory(ctx context.Context) (json.RawMessage, error) {
	return t.s.c.Store.Memory(ctx, t.l.id)
}

// SetMemory replaces what the driver keeps.
func (t *Turn) SetMemory(ctx context.Context, m json.RawMessage) error {
	return t.s.c.Store.SetMemory(ctx, t.l.id, m)
}

// tell lets f tell something, unless nothing more is kept, and has it stored soon. It waits while too much is not stored yet.
func (t *Turn) tell(f func()) {
	if !keeps(t, f) {
		return
	}
	t.wake()
	if !t.together.Load() && t.l.behind() {
		t.sync()
	}
}

// keeps lets f tell something, and reports whether it did.
func keeps(t *Turn, f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil && t.l.isFull() {
		t.failed = errFull
		t.cancel(errFull)
	}
	if t.failed != nil || t.over {
		return false
	}
	f()
	return true
}

// sync stores all that was told. When that cannot be the turn ends.
func (t *Turn) sync() {
	if err := t.l.commit(t.life); err != nil {
		t.fail(err)
	}
}

// fail ends the turn: nothing more can be kept.
func (t *Turn) fail(err error) {
	t.mu.Lock()
	t.failed = err
	t.mu.Unlock()
	t.cancel(err)
}

// full reports whether nothing more fits into the conversation; l.mu is held.
func (l *live) full() bool { return l.c.Items >= MaxItems || l.c.Used.Bytes >= MaxBytes }

func (l *live) isFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full()
}

// Text shows more of the agent's answer. What follows something else begins a new item.
func (t *Turn) Text(s string) { t.say(Text, s) }

// Thinking shows more of what the agent thinks.
func (t *Turn) Thinking(s string) { t.say(Thinking, s) }

func (t *Turn) say(kind Kind, s string) {
	for s = strings.ToValidUTF8(s, "\uFFFD"); s != ""; {
		piece := cutAt(s, MaxText)
		s = s[len(piece):]
		t.tell(func() { t.write(kind, piece) })
	}
}

// write adds text, at most MaxText bytes; t.mu is held.
func (t *Turn) write(kind Kind, s string) {
	for s != "" {
		it := t.open[t.words]
		if it == nil || it.Kind != kind || len(it.Text) >= MaxText {
			t.closeWords()
			it = t.begin(Item{Kind: kind, Open: true})
			t.words = it.N
		}
		piece := cutAt(s, MaxText-len(it.Text))
		if piece == "" { // the next character does not fit
			t.closeWords()
			continue
		}
		t.extend(it, InText, piece)
		s = s[len(piece):]
	}
}

// extend adds text at the end of an open item; t.mu is held.
func (t *Turn) extend(it *openItem, field Field, s string) {
	to, b := it.field(field), &it.text
	if field == InOutput {
		b = &it.output
	}
	at := len(*to)
	b.WriteString(s)
	*to = b.String()
	t.l.change(func(l *live) {
		l.c.Used.Bytes += int64(len(s))
		l.extend(it.N, field, at, *to)
	})
}

// cutAt gives the beginning of s that has at most n bytes and ends between characters.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// closeWords completes the open text; t.mu is held.
func (t *Turn) closeWords() {
	if it := t.open[t.words]; it != nil {
		it.Open = false
		t.keep(it)
	}
	t.words = 0
}

// begin adds an item; t.mu is held.
func (t *Turn) begin(it Item) *openItem {
	it.Turn, it.At = t.number, t.s.c.Now()
	t.l.change(func(l *live) {
		it.N = l.header(it.At).Items + 1
		l.c.Items = it.N
		l.c.Used.Bytes += int64(len(it.Text) + len(it.Data))
		l.put(it)
	})
	o := &openItem{Item: it}
	if it.Open {
		t.open[it.N] = o
	}
	return o
}

// keep makes an item's present state part of the next change; t.mu is held.
func (t *Turn) keep(it *openItem) {
	t.l.change(func(l *live) { l.put(it.Item) })
	if !it.Open {
		delete(t.open, it.N)
	}
}

// Begin shows a call that is beginning, and gives its number for Output, Update and End.
func (t *Turn) Begin(c Call) (n int64) {
	t.tell(func() {
		t.closeWords()
		n = t.begin(Item{Kind: CallItem, Open: true, Data: encode(c)}).N
	})
	return n
}

// Output shows more of what a call writes. What is beyond MaxOutput is left out, and said to be.
func (t *Turn) Output(n int64, s string) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	t.tell(func() {
		it := t.open[n]
		if it == nil || it.Kind != CallItem {
			return
		}
		if s := roomFor(len(it.Output), s); s != "" {
			t.extend(it, InOutput, s)
		}
	})
}

// roomFor gives as much of what is written as is kept after at bytes.
func roomFor(at int, s string) string {
	const left = "\n… more was written, which is not kept …\n"
	if at >= MaxOutput {
		return ""
	}
	if room := MaxOutput - len(left) - at; len(s) > room {
		s = cutAt(s, room) + left
		s += strings.Repeat(" ", MaxOutput-at-len(s)) // it is full
	}
	return s
}

// Update changes a call that is not over.
func (t *Turn) Update(n int64, f func(*Call)) { alter(t, n, true, f) }

// End changes a call that is over then.
func (t *Turn) End(n int64, f func(*Call)) { alter(t, n, false, f) }

func alter(t *Turn, n int64, open bool, f func(*Call)) {
	t.tell(func() {
		it := t.open[n]
		if it == nil || it.Kind != CallItem {
			return
		}
		var c Call
		if json.Unmarshal(it.Data, &c) != nil {
			return // not so: we have encoded it
		}
		f(&c)
		before := len(it.Data)
		it.Data, it.Open = encode(c), open
		t.l.change(func(l *live) { l.c.Used.Bytes += int64(max(len(it.Data)-before, 0)) })
		t.keep(it)
	})
}

// Plan shows the agent's plan, in place of the one that this turn showed last. Of one that is too long the beginning is shown.
func (t *Turn) Plan(steps []Step) {
	steps = slices.Clone(steps[:min(len(steps), MaxSteps)])
	for i := range steps {
		steps[i].Text = cutAt(steps[i].Text, MaxStep)
	}
	t.tell(func() {
		t.closeWords()
		for _, it := range t.open {
			if it.Kind == Plan {
				it.Data = encode(steps)
				t.keep(it)
				return
			}
		}
		t.begin(Item{Kind: Plan, Open: true, Data: encode(steps)})
	})
}

// Notice shows a sentence of sandboxd's.
func (t *Turn) Notice(s string) {
	t.tell(func() {
		t.closeWords()
		t.begin(Item{Kind: Notice, Text: cutAt(strings.ToValidUTF8(s, "\uFFFD"), MaxText)})
	})
}

// Keep keeps something of the driver's at this place, which is not shown: a branch has it, and an undone turn takes it along. It is stored
// when Keep returns, or the turn ends: so nothing is done of which a crash would leave no record.
func (t *Turn) Keep(v any) {
	t.tell(func() {
		t.closeWords()
		t.begin(Item{Kind: Record, Data: encode(v)})
	})
	t.sync()
}

// Header changes what is said of the conversation as a whole: its title, its model, its mode, what it took.
func (t *Turn) Header(f func(*Conversation)) {
	now := t.s.c.Now()
	t.l.change(func(l *live) { f(l.header(now)) })
	t.wake()
}

// Checkpoint keeps the sandbox's files as they are, so that this turn can be undone. Only the first one of a turn does anything; others
// wait for it. That it cannot be taken is shown, and no error.
func (t *Turn) Checkpoint(ctx context.Context) error {
	select {
	case t.pointing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.pointing }()
	if t.pointed {
		return t.Stored(ctx)
	}
	t.tell(func() {
		t.closeWords()
		if it := t.point; it != nil { // it was not taken: nothing was changed yet
			it.Open = true
			t.open[it.N] = it
			t.keep(it)
			return
		}
		t.point = t.begin(Item{Kind: Checkpoint, Open: true, Data: encode(Point{})})
	})
	if err := t.Stored(ctx); err != nil {
		return err
	}
	c, p := t.Conversation(), Point{}
	if snapshot, err := t.s.c.Checkpoints.Take(ctx, c.Sandbox, c.Title); err == nil {
		p.Snapshot = snapshot
	} else if ctx.Err() == nil {
		p.Problem = fault.Message(err)
	}
	t.pointed = p != Point{}
	t.tell(func() {
		t.point.Data, t.point.Open = encode(p), false
		t.keep(t.point)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.Stored(ctx)
}

// wake has the pending changes stored soon.
func (t *Turn) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// Stored waits until all that was told so far is stored. After an error nothing more is.
func (t *Turn) Stored(ctx context.Context) error {
	err := t.l.commit(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		return t.failed
	}
	return err
}

// store stores what is told, until the turn is over. Meanwhile more is told: then that is one change. It ends the turn when the store
// refuses.
func (t *Turn) store(ctx context.Context) {
	for {
		select {
		case <-t.kick:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		t.sync()
		select { // leaves others at least half of the store's time
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			return
		}
	}
}

// finish completes what is open; questions that wait lapse, unless the turn will continue after a restart. Nothing more is told.
func (t *Turn) finish(continues bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words, t.over = 0, true
	t.awake(false)
	for _, q := range t.questions {
		if q.waits = 0; !continues {
			q.lapse(t)
		}
	}
	for _, it := range t.open {
		if it.Kind != Question {
			it.interrupt()
			t.keep(it)
		}
	}
}

// interrupt completes an item that nothing more comes to.
func (it *Item) interrupt() {
	it.Open = false
	var r Run
	if it.Kind == RunItem && json.Unmarshal(it.Data, &r) == nil {
		r.Status = "interrupted"
		it.Data = encode(r)
	}
	var c Call
	if it.Kind == CallItem && json.Unmarshal(it.Data, &c) == nil && c.Status == "" {
		c.Status = "interrupted"
		it.Data = encode(c)
	}
}

// awake keeps the sandbox awake, or does so no more; t.mu is held.
func (t *Turn) awake(yes bool) {
	switch {
	case yes && t.release == nil:
		t.release = t.s.c.Hold(t.Conversation().Sandbox)
	case !yes && t.release != nil:
		t.release()
		t.release = nil
	}
}

// encode gives what is shown as it is kept.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // an agent's arguments that are no JSON: their sender has checked them
		text, _ = json.Marshal(map[string]string{"problem": err.Error()}) // strings always can be
	}
	return text
}

// become changes the state.
func (c *Conversation) become(s State, now time.Time) {
	if c.State != s {
		c.State, c.Since = s, now
	}
	if s != Failed {
		c.Problem = ""
	}
}
