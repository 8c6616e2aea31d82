package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

const patience = time.Minute

// world is a service with an agent of the test's, in a store that outlives it.
type world struct {
	t      *testing.T
	store  *chattest.Store
	points *points
	held   holds
	states *chat.States
	news   *event.Subscription[chat.Activity]
	s      *chat.Service
	end    func()
	id     string // of a conversation

	mu   sync.Mutex
	turn func(ctx context.Context, t *chat.Turn) error
	may  error // what the service is told when it asks whether the agent may still work
	// ready is waited for at the start; nil for nothing.
	ready func(context.Context)
	left  int // conversations whose agent has left
}

// Turn implements chat.Driver.
func (w *world) Turn(ctx context.Context, t *chat.Turn) error {
	w.mu.Lock()
	turn := w.turn
	w.mu.Unlock()
	return turn(ctx, t)
}

// does says what the agent does with its turns from now on.
func (w *world) does(turn func(ctx context.Context, t *chat.Turn) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = turn
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: chattest.NewStore(), points: &points{}}
	w.does(func(_ context.Context, t *chat.Turn) error { t.Text("You said " + t.Message().Text); return nil })
	w.start()
	c, err := w.s.Create(t.Context(), chat.Conversation{Sandbox: "box", Owner: "ada", Agent: "sandboxd"})
	if err != nil {
		t.Fatal(err)
	}
	w.id = c.ID
	return w
}

// service makes a service, which does not live yet.
func (w *world) service() *chat.Service {
	w.states = chat.NewStates(w.store, nil)
	if err := w.states.Load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.news = w.states.Subscribe()
	return chat.New(chat.Config{Store: w.states, Checkpoints: w.points, Log: slog.New(slog.DiscardHandler),
		Drivers: func(agent string) (chat.Driver, error) {
			if agent != "sandboxd" {
				return nil, fault.New(fault.NotFound, "There is no agent %q.", agent)
			}
			return w, nil
		},
		Ready: w.ready, Hold: w.held.begin,
		May: func(context.Context, chat.Conversation) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.may
		},
		Left: func(chat.Conversation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.left++
		},
	})
}

// start begins a service, as sandboxd's start does.
func (w *world) start() {
	w.s = w.service()
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
		if n := w.held.now(); n != 0 {
			w.t.Errorf("%d holds are left", n)
		}
	})
	w.t.Cleanup(w.end)
}

// holds counts what keeps the sandbox awake.
type holds struct {
	mu sync.Mutex
	n  int
}

func (h *holds) begin(string) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.n--
	}
}

func (h *holds) now() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func (w *world) leaves() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
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

// sees follows the conversation until it is as is says.
func (w *world) sees(what string, is func(r *reader) bool) *reader {
	w.t.Helper()
	r := &reader{}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	seen := errors.New("seen")
	err := w.s.Follow(ctx, w.id, 0, func(c chat.Change) error {
		if err := r.take(c); err != nil {
			return err
		}
		if is(r) {
			return seen
		}
		return nil
	})
	if err != seen {
		w.t.Fatalf("%s: %v\n%s", what, err, r.String())
	}
	return r
}

// ends waits until the conversation is in a state, with a number of turns behind it.
func (w *world) ends(state chat.State, turns int64) *reader {
	w.t.Helper()
	return w.sees(fmt.Sprintf("%s after %d turns", state, turns), func(r *reader) bool { return r.c.State == state && r.c.Turn == turns })
}

// reader is what a page knows from the changes that it was told of.
type reader struct {
	c     chat.Conversation
	rev   int64
	items []chat.Item
	queue []chat.Queued
}

// take takes a change in, as a page does, and insists on what it is promised.
func (r *reader) take(c chat.Change) error {
	if c.Rev != r.rev+1 && r.rev != 0 && c.Conversation == nil {
		return fmt.Errorf("change %d follows %d", c.Rev, r.rev)
	}
	r.rev = c.Rev
	if c.Conversation != nil {
		r.c = *c.Conversation
	}
	if c.Queue != nil {
		r.queue = *c.Queue
	}
	for _, it := range c.Items {
		for int64(len(r.items)) < it.N {
			r.items = append(r.items, chat.Item{})
		}
		r.items[it.N-1] = it
	}
	for _, a := range c.Appends {
		it := &r.items[a.N-1]
		to := &it.Text
		if a.Field == chat.InOutput {
			to = &it.Output
		}
		if len(*to) != a.At {
			return fmt.Errorf("text at %d, but item %d has %d bytes", a.At, a.N, len(*to))
		}
		*to += a.Text
	}
	return nil
}

// String is the conversation in a few words.
func (r *reader) String() string {
	var b strings.Builder
	for _, it := range r.items {
		fmt.Fprintf(&b, "%d %s: %s", it.Turn, it.Kind, it.Text)
		if it.Kind == chat.Question || it.Kind == chat.CallItem {
			fmt.Fprintf(&b, "%s", it.Data)
		}
		if it.Output != "" {
			fmt.Fprintf(&b, " > %s", it.Output)
		}
		if it.Undone {
			b.WriteString(" (undone)")
		}
		if it.Open {
			b.WriteString(" …")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *reader) question() (a chat.Ask, open bool) {
	for _, it := range r.items {
		if it.Kind == chat.Question && json.Unmarshal(it.Data, &a) == nil && it.Open {
			return a, true
		}
	}
	return a, false
}

// points are the snapshots of a world.
type points struct {
	mu    sync.Mutex
	taken int
	kept  int    // by Restore
	now   string // the snapshot that the files are as
	fail  error
}

func (p *points) Take(context.Context, string, string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	return fmt.Sprintf("snap-%d", p.taken), p.fail
}

func (p *points) Restore(_ context.Context, _, snapshot string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = snapshot
	p.kept++
	return fmt.Sprintf("kept-%d", p.kept), p.fail
}
