package web

import (
	"context"
	"net/http"
	"strconv"

	"sandboxd/internal/access"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// Bounds of one answer.
const (
	chatItemsUsual = 100
	chatItemsMost  = 1000
	chatItemsBytes = 2 << 20 // after which no more are added
)

// table is conversations, for programs and for the pane's script.
func (s *chatHandlers) table() []route {
	routes := s.at(apiPrefix, token)
	return append(append(routes, s.at("", scripted)...), route{get, apiPrefix + chatPath + "/:id/events", token, s.live.watch(s.openChat)})
}

const chatPath = "/sandboxes/:name/conversations"

func (s *chatHandlers) at(prefix string, who admission) []route {
	all, one := prefix+chatPath, prefix+chatPath+"/:id"
	return append(s.links(one, who), []route{
		{get, all, who, api(s.apiConversations)},
		{post, all, who, api(s.apiCreateConversation)},
		{get, one, who, api(s.apiConversation)},
		{patch, one, who, api(s.apiChangeConversation)},
		{del, one, who, api(s.apiDeleteConversation)},
		{post, one + "/messages", who, api(s.apiSendMessage)},
		{put, one + "/queue", who, api(s.apiArrangeQueue)},
		{post, one + "/queue/:message/now", who, api(s.apiSendNow)},
		{post, one + "/approvals/:question", who, api(s.apiAnswer)},
		{post, one + "/cancel", who, api(s.act(s.cfg.Chat.Cancel))},
		{post, one + "/resume", who, api(s.act(s.cfg.Chat.Resume))},
		{post, one + "/branch", who, api(s.apiBranch)},
		{post, one + "/edit", who, api(s.apiEditMessage)},
		{post, one + "/runs", who, api(s.apiRunBlock)},
		{post, one + "/runs/:run/cancel", who, api(s.apiCancelRun)},
		{post, one + "/turns/:turn/undo", who, apiLong(s.turn(s.cfg.Chat.Undo))},
		{post, one + "/turns/:turn/redo", who, apiLong(s.turn(s.cfg.Chat.Redo))},
	}...)
}

// conversation gives the sandbox and the conversation that the path names. One of another sandbox is one that does not exist.
func (s *chatHandlers) conversation(ctx context.Context, r *request) (access.Handle, chat.Conversation, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return h, chat.Conversation{}, err
	}
	c, err := s.cfg.Chat.Conversation(ctx, h.ID(), r.param("id"))
	r.object = c.ID // not its title, which is of a message
	return h, c, err
}

type conversationsShape struct {
	Conversations []conversationShape `json:"conversations"`
	Models        []string            `json:"models"`
}

// apiConversations lists the conversations of a sandbox, the last changed first, and the models that a new one can have. It wakes nothing.
func (s *chatHandlers) apiConversations(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	all, err := s.cfg.Chat.List(ctx, h.ID())
	out := conversationsShape{Conversations: make([]conversationShape, 0, len(all)), Models: list(s.cfg.ChatModels(h.Sandbox().Owner))}
	for _, c := range all {
		out.Conversations = append(out.Conversations, conversationOf(c))
	}
	return reply{body: out}, err
}

// conversationBody says how a conversation begins.
type conversationBody struct {
	Agent string `json:"agent"`
	Model string `json:"model"`
	Mode  string `json:"mode"`
	Title string `json:"title"`
}

// apiCreateConversation begins a conversation: 201.
func (s *chatHandlers) apiCreateConversation(ctx context.Context, r *request, in conversationBody) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	if in.Agent == "" {
		in.Agent = chat.OwnAgent
	}
	c, err := s.cfg.Chat.Create(ctx, chat.Conversation{Sandbox: h.ID(), Owner: r.who.User.ID, Agent: in.Agent, Model: in.Model, Mode: chat.Mode(in.Mode), Title: in.Title})
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusCreated, location: apiPrefix + "/sandboxes/" + h.Name() + "/conversations/" + c.ID, body: conversationOf(c)}, nil
}

// apiConversation answers with one and its last items; before and limit page backwards.
func (s *chatHandlers) apiConversation(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	q := chat.ItemQuery{Limit: chatItemsUsual, Bytes: chatItemsBytes, Shown: true}
	if q.Before, err = natural(r, "before"); err != nil {
		return reply{}, err
	}
	limit, err := natural(r, "limit")
	if err != nil {
		return reply{}, err
	}
	if limit > 0 {
		q.Limit = int(min(limit, chatItemsMost))
	}
	v, err := s.cfg.Chat.View(ctx, c.ID, q)
	if err != nil {
		return reply{}, err
	}
	return reply{body: chatViewShape{conversationOf(v.Conversation), chatItems(v.Items), firstOf(v.Items), queueOf(v.Queue)}}, nil
}

// natural gives a parameter of the query that is a number, 0 when it is not there. Invalid for anything else.
func natural(r *request, name string) (int64, error) {
	if r.query(name) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(r.query(name), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Field(name, "%s is a number.", name)
	}
	return n, nil
}

