package chat

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// Bounds of what States tells.
const (
	failedShown = 24 * time.Hour // how long a failed turn is told of
	statesLag   = 256            // changes that a reader may fall behind
)

// Activity is a change of a conversation's state. A deleted conversation has none.
type Activity struct {
	Conversation
	Asks *Ask  // what it asks, when State is Asking and the question is new
	Was  State // its state before
}

// States is a Store that also knows, in memory, what the agents of all sandboxes do. It has to be a Service's only way to the store. Safe
// for concurrent use.
type States struct {
	Store
	bus *event.Bus[Activity]
	now func() time.Time

	mu    sync.Mutex
	all   map[string]Conversation            // by id: those that are not Idle
	boxes map[string]map[string]Conversation // the same by sandbox, then id
}

// NewStates makes States of what store keeps. Load reads what there is. nil for now means time.Now.
func NewStates(store Store, now func() time.Time) *States {
	if now == nil {
		now = time.Now
	}
	return &States{Store: store, bus: event.NewBus[Activity](statesLag), now: now, all: map[string]Conversation{}, boxes: map[string]map[string]Conversation{}}
}

// Load reads the conversations that are not Idle. Call it before the first change.
func (s *States) Load(ctx context.Context) error {
	list, err := s.Store.Stirring(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		s.keep(c)
	}
	return nil
}

// Of gives the conversation of a sandbox that a person should know of first: one that asks, else one whose agent works, else one whose last
// turn failed within a day. false for none.
func (s *States) Of(sandbox string) (found Conversation, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.boxes[sandbox] {
		if s.tooOld(c) {
			continue
		}
		if !any || urgency[c.State] > urgency[found.State] || c.State == found.State && c.Since.Before(found.Since) {
			found, any = c, true
		}
	}
	return found, any
}

func (s *States) tooOld(c Conversation) bool {
	return c.State == Failed && s.now().Sub(c.Since) > failedShown
}

var urgency = map[State]int{Failed: 1, Working: 2, Asking: 3}

// Subscribe tells of each change of a conversation's state. The caller must close the subscription.
func (s *States) Subscribe() *event.Subscription[Activity] { return s.bus.Subscribe() }

// keep notes a conversation; s.mu is held.
func (s *States) keep(c Conversation) {
	if c.State == Idle {
		s.drop(c)
		return
	}
	s.all[c.ID] = c
	if s.boxes[c.Sandbox] == nil {
		s.boxes[c.Sandbox] = map[string]Conversation{}
	}
	s.boxes[c.Sandbox][c.ID] = c
}

// drop forgets that a conversation does something; s.mu is held.
func (s *States) drop(c Conversation) {
	delete(s.all, c.ID)
	delete(s.boxes[c.Sandbox], c.ID)
	if len(s.boxes[c.Sandbox]) == 0 {
		delete(s.boxes, c.Sandbox)
	}
}

// Conversation implements Store. One that was deleted with its sandbox is forgotten as soon as it is looked for.
func (s *States) Conversation(ctx context.Context, id string) (Conversation, error) {
	c, err := s.Store.Conversation(ctx, id)
	if fault.Is(err, fault.NotFound) {
		s.forget(id)
	}
	return c, err
}

// Apply implements Store.
func (s *States) Apply(ctx context.Context, id string, c Change) error {
	err := s.Store.Apply(ctx, id, c)
	switch {
	case fault.Is(err, fault.NotFound):
		s.forget(id)
	case err == nil && c.Conversation != nil:
		s.note(c)
	}
	return err
}

// Delete implements Store.
func (s *States) Delete(ctx context.Context, id string) error {
	err := s.Store.Delete(ctx, id)
	if err == nil {
		s.forget(id)
	}
	return err
}

func (s *States) note(change Change) {
	c := *change.Conversation
	s.mu.Lock()
	for _, old := range s.all {
		if s.tooOld(old) { // its sandbox may be gone
			s.drop(old)
		}
	}
	was := Idle
	if before, stirring := s.all[c.ID]; stirring {
		was = before.State
	}
	s.keep(c)
	s.mu.Unlock()
	if was == c.State {
		return
	}
	told := Activity{Conversation: c, Was: was}
	if c.State == Asking {
		told.Asks = openAsk(change.Items)
	}
	s.bus.Publish(told)
}

// forget notes that a conversation is gone.
func (s *States) forget(id string) {
	s.mu.Lock()
	c, stirring := s.all[id]
	s.drop(c)
	s.mu.Unlock()
	if stirring {
		was := c.State
		c.State = ""
		s.bus.Publish(Activity{Conversation: c, Was: was})
	}
}

// openAsk gives the last of the questions that wait for an answer.
func openAsk(items []Item) (a *Ask) {
	for _, it := range items {
		var ask Ask
		if it.Kind == Question && it.Open && json.Unmarshal(it.Data, &ask) == nil {
			a = &ask
		}
	}
	return a
}
