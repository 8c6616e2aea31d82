package chat_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

var yesOrNo = []chat.Choice{{ID: "yes", Label: "Yes"}, {ID: "no", Label: "No"}}

func askOnce(ctx context.Context, t *chat.Turn) error {
	answer, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "May I?", Text: "ls", Choices: yesOrNo})
	if err == nil {
		t.Text("Told " + answer)
	}
	return err
}

func TestAsk_KeepsTheSandboxAwakeOnlyWhenItIsAnswered(t *testing.T) {
	w := newWorld(t)
	answered := make(chan int, 1)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		if n := w.held.now(); n != 1 {
			w.t.Errorf("before: %d holds", n)
		}
		err := askOnce(ctx, t)
		answered <- w.held.now()
		return err
	})
	w.send("x")
	w.ends(chat.Asking, 1)
	if n := w.held.now(); n != 0 {
		t.Errorf("while it asks: %d holds", n)
	}
	if err := w.s.Answer(t.Context(), w.id, "q1", "yes", "ada"); err != nil {
		t.Fatal(err)
	}
	if n := <-answered; n != 1 {
		t.Errorf("after: %d holds", n)
	}
	w.ends(chat.Idle, 1)
}

func TestAnswer_IsStoredBeforeItIsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		_, _ = t.Ask(ctx, chat.Ask{ID: "q1", Title: "May I?", Choices: yesOrNo}) // the turn ends before the agent makes anything of it
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("x")
	w.ends(chat.Asking, 1)
	if err := w.s.Answer(t.Context(), w.id, "q1", "no", "ada"); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.does(func(ctx context.Context, t *chat.Turn) error {
		answer, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "May I?", Choices: yesOrNo})
		t.Text("Told " + answer)
		return err
	})
	w.start()
	if got := w.ends(chat.Idle, 1).String(); !strings.HasSuffix(got, "Told no\n") || strings.Count(got, "question") != 1 {
		t.Errorf("got\n%s", got)
	}
}

// TestAnswer_IsForTheQuestionThatWasRead has an agent, continued after a restart, use the ID of a question that was answered for another
// command, as models do that number their calls from 0.
func TestAnswer_IsForTheQuestionThatWasRead(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		command := "ls"
		if t.Again() {
			command = "rm -rf ~"
		}
		answer, err := t.Ask(ctx, chat.Ask{ID: "call_0", Title: "Run a command", Text: command, Choices: yesOrNo})
		if err != nil {
			return err
		}
		t.Text(command + ": " + answer)
		if !t.Again() {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	w.send("x")
	w.ends(chat.Asking, 1)
	if err := w.s.Answer(t.Context(), w.id, "call_0", "yes", "ada"); err != nil {
		t.Fatal(err)
	}
	w.sees("it ran", func(r *reader) bool { return strings.Contains(r.String(), "ls: yes") })
	w.restart()
	w.ends(chat.Asking, 1)
	if err := w.s.Answer(t.Context(), w.id, "call_0", "no", "ada"); err != nil {
		t.Fatal(err)
	}
	if got := w.ends(chat.Idle, 1).String(); !strings.Contains(got, "rm -rf ~: no") {
		t.Errorf("got\n%s", got)
	}
}

func TestAsk_TwoOfOneNameAreTwo(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		var both sync.WaitGroup
		for _, command := range []string{"ls", "rm"} {
			both.Go(func() {
				if answer, err := t.Ask(ctx, chat.Ask{ID: "same/../one", Title: command, Choices: yesOrNo}); err == nil {
					t.Notice(command + ": " + answer)
				}
			})
		}
		both.Wait()
		return ctx.Err()
	})
	w.send("x")
	questions := func(r *reader) (all []chat.Ask) {
		for _, it := range r.items {
			if it.Kind == chat.Question {
				r := &reader{items: []chat.Item{it}}
				a, _ := r.question()
				all = append(all, a)
			}
		}
		return all
	}
	r := w.sees("two", func(r *reader) bool { return len(questions(r)) == 2 })
	for _, a := range questions(r) {
		if strings.ContainsAny(a.ID, "/.") {
			t.Errorf("the id %q does not fit into a path", a.ID)
		}
		if err := w.s.Answer(t.Context(), w.id, a.ID, map[string]string{"ls": "yes", "rm": "no"}[a.Title], "ada"); err != nil {
			t.Error(err)
		}
	}
	if got := w.ends(chat.Idle, 1).String(); !strings.Contains(got, "ls: yes") || !strings.Contains(got, "rm: no") {
		t.Errorf("got\n%s", got)
	}
}

// TestAnswer_WhileTheTurnEnds has answers and cancellations race: an answer that was confirmed is kept, one that was not is refused.
func TestAnswer_WhileTheTurnEnds(t *testing.T) {
	w := newWorld(t)
	w.does(askOnce)
	for n := int64(1); n <= 50; n++ {
		w.send("x")
		w.ends(chat.Asking, n)
		var both sync.WaitGroup
		var answered error
		both.Go(func() { answered = w.s.Answer(t.Context(), w.id, "q1", "yes", "ada") })
		both.Go(func() {
			if err := w.s.Cancel(t.Context(), w.id); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		r := w.ends(chat.Idle, n)
		kept, lapsed := false, false
		for _, it := range r.items {
			if it.Turn == n && it.Kind == chat.Question {
				kept, lapsed = strings.Contains(string(it.Data), `"answer":"yes"`), strings.Contains(string(it.Data), `"lapsed":true`)
			}
		}
		if kept != (answered == nil) || kept == lapsed || answered != nil && !fault.Is(answered, fault.Conflict) {
			t.Fatalf("answered: %v, kept: %v, lapsed: %v", answered, kept, lapsed)
		}
	}
}
