package program

import (
	"slices"
	"strings"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
	"sandboxd/internal/text"
	"sandboxd/internal/tools"
)

// Bounds of what is shown of calls.
const (
	maxOpen   = 200      // calls that are not over
	maxHeld   = 32 << 20 // bytes of all of them
	maxArgs   = 64 << 10
	maxCode   = 64 << 10
	maxResult = 64 << 10
	maxShots  = 4 // pictures
	maxPath   = 4096
)

// tool is a call that is not over, with all that is known of it.
type tool struct {
	acp.ToolCall
	shown    string // of its output
	diffs    []chat.Diff
	recalled bool // only what is shown of it is known
}

// size is about how many bytes it takes.
func (t *tool) size() int {
	n := len(t.Input) + len(t.Label) + len(t.Output) + len(t.Result)
	for _, f := range t.Changes {
		n += len(f.Path) + len(f.New)
		if f.Old != nil {
			n += len(*f.Old)
		}
	}
	for _, p := range t.Pictures {
		n += len(p.Data)
	}
	for _, d := range t.diffs {
		n += len(d.Unified)
	}
	return n
}

// merge takes in what changed.
func (t *tool) merge(u acp.ToolCall) {
	for _, f := range []struct{ to, from *string }{{&t.Title, &u.Title}, {&t.Label, &u.Label}, {&t.Kind, &u.Kind}, {&t.Status, &u.Status}} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	if len(u.Input) > 0 && string(u.Input) != "null" && string(u.Input) != "{}" {
		t.Input = u.Input
	}
	if len(u.Result) > 0 {
		t.Result = u.Result
	}
	if len(u.Changes) > 0 {
		t.Changes, t.diffs = u.Changes, nil
		for _, f := range u.Changes {
			t.diffs = append(t.diffs, compare(f))
		}
	}
	if len(u.Paths) > 0 {
		t.Paths = u.Paths
	}
	if len(u.Pictures) > 0 {
		t.Pictures = u.Pictures
	}
	t.Cut = t.Cut || u.Cut
	if t.ID = u.ID; u.HasText {
		t.Output, t.HasText = u.Output, true
	}
	t.Add(u.Added)
}

// toolCall shows a call, or what changed in one. A change of a call that is over, or never began, is passed over.
func (r shows) toolCall(u acp.ToolCall, begins bool) {
	n, known := r.s.Calls[u.ID]
	if !known && !begins {
		return
	}
	t := r.tools[u.ID]
	if t == nil {
		t = &tool{}
		r.tools[u.ID] = t
	}
	t.merge(u)
	r.crowd(u.ID)
	if !known {
		n = r.t.Begin(t.call())
		if r.s.Calls == nil {
			r.s.Calls = map[string]int64{}
		}
		r.s.Calls[u.ID] = n
	}
	if rest, grows := strings.CutPrefix(t.Output, t.shown); grows && rest != "" {
		r.t.Output(n, rest)
		t.shown = t.Output
	}
	switch t.Status {
	case acp.Completed:
		r.close(u.ID, "ok")
	case acp.Failed:
		r.close(u.ID, "error")
	default:
		r.t.Update(n, func(c *chat.Call) { t.tell(c) })
	}
}

// crowd closes the oldest calls but one when too many are open, or they are too large: an agent that never ends one.
func (r shows) crowd(but string) {
	open, held := len(r.s.Calls), 0
	if _, known := r.s.Calls[but]; !known {
		open++
	}
	for _, t := range r.tools {
		held += t.size()
	}
	for ; open > maxOpen || held > maxHeld; open-- {
		oldest := ""
		for id, n := range r.s.Calls {
			if id != but && (oldest == "" || n < r.s.Calls[oldest]) {
				oldest = id
			}
		}
		if oldest == "" {
			return
		}
		if t := r.tools[oldest]; t != nil {
			held -= t.size()
		}
		r.close(oldest, "")
	}
}

// close completes a call.
func (r shows) close(id, status string) {
	n, t := r.s.Calls[id], r.tools[id]
	delete(r.s.Calls, id)
	delete(r.tools, id)
	r.t.End(n, func(c *chat.Call) {
		if t != nil {
			t.tell(c)
			t.end(c)
		}
		if c.Status != "denied" {
			c.Status = status
		}
		c.Failed = status == "error"
	})
}

// call is what is shown of a call as it begins.
func (t *tool) call() (c chat.Call) {
	t.tell(&c)
	return c
}

// names are what calls are called whose title only repeats what they do.
var names = map[string]string{"execute": "Run", "edit": "Edit", "delete": "Delete", "move": "Move", "read": "Read", "search": "Search", "fetch": "Fetch"}

// tell shows what is known of a call.
func (t *tool) tell(c *chat.Call) {
	c.ID, c.Tool, c.Title = t.ID, t.Kind, t.Title
	if len(t.Input) <= maxArgs {
		c.Args = t.Input
	}
	line := t.Command()
	c.Code = text.Clip(line, maxCode)
	if files := t.Files(); len(files) > 0 && line == "" {
		c.Path = text.Clip(files[0], maxPath)
	}
	for _, s := range []string{firstLine(line), c.Path} {
		if name := names[t.Kind]; s != "" && name != "" && strings.Contains(c.Title, s) {
			c.Title = name
		}
	}
	if len(t.diffs) > 0 {
		c.Diffs = t.diffs
	}
}

func compare(f acp.FileChange) chat.Diff {
	old := ""
	if f.Old != nil {
		old = *f.Old
	}
	d := tools.Compare(f.Path, old, f.New)
	return chat.Diff{Path: d.Path, Unified: d.Diff, Created: f.Old == nil, Added: d.Added, Removed: d.Removed, Cut: d.Cut, Same: d.Same}
}

// end shows what came of it.
func (t *tool) end(c *chat.Call) {
	if t.Output != t.shown || t.shown == "" {
		c.Result = t.Output
		if c.Result == "" && len(t.Result) > 0 && string(t.Result) != "null" {
			c.Result = string(t.Result)
		}
		c.Result = text.Clip(c.Result, maxResult)
	}
	size := 0
	for _, p := range t.Pictures {
		if size += len(p.Data); len(c.Pictures) < maxShots && size <= chat.MaxImage && slices.Contains(chat.PictureTypes, p.MimeType) {
			c.Pictures = append(c.Pictures, chat.File{Type: p.MimeType, Data: p.Data})
		}
	}
}
