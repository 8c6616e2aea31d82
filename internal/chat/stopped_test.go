package chat_test

import (
	"context"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// TestCancel_CountsAlsoWhenSandboxdIsKilledBeforeTheTurnHasEnded has an agent that takes its time to stop.
func TestCancel_CountsAlsoWhenSandboxdIsKilledBeforeTheTurnHasEnded(t *testing.T) {
	w := newWorld(t)
	stops := make(chan struct{})
	w.does(func(ctx context.Context, t *chat.Turn) error {
		if t.Again() && ctx.Err() == nil {
			t.Text("Worked on.")
		}
		<-ctx.Done()
		<-stops
		return context.Cause(ctx)
	})
	w.send("one")
	w.sees("it works", func(r *reader) bool { return r.c.State == chat.Working })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	then, err := w.store.Conversation(t.Context(), w.id) // what a crash leaves
	if err != nil || then.State != chat.Working {
		t.Fatalf("%s, %v", then.State, err)
	}
	close(stops)
	w.ends(chat.Idle, 1)
	w.end()
	last, err := w.store.Conversation(t.Context(), w.id)
	if err != nil || last.Held {
		t.Fatalf("held %v, %v", last.Held, err)
	}
	then.Rev, then.Items = last.Rev+1, last.Items
	if err := w.store.Apply(t.Context(), w.id, chat.Change{Rev: then.Rev, Conversation: &then}); err != nil {
		t.Fatal(err)
	}
	w.start()
	if r := w.ends(chat.Idle, 1); strings.Contains(r.String(), "Worked on.") || r.c.Held {
		t.Errorf("held %v\n%s", r.c.Held, r)
	}
	w.send("two")
	w.sees("the next message is taken up", func(r *reader) bool { return r.c.Turn == 2 && r.c.State == chat.Working })
}
