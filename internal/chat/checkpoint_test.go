package chat_test

import (
	"context"
	"strings"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

func TestCheckpoint_ThatFailedIsNone(t *testing.T) {
	w := newWorld(t)
	w.points.fail = fault.New(fault.Conflict, "The sandbox is busy.")
	w.does(func(ctx context.Context, t *chat.Turn) error { return t.Checkpoint(ctx) })
	w.send("one")
	w.ends(chat.Idle, 1)
	v, err := w.s.View(t.Context(), w.id, chat.ItemQuery{})
	if err != nil || string(v.Items[1].Data) != `{"snapshot":"","problem":"The sandbox is busy."}` {
		t.Errorf("%v, checkpoint %s", err, v.Items[1].Data)
	}
	if err := w.s.Undo(t.Context(), w.id, 1); !fault.Is(err, fault.Conflict) {
		t.Errorf("undone: %v", err)
	}
}

func TestTitle_OfCharactersThatCannotBeShownIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, title := range []string{"two\nlines", "\u202egnp.exe", "bell\a", "\xff", strings.Repeat("x", 201)} {
		_, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) { c.Title = title })
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", title, err)
		}
		_, err = w.s.Create(t.Context(), chat.Conversation{Sandbox: "box", Owner: "ada", Agent: "sandboxd", Title: title})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("a new one, %q: %v", title, err)
		}
	}
	if c, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) { c.Title = "Fix the tests 👩‍💻" }); err != nil || c.Title != "Fix the tests 👩‍💻" {
		t.Errorf("%q, %v", c.Title, err)
	}
}

func TestRun_ContinuesTurnsOnceSandboxesAreReady(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{}, 1)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		began <- struct{}{}
		if t.Again() {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	w.send("one")
	<-began
	w.end()
	asked, ready := make(chan struct{}), make(chan struct{})
	w.ready = func(context.Context) { close(asked); <-ready }
	w.start()
	<-asked
	select {
	case <-began:
		t.Error("the turn continues before sandboxes are ready")
	default:
	}
	close(ready)
	<-began
	w.ends(chat.Idle, 1)
}
