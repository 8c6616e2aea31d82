package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"sandboxd/internal/agent"
)

// request is what the protocol asks with.
type request struct {
	Model         string         `json:"model"`
	Messages      []message      `json:"messages"`
	Tools         []tool         `json:"tools,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
	MaxTokens     int            `json:"max_completion_tokens,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
}

// message is one of a conversation. Content is a string, []content, or nil beside calls.
type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// function is a tool that is offered, or a call of one.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Arguments   string          `json:"arguments,omitempty"`
}

// request puts a request into the protocol's form.
func (m *Model) request(r agent.Request) request {
	q := request{Model: m.endpoint.Model, Stream: true, StreamOptions: map[string]any{"include_usage": true}, MaxTokens: r.Output, Effort: r.Effort}
	if r.System != "" {
		q.Messages = append(q.Messages, message{Role: "system", Content: r.System})
	}
	for _, t := range r.Tools {
		f := function{Name: t.Name, Description: t.Description}
		if json.Valid(t.Schema) {
			f.Parameters = t.Schema
		}
		q.Tools = append(q.Tools, tool{Type: "function", Function: f})
	}
	for _, said := range r.Messages {
		if said.Role == agent.Assistant {
			q.Messages = append(q.Messages, assistant(said))
		} else {
			q.Messages = append(q.Messages, user(said)...)
		}
	}
	return q
}

// assistant gives an answer, without its thinking: the protocol has no place for it.
func assistant(m agent.Message) message {
	a := message{Role: "assistant"}
	var text strings.Builder
	for _, p := range m.Parts {
		switch p.Kind {
		case agent.PartText:
			text.WriteString(p.Text)
		case agent.PartCall:
			a.ToolCalls = append(a.ToolCalls, call{ID: p.Call.ID, Type: "function", Function: function{Name: p.Call.Name, Arguments: string(p.Call.Arguments)}})
		}
	}
	if text.Len() > 0 || len(a.ToolCalls) == 0 {
		a.Content = text.String()
	}
	return a
}

// user gives the results of a message, each one of its own, and then one with the rest: also the pictures of results, which the protocol
// does not have there.
func user(m agent.Message) []message {
	var all []message
	var rest []content
	for _, p := range m.Parts {
		switch p.Kind {
		case agent.PartResult:
			all = append(all, message{Role: "tool", Content: resultText(*p.Result), ToolCallID: p.Result.CallID})
			for _, i := range p.Result.Images {
				rest = append(rest, image(i))
			}
		case agent.PartImage:
			rest = append(rest, image(*p.Image))
		case agent.PartText:
			rest = append(rest, content{Type: "text", Text: p.Text})
		}
	}
	switch {
	case len(rest) == 1 && rest[0].ImageURL == nil:
		all = append(all, message{Role: "user", Content: rest[0].Text}) // as servers that know only text want it
	case len(rest) > 0:
		all = append(all, message{Role: "user", Content: rest})
	}
	return all
}

func resultText(r agent.ToolResult) string {
	text := r.Text
	if r.Status != agent.OK {
		text = "Error: " + text
	}
	if len(r.Images) > 0 {
		text = strings.TrimPrefix(text+"\n(Pictures follow in the next message.)", "\n")
	}
	return text
}

func image(i agent.Image) content {
	return content{Type: "image_url", ImageURL: &imageURL{"data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}}
}
