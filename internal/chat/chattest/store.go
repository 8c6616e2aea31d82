// Package chattest has what tests of conversations need: a store in memory, and what each store must do.
//
// It is for tests only.
//
// Invariant: the store in memory passes the contract that the real one passes.
package chattest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// Store is a chat.Store in memory. Fail, when set, is asked before each Apply. Safe for concurrent use.
type Store struct {
	Fail func(chat.Change) error

	mu  sync.Mutex
	all map[string]*stored
}

type stored struct {
	chat.Conversation
	items  []chat.Item
	queue  []chat.Queued
	memory json.RawMessage
}

var _ chat.Store = (*Store)(nil)

// NewStore makes an empty store, for which every sandbox and every user exists whose id is not "gone".
func NewStore() *Store { return &Store{all: map[string]*stored{}} }

// Create implements chat.Store.
func (s *Store) Create(ctx context.Context, c chat.Conversation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Sandbox == "gone" || c.Owner == "gone" {
		return fault.New(fault.NotFound, "The sandbox, or its owner, is not there any more.")
	}
	s.all[c.ID] = &stored{Conversation: c}
	return ctx.Err()
}

// List implements chat.Store.
func (s *Store) List(_ context.Context, sandbox string) ([]chat.Conversation, error) {
	return s.find(func(c *stored) bool { return c.Sandbox == sandbox }), nil
}

// Busy implements chat.Store.
func (s *Store) Busy(context.Context) ([]chat.Conversation, error) {
	return s.find(func(c *stored) bool { return c.State == chat.Working || c.State == chat.Asking || len(c.queue) > 0 }), nil
}

// Stirring implements chat.Store.
func (s *Store) Stirring(context.Context) ([]chat.Conversation, error) {
	return s.find(func(c *stored) bool { return c.State != chat.Idle }), nil
}

func (s *Store) find(is func(*stored) bool) (list []chat.Conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		if is(c) {
			list = append(list, c.Conversation)
		}
	}
	slices.SortFunc(list, func(a, b chat.Conversation) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// on runs f on a conversation.
func (s *Store) on(ctx context.Context, id string, f func(*stored) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c := s.all[id]
	if c == nil {
		return chat.NotFound(id)
	}
	return f(c)
}

// Conversation implements chat.Store.
func (s *Store) Conversation(ctx context.Context, id string) (got chat.Conversation, err error) {
	return got, s.on(ctx, id, func(c *stored) error { got = c.Conversation; return nil })
}

// Queue implements chat.Store.
func (s *Store) Queue(ctx context.Context, id string) (queue []chat.Queued, err error) {
	err = s.on(ctx, id, func(c *stored) error { queue = slices.Clone(c.queue); return nil })
	return queue, err
}

// Memory implements chat.Store.
func (s *Store) Memory(ctx context.Context, id string) (m json.RawMessage, err error) {
	err = s.on(ctx, id, func(c *stored) error { m = bytes.Clone(c.memory); return nil })
	return m, err
}

// SetMemory implements chat.Store.
func (s *Store) SetMemory(ctx context.Context, id string, m json.RawMessage) error {
	return s.on(ctx, id, func(c *stored) error { c.memory = bytes.Clone(m); return nil })
}

// Delete implements chat.Store.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
	return nil
}

// Apply implements chat.Store.
func (s *Store) Apply(ctx context.Context, id string, change chat.Change) error {
	if s.Fail != nil {
		if err := s.Fail(change); err != nil {
			return err
		}
	}
	return s.on(ctx, id, func(c *stored) error {
		next := *c
		next.items = slices.Clone(c.items)
		if change.Conversation != nil {
			next.Conversation = *change.Conversation
		}
		if change.Queue != nil {
			next.queue = slices.Clone(*change.Queue)
		}
		if change.Memory != nil {
			next.memory = bytes.Clone(change.Memory)
		}
		next.Rev = change.Rev
		for _, it := range change.Items {
			at, found := next.at(it.N)
			if found {
				next.items[at] = it
			} else {
				next.items = slices.Insert(next.items, at, it)
			}
		}
		for _, a := range change.Appends {
			at, found := next.at(a.N)
			if !found || !extend(&next.items[at], a) {
				return errors.New("the item is not there, or too short")
			}
			next.items[at].Rev = change.Rev
		}
		*c = next
		return nil
	})
}

func (c *stored) at(n int64) (int, bool) {
	return slices.BinarySearchFunc(c.items, n, func(it chat.Item, n int64) int { return cmp.Compare(it.N, n) })
}

func extend(it *chat.Item, a chat.Append) bool {
	to := &it.Text
	if a.Field == chat.InOutput {
		to = &it.Output
	}
	if len(*to) < a.At {
		return false
	}
	*to = (*to)[:a.At] + a.Text
	return true
}

// Items implements chat.Store.
func (s *Store) Items(ctx context.Context, id string, q chat.ItemQuery) (items []chat.Item, err error) {
	err = s.on(ctx, id, func(c *stored) error {
		for _, it := range c.items {
			if (q.Before == 0 || it.N < q.Before) && it.N > q.After && (q.Since == 0 || it.Rev > q.Since) && (q.Turn == 0 || it.Turn == q.Turn) && !(q.Shown && it.Kind == chat.Record) {
				it.Data = bytes.Clone(it.Data)
				items = append(items, it)
			}
		}
		switch {
		case q.Limit == 0 || len(items) <= q.Limit:
		case q.After > 0:
			items = items[:q.Limit]
		default:
			items = items[len(items)-q.Limit:]
		}
		items = within(items, q)
		return nil
	})
	return within(items, q), err
}

// within gives the first or the last of items that take as many bytes as q says.
func within(items []chat.Item, q chat.ItemQuery) []chat.Item {
	last := q.After == 0
	if last {
		slices.Reverse(items)
	}
	size := 0
	if n := slices.IndexFunc(items, func(it chat.Item) bool { size += it.Size(); return q.Bytes > 0 && size >= q.Bytes }); n >= 0 {
		items = items[:n+1]
	}
	if last {
		slices.Reverse(items)
	}
	return items
}

// Copy implements chat.Store.
func (s *Store) Copy(ctx context.Context, from string, upTo int64, c chat.Conversation) error {
	return s.on(ctx, from, func(old *stored) error {
		next := &stored{Conversation: c}
		for _, it := range old.items {
			if it.N > upTo {
				break
			}
			it.Open, it.Rev = false, 1
			var a chat.Ask
			if it.Kind == chat.Question && json.Unmarshal(it.Data, &a) == nil && a.Answer == "" {
				a.Lapsed = true
				it.Data, _ = json.Marshal(a) // what came from JSON
			}
			next.items = append(next.items, it)
		}
		s.all[c.ID] = next
		return nil
	})
}
