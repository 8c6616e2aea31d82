package chat

import (
	"context"
	"encoding/json"
	"errors"
)

// Together makes all that f tells of the turn one change: after a crash there is all of it or nothing. f must not wait for anything: it may
// call Text, Thinking, Begin, Output, Update, End, Plan, Notice, Header, Pose, Reopen and Remember.
func (t *Turn) Together(f func()) {
	func() { // unlocks also when f panics: else nothing of the conversation could be stored any more
		t.l.whole.Lock()
		defer t.l.whole.Unlock()
		t.together.Store(true)
		defer t.together.Store(false)
		f()
	}()
	t.wake()
	if t.l.behind() {
		t.sync()
	}
}

// Remember replaces what the driver keeps of this conversation, in the next change.
func (t *Turn) Remember(m json.RawMessage) {
	t.tell(func() {
		t.l.change(func(l *live) { l.pending.Memory = m })
	})
}

// Continues reports whether the turn ends only because sandboxd does: at the next start it continues, and what it has running should be left
// to it.
func (t *Turn) Continues() bool { return errors.Is(context.Cause(t.life), errClosing) }

// Reopen continues an item that was completed when the turn was broken off: a text that grows again, a call that is not over, a plan. it
// must be one of this turn, as Items gives it.
func (t *Turn) Reopen(it Item) {
	t.tell(func() {
		if it.Turn != t.number || t.open[it.N] != nil {
			return
		}
		o := &openItem{Item: it}
		o.text.WriteString(it.Text)
		o.output.WriteString(it.Output)
		o.Open = true
		var c Call
		switch it.Kind {
		case Text, Thinking:
			t.closeWords()
			t.words = it.N
		case CallItem:
			if json.Unmarshal(it.Data, &c) == nil && c.Status == "interrupted" {
				c.Status = ""
				o.Data = encode(c)
			}
		case Plan:
		default:
			return
		}
		t.open[it.N] = o
		t.keep(o)
	})
}
