package web

import (
	"context"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/event"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

const shownCommand = 200 // characters of a command in a notification; more is cut, visibly

// agentStateShape is what the agent of a sandbox does.
type agentStateShape struct {
	State        string    `json:"state"` // "working", "asking" or "failed"
	Since        time.Time `json:"since"`
	Conversation string    `json:"conversation"` // its id
}

// agentStateShape gives what the agent of a sandbox does; nil for nothing. It comes from memory.
func (s *sandboxHandlers) agentStateShape(id string) *agentStateShape {
	c, any := s.cfg.ChatStates.Of(id)
	if !any {
		return nil
	}
	return &agentStateShape{State: string(c.State), Since: c.Since.UTC(), Conversation: c.ID}
}

// agentBadge says what the agent of a sandbox does, and leads there.
func (s *listHandlers) agentBadge(box sandbox.Sandbox) []views.Badge {
	c, any := s.cfg.ChatStates.Of(box.ID)
	if !any {
		return nil
	}
	b := views.Badge{Icon: "chat", Text: "working", Title: "The agent works", URL: conversationURL(box.Name, c.ID)}
	switch c.State {
	case chat.Asking:
		b.Text, b.Title, b.Tone = "asks you", "The agent asks something, and waits for the answer", "busy"
	case chat.Failed:
		b.Text, b.Title, b.Tone = "agent failed", plainText(c.Problem), "bad"
	default:
		b.Since = spanOf(c.Since, s.cfg.Now())
	}
	return []views.Badge{b}
}

// conversationURL leads to a conversation in the workspace of its sandbox.
func conversationURL(name, id string) string { return sandboxURL(name) + "#chat=" + id }

// agentFeed tells the frame of a page of the agents in its reader's own conversations. It is used by one goroutine.
type agentFeed struct {
	*event.Subscription[chat.Activity]
	server *Server
	reader *request
}

// withAgents makes c listen to what agents do too, for the frame of a request's page.
func (c *changes) withAgents(s *Server, r *request) *changes {
	c.agents = &agentFeed{s.cfg.ChatStates.Subscribe(), s, r}
	return c
}

// tell collects a change that the reader should hear of, if it is one. nil is none. Of a sandbox that they may not use any more they hear nothing.
func (f *agentFeed) tell(ctx context.Context, a *chat.Activity, out *parts) {
	if a == nil || a.Owner != f.reader.who.User.ID || !isNews(a) {
		return
	}
	name, owner, err := f.server.cfg.ChatBoxes(ctx, a.Sandbox)
	if err != nil || !f.reader.who.May(owner, a.Sandbox) {
		return
	}
	out.add("chat-news", views.Append, views.ChatNews(views.AgentNews{
		Conversation: a.ID, Change: strconv.FormatInt(a.Rev, 10), Title: agentNews[a.State] + " – " + name, Text: newsOf(a), URL: conversationURL(name, a.ID),
		Bad: a.State == chat.Failed,
	}))
}

// agentNews are the states that a person should hear of, in words.
var agentNews = map[chat.State]string{chat.Asking: "The agent asks you", chat.Failed: "The agent could not continue", chat.Idle: "The agent is done"}

// isNews says whether a person should hear of a change. That a failed turn was undone is their own doing.
func isNews(a *chat.Activity) bool {
	return agentNews[a.State] != "" && (a.State != chat.Idle || a.Was != chat.Failed)
}

// newsOf is the text of the news: of a question, exactly what would be done.
func newsOf(a *chat.Activity) string {
	switch {
	case a.Asks != nil && a.Asks.Text != "":
		return cutText(a.Asks.Text)
	case a.Asks != nil:
		return cutText(a.Asks.Title)
	case a.State == chat.Failed:
		return cutText(a.Problem)
	}
	return cutText(a.Title)
}

// cutText shortens a text visibly, with nothing in it that acts.
func cutText(text string) string {
	return views.Plain(strings.TrimSpace(text), shownCommand)
}
