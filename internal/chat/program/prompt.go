package program

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
)

// Bounds of what an agent is told.
const (
	maxContext  = 96 << 10 // bytes of what was said before
	maxPictures = 8 << 20  // bytes of all pictures of a message
)

// prompt gives the agent the person's message.
func (r opens) prompt() {
	before := r.before()
	var blocks []acp.Block
	if r.s.Fresh && before != "" {
		cut := ""
		if len(before) > maxContext {
			before = "…" + strings.ToValidUTF8(before[len(before)-maxContext:], "")
			cut = fmt.Sprintf(" Only the last %d KiB of it: the rest is too long.", maxContext>>10)
		}
		r.t.Notice(fmt.Sprintf("%s does not remember what was said before here, and was given the text of it.%s", r.how.Name, cut))
		blocks = append(blocks, said("This is what was said and done in this conversation before. You do not remember it; take it as background.\n\n"+before))
	}
	switch {
	case r.s.Given == r.t.Number():
		blocks = append(blocks, said("You were interrupted. Look at how far you got, and continue."))
	case r.s.Losses > 0 || r.t.Again() && len(r.begun()) > 0:
		blocks = append(blocks, r.message()...)
		blocks = append(blocks, said("You have begun with this, and were interrupted. Look at how far you got, and continue."))
	default:
		blocks = append(blocks, r.message()...)
	}
	r.s.Fresh, r.s.Told, r.s.Given = false, r.t.Number(), r.t.Number()
	r.call(acp.Prompt, acp.PromptParams(r.s.Session, blocks))
	r.items = nil // they can be large
}

func said(s string) acp.Block { return acp.Block{Type: "text", Text: s} }

// message is what the person said.
func (r opens) message() (blocks []acp.Block) {
	m := r.t.Message()
	words, size := m.Text, 0
	for _, f := range m.Files {
		size += len(f.Data)
		switch {
		case f.Path != "":
			words += fmt.Sprintf("\n\n[The person attached the file %s.]", f.Path)
		case r.s.Images && size <= maxPictures && strings.HasPrefix(f.Type, "image/"):
			blocks = append(blocks, acp.Block{Type: "image", MimeType: f.Type, Data: f.Data})
		default:
			words += fmt.Sprintf("\n\n[The person attached the picture %s, which you cannot see.]", f.Name)
			r.t.Notice(fmt.Sprintf("%s was not given the picture %s: it takes none, or they are too large.", r.how.Name, f.Name))
		}
	}
	return append([]acp.Block{said(words)}, blocks...)
}

// begun are the items of this turn that the agent made before it was broken off.
func (r opens) begun() (list []chat.Item) {
	for _, it := range r.items {
		if it.Turn == r.t.Number() && (it.Kind == chat.Text || it.Kind == chat.CallItem) {
			list = append(list, it)
		}
	}
	return list
}

// before is the text of the conversation before this message, and of what the agent has already done about it.
func (r opens) before() string {
	var b strings.Builder
	for _, it := range r.items {
		var c chat.Call
		switch {
		case it.Kind == chat.Message && it.Turn != r.t.Number():
			fmt.Fprintf(&b, "Person: %s\n\n", it.Text)
		case it.Kind == chat.Text:
			fmt.Fprintf(&b, "You: %s\n\n", it.Text)
		case it.Kind == chat.CallItem && json.Unmarshal(it.Data, &c) == nil:
			fmt.Fprintf(&b, "You used a tool: %s %s\n\n", c.Title, c.Code)
		}
	}
	return b.String()
}
