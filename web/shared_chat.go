package web

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/ratelimit"
	"sandboxd/views"
)

// Bounds of what readers of shared conversations get.
const (
	sharedItems = 200 // of one answer
	sharedReads = 4   // answers that are read at once
	sharedBurst = 60  // questions of one address at once
	sharedEvery = time.Second
)

// sharedPolicy lets the page of a shared conversation have our script and style, and ask this server; nothing else.
const sharedPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// sharedChatHandlers show conversations to those who have a link. No credential but the link is looked at, and nothing else can be reached.
type sharedChatHandlers struct {
	*Server
	asked   ratelimit.Keyed // by address
	reading chan struct{}   // has room for those that read
}

func newSharedChatHandlers(s *Server) *sharedChatHandlers {
	return &sharedChatHandlers{s, ratelimit.Keyed{Burst: sharedBurst, Every: sharedEvery}, make(chan struct{}, sharedReads)}
}

func (s *sharedChatHandlers) table() []route {
	return []route{
		{get, sharedPath, public, page(s.pageShared)},
		{get, apiPrefix + "/shared-conversation", public, api(s.apiShared)},
	}
}

// pageShared is the page. It is the same for all: its script asks for the conversation.
func (s *sharedChatHandlers) pageShared(_ context.Context, r *request) (templ.Component, error) {
	s.unlisted(r)
	r.head.Set("Content-Security-Policy", sharedPolicy)
	a := s.cfg.Assets
	return views.SharedPage(views.Shared{
		Theme: themeOf(r.cookie(themeCookie)), Style: a.URL("app.css"), Own: a.URL("reader.css"), Script: script(a, "reader.js"), Icon: a.URL("icon.svg"),
	}), nil
}

// unlisted keeps an answer out of search engines, and its address out of other sites' logs.
func (s *sharedChatHandlers) unlisted(r *request) {
	r.head.Set("X-Robots-Tag", "noindex, nofollow")
	r.head.Set("Referrer-Policy", "no-referrer")
}

// sharedShape is what a reader sees of a conversation.
type sharedShape struct {
	Title string          `json:"title"`
	State string          `json:"state"`
	Rev   int64           `json:"rev"`
	Items []chatItemShape `json:"items"` // the last ones
	First int64           `json:"first"`
	Anew  bool            `json:"anew"` // they are all that the reader has from now on: more changed since then than is told
}

// apiShared answers with the last items, with those before one (before), or with those that changed (since). It wakes nothing.
func (s *sharedChatHandlers) apiShared(ctx context.Context, r *request, _ none) (reply, error) {
	s.unlisted(r)
	if wait, _ := s.asked.Take(r.from); wait > 0 {
		return reply{}, fault.New(fault.Limited, "Too many requests from your address. Try again in a minute.")
	}
	c, err := s.shared(ctx, r)
	if err != nil {
		return reply{}, err
	}
	q := chat.ItemQuery{Limit: sharedItems, Bytes: chatItemsBytes, Shown: true}
	if q.Before, err = natural(r, "before"); err != nil {
		return reply{}, err
	}
	if q.Since, err = natural(r, "since"); err != nil {
		return reply{}, err
	}
	v, anew, err := s.read(ctx, c.ID, q)
	if err != nil {
		return reply{}, sharedGone(err)
	}
	now := v.Conversation
	return reply{body: sharedShape{Title: now.Title, State: string(now.State), Rev: now.Rev, Items: sharedItemsOf(v.Items), First: firstOf(v.Items), Anew: anew}}, nil
}

// read gives what a reader asks for, or the last items when more changed than one answer has.
func (s *sharedChatHandlers) read(ctx context.Context, id string, q chat.ItemQuery) (v chat.View, anew bool, err error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return v, false, context.Cause(ctx)
	}
	v, err = s.cfg.Chat.View(ctx, id, q)
	if err != nil || q.Since == 0 {
		return v, false, err
	}
	size := 0
	for i := range v.Items {
		size += v.Items[i].Size()
	}
	if len(v.Items) < q.Limit && size < q.Bytes {
		return v, false, nil
	}
	q.Since = 0
	v, err = s.cfg.Chat.View(ctx, id, q)
	return v, true, err
}

// shared gives the conversation that the request has the link of. The link is good while the person who made it may use the sandbox.
func (s *sharedChatHandlers) shared(ctx context.Context, r *request) (c chat.Conversation, err error) {
	secret, _ := strings.CutPrefix(r.http.Header.Get("Authorization"), "Bearer ")
	l, err := s.cfg.ChatLinks.Open(ctx, secret)
	if err != nil {
		return c, err
	}
	if c, err = s.cfg.ChatStates.Conversation(ctx, l.Conversation); err != nil {
		return c, sharedGone(err)
	}
	maker, err := s.cfg.Accounts.User(ctx, l.By)
	if err != nil {
		return c, sharedGone(err)
	}
	name, _, err := s.cfg.ChatBoxes(ctx, c.Sandbox)
	if err != nil {
		return c, sharedGone(err)
	}
	h, err := s.cfg.Access.Resolve(ctx, name, access.By(auth.Principal{User: maker}))
	if err == nil && (maker.Disabled || h.ID() != c.Sandbox) {
		err = chat.ErrNoLink
	}
	return c, sharedGone(err)
}

// sharedGone says the same of everything that is not there, or no longer.
func sharedGone(err error) error {
	for _, kind := range []fault.Kind{fault.NotFound, fault.Gone, fault.Forbidden} {
		if fault.Is(err, kind) {
			return chat.ErrNoLink
		}
	}
	return err
}

// sharedItemsOf leaves out what is not for readers: who said, ran and answered what, snapshots, files beside messages, and what is not
// shown at all.
func sharedItemsOf(items []chat.Item) []chatItemShape {
	items = slices.DeleteFunc(slices.Clone(items), func(it chat.Item) bool { return it.Kind == chat.Checkpoint })
	shapes := chatItems(items)
	for i := range shapes {
		switch it := &shapes[i]; chat.Kind(it.Kind) {
		case chat.Message:
			it.Data = nil
		case chat.Question:
			it.Data = anonymous(it.Data, func(a *chat.Ask) { a.By = "" })
		case chat.RunItem:
			it.Data = anonymous(it.Data, func(r *chat.Run) { r.ID, r.User = "", "" })
		}
	}
	return shapes
}

// anonymous is what an item says, without what hide takes from it. What cannot be read is not shown.
func anonymous[T any](data json.RawMessage, hide func(*T)) json.RawMessage {
	var v T
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	hide(&v)
	out, err := json.Marshal(v)
	if err != nil { // what came from JSON
		return nil
	}
	return out
}
