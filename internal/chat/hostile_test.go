package chat_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

func TestText_AFloodIsHeldUpUntilItIsStored(t *testing.T) {
	const deltas = 1_000_000
	w := newWorld(t)
	var most, changes int
	w.store.Fail = func(c chat.Change) error {
		n := 0
		for _, it := range c.Items {
			n += len(it.Text)
		}
		for _, a := range c.Appends {
			n += len(a.Text)
		}
		most = max(most, n)
		changes++
		return nil
	}
	w.does(func(_ context.Context, t *chat.Turn) error {
		for range deltas {
			t.Text("x")
		}
		return nil
	})
	w.send("flood")
	r := w.ends(chat.Idle, 1)
	got := 0
	for _, it := range r.items[1:] {
		got += len(it.Text)
	}
	if got != deltas {
		t.Errorf("%d of %d bytes are there", got, deltas)
	}
	if most > 3<<20 {
		t.Errorf("one change has %d bytes", most)
	}
	t.Logf("%d changes, the largest of %d bytes", changes, most)
}

// TestStore_MayRefuseAtAnyCall has each change refused once, in its turn. What was told is kept, the turn ends, and the next message is
// answered.
func TestStore_MayRefuseAtAnyCall(t *testing.T) {
	for n := int32(2); n <= 14; n++ { // 1 is the message, whose sender is told
		w := newWorld(t)
		var calls atomic.Int32
		w.store.Fail = func(chat.Change) error {
			if calls.Add(1) == n {
				return fault.New(fault.Unavailable, "The disk is full.")
			}
			return nil
		}
		w.does(func(ctx context.Context, t *chat.Turn) error {
			for _, word := range []string{"One. ", "Two. ", "Three. "} {
				t.Text(word)
				if err := t.Stored(ctx); err != nil {
					return err
				}
				t.Keep(word)
			}
			return ctx.Err()
		})
		w.send("first")
		w.sees("an end", func(r *reader) bool { return r.c.Turn == 1 && (r.c.State == chat.Idle || r.c.State == chat.Failed) })
		w.store.Fail = nil
		w.does(func(_ context.Context, t *chat.Turn) error { t.Text("Well."); return nil })
		w.send("second")
		r := w.ends(chat.Idle, 2)
		for _, it := range r.items {
			if it.Open || it.N == 0 {
				t.Errorf("refused at %d: item %+v", n, it)
			}
		}
		w.end()
	}
}

func TestStore_ThatRefusesTheEndIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var refuse atomic.Bool
		w.store.Fail = func(chat.Change) error {
			if refuse.Load() {
				return fault.New(fault.Unavailable, "The disk is full.")
			}
			return nil
		}
		w.does(func(context.Context, *chat.Turn) error { refuse.Store(true); return nil })
		w.send("x")
		time.Sleep(time.Hour)
		refuse.Store(false)
		if r := w.ends(chat.Idle, 1); r.c.State != chat.Idle {
			t.Errorf("it is %s", r.c.State)
		}
		w.end()
	})
}

func TestFull_EndsTheTurnAndTakesNoMessage(t *testing.T) {
	w := newWorld(t)
	c := chat.Conversation{ID: "full", Sandbox: "box", Owner: "ada", Agent: "sandboxd", Mode: chat.Auto, State: chat.Idle, Items: chat.MaxItems - 5}
	if err := w.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.id = c.ID
	w.does(func(ctx context.Context, t *chat.Turn) error {
		for ctx.Err() == nil {
			t.Notice("More.")
		}
		return context.Cause(ctx)
	})
	w.send("x")
	w.sees("failed", func(r *reader) bool {
		return r.c.State == chat.Failed && strings.Contains(r.c.Problem, "full") && r.c.Items <= chat.MaxItems+1
	})
	_, err := w.s.Send(t.Context(), w.id, chat.Queued{Text: "y"})
	if err == nil || !strings.Contains(fault.Message(err), "full") {
		t.Error(err)
	}
}

func TestSandbox_ThatIsDeletedEndsATurnThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(askOnce)
		w.send("x")
		w.ends(chat.Asking, 1)
		following := make(chan error, 1)
		go func() { following <- w.s.Follow(t.Context(), w.id, 0, func(chat.Change) error { return nil }) }()
		synctest.Wait()
		if err := w.store.Delete(t.Context(), w.id); err != nil { // as the database does
			t.Fatal(err)
		}
		if err := <-following; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if w.leaves() != 1 {
			t.Errorf("the agent has left %d times", w.leaves())
		}
		w.end()
	})
}

func TestMay_EndsTheTurnOfWhoMayNotAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(askOnce)
		w.send("x")
		w.ends(chat.Asking, 1)
		w.mu.Lock()
		w.may = fault.New(fault.Forbidden, "The account is disabled.")
		w.mu.Unlock()
		if r := w.ends(chat.Failed, 1); r.c.Problem != "The account is disabled." {
			t.Errorf("it says %q", r.c.Problem)
		}
		w.end()
	})
}

