package web

import (
	"encoding/json"
	"time"

	"sandboxd/internal/chat"
)

// conversationShape is a conversation as programs see it.
type conversationShape struct {
	ID        string        `json:"id"`
	Title     string        `json:"title"`
	Agent     string        `json:"agent"`
	Model     string        `json:"model"`
	Mode      string        `json:"mode"`
	State     string        `json:"state"`
	Since     time.Time     `json:"since"`
	Problem   string        `json:"problem"`
	Held      bool          `json:"held"`
	Rev       int64         `json:"rev"`
	Items     int64         `json:"items"`
	Turn      int64         `json:"turn"`
	Used      usedShape     `json:"used"`
	From      string        `json:"from"`
	CreatedAt time.Time     `json:"created_at"`
	ChangedAt time.Time     `json:"changed_at"`
	Settings  settingsShape `json:"settings"`
}

type settingsShape struct {
	Options  []optionShape  `json:"options"`
	Commands []commandShape `json:"commands"`
}

type optionShape struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Value  string       `json:"value"` // as the person has chosen; the agent gets it with the next message
	Values []valueShape `json:"values"`
}

type valueShape struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type commandShape struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func settingsOf(s chat.Settings) settingsShape {
	out := settingsShape{Options: []optionShape{}, Commands: []commandShape{}}
	for _, o := range s.Options {
		shape := optionShape{ID: o.ID, Name: o.Name, Value: o.Chosen(), Values: []valueShape{}}
		for _, v := range o.Values {
			shape.Values = append(shape.Values, valueShape{v.ID, v.Label})
		}
		out.Options = append(out.Options, shape)
	}
	for _, c := range s.Commands {
		out.Commands = append(out.Commands, commandShape(c))
	}
	return out
}

type usedShape struct {
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	Cached     int64   `json:"cached_tokens"`
	CostUSD    float64 `json:"cost_usd"`
	Unpriced   bool    `json:"unpriced"`
	Context    int64   `json:"context_tokens"`
	WindowSize int64   `json:"context_window"`
}

func conversationOf(c chat.Conversation) conversationShape {
	return conversationShape{
		ID: c.ID, Title: c.Title, Agent: c.Agent, Model: c.Model, Mode: string(c.Mode), State: string(c.State), Since: c.Since.UTC(), Problem: c.Problem,
		Held: c.Held, Rev: c.Rev, Items: c.Items, Turn: c.Turn, From: c.From, CreatedAt: c.Created.UTC(), ChangedAt: c.Changed.UTC(),
		Settings: settingsOf(c.Settings), Used: usedShape{c.Used.Input, c.Used.Output, c.Used.Cached, float64(c.Used.Cost) / 1e6, c.Used.Unpriced, c.Used.Context, c.Used.Window},
	}
}

// chatItemShape is one item of a conversation.
type chatItemShape struct {
	N      int64           `json:"n"`
	Turn   int64           `json:"turn"`
	Kind   string          `json:"kind"`
	Rev    int64           `json:"rev"`
	Text   string          `json:"text"`
	Output string          `json:"output,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Undone bool            `json:"undone,omitempty"`
	Open   bool            `json:"open,omitempty"`
	At     time.Time       `json:"at"`
}

// chatItems leaves out what is not shown.
func chatItems(items []chat.Item) []chatItemShape {
	out := make([]chatItemShape, 0, len(items))
	for _, it := range items {
		if it.Kind != chat.Record {
			out = append(out, chatItemShape{it.N, it.Turn, string(it.Kind), it.Rev, it.Text, it.Output, it.Data, it.Undone, it.Open, it.At.UTC()})
		}
	}
	return out
}

// queuedShape is a message that waits, or one that is sent.
type queuedShape struct {
	ID    string     `json:"id"`
	Text  string     `json:"text"`
	Files []fileRef  `json:"files,omitempty"`
	At    *time.Time `json:"at,omitempty"`
}

// fileRef is a file beside a message: in the sandbox, or a picture.
type fileRef struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
	Data []byte `json:"data,omitempty"` // base64
}

func queueOf(queue []chat.Queued) []queuedShape {
	out := make([]queuedShape, 0, len(queue))
	for _, q := range queue {
		out = append(out, queuedOf(q))
	}
	return out
}

func queuedOf(q chat.Queued) queuedShape {
	at := q.At.UTC()
	s := queuedShape{ID: q.ID, Text: q.Text, At: &at}
	for _, f := range q.Files {
		s.Files = append(s.Files, fileRef(f))
	}
	return s
}

// chatViewShape is a conversation with some of its items.
type chatViewShape struct {
	Conversation conversationShape `json:"conversation"`
	Items        []chatItemShape   `json:"items"`
	First        int64             `json:"first"`
	Queue        []queuedShape     `json:"queue"`
}

// firstOf is the number of the first of items, those included that are not shown: before it there may be more. 0 when there are none.
func firstOf(items []chat.Item) int64 {
	if len(items) == 0 {
		return 0
	}
	return items[0].N
}

// chatChangeShape is one change of a conversation.
type chatChangeShape struct {
	Rev          int64              `json:"rev"`
	Conversation *conversationShape `json:"conversation,omitempty"`
	Items        []chatItemShape    `json:"items,omitempty"`
	Appends      []chatAppendShape  `json:"appends,omitempty"`
	Queue        *[]queuedShape     `json:"queue,omitempty"`
	Gone         bool               `json:"gone,omitempty"`
}

// chatAppendShape is text at the end of an item: of its text, or of its output.
type chatAppendShape struct {
	N     int64  `json:"n"`
	Field string `json:"field"`
	At    int    `json:"at"` // bytes of UTF-8 that were there before
	Text  string `json:"text"`
}

func chatChangeOf(c chat.Change) chatChangeShape {
	out := chatChangeShape{Rev: c.Rev, Gone: c.Gone}
	if c.Conversation != nil {
		shape := conversationOf(*c.Conversation)
		out.Conversation = &shape
	}
	if len(c.Items) > 0 {
		out.Items = chatItems(c.Items)
	}
	for _, a := range c.Appends {
		out.Appends = append(out.Appends, chatAppendShape{a.N, string(a.Field), a.At, a.Text})
	}
	if c.Queue != nil {
		queue := queueOf(*c.Queue)
		out.Queue = &queue
	}
	return out
}
