package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/chat/program"
	"sandboxd/internal/fault"
)

const patience = 2 * time.Minute

// world is a service of conversations with a scripted agent, in a store that outlives it.
type world struct {
	t     *testing.T
	store *chattest.Store
	box   *box
	c     program.Config
	d     *program.Driver
	s     *chat.Service
	end   func()
	id    string

	answered map[string]bool // questions
}

type one struct{}

func (one) Agent(id string) (program.Start, error) {
	if id != "scripted" {
		return program.Start{}, fault.New(fault.NotFound, "There is no agent %q.", id)
	}
	return program.Start{Name: "Scripted", Command: []string{"agent"}}, nil
}

type points struct{}

func (points) Take(context.Context, string, string) (string, error)    { return "snap", nil }
func (points) Restore(context.Context, string, string) (string, error) { return "", nil }

func newWorld(t *testing.T, mode chat.Mode) *world {
	w := &world{t: t, store: chattest.NewStore(), answered: map[string]bool{}, box: &box{loads: true, left: make(chan struct{}, 1)}, c: program.Config{Agents: one{}, Home: "/home/agent", Obey: 200 * time.Millisecond, Quiet: 50 * time.Millisecond}}
	w.start()
	c, err := w.s.Create(t.Context(), chat.Conversation{Sandbox: "box", Owner: "ada", Agent: "scripted", Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	w.id = c.ID
	return w
}

func (w *world) start() {
	w.c.Programs = w.box
	w.d = program.New(w.c)
	w.s = chat.New(chat.Config{Store: w.store, Checkpoints: points{}, Log: slog.New(slog.DiscardHandler),
		Drivers: func(agent string) (chat.Driver, error) { return w.d, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.s.Run(ctx) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			w.t.Error("the service does not end")
		}
	})
	w.t.Cleanup(func() { w.end(); w.box.stops() })
}

func (w *world) restart() {
	w.end()
	w.start()
}

func (w *world) send(text string) {
	w.t.Helper()
	if _, err := w.s.Send(w.t.Context(), w.id, chat.Queued{User: "ada", Text: text}); err != nil {
		w.t.Fatal(err)
	}
}

// view is what a page knows from the changes that it was told of.
type view struct {
	c     chat.Conversation
	items []chat.Item
}

func (v *view) take(c chat.Change) {
	if c.Conversation != nil {
		v.c = *c.Conversation
	}
	for _, it := range c.Items {
		for int64(len(v.items)) < it.N {
			v.items = append(v.items, chat.Item{})
		}
		v.items[it.N-1] = it
	}
	for _, a := range c.Appends {
		if it := &v.items[a.N-1]; a.Field == chat.InOutput {
			it.Output += a.Text
		} else {
			it.Text += a.Text
		}
	}
}

// text is all that the agent said.
func (v *view) text() string {
	var b strings.Builder
	for _, it := range v.items {
		if it.Kind == chat.Text {
			b.WriteString(it.Text)
		}
	}
	return b.String()
}

func (v *view) String() string {
	var b strings.Builder
	b.WriteString(string(v.c.State) + " " + v.c.Problem + "\n")
	for _, it := range v.items {
		if it.Kind != chat.Record {
			b.WriteString(string(it.Kind) + ": " + it.Text + string(it.Data[:min(len(it.Data), 400)]) + " > " + it.Output + "\n")
		}
	}
	return b.String()
}

func (v *view) question() (a chat.Ask, open bool) {
	for _, it := range v.items {
		if it.Kind == chat.Question && it.Open && json.Unmarshal(it.Data, &a) == nil {
			return a, true
		}
	}
	return a, false
}

func (v *view) kinds(k chat.Kind) (list []chat.Item) {
	for _, it := range v.items {
		if it.Kind == k {
			list = append(list, it)
		}
	}
	return list
}

// sees follows the conversation until it is as is says.
func (w *world) sees(what string, is func(v *view) bool) *view {
	w.t.Helper()
	v := &view{}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	seen := errors.New("seen")
	if err := w.s.Follow(ctx, w.id, 0, func(c chat.Change) error {
		if v.take(c); is(v) {
			return seen
		}
		return nil
	}); err != seen {
		w.t.Fatalf("%s: %v\n%s", what, err, v)
	}
	return v
}

func (w *world) ends(state chat.State, turns int64) *view {
	w.t.Helper()
	return w.sees(string(state), func(v *view) bool { return v.c.State == state && v.c.Turn == turns })
}

func (w *world) asks() chat.Ask {
	w.t.Helper()
	a, _ := w.sees("a question", func(v *view) bool { a, open := v.question(); return open && !w.answered[a.ID] }).question()
	return a
}

func (w *world) answers(a chat.Ask, label string) {
	w.t.Helper()
	id := label
	for _, c := range a.Choices {
		if c.Label == label {
			id = c.ID
		}
	}
	if err := w.s.Answer(w.t.Context(), w.id, a.ID, id, "ada"); err != nil {
		w.t.Fatalf("answer %q to %+v: %v", label, a, err)
	}
	w.answered[a.ID] = true
}
