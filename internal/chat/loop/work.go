package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
	"sandboxd/internal/tools"
	"sandboxd/internal/tools/risk"
)

// work is one turn under way: it tells the conversation what the model and its tools do.
type work struct {
	t     *chat.Turn
	tools map[string]tools.Tool
	order []string

	mu    sync.Mutex
	calls map[string]int64        // their items, by the calls' IDs
	data  map[string][]tools.Data // of calls that have run and are not shown yet, by their tools and arguments
}

func newWork(t *chat.Turn) *work {
	return &work{t: t, tools: map[string]tools.Tool{}, calls: map[string]int64{}, data: map[string][]tools.Data{}}
}

func (w *work) take(table []tools.Tool) {
	for _, tool := range table {
		w.tools[tool.Name] = tool
		w.order = append(w.order, tool.Name)
	}
}

// agents gives the tools as package agent knows them.
func (w *work) agents() []agent.Tool {
	var all []agent.Tool
	for _, name := range w.order {
		tool := w.tools[name]
		all = append(all, agent.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema, Changes: tool.Changes, Repeats: tool.Repeats,
			Run: func(ctx context.Context, args json.RawMessage, out io.Writer) (agent.Output, error) {
				r, err := tool.Run(ctx, args, out)
				w.note(tool.Name, args, r.Data)
				return output(r), err
			}})
	}
	return all
}

func output(r tools.Result) agent.Output {
	o := agent.Output{Text: r.Text, Failed: r.Failed}
	for _, p := range r.Images {
		o.Images = append(o.Images, agent.Image{MediaType: p.MIME, Data: p.Bytes})
	}
	return o
}

// note keeps what a page shows of a result until its call ends. Of two calls of the same arguments at once each is shown one.
func (w *work) note(tool string, args json.RawMessage, d tools.Data) {
	key := tool + string(compact(args))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data[key] = append(w.data[key], d)
}

func (w *work) noted(tool string, args json.RawMessage) (d tools.Data) {
	key := tool + string(compact(args))
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.data[key]; len(all) > 1 {
		d, w.data[key] = all[0], all[1:]
	} else if len(all) == 1 {
		d = all[0]
		delete(w.data, key)
	}
	return d
}

func compact(args json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return args
	}
	return b.Bytes()
}

// preview says what a call would do.
func (w *work) preview(name string, args json.RawMessage) tools.Preview {
	tool, known := w.tools[name]
	if !known || tool.Preview == nil {
		return tools.Preview{Title: name}
	}
	return tool.Preview(args)
}

// permit asks the person where the conversation's mode says so, and has a checkpoint taken before anything is changed.
func (w *work) permit(ctx context.Context, call agent.Call, tool agent.Tool) (agent.Decision, error) {
	p := w.preview(call.Name, call.Arguments)
	changes := tool.Changes && p.Risk.Level > risk.Harmless
	if w.t.Conversation().Mode.Asks(changes, p.Risk.Level == risk.Risky) {
		answer, err := w.t.Ask(ctx, w.question(call, p))
		if err != nil || answer != allow {
			return agent.Decision{Reason: "The person refused this call. Do not try it in another way; ask what they want instead.", End: answer == stop}, err
		}
	}
	if !changes {
		return agent.Decision{Allow: true}, nil
	}
	return agent.Decision{Allow: true}, w.t.Checkpoint(ctx)
}

// The answers to a question for leave.
const (
	allow  = "allow"
	refuse = "refuse"
	stop   = "stop"
)

func (w *work) question(call agent.Call, p tools.Preview) chat.Ask {
	text := p.Code
	switch {
	case p.Path != "" && text != "":
		text = p.Path + "\n\n" + text
	case text == "":
		text = p.Path
	}
	if text == "" {
		text = string(call.Arguments)
	}
	return chat.Ask{ID: "leave-" + call.ID, Title: p.Title, Text: text, Folder: p.Folder, Reasons: p.Risk.Reasons, Call: w.item(call.ID), Choices: []chat.Choice{
		{ID: allow, Label: "Allow", Style: "allow"}, {ID: refuse, Label: "Refuse", Style: "refuse"}, {ID: stop, Label: "Refuse and stop", Style: "refuse"}}}
}

func (w *work) item(call string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[call]
}

// ask puts a question of the model to the person.
func (w *work) ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	a := chat.Ask{Title: q.Text, Free: true}
	for _, c := range q.Choices {
		a.Choices = append(a.Choices, chat.Choice{ID: c, Label: c})
	}
	text, err := w.t.Ask(ctx, a)
	for _, c := range q.Choices {
		if c == text {
			return tools.Answer{Choice: c}, err
		}
	}
	return tools.Answer{Text: text}, err
}

// tell shows one event.
func (w *work) tell(e agent.Event) {
	switch e.Kind {
	case agent.TextDelta:
		w.t.Text(e.Text)
	case agent.ThinkingDelta:
		w.t.Thinking(e.Text)
	case agent.CallBegun:
		n := w.t.Begin(chat.Call{ID: e.CallID, Tool: e.Name})
		w.mu.Lock()
		w.calls[e.CallID] = n
		w.mu.Unlock()
	case agent.CallDone:
		p := w.preview(e.Name, e.Call.Arguments)
		w.t.Update(w.item(e.CallID), func(c *chat.Call) {
			c.ID, c.Tool, c.Title, c.Args, c.Code, c.Path = e.Call.ID, e.Call.Name, p.Title, e.Call.Arguments, p.Code, p.Path
		})
	case agent.ToolOutput:
		w.t.Output(w.item(e.CallID), e.Text)
	case agent.ToolDone:
		w.done(e)
	case agent.MessageAdded:
		w.t.Keep(e.Message)
	case agent.UsageAdded:
		w.used(e)
	case agent.NoticeGiven:
		w.t.Notice(e.Text)
	}
}

func (w *work) done(e agent.Event) {
	r := e.Result
	w.t.End(w.item(r.CallID), func(c *chat.Call) {
		d := w.noted(c.Tool, c.Args)
		c.Result, c.Failed, c.Status = r.Text, r.Status != agent.OK, string(r.Status)
		c.Exit, c.Took = d.Exit, d.Duration
		for _, f := range d.Files {
			c.Diffs = append(c.Diffs, chat.Diff{Path: f.Path, Unified: f.Diff, Created: f.Created, Deleted: f.Deleted, Added: f.Added, Removed: f.Removed, Cut: f.Cut, Same: f.Same})
		}
		for _, p := range r.Images {
			if len(c.Pictures) < maxPictures && strings.HasPrefix(p.MediaType, "image/") {
				c.Pictures = append(c.Pictures, chat.File{Type: p.MediaType, Data: p.Data})
			}
		}
	})
}

// maxPictures bounds those that are shown of one call.
const maxPictures = 4

func (w *work) used(e agent.Event) {
	u := e.Usage
	w.t.Header(func(c *chat.Conversation) {
		c.Used.Input += u.Input + u.CacheWrite
		c.Used.Output += u.Output
		c.Used.Cached += u.CacheRead
		c.Used.Cost += e.Cost
		c.Used.Unpriced = c.Used.Unpriced || e.NoPrice
		c.Used.Context = int64(e.Context)
	})
}
