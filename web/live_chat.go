package web

import (
	"context"
	"encoding/json"

	"sandboxd/internal/chat"
)

// openChat tells a page, or a program, of each change of a conversation after one: an event "change" has a chatChangeShape as JSON.
// Last-Event-ID is not looked at: who reconnects asks again with after, and one that is no number means all changes.
func (s *chatHandlers) openChat(ctx context.Context, r *request) (pump, func(), error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	after, err := natural(r, "after")
	if err != nil {
		after = 0 // all of it
	}
	return func(ctx context.Context, out events) error {
		return s.cfg.Chat.Follow(ctx, c.ID, after, func(change chat.Change) error {
			text, err := json.Marshal(chatChangeOf(change))
			if err != nil {
				return err
			}
			return out.event("change", string(text))
		})
	}, func() {}, nil
}
