package chat

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Branch begins another conversation with the items of one up to a number; the one that there is stays as it is. Kinds: NotFound, Invalid.
func (s *Service) Branch(ctx context.Context, id string, upTo int64) (Conversation, error) {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return Conversation{}, err
	}
	defer done()
	l.order.Lock()
	defer l.order.Unlock()
	from, err := s.c.Store.Conversation(ctx, id)
	if err != nil {
		return Conversation{}, err
	}
	if upTo < 0 || upTo > from.Items {
		return Conversation{}, fault.Field("item", "There is no item %d in this conversation.", upTo)
	}
	if err := s.room(ctx, from.Sandbox); err != nil {
		return Conversation{}, err
	}
	last, err := s.c.Store.Items(ctx, id, ItemQuery{Before: upTo + 1, Limit: 1})
	if err != nil {
		return Conversation{}, err
	}
	now := s.c.Now()
	c := Conversation{ID: sandbox.NewID(), Sandbox: from.Sandbox, Owner: from.Owner, Title: from.Title, Agent: from.Agent, Model: from.Model, Mode: from.Mode,
		State: Idle, Since: now, Rev: 1, Items: upTo, From: id, Used: Used{Bytes: from.Used.Bytes}, Created: now, Changed: now}
	for _, it := range last {
		c.Turn = it.Turn
	}
	if upTo == 0 {
		c.Title = "" // that of its own first message
	}
	return c, s.c.Store.Copy(ctx, id, upTo, c)
}

// Edit begins another conversation in which one message is another one, or, without a text, is sent again. Kinds: NotFound, Invalid.
func (s *Service) Edit(ctx context.Context, id string, n int64, text, user string) (Conversation, error) {
	items, err := s.c.Store.Items(ctx, id, ItemQuery{Before: n + 1, Limit: 1})
	if err != nil {
		return Conversation{}, err
	}
	if len(items) == 0 || items[0].N != n || items[0].Kind != Message {
		return Conversation{}, fault.Field("item", "Item %d is no message of a person.", n)
	}
	m, err := messageOf(items[0])
	if err != nil {
		return Conversation{}, err
	}
	m.ID, m.User = "", user
	if text != "" {
		m.Text = text
	}
	if err := m.check(); err != nil {
		return Conversation{}, err
	}
	c, err := s.Branch(ctx, id, n-1)
	if err != nil {
		return c, err
	}
	if _, err := s.Send(ctx, c.ID, m); err != nil {
		return c, errors.Join(err, s.Delete(context.WithoutCancel(ctx), c.ID))
	}
	return s.c.Store.Conversation(ctx, c.ID)
}
