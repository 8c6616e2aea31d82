package program_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// TestDone_IsNotAskedAgain has sandboxd end after an agent was done, and before the end of its turn was stored.
func TestDone_IsNotAskedAgain(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("hello")
	v := w.ends(chat.Idle, 1)
	w.end()
	v.c.State = chat.Working
	if err := w.store.Apply(t.Context(), w.id, chat.Change{Rev: v.c.Rev + 1, Conversation: &v.c}); err != nil {
		t.Fatal(err)
	}
	w.start()
	if v := w.ends(chat.Idle, 1); v.text() != "You said: hello" {
		t.Error(v)
	}
	w.send("again")
	if v := w.ends(chat.Idle, 2); v.text() != "You said: helloYou said: again" {
		t.Error(v)
	}
}

// TestLost_GivesTheMessageAgain stops the sandbox in the middle of a turn. The session that is loaded may not have the message.
func TestLost_GivesTheMessageAgain(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("start\nhang")
	w.sees("it works", func(v *view) bool { return strings.Contains(v.text(), "start") })
	w.box.stops()
	w.sees("the message again", func(v *view) bool { return strings.Count(v.text(), "You said: start") == 2 })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Idle, 1)
	if err := w.s.Resume(t.Context(), w.id); err != nil { // the same program knows it
		t.Fatal(err)
	}
	if v := w.ends(chat.Idle, 1); strings.Count(v.text(), "You said: start") != 2 || !strings.Contains(v.text(), "You said: You were interrupted") {
		t.Error(v)
	}
}

// TestLoad_ThatFailsIsNotTriedForever has an agent that dies when it loads its session.
func TestLoad_ThatFailsIsNotTriedForever(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("first")
	w.ends(chat.Idle, 1)
	w.box.stops()
	w.box.fails = true
	w.send("second")
	if v := w.ends(chat.Failed, 2); !strings.Contains(v.c.Problem, "before its turn began") {
		t.Error(v)
	}
	if err := w.s.Resume(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if v := w.ends(chat.Idle, 2); !strings.Contains(v.text(), "You said: second") || !strings.Contains(v.String(), "does not remember") {
		t.Error(v)
	}
}

func TestSetting_ThatIsRefusedStaysAsItWas(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("mode")
	w.ends(chat.Idle, 1)
	if _, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) {
		if err := c.Settings.Choose("mode", "never"); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.send("mode")
	v := w.ends(chat.Idle, 2)
	if o := v.c.Settings.Options[0]; o.Value != "code" || o.Wanted != "" || !strings.Contains(v.String(), "did not take a setting") {
		t.Errorf("%+v %s", o, v)
	}
}

// TestQuestion_ThatCannotBeStoredIsAnswered has the store refuse a question twice: what sends the message stores it too, when the turn is as
// quick as that. The agent does not wait without an end: its turn fails, or it gets no for an answer.
func TestQuestion_ThatCannotBeStoredIsAnswered(t *testing.T) {
	for range 20 {
		w := newWorld(t, chat.AskChanges)
		var refused atomic.Int32
		w.store.Fail = func(c chat.Change) error {
			for _, it := range c.Items {
				if it.Kind == chat.Question && refused.Add(1) <= 2 {
					return fault.New(fault.Unavailable, "The disk is full.")
				}
			}
			return nil
		}
		w.send("run x")
		w.sees("an end", func(v *view) bool { return v.c.State == chat.Failed || v.c.State == chat.Idle && v.c.Turn == 1 })
		w.end()
	}
}

// TestPanic_LeavesTheProgramAlone has the driver panic while it is connected to a program. The connection ends, so that the sandbox can sleep.
func TestPanic_LeavesTheProgramAlone(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.box.panics = true
	w.send("die")
	w.ends(chat.Failed, 1)
	<-w.box.left
	w.box.panics = false
	w.send("and now")
	if v := w.ends(chat.Idle, 2); !strings.HasSuffix(v.text(), "You said: and now") {
		t.Error(v)
	}
}

// TestCalls_AreBounded has an agent begin large calls that it never ends.
func TestCalls_AreBounded(t *testing.T) {
	const n, size = 6, 7 << 20
	w := newWorld(t, chat.Auto)
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("large c%d %d", i, size))
	}
	w.send(strings.Join(lines, "\n") + "\nhang")
	closed := func(v *view) (n int) {
		for _, it := range v.kinds(chat.CallItem) {
			if !it.Open {
				n++
			}
		}
		return n
	}
	v := w.sees("its calls", func(v *view) bool { return len(v.kinds(chat.CallItem)) == n })
	if got := closed(v); got < n-32/7 {
		t.Errorf("%d of %d calls are closed", got, n)
	}
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Idle, 1)
}
