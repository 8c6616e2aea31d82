package web

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// sharedPath is the page that shows a conversation to those who have a link. The secret is in the fragment of its address, which browsers do not
// send, and comes as a bearer token.
const sharedPath = "/shared"

const usualLinkTTL = "7d"

// chatLinkShape is a link by which others can read a conversation.
type chatLinkShape struct {
	ID        string     `json:"id"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`    // null for never
	URL       string     `json:"url,omitempty"` // with the secret: only in the answer to its making
}

func chatLinkOf(l chat.Link) chatLinkShape {
	shape := chatLinkShape{ID: l.ID, CreatedAt: l.Created.UTC()}
	if !l.Expires.IsZero() {
		at := l.Expires.UTC()
		shape.ExpiresAt = &at
	}
	return shape
}

type chatLinksShape struct {
	Links []chatLinkShape `json:"links"`
}

// links are the routes of a conversation's links.
func (s *chatHandlers) links(one string, who admission) []route {
	return []route{
		{get, one + "/links", who, api(s.apiChatLinks)},
		{post, one + "/links", who, api(s.apiShareConversation)},
		{del, one + "/links/:link", who, api(s.apiRevokeChatLink)},
	}
}

// apiChatLinks lists the links of a conversation.
func (s *chatHandlers) apiChatLinks(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	list, err := s.cfg.ChatLinks.Of(ctx, c.ID)
	out := chatLinksShape{Links: make([]chatLinkShape, 0, len(list))}
	for _, l := range list {
		out.Links = append(out.Links, chatLinkOf(l))
	}
	return reply{body: out}, err
}

// chatLinkBody says how long a link lasts: "24h", "30d", "never", or "" for the usual time.
type chatLinkBody struct {
	TTL string `json:"ttl"`
}

// apiShareConversation makes a link by which others can read a conversation: 201.
func (s *chatHandlers) apiShareConversation(ctx context.Context, r *request, in chatLinkBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	after, err := catalog.ParseAfter("ttl", cmp.Or(in.TTL, usualLinkTTL))
	if err != nil {
		return reply{}, fault.Field("ttl", `A link lasts from 1m to 365d, such as "7d", or "never".`)
	}
	l, secret, err := s.cfg.ChatLinks.Make(ctx, c.ID, r.who.User.ID, max(time.Duration(after), 0))
	if err != nil {
		return reply{}, err
	}
	shape := chatLinkOf(l)
	shape.URL = s.cfg.Hosts.DashboardURL() + sharedPath + "#" + secret
	return reply{status: http.StatusCreated, body: shape}, nil
}

// apiRevokeChatLink ends a link now.
func (s *chatHandlers) apiRevokeChatLink(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err == nil {
		err = s.cfg.ChatLinks.Revoke(ctx, c.ID, r.param("link"))
	}
	return reply{status: http.StatusNoContent}, err
}
