package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// sent is what an item says of a person's message beside its text.
type sent struct {
	ID    string `json:"id"`
	User  string `json:"user"`
	Files []File `json:"files,omitempty"`
}

// next begins the turn that is due, if there is one: that which was broken off, or that of the first message that waits.
func (s *Service) next(ctx context.Context, l *live) error {
	if err := s.takeUp(ctx, l); err != nil {
		return err
	}
	var t *Turn
	l.change(func(l *live) {
		if l.turn != nil || l.restoring || l.gone || l.c.Held || len(l.queue) == 0 || l.brokenOff() {
			return
		}
		t = s.take(l)
	})
	if t == nil {
		return nil
	}
	return s.startTurn(l, t)
}

// takeUp continues a turn that the last end of sandboxd broke off, or ends it when a person had stopped it.
func (s *Service) takeUp(ctx context.Context, l *live) error {
	l.mu.Lock()
	broken, stopped := l.brokenOff(), l.c.Held
	l.mu.Unlock()
	if !broken {
		return nil
	}
	return s.resume(ctx, l, stopped)
}

// brokenOff reports whether the conversation's turn is none that runs; l.mu is held.
func (l *live) brokenOff() bool {
	return l.turn == nil && !l.gone && (l.c.State == Working || l.c.State == Asking)
}

// take makes a turn of the first message that waits: in one change it leaves the queue, is an item, and the conversation works. l.mu is held.
func (s *Service) take(l *live) *Turn {
	now := s.c.Now()
	m := l.queue[0]
	l.setQueue(slices.Clone(l.queue[1:]))
	c := l.header(now)
	c.Turn++
	c.Items++
	c.become(Working, now)
	if c.Title == "" {
		c.Title = titleOf(m)
	}
	it := Item{N: c.Items, Turn: c.Turn, Kind: Message, Text: m.Text, Data: encode(sent{m.ID, m.User, m.Files}), At: now}
	c.Used.Bytes += int64(len(it.Text) + len(it.Data))
	l.put(it)
	l.last = m.ID
	l.turn = newTurn(s, l, c.Turn, m, nil)
	return l.turn
}

func titleOf(m Queued) string {
	line, _, _ := strings.Cut(text.Trim(m.Text), "\n")
	if line == "" && len(m.Files) > 0 {
		line = m.Files[0].Name
	}
	return text.OneLine(line, titleLength)
}

// resume continues the last turn; one that was stopped only to its end.
func (s *Service) resume(ctx context.Context, l *live, stopped bool) error {
	if err := l.commit(ctx); err != nil { // the beginning of the turn, when that could not be stored
		return err
	}
	l.mu.Lock()
	number := l.c.Turn
	l.mu.Unlock()
	items, err := s.c.Store.Items(ctx, l.id, ItemQuery{Turn: number})
	if err != nil {
		return err
	}
	m := Queued{}
	for _, it := range items {
		if it.Kind == Message {
			if m, err = messageOf(it); err != nil {
				return err
			}
		}
	}
	var t *Turn
	l.change(func(l *live) {
		if l.turn != nil || l.restoring || l.gone || l.c.Turn != number {
			return
		}
		now := s.c.Now()
		l.header(now).become(Working, now)
		for _, it := range items {
			if it.Open && it.Kind != Question && l.runs[it.N] == nil { // what a crash has left open
				it.interrupt()
				l.put(it)
			}
		}
		t = newTurn(s, l, number, m, items)
		if l.turn, l.c.Held = t, stopped; stopped {
			t.cancel(errCancelled)
		}
	})
	if t == nil {
		return nil
	}
	return s.startTurn(l, t)
}

// messageOf gives the message that an item shows.
func messageOf(it Item) (Queued, error) {
	var about sent
	if err := json.Unmarshal(it.Data, &about); err != nil {
		return Queued{}, fmt.Errorf("read message %d: %w", it.N, err)
	}
	return Queued{ID: about.ID, User: about.User, Text: it.Text, Files: about.Files, At: it.At}, nil
}

