package chat_test

import (
	"context"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/fault"
)

// next gives the next change of a conversation's state.
func next(t *testing.T, w *world) chat.Activity {
	t.Helper()
	select {
	case a := <-w.news.C:
		return *a
	case <-time.After(patience):
		t.Fatal("nothing is told")
	}
	return chat.Activity{}
}

func TestStates_TellWhatAgentsDo(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx context.Context, t *chat.Turn) error {
		if _, err := t.Ask(ctx, chat.Ask{ID: "q1", Title: "Run it?", Text: "rm -rf build", Choices: []chat.Choice{{ID: "yes", Label: "Allow"}}}); err != nil {
			return err
		}
		return fault.New(fault.Unavailable, "The provider is down.")
	})
	w.send("clean up")
	if a := next(t, w); a.State != chat.Working || a.Was != chat.Idle || a.ID != w.id {
		t.Errorf("first %+v", a)
	}
	a := next(t, w)
	if a.State != chat.Asking || a.Was != chat.Working || a.Asks == nil || a.Asks.Text != "rm -rf build" {
		t.Errorf("then %+v", a)
	}
	if c, any := w.states.Of("box"); !any || c.State != chat.Asking {
		t.Errorf("the sandbox has %v %+v", any, c)
	}
	w.restart()
	if c, any := w.states.Of("box"); !any || c.State == chat.Idle {
		t.Errorf("after a restart the sandbox has %v %+v", any, c)
	}
	for next(t, w).State != chat.Asking { // it works again first
	}
	if err := w.s.Answer(t.Context(), w.id, "q1", "yes", "ada"); err != nil {
		t.Fatal(err)
	}
	w.ends(chat.Failed, 1)
	if c, any := w.states.Of("box"); !any || c.State != chat.Failed {
		t.Errorf("at last the sandbox has %v %+v", any, c)
	}
	if err := w.s.Delete(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if c, any := w.states.Of("box"); any {
		t.Errorf("a deleted conversation is told of: %+v", c)
	}
}

func TestStates_TheMostUrgentIsFirst(t *testing.T) {
	states := chat.NewStates(chattest.NewStore(), nil)
	now := time.Now()
	put := func(id string, state chat.State, since time.Time) {
		t.Helper()
		c := chat.Conversation{ID: id, Sandbox: "other", Owner: "ada", State: chat.Idle, Since: since}
		if err := states.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.State = state
		if err := states.Apply(t.Context(), id, chat.Change{Rev: 1, Conversation: &c}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		id    string
		state chat.State
		since time.Time
		want  string
	}{
		{"old", chat.Failed, now.Add(-25 * time.Hour), ""},
		{"failed", chat.Failed, now.Add(-time.Hour), "failed"},
		{"second", chat.Working, now.Add(-time.Minute), "second"},
		{"first", chat.Working, now.Add(-time.Hour), "first"},
		{"asks", chat.Asking, now, "asks"},
		{"asks", chat.Idle, now, "first"},
	} {
		put(c.id, c.state, c.since)
		if got, _ := states.Of("other"); got.ID != c.want {
			t.Errorf("after %s became %s: %q, want %q", c.id, c.state, got.ID, c.want)
		}
	}
}

func TestStates_WhatIsGoneWithItsSandboxIsForgotten(t *testing.T) {
	store := chattest.NewStore()
	states := chat.NewStates(store, nil)
	news := states.Subscribe()
	defer news.Close()
	c := chat.Conversation{ID: "a", Sandbox: "box", Owner: "ada", State: chat.Idle, Since: time.Now()}
	if err := states.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.State = chat.Failed
	if err := states.Apply(t.Context(), "a", chat.Change{Rev: 1, Conversation: &c}); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "a"); err != nil { // as its sandbox's deletion does
		t.Fatal(err)
	}
	if _, err := states.Conversation(t.Context(), "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is found: %v", err)
	}
	<-news.C // it failed
	if a := <-news.C; a.State != "" || a.Was != chat.Failed {
		t.Errorf("it is told of as %+v", a)
	}
	if c, any := states.Of("box"); any {
		t.Errorf("it is shown: %+v", c)
	}
}

func TestStates_AnOldFailureIsForgotten(t *testing.T) {
	now := time.Now()
	states := chat.NewStates(chattest.NewStore(), func() time.Time { return now })
	news := states.Subscribe()
	defer news.Close()
	apply := func(id string, rev int64, state chat.State) {
		t.Helper()
		c := chat.Conversation{ID: id, Sandbox: "box", Owner: "ada", State: state, Since: now}
		if err := states.Apply(t.Context(), id, chat.Change{Rev: rev, Conversation: &c}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b"} {
		if err := states.Create(t.Context(), chat.Conversation{ID: id, Sandbox: "box", Owner: "ada", State: chat.Idle}); err != nil {
			t.Fatal(err)
		}
	}
	apply("a", 1, chat.Failed)
	now = now.Add(25 * time.Hour)
	apply("b", 1, chat.Working)
	apply("a", 2, chat.Working)
	<-news.C
	<-news.C
	if a := <-news.C; a.ID != "a" || a.Was != chat.Idle {
		t.Errorf("it is told of as %+v", a)
	}
}
