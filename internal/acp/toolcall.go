package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandboxd/internal/text"
)

// Bounds of one tool call.
const (
	maxOutput  = 256 << 10 // bytes of what it has written that are read
	maxChanges = 50        // files
	maxPlaces  = 50
	maxPath    = 4096
	maxInput   = 1 << 20 // bytes of its input, and of its result
)

// States of a tool call.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	Failed     = "failed"
)

// ToolCall is what an agent does. In an update what is empty has not changed.
type ToolCall struct {
	ID       string
	Title    string
	Label    string // the title as it came, of all its lines; "" when it is too long to be read
	Kind     string // "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
	Status   string
	Output   string // all that it has written so far
	HasText  bool   // Output is set
	Added    string // what it has written since, as Codex tells it
	Changes  []FileChange
	Paths    []string        // of files that it works on
	Input    json.RawMessage // as the agent's tool has it
	Result   json.RawMessage
	Pictures []Block
	Cut      bool // it has more than was read: what it changes is not known
}

// Add adds what was written since to the output; a long one does not grow.
func (c *ToolCall) Add(written string) {
	if written != "" && len(c.Output) < maxOutput {
		c.Output, c.HasText = c.Output+text.Clip(written, maxOutput-len(c.Output)), true
	}
}

// FileChange is a file before and after. Old is nil for a new file, and for one that was empty: most agents do not tell them apart.
type FileChange struct {
	Path string
	Old  *string
	New  string
}

// ReadToolCall reads a tool call, or what changed in one. ok is false for one that cannot be read.
func ReadToolCall(body json.RawMessage) (c ToolCall, ok bool) {
	var t struct {
		ToolCallID, Title, Kind, Status string
		Content                         []json.RawMessage
		Locations                       []struct{ Path string }
		RawInput, RawOutput             json.RawMessage
		Meta                            json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(body, &t) != nil || t.ToolCallID == "" || len(t.ToolCallID) > MaxID {
		return c, false
	}
	c = ToolCall{ID: t.ToolCallID, Title: title(t.Title), Kind: word(t.Kind), Status: word(t.Status), Input: t.RawInput, Result: t.RawOutput}
	if c.Label = t.Title; len(c.Label) > maxInput {
		c.Label, c.Cut = "", true
	}
	if len(c.Input) > maxInput {
		c.Input, c.Cut = nil, true
	}
	if len(c.Result) > maxInput {
		c.Result = nil
	}
	var out strings.Builder
	for _, part := range t.Content {
		c.part(part, &out)
	}
	c.Output = out.String()
	var meta struct {
		Terminal struct{ Data string } `json:"terminal_output_delta"`
	}
	if json.Unmarshal(t.Meta, &meta) == nil {
		c.Added = text.Clip(meta.Terminal.Data, maxOutput)
	}
	for _, l := range t.Locations {
		switch {
		case len(l.Path) > maxPath || len(c.Paths) >= maxPlaces:
			c.Cut = true
		case l.Path != "":
			c.Paths = append(c.Paths, l.Path)
		}
	}
	return c, true
}

// part reads a part of what a call shows.
func (c *ToolCall) part(body json.RawMessage, out *strings.Builder) {
	var p struct {
		Type    string
		Content Block
		Path    string
		OldText *string
		NewText string
	}
	if json.Unmarshal(body, &p) != nil {
		c.Cut = true
		return
	}
	switch {
	case p.Type == "diff" && (p.Path == "" || len(p.Path) > maxPath || len(c.Changes) >= maxChanges):
		c.Cut = true
	case p.Type == "diff":
		if p.OldText != nil && *p.OldText == "" {
			p.OldText = nil
		}
		c.Changes = append(c.Changes, FileChange{p.Path, p.OldText, p.NewText})
	case p.Type == "content" && p.Content.Type == "image" && len(p.Content.Data) > 0:
		c.Pictures = append(c.Pictures, p.Content)
	case p.Type == "content" && out.Len() < maxOutput:
		c.HasText = true
		if s := p.Content.shown(); s != "" {
			if out.Len() > 0 {
				out.WriteByte('\n')
			}
			out.WriteString(text.Clip(s, maxOutput-out.Len()))
		}
	}
}

// Permission is what RequestPermission asks.
type Permission struct {
	Session string
	Tool    ToolCall
	Options []PermissionOption
}

// PermissionOption is one answer to it.
type PermissionOption struct {
	OptionID, Name, Kind string
}

// Kinds of answers.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

const maxAnswers = 20

// ReadPermission reads the parameters of RequestPermission.
func ReadPermission(params json.RawMessage) (p Permission, err error) {
	var in struct {
		SessionID string
		ToolCall  json.RawMessage
		Options   []PermissionOption
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return p, fmt.Errorf("read a request for permission: %w", err)
	}
	p.Session, p.Options = in.SessionID, in.Options
	var ok bool
	if p.Tool, ok = ReadToolCall(in.ToolCall); !ok {
		return p, fmt.Errorf("a request for permission has no tool call")
	}
	if len(p.Options) == 0 || len(p.Options) > maxAnswers {
		return p, fmt.Errorf("a request for permission has %d options", len(p.Options))
	}
	for i := range p.Options {
		o := &p.Options[i]
		if o.Name, o.Kind = title(o.Name), word(o.Kind); word(o.OptionID) == "" {
			return p, fmt.Errorf("an option of a request for permission has no id, or a long one")
		}
	}
	return p, nil
}

// Selected answers a request for permission; "" says that it was cancelled.
func Selected(option string) any {
	outcome := map[string]any{"outcome": "cancelled"}
	if option != "" {
		outcome = map[string]any{"outcome": "selected", "optionId": option}
	}
	return map[string]any{"outcome": outcome}
}
