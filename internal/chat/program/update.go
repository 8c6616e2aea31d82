package program

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
	"sandboxd/internal/text"
)

const maxNotice = 2000

// update shows what happened. Of a session that is being loaded only what is so now: the rest was shown when it happened.
func (r shows) update(u acp.Update) {
	if r.s.Session != "" && u.Session != r.s.Session {
		return // of another one, or a lie
	}
	switch u.Kind {
	case acp.CommandsChanged:
		r.t.Header(func(c *chat.Conversation) {
			c.Settings.Commands = nil
			for _, o := range u.Commands {
				c.Settings.Commands = append(c.Settings.Commands, chat.Command{Name: o.Name, About: o.Description})
			}
		})
		return
	case acp.ModeChanged:
		r.took(r.categorised("mode"), u.Mode)
		return
	case acp.OptionsChanged:
		r.offer(u.Options)
		return
	case acp.UsageChanged:
		r.used(u.Usage)
		return
	}
	if r.calls(acp.LoadSession) {
		return
	}
	switch u.Kind {
	case acp.MessageChunk:
		r.t.Text(u.Text)
	case acp.ThoughtChunk, acp.SummaryChunk:
		r.t.Thinking(u.Text)
	case acp.ToolCallBegun, acp.ToolCallChanged:
		r.toolCall(u.Tool, u.Kind == acp.ToolCallBegun)
	case acp.PlanChanged:
		r.plan(u.Plan)
	case acp.NoticeGiven:
		if u.Text != "" {
			r.t.Notice(r.how.Name + ": " + text.Excerpt(u.Text, maxNotice))
		}
	case acp.Compacted:
		if !r.compacted {
			r.t.Notice(r.how.Name + " shortens what it remembers of this conversation.")
		}
		r.compacted = true
	}
}

func (r shows) plan(entries []acp.Entry) {
	steps := make([]chat.Step, 0, min(len(entries), chat.MaxSteps))
	for _, e := range entries[:min(len(entries), chat.MaxSteps)] {
		if !slices.Contains([]string{"pending", "in_progress", "completed"}, e.Status) {
			e.Status = "pending"
		}
		steps = append(steps, chat.Step{Text: e.Content, State: e.Status})
	}
	r.t.Plan(steps)
}

// used shows how much of the model's memory is taken, and what the session has cost.
func (r shows) used(u acp.Usage) {
	const millionths, most = 1e6, 1e6
	cost := 0.0
	if u.Cost != nil && u.Cost.Currency == "USD" && u.Cost.Amount >= r.s.Cost && u.Cost.Amount < most {
		cost = u.Cost.Amount - r.s.Cost
		r.s.Cost = u.Cost.Amount
	}
	if r.prompting() {
		r.s.Spent.Tokens = max(r.s.Spent.Tokens, u.Used)
		r.s.Spent.Cost += int64(math.Round(cost * millionths))
	}
	r.t.Header(func(c *chat.Conversation) {
		c.Used.Context, c.Used.Window = u.Used, u.Size
		c.Used.Cost += int64(math.Round(cost * millionths))
	})
}

// offer shows what can be chosen.
func (r shows) offer(options []acp.Option) {
	r.s.Options = nil
	r.t.Header(func(c *chat.Conversation) {
		before := c.Settings.Options
		c.Settings.Options = nil
		for _, o := range options {
			r.s.Options = append(r.s.Options, way{o.ID, o.Category, o.Way, o.Flag})
			shown := chat.Option{ID: o.ID, Name: o.Name, Value: o.Value}
			for _, v := range o.Values {
				shown.Values = append(shown.Values, chat.Choice{ID: v.ID, Label: v.Name})
			}
			for _, b := range before { // what the person wants is not lost
				offered := slices.ContainsFunc(shown.Values, func(v chat.Choice) bool { return v.ID == b.Wanted })
				if b.ID == o.ID && b.Wanted != o.Value && offered {
					shown.Wanted = b.Wanted
				}
			}
			c.Settings.Options = append(c.Settings.Options, shown)
		}
	})
}

// took shows that the agent has a value.
func (r shows) took(option, value string) {
	r.t.Header(func(c *chat.Conversation) {
		c.Settings.Options = slices.Clone(c.Settings.Options)
		for i := range c.Settings.Options {
			if o := &c.Settings.Options[i]; o.ID == option {
				if o.Wanted == value {
					o.Wanted = ""
				}
				o.Value = value
			}
		}
	})
}

// value is what an option has; "" for none.
func (r shows) value(id string) string {
	for _, o := range r.t.Conversation().Settings.Options {
		if o.ID == id {
			return o.Value
		}
	}
	return ""
}

func (r shows) way(id string) *way {
	for i := range r.s.Options {
		if r.s.Options[i].ID == id {
			return &r.s.Options[i]
		}
	}
	return nil
}

func (r shows) categorised(category string) string {
	for _, w := range r.s.Options {
		if w.Category == category {
			return w.ID
		}
	}
	return category
}

// reopen continues the items that were open when the turn was broken off: its last text, its plan, the calls that are not over, and the
// questions.
func (r shows) reopen() {
	number := r.t.Number()
	plan := -1
	var questions []chat.Item
	for i, it := range r.items {
		if it.Turn != number {
			continue
		}
		switch it.Kind {
		case chat.Plan:
			plan = i
		case chat.CallItem:
			for id, n := range r.s.Calls {
				if n == it.N {
					r.t.Reopen(it)
					r.tools[id] = recall(it)
				}
			}
		case chat.Question:
			questions = append(questions, it)
		}
	}
	asks(r).poseAgain(questions)
	if plan >= 0 {
		r.t.Reopen(r.items[plan])
	}
	if last := len(r.items) - 1; last >= 0 && (r.items[last].Kind == chat.Text || r.items[last].Kind == chat.Thinking) {
		r.t.Reopen(r.items[last])
	}
}

// recall makes a call known again by what is shown of it.
func recall(it chat.Item) *tool {
	var c chat.Call
	t := &tool{shown: it.Output, recalled: true}
	if json.Unmarshal(it.Data, &c) == nil {
		t.ToolCall = acp.ToolCall{ID: c.ID, Title: c.Title, Kind: c.Tool, Input: c.Args, Output: it.Output}
		if c.Path != "" {
			t.Paths = []string{c.Path}
		}
	}
	return t
}

// firstLine is the beginning of a text that has more lines.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