func TestLeft_WhenAPersonStopsTheAgentOrDeletesTheConversation(t *testing.T) {
	w := newWorld(t)
	w.does(askOnce)
	w.send("one")
	w.ends(chat.Asking, 1)
	w.send("two")
	r := w.sees("one waits", func(r *reader) bool { return len(r.queue) == 1 && r.queue[0].Text == "two" })
	if err := w.s.SendNow(t.Context(), w.id, r.queue[0].ID); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Asking, 2)
	if n := w.leaves(); n != 0 {
		t.Errorf("for a message that is sent at once it has left %d times", n)
	}
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Idle, 2)
	w.send("three") // after the turn, which has left
	w.ends(chat.Asking, 3)
	if n := w.leaves(); n != 1 {
		t.Errorf("cancelled: left %d times", n)
	}
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Idle, 3)
	if err := w.s.Delete(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	w.end()
	if n := w.leaves(); n != 3 {
		t.Errorf("deleted: left %d times", n)
	}
}

func TestDrive_APanicFailsTheTurnAlone(t *testing.T) {
	w := newWorld(t)
	w.does(func(context.Context, *chat.Turn) error { panic("at the agent") })
	w.send("x")
	if r := w.ends(chat.Failed, 1); r.c.Problem == "" {
		t.Error("it does not say why")
	}
}

func TestSend_BeforeABrokenTurnContinuesWaitsForIt(t *testing.T) {
	w := newWorld(t)
	w.end()
	c := chat.Conversation{ID: "crashed", Sandbox: "box", Owner: "ada", Agent: "sandboxd", Mode: chat.Auto, State: chat.Working, Rev: 1, Items: 2, Turn: 1}
	err := errors.Join(w.store.Create(t.Context(), c), w.store.Apply(t.Context(), c.ID, chat.Change{Rev: 1, Items: []chat.Item{
		{N: 1, Turn: 1, Kind: chat.Message, Text: "first", Data: []byte(`{"id":"m1"}`)},
		{N: 2, Turn: 1, Kind: chat.CallItem, Data: []byte(`{"id":"c","tool":"x"}`), Open: true}}}))
	if err != nil {
		t.Fatal(err)
	}
	w.id = c.ID
	w.s = w.service() // which does not Run yet, as when a request comes at once
	w.send("second")
	want := `1 message: first` + "\n" + `1 call: {"id":"c","tool":"x","status":"interrupted"}` + "\n1 text: You said first\n2 message: second\n2 text: You said second\n"
	if got := w.ends(chat.Idle, 2).String(); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestSend_WhoHangsUpAtOnceIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.send("x")
	w.ends(chat.Idle, 1)
	open := make(chan struct{}, 1)
	go func() { // keeps the conversation in memory, and ends with the test
		_ = w.s.Follow(t.Context(), w.id, 0, func(chat.Change) error {
			select {
			case open <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	<-open
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for n := int64(2); n < 20; { // to use it is a race with the end of the request
		if _, err := w.s.Send(gone, w.id, chat.Queued{Text: "x"}); err == nil {
			w.ends(chat.Idle, n)
			n++
		}
	}
}

func TestResume_TwiceAtOnceIsOneTurn(t *testing.T) {
	w := newWorld(t)
	w.does(func(context.Context, *chat.Turn) error { return fault.New(fault.Unavailable, "The provider is down.") })
	w.send("x")
	w.ends(chat.Failed, 1)
	var turns atomic.Int32
	next := make(chan struct{})
	w.does(func(context.Context, *chat.Turn) error { turns.Add(1); <-next; return nil })
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := w.s.Resume(t.Context(), w.id); err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(next)
	w.ends(chat.Idle, 1)
	if turns.Load() != 1 {
		t.Errorf("%d turns", turns.Load())
	}
}

func TestTurn_TellsNothingOnceItIsOver(t *testing.T) {
	w := newWorld(t)
	kept := make(chan *chat.Turn, 1)
	w.does(func(_ context.Context, t *chat.Turn) error { t.Text("In time."); kept <- t; return nil })
	w.send("x")
	w.ends(chat.Idle, 1)
	late := <-kept
	late.Text("Too late.")
	if n := late.Begin(chat.Call{ID: "1"}); n != 0 {
		t.Errorf("call %d", n)
	}
	if _, err := late.Ask(t.Context(), chat.Ask{Title: "May I?"}); err == nil {
		t.Error("a question is asked")
	}
	w.send("y")
	if got := w.ends(chat.Idle, 2).String(); strings.Contains(got, "late") {
		t.Error(got)
	}
}