// conversationPatch says what becomes different.
type conversationPatch struct {
	Title *string `json:"title"`
	Model *string `json:"model"`
	Mode  *string `json:"mode"`
	// Settings are values of the agent's options, by their ids.
	Settings map[string]string `json:"settings"`
}

// apiChangeConversation changes title, model, mode or settings.
func (s *chatHandlers) apiChangeConversation(ctx context.Context, r *request, in conversationPatch) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	var refused error
	c, err = s.cfg.Chat.Change(ctx, c.ID, func(c *chat.Conversation) {
		was := *c
		if in.Title != nil {
			c.Title = *in.Title
		}
		if in.Model != nil {
			c.Model = *in.Model
		}
		if in.Mode != nil {
			c.Mode = chat.Mode(*in.Mode)
		}
		for id, value := range in.Settings {
			if refused = c.Settings.Choose(id, value); refused != nil {
				*c = was
				return
			}
		}
	})
	if refused != nil {
		return reply{}, refused
	}
	return reply{body: conversationOf(c)}, err
}

// apiDeleteConversation deletes one; a turn under way ends.
func (s *chatHandlers) apiDeleteConversation(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Chat.Delete(ctx, c.ID)
}

// messageBody is a message of a person.
type messageBody struct {
	ID    string    `json:"id"` // the sender's, at most 64 bytes: the same again is one message
	Text  string    `json:"text"`
	Files []fileRef `json:"files"`
}

// apiSendMessage gives the agent a message: 202. It waits for the turn under way.
func (s *chatHandlers) apiSendMessage(ctx context.Context, r *request, in messageBody) (reply, error) {
	h, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	m := chat.Queued{ID: in.ID, User: r.who.User.ID, Text: in.Text}
	for _, f := range in.Files {
		m.Files = append(m.Files, chat.File(f))
	}
	if len(m.Files) <= chat.MaxFiles {
		s.takePictures(ctx, h, m.Files)
	}
	m, err = s.cfg.Chat.Send(ctx, c.ID, m)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted, body: queuedOf(m)}, nil
}

// queueBody says which messages wait, in which order.
type queueBody struct {
	IDs []string `json:"ids"`
}

// apiArrangeQueue puts the messages that wait into another order. Those that are not named are deleted.
func (s *chatHandlers) apiArrangeQueue(ctx context.Context, r *request, in queueBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Chat.Arrange(ctx, c.ID, in.IDs)
}

// apiSendNow has a message that waits taken up at once.
func (s *chatHandlers) apiSendNow(ctx context.Context, r *request, _ none) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Chat.SendNow(ctx, c.ID, r.param("message"))
}

// answerBody is the answer to a question: the id of a choice, or a text.
type answerBody struct {
	Answer string `json:"answer"`
}

// apiAnswer answers a question of the agent, also one for leave to do something.
func (s *chatHandlers) apiAnswer(ctx context.Context, r *request, in answerBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Chat.Answer(ctx, c.ID, r.param("question"), in.Answer, r.who.User.ID)
}

// act adapts what is done with a conversation without saying more.
func (s *chatHandlers) act(do func(ctx context.Context, id string) error) func(context.Context, *request, none) (reply, error) {
	return func(ctx context.Context, r *request, _ none) (reply, error) {
		_, c, err := s.conversation(ctx, r)
		if err != nil {
			return reply{}, err
		}
		return reply{status: http.StatusNoContent}, do(ctx, c.ID)
	}
}

// turn adapts what is done with one turn.
func (s *chatHandlers) turn(do func(ctx context.Context, id string, turn int64) error) func(context.Context, *request, none) (reply, error) {
	return func(ctx context.Context, r *request, _ none) (reply, error) {
		_, c, err := s.conversation(ctx, r)
		if err != nil {
			return reply{}, err
		}
		n, err := strconv.ParseInt(r.param("turn"), 10, 64)
		if err != nil {
			return reply{}, fault.New(fault.NotFound, "There is no turn %.20q.", r.param("turn"))
		}
		return reply{status: http.StatusNoContent}, do(ctx, c.ID, n)
	}
}

// branchBody says after which item another conversation begins.
type branchBody struct {
	Item int64 `json:"item"`
}

// apiBranch begins another conversation with the items of one up to one of them: 201.
func (s *chatHandlers) apiBranch(ctx context.Context, r *request, in branchBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err == nil {
		c, err = s.cfg.Chat.Branch(ctx, c.ID, in.Item)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusCreated, body: conversationOf(c)}, nil
}

// editBody says which message is sent again in another conversation, and as what; "" for as it was.
type editBody struct {
	Item int64  `json:"item"`
	Text string `json:"text"`
}

// apiEditMessage begins another conversation in which one message is another one: 201.
func (s *chatHandlers) apiEditMessage(ctx context.Context, r *request, in editBody) (reply, error) {
	_, c, err := s.conversation(ctx, r)
	if err == nil {
		c, err = s.cfg.Chat.Edit(ctx, c.ID, in.Item, in.Text, r.who.User.ID)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusCreated, body: conversationOf(c)}, nil
}
