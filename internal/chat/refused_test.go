package chat_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// TestChange_ThatIsNotStoredIsNotInForce has a person refused the mode in which nothing is asked, while the agent works.
func TestChange_ThatIsNotStoredIsNotInForce(t *testing.T) {
	w := newWorld(t)
	var full atomic.Bool
	w.store.Fail = func(chat.Change) error {
		if full.Load() {
			return fault.New(fault.Unavailable, "The disk is full.")
		}
		return nil
	}
	asked := make(chan struct{})
	w.does(func(_ context.Context, t *chat.Turn) error {
		<-asked
		t.Text(string(t.Conversation().Mode))
		return nil
	})
	w.send("one")
	w.sees("it works", func(r *reader) bool { return r.c.State == chat.Working })
	full.Store(true)
	if _, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) { c.Mode, c.Title = chat.Auto, "another" }); !fault.Is(err, fault.Unavailable) {
		t.Errorf("changed: %v", err)
	}
	full.Store(false)
	close(asked)
	if r := w.ends(chat.Idle, 1); !strings.HasSuffix(r.String(), "1 text: risky\n") || r.c.Mode != chat.AskRisky || r.c.Title != "one" {
		t.Errorf("mode %s, title %s\n%s", r.c.Mode, r.c.Title, r)
	}
}
