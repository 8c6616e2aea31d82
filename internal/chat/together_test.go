package chat_test

import (
	"context"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// TestPanic_LocksNothingUp has a driver panic where the conversation's locks are held. The turn fails, the next one is answered, and sandboxd
// can end.
func TestPanic_LocksNothingUp(t *testing.T) {
	for name, panics := range map[string]func(*chat.Turn){
		"what belongs together": func(t *chat.Turn) { t.Together(func() { panic("oops") }) },
		"a call": func(t *chat.Turn) {
			t.Update(t.Begin(chat.Call{Title: "x"}), func(*chat.Call) { panic("oops") })
		},
		"the header": func(t *chat.Turn) { t.Together(func() { t.Header(func(*chat.Conversation) { panic("oops") }) }) },
	} {
		w := newWorld(t)
		w.does(func(_ context.Context, t *chat.Turn) error {
			if t.Message().Text == "panic" {
				panics(t)
			}
			t.Text("Well.")
			return nil
		})
		w.send("panic")
		if r := w.ends(chat.Failed, 1); !strings.Contains(r.c.Problem, "The log has the details") {
			t.Errorf("%s: %q", name, r.c.Problem)
		}
		w.send("and now")
		w.ends(chat.Idle, 2)
		w.end()
	}
}

// TestSettings_CountAmongWhatIsKeptForReaders has an agent change large settings again and again. They are not all kept in memory for a reader
// that comes back.
func TestSettings_CountAmongWhatIsKeptForReaders(t *testing.T) {
	const changes, size = 100, 100 << 10
	w := newWorld(t)
	end := make(chan struct{})
	w.does(func(ctx context.Context, t *chat.Turn) error {
		for range changes {
			t.Header(func(c *chat.Conversation) {
				c.Settings.Options = []chat.Option{{ID: "x", Values: []chat.Choice{{ID: "y", Label: strings.Repeat("z", size)}}}}
			})
			if err := t.Stored(ctx); err != nil {
				return err
			}
		}
		t.Text("done")
		<-end // it stays in memory until then
		return nil
	})
	w.send("x")
	w.sees("its end", func(r *reader) bool { return strings.Contains(r.String(), "done") })
	told := 0
	err := w.s.Follow(t.Context(), w.id, 3, func(c chat.Change) error {
		if told++; len(c.Items) > 0 && c.Items[len(c.Items)-1].Text == "done" {
			return context.Canceled
		}
		return nil
	})
	close(end)
	if most := 20; err != context.Canceled || told > most {
		t.Errorf("told %d changes, %v", told, err)
	}
}
