package acp

import (
	"cmp"
	"encoding/json"
	"slices"
)

// The updates that say something. Others are passed over.
const (
	MessageChunk    = "agent_message_chunk"
	ThoughtChunk    = "agent_thought_chunk"
	ToolCallBegun   = "tool_call"
	ToolCallChanged = "tool_call_update"
	PlanChanged     = "plan"
	CommandsChanged = "available_commands_update"
	ModeChanged     = "current_mode_update"
	OptionsChanged  = "config_option_update"
	UsageChanged    = "usage_update"
	NoticeGiven     = "notice"
	Compacted       = "compaction_update"
	SummaryChunk    = "compaction_summary_chunk"
)

// Update is something that happened in a session. Kind says which of its fields are set.
type Update struct {
	Session  string
	Kind     string
	Text     string // of chunks and notices
	Tool     ToolCall
	Plan     []Entry
	Commands []Command
	Mode     string
	Options  []Option
	Usage    Usage
}

// Entry is a step of a plan.
type Entry struct{ Content, Status string }

// Command is something that a person can begin a message with.
type Command struct{ Name, Description string }

// Usage is how much of the model's memory is taken.
type Usage struct {
	Used, Size int64
	Cost       *struct {
		Amount   float64
		Currency string
	}
}

const maxCommands = 200

// ReadUpdate reads the parameters of SessionUpdate. known is false for what is to be passed over: what is not known, and what cannot be read.
func ReadUpdate(params json.RawMessage) (u Update, known bool) {
	var outer struct {
		SessionID string
		Update    json.RawMessage
	}
	var kind struct{ SessionUpdate string }
	if json.Unmarshal(params, &outer) != nil || json.Unmarshal(outer.Update, &kind) != nil {
		return u, false
	}
	u.Session, u.Kind = outer.SessionID, kind.SessionUpdate
	body := outer.Update
	switch u.Kind {
	case MessageChunk, ThoughtChunk, SummaryChunk:
		var c struct{ Content Block }
		known = json.Unmarshal(body, &c) == nil
		u.Text = c.Content.shown()
	case ToolCallBegun, ToolCallChanged:
		u.Tool, known = ReadToolCall(body)
	case PlanChanged:
		var p struct{ Entries []Entry }
		known = json.Unmarshal(body, &p) == nil
		u.Plan = p.Entries
	case CommandsChanged:
		u.Commands, known = readCommands(body)
	case ModeChanged:
		var m struct{ CurrentModeID string }
		known = json.Unmarshal(body, &m) == nil && m.CurrentModeID != "" && len(m.CurrentModeID) <= MaxID
		u.Mode = m.CurrentModeID
	case OptionsChanged:
		var o struct{ ConfigOptions json.RawMessage }
		if json.Unmarshal(body, &o) == nil {
			u.Options, known = ConfigOptions(o.ConfigOptions)
		}
	case UsageChanged:
		known = json.Unmarshal(body, &u.Usage) == nil && u.Usage.Used >= 0 && u.Usage.Size >= 0
	case NoticeGiven, Compacted:
		u.Text, known = readNotice(body), true
	}
	return u, known
}

func readCommands(body json.RawMessage) (list []Command, ok bool) {
	var c struct{ AvailableCommands []Command }
	if json.Unmarshal(body, &c) != nil {
		return nil, false
	}
	list = slices.DeleteFunc(c.AvailableCommands, func(c Command) bool { return c.Name == "" || len(c.Name) > MaxID })
	list = list[:min(len(list), maxCommands)]
	for i := range list {
		list[i].Name, list[i].Description = title(list[i].Name), title(list[i].Description)
	}
	return list, true
}

func readNotice(body json.RawMessage) string {
	var n struct {
		Title, Description, Message, Text string
		Content                           json.RawMessage
	}
	if json.Unmarshal(body, &n) != nil {
		return ""
	}
	var b Block
	if json.Unmarshal(n.Content, &b) != nil {
		b.Text = ""
	}
	if n.Title != "" && n.Description != "" {
		return n.Title + ": " + n.Description
	}
	return cmp.Or(n.Title, n.Message, n.Text, b.Text) // not all agents have the same names
}

// shown is what a person sees of a part of a message.
func (b *Block) shown() string {
	switch {
	case b.Type == "resource_link" && b.URI != "":
		return "`" + title(b.URI) + "`"
	case b.Type == "text":
		return b.Text
	}
	return ""
}
