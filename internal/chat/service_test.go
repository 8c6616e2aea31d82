package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

func TestTurn_IsShownAndKept(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		t.Thinking("Hm.")
		t.Text("I will ")
		t.Text("look.")
		n := t.Begin(chat.Call{ID: "1", Tool: "run_command", Title: "ls"})
		t.Output(n, "a\n")
		t.Output(n, "b\n")
		t.End(n, func(c *chat.Call) { c.Result = "a b" })
		t.Plan([]chat.Step{{Text: "look", State: "completed"}})
		t.Notice("Half way.")
		t.Text("Done.")
		return t.Stored(ctx)
	})
	w.send("Look around\nplease")
	r := w.ends(chat.Idle, 1)
	want := "1 message: Look around\nplease\n1 thinking: Hm.\n1 text: I will look.\n" +
		`1 call: {"id":"1","tool":"run_command","title":"ls","result":"a b"} > a` + "\nb\n\n1 plan: \n1 notice: Half way.\n1 text: Done.\n"
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if r.c.Title != "Look around" {
		t.Errorf("the title is %q", r.c.Title)
	}
	w.restart()
	if got := w.ends(chat.Idle, 1).String(); got != want {
		t.Errorf("after a restart\n%s", got)
	}
}

func TestSend_WhatComesMeanwhileWaitsInOrder(t *testing.T) {
	w := newWorld(t)
	next := make(chan struct{})
	w.does(func(ctx context.Context, t *chat.Turn) error {
		select {
		case <-next:
			t.Text("Did " + t.Message().Text)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	for _, m := range []string{"one", "two", "three", "four"} {
		w.send(m)
	}
	r := w.sees("three wait", func(r *reader) bool { return len(r.queue) == 3 })
	if err := w.s.Arrange(t.Context(), w.id, []string{r.queue[2].ID, r.queue[0].ID}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		next <- struct{}{}
	}
	got := w.ends(chat.Idle, 3).String()
	if want := "1 message: one\n1 text: Did one\n2 message: four\n2 text: Did four\n3 message: two\n3 text: Did two\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestSend_TheSameTwiceIsOnce(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if _, err := w.s.Send(t.Context(), w.id, chat.Queued{ID: "m1", User: "ada", Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		w.ends(chat.Idle, 1)
		w.restart()
	}
	if r := w.ends(chat.Idle, 1); len(r.items) != 2 || len(r.queue) != 0 {
		t.Errorf("got\n%s", r)
	}
}

func TestSend_BadOnesAreRefused(t *testing.T) {
	w := newWorld(t)
	png := []byte("\x89PNG\r\n\x1a\n")
	large := append(slices.Clip(png), make([]byte, chat.MaxImage/2)...)
	for field, all := range map[string][]chat.Queued{
		"text": {{Text: " \n"}},
		"id":   {{Text: "x", ID: strings.Repeat("i", 65)}},
		"files": {{Files: []chat.File{{Name: "a", Path: strings.Repeat("p", 5000)}}}, {Files: []chat.File{{Name: "a", Path: "a\n[The person"}}},
			{Files: []chat.File{{Name: "a", Path: "a", Type: strings.Repeat("t", 200)}}},
			{Files: []chat.File{{Name: "a\x00"}}}, {Files: []chat.File{{Name: "a"}}}, {Files: []chat.File{{Name: "a", Type: "image/jpeg", Data: png}}},
			{Files: []chat.File{{Name: "a", Type: "image/svg+xml", Data: []byte("<svg>")}}}, {Files: []chat.File{{Name: "a", Type: "image/png", Data: []byte("<html>")}}},
			{Files: []chat.File{{Name: "a", Type: "image/png", Data: large}, {Name: "b", Type: "image/png", Path: "b", Data: large}}}},
	} {
		for i, m := range all {
			_, err := w.s.Send(t.Context(), w.id, m)
			var f *fault.Error
			if !errors.As(err, &f) || f.Field != field {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	if _, err := w.s.Send(t.Context(), "no", chat.Queued{Text: "x"}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestSend_ThePicturesThatWaitAreBounded(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, _ *chat.Turn) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("hello")
	large := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, chat.MaxImage-8)...)
	for i := range 4 {
		_, err := w.s.Send(t.Context(), w.id, chat.Queued{Files: []chat.File{{Name: "a", Type: "image/png", Data: large}}})
		if fits := i < chat.MaxWaiting/chat.MaxImage; fits != (err == nil) || !fits && !fault.Is(err, fault.Invalid) {
			t.Errorf("picture %d: %v", i, err)
		}
	}
	if _, err := w.s.Send(t.Context(), w.id, chat.Queued{Text: "without any"}); err != nil {
		t.Error(err)
	}
}

func TestCancel_KeepsWhatWasSaidAndHoldsTheQueue(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		t.Text("Half of ")
		n := t.Begin(chat.Call{Tool: "run_command"})
		t.Output(n, "working")
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("one")
	w.send("two")
	w.sees("it works", func(r *reader) bool { return strings.Contains(r.String(), "> working") && len(r.queue) == 1 })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	r := w.ends(chat.Idle, 1)
	if !strings.HasSuffix(r.String(), "1 notice: Stopped.\n") || strings.Contains(r.String(), "…") || len(r.queue) != 1 || !r.c.Held {
		t.Errorf("got\n%s%+v", r, r.queue)
	}
	w.does(func(_ context.Context, t *chat.Turn) error { t.Text("Did " + t.Message().Text); return nil })
	w.restart()
	w.send("three")
	if got := w.ends(chat.Idle, 3).String(); !strings.HasSuffix(got, "2 text: Did two\n3 message: three\n3 text: Did three\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestSendNow_EndsTheTurnUnderWay(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		t.Text("Did " + t.Message().Text)
		if t.Message().Text == "urgent" {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("one")
	w.send("two")
	w.send("urgent")
	r := w.sees("two wait", func(r *reader) bool { return len(r.queue) == 2 })
	if err := w.s.SendNow(t.Context(), w.id, r.queue[1].ID); err != nil {
		t.Fatal(err)
	}
	r = w.sees("two is next", func(r *reader) bool {
		return r.c.Turn == 3 && len(r.queue) == 0 && strings.HasSuffix(r.String(), "Did two …\n")
	})
	if !strings.Contains(r.String(), "2 message: urgent\n2 text: Did urgent\n") || strings.Contains(r.String(), "Stopped") {
		t.Errorf("got\n%s", r)
	}
}

func TestAsk_WaitsForAnAnswerOverARestart(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		answer, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "Run it?", Text: "rm -rf build", Choices: []chat.Choice{{ID: "yes", Label: "Allow"}, {ID: "no", Label: "Refuse"}}})
		if err == nil {
			t.Text("You said " + answer)
		}
		return err
	})
	w.send("clean up")
	asked := func(r *reader) bool { _, open := r.question(); return open && r.c.State == chat.Asking }
	w.sees("it asks", asked)
	w.restart()
	w.sees("it still asks", asked)
	if err := w.s.Answer(t.Context(), w.id, "q1", "perhaps", "ada"); !fault.Is(err, fault.Invalid) {
		t.Errorf("an answer that is no choice: %v", err)
	}
	if err := w.s.Answer(t.Context(), w.id, "q1", "yes", "ada"); err != nil {
		t.Fatal(err)
	}
	r := w.ends(chat.Idle, 1)
	if !strings.HasSuffix(r.String(), `"answer":"yes","by":"ada"}`+"\n1 text: You said yes\n") || strings.Count(r.String(), "question") != 1 {
		t.Errorf("got\n%s", r)
	}
	if err := w.s.Answer(t.Context(), w.id, "q1", "no", "ada"); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second answer: %v", err)
	}
}

func TestAsk_LapsesWithItsTurn(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		_, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "Which?"})
		return err
	})
	w.send("x")
	w.sees("it asks", func(r *reader) bool { _, open := r.question(); return open })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if r := w.ends(chat.Idle, 1); !strings.Contains(r.String(), `"lapsed":true}`+"\n") {
		t.Errorf("got\n%s", r)
	}
}