// startTurn lets a turn run. When sandboxd is shutting down it is none, and begins at the next start.
func (s *Service) startTurn(l *live, t *Turn) error {
	err := s.begin(l, func() { s.work(l, t) })
	if err != nil {
		t.cancel(err)
		l.change(func(l *live) { l.turn = nil })
		return err
	}
	_ = l.commit(t.life) // who has begun it sees that it works; the turn itself does the same, and fails when this does
	return nil
}

// begin has work done, such as a turn, unless the end is already waited for. The caller uses the conversation: it stays in memory until the
// work is over.
func (s *Service) begin(l *live, work func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errClosing
	}
	o := s.live[l.id]
	o.users++
	s.works.Go(func() {
		defer s.leave(l.id, o)
		work()
	})
	return nil
}

// work runs one turn, and then begins the next.
func (s *Service) work(l *live, t *Turn) {
	ctx := t.life
	err := s.run(l, t)
	cause := context.Cause(ctx)
	t.cancel(nil)
	closing := errors.Is(cause, errClosing)
	t.finish(closing)
	s.over(l, t, err, cause)
	if c := t.Conversation(); errors.Is(cause, errDeleted) || errors.Is(cause, errCancelled) && !l.isSteered(t) {
		s.c.Left(c)
	}
	s.settle(l)
	if closing {
		return
	}
	if err := s.next(context.WithoutCancel(ctx), l); err != nil && !errors.Is(err, errClosing) {
		s.c.Log.Warn("begin the next turn", "conversation", l.id, "error", err)
	}
}

// run has the driver work on a turn, and what it tells stored meanwhile. The sandbox is kept awake until the turn is finished.
func (s *Service) run(l *live, t *Turn) error {
	t.mu.Lock()
	t.awake(true)
	t.mu.Unlock()
	if err := l.commit(t.life); err != nil { // that it begins
		t.fail(err)
		return err
	}
	storing, stop := context.WithCancel(t.life)
	var stored sync.WaitGroup
	stored.Go(func() { t.store(storing) })
	defer stored.Wait()
	defer stop()
	return s.drive(t.life, t.Conversation(), t)
}

// drive turns a panic into an error: one bad turn must not take the server and all its sandboxes down, again at each start.
func (s *Service) drive(ctx context.Context, c Conversation, t *Turn) (err error) {
	defer s.recovers("an agent's turn panicked", c.ID, &err)
	d, err := s.c.Drivers(c.Agent)
	if err != nil {
		return err
	}
	return d.Turn(ctx, t)
}

// recovers is deferred: it makes a panic an error, and logs it.
func (s *Service) recovers(what, conversation string, err *error) {
	if p := recover(); p != nil {
		s.c.Log.Error(what, "conversation", conversation, "panic", p, "stack", string(debug.Stack()))
		*err = fault.New(fault.Internal, "Something went wrong inside sandboxd. The log has the details.")
	}
}

// settle stores how a turn has ended. While the store refuses it tries again: else the conversation would seem to work until the next start.
func (s *Service) settle(l *live) {
	for wait := settleFirst; ; wait = min(2*wait, settleMost) {
		err := l.commit(context.Background()) // has a limit
		if err == nil || l.isGone() {
			return
		}
		s.c.Log.Warn("the end of a turn is not stored", "conversation", l.id, "error", err)
		select {
		case <-time.After(wait):
		case <-s.life.Done(): // the turn continues at the next start
			return
		}
	}
}

// Pauses before the end of a turn is stored again.
const (
	settleFirst = 100 * time.Millisecond
	settleMost  = time.Minute
)

func (l *live) isSteered(t *Turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.steered
}

// over says how a turn has ended.
func (s *Service) over(l *live, t *Turn, err, cause error) {
	now := s.c.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(cause, errCancelled) && !l.isSteered(t) {
		t.begin(Item{Kind: Notice, Text: "Stopped."})
	}
	l.change(func(l *live) {
		l.turn = nil
		c := l.header(now)
		switch {
		case errors.Is(cause, errClosing): // continues at the next start
		case err == nil && cause == nil, errors.Is(cause, errCancelled):
			c.become(Idle, now)
			c.Held = c.Held && len(l.queue) > 0
		default:
			c.become(Failed, now)
			c.Problem = fault.Message(cmp.Or(cause, err))
			c.Held = len(l.queue) > 0 && !t.steered
		}
	})
}
