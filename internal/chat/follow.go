package chat

import (
	"context"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
)

// ErrBehind says that a reader was too slow. It may follow again from the last change that it got.
var ErrBehind = fault.New(fault.Unavailable, "The reader is too slow. Ask again from the last change.")

// Follow tells of all that changes in a conversation after the change of that number, in order, until ctx ends, tell fails or the
// conversation is deleted. A reader that was away for long gets whole items, in one change, instead of the steps that made them. Kinds:
// NotFound; Unavailable, see ErrBehind.
func (s *Service) Follow(ctx context.Context, id string, after int64, tell func(Change) error) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	missed, sub, err := s.catchUp(ctx, l, after)
	if err != nil {
		return err
	}
	defer sub.Close()
	for _, c := range missed {
		if err := tell(c); err != nil {
			return err
		}
	}
	for {
		select {
		case c, open := <-sub.C:
			if !open {
				return ErrBehind
			}
			if err := tell(*c); err != nil || c.Gone {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp gives what a reader has missed, and the subscription that continues from there.
func (s *Service) catchUp(ctx context.Context, l *live, after int64) ([]Change, *event.Subscription[Change], error) {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	missed, all := l.missed(after)
	gone := l.gone
	l.mu.Unlock()
	if gone {
		return nil, nil, NotFound(l.id)
	}
	if !all {
		c, err := s.c.Store.Conversation(ctx, l.id)
		if err != nil {
			return nil, nil, err
		}
		if after > c.Rev { // of a database that was put back
			after = 0
		}
		items, err := s.c.Store.Items(ctx, l.id, ItemQuery{Since: after})
		if err != nil {
			return nil, nil, err
		}
		l.orphans(items)
		queue, err := s.c.Store.Queue(ctx, l.id)
		if err != nil {
			return nil, nil, err
		}
		missed = []Change{{Rev: c.Rev, Conversation: &c, Items: items, Queue: &queue}}
	}
	return missed, l.bus.Subscribe(), nil
}