func TestFailure_SaysWhyAndCanBeResumed(t *testing.T) {
	w := newWorld(t)
	w.does(func(_ context.Context, t *chat.Turn) error {
		t.Text("Half")
		return fault.New(fault.Unavailable, "The provider is down.")
	})
	w.send("x")
	r := w.ends(chat.Failed, 1)
	if r.c.Problem != "The provider is down." {
		t.Errorf("it says %q", r.c.Problem)
	}
	w.does(func(_ context.Context, t *chat.Turn) error {
		t.Text(fmt.Sprint("Continued: ", t.Again(), t.Message().Text))
		return nil
	})
	if err := w.s.Resume(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if got := w.ends(chat.Idle, 1).String(); got != "1 message: x\n1 text: Half\n1 text: Continued: truex\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestStore_ThatRefusesEndsTheTurnAndLosesNothing(t *testing.T) {
	w := newWorld(t)
	broken := make(chan struct{})
	w.store.Fail = func(c chat.Change) error {
		select {
		case <-broken:
			if c.Conversation == nil || c.Conversation.State != chat.Failed {
				return fault.New(fault.Unavailable, "The disk is full.")
			}
		default:
		}
		return nil
	}
	w.does(func(ctx context.Context, t *chat.Turn) error {
		t.Text("Before. ")
		if err := t.Stored(ctx); err != nil {
			return err
		}
		close(broken)
		t.Text("After.")
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("x")
	r := w.ends(chat.Failed, 1)
	if r.c.Problem != "The disk is full." || !strings.HasSuffix(r.String(), "1 text: Before. After.\n") {
		t.Errorf("got %q\n%s", r.c.Problem, r)
	}
}

func TestUndo_AndItsUndo(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		if err := t.Checkpoint(ctx); err != nil {
			return err
		}
		t.Text("Did " + t.Message().Text)
		return t.Checkpoint(ctx) // again is nothing
	})
	w.send("one")
	w.ends(chat.Idle, 1)
	w.send("two")
	w.ends(chat.Idle, 2)
	if err := w.s.Undo(t.Context(), w.id, 1); err != nil {
		t.Fatal(err)
	}
	v, err := w.s.View(t.Context(), w.id, chat.ItemQuery{})
	if err != nil || w.points.now != "snap-1" || !v.Items[0].Undone || !v.Items[5].Undone || len(v.Items) != 6 {
		t.Fatalf("%v, files as %q\n%s", err, w.points.now, (&reader{items: v.Items}).String())
	}
	if err := w.s.Undo(t.Context(), w.id, 1); !fault.Is(err, fault.Conflict) {
		t.Errorf("undone twice: %v", err)
	}
	if err := w.s.Redo(t.Context(), w.id, 1); err != nil {
		t.Fatal(err)
	}
	v, err = w.s.View(t.Context(), w.id, chat.ItemQuery{})
	if err != nil || w.points.now != "kept-1" || w.points.taken != 2 || v.Items[0].Undone || v.Items[5].Undone {
		t.Fatalf("%v, files as %q\n%s", err, w.points.now, (&reader{items: v.Items}).String())
	}
	if err := w.s.Undo(t.Context(), w.id, 2); err != nil {
		t.Fatal(err)
	}
	w.send("three")
	w.ends(chat.Idle, 3)
	if err := w.s.Redo(t.Context(), w.id, 2); !fault.Is(err, fault.Conflict) {
		t.Errorf("redone after something else was done: %v", err)
	}
}

func TestUndo_OfATurnWhoseCheckpointFailedIsRefused(t *testing.T) {
	w := newWorld(t)
	w.points.fail = fault.New(fault.Unavailable, "The disk is full.")
	w.does(func(ctx context.Context, t *chat.Turn) error { return t.Checkpoint(ctx) })
	w.send("one")
	r := w.ends(chat.Idle, 1)
	var p chat.Point
	if err := json.Unmarshal(r.items[1].Data, &p); err != nil || p != (chat.Point{Problem: "The disk is full."}) {
		t.Errorf("the checkpoint is %+v, %v", p, err)
	}
	w.points.fail = nil
	if err := w.s.Undo(t.Context(), w.id, 1); !fault.Is(err, fault.Conflict) || w.points.now != "" {
		t.Errorf("undo: %v, files as %q", err, w.points.now)
	}
}

func TestEdit_IsAnotherConversation(t *testing.T) {
	w := newWorld(t)
	w.send("one")
	w.ends(chat.Idle, 1)
	w.send("two")
	w.ends(chat.Idle, 2)
	first := w.id
	for _, c := range []struct {
		n          int64
		text, want string
	}{
		{3, "deux", "1 message: one\n1 text: You said one\n2 message: deux\n2 text: You said deux\n"},
		{1, "", "1 message: one\n1 text: You said one\n"},
	} {
		next, err := w.s.Edit(t.Context(), first, c.n, c.text, "ada")
		if err != nil {
			t.Fatal(err)
		}
		w.id = next.ID
		turns := int64(strings.Count(c.want, "message"))
		if got := w.ends(chat.Idle, turns).String(); got != c.want || next.From != first {
			t.Errorf("got\n%s", got)
		}
	}
	if _, err := w.s.Edit(t.Context(), first, 2, "x", "ada"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

func TestDelete_EndsTheTurnAndItsReaders(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, _ *chat.Turn) error { <-ctx.Done(); return context.Cause(ctx) })
	w.send("x")
	following := make(chan error, 1)
	begun := make(chan struct{}, 100)
	go func() {
		following <- w.s.Follow(t.Context(), w.id, 0, func(chat.Change) error { begun <- struct{}{}; return nil })
	}()
	<-begun
	if err := w.s.Delete(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if err := <-following; err != nil {
		t.Errorf("the reader gets %v", err)
	}
	w.end() // waits for the turn
	if _, err := w.s.View(t.Context(), w.id, chat.ItemQuery{}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// counting has the agent write words, one whenever paces has room for it, and continue where it was.
func (w *world) counting(words int, paces chan struct{}) {
	w.does(func(ctx context.Context, t *chat.Turn) error {
		items, err := t.Items(ctx)
		if err != nil {
			return err
		}
		written := 0
		for _, it := range items {
			if it.Kind == chat.Text {
				written += strings.Count(it.Text, ".")
			}
		}
		for i := written; i < words; i++ {
			t.Text(fmt.Sprintf("%d.", i))
			select {
			case <-paces:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

// TestFollow_NothingIsLostOrTwice has a reader whose line is cut at random, and a service that is started anew from time to time, while an
// agent writes.
func TestFollow_NothingIsLostOrTwice(t *testing.T) {
	const words, cuts, restarts = 3000, 1000, 10
	w := newWorld(t)
	paces := make(chan struct{}, 1) // full: the agent may write its next word
	w.counting(words, paces)
	w.send("count")
	r, cut := &reader{}, errors.New("cut")
	for n := 0; r.c.State != chat.Idle; n++ {
		left := rand.IntN(6)
		if n >= cuts {
			left = words
		}
		if n%(cuts/restarts) == 0 && n < cuts {
			w.restart()
		}
		err := w.s.Follow(t.Context(), w.id, r.rev, func(c chat.Change) error {
			select {
			case paces <- struct{}{}:
			default:
			}
			if err := r.take(c); err != nil {
				return err
			}
			if left--; left < 0 || r.c.State == chat.Idle {
				return cut
			}
			return nil
		})
		if err != cut {
			t.Fatal(err)
		}
	}
	var got, want strings.Builder
	for _, it := range r.items {
		if it.Kind == chat.Text {
			got.WriteString(it.Text)
		}
	}
	for i := range words {
		fmt.Fprintf(&want, "%d.", i)
	}
	if got.String() != want.String() {
		t.Errorf("got %d bytes of %d", got.Len(), want.Len())
	}
}
