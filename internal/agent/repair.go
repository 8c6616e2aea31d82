package agent

import (
	"fmt"
	"slices"
	"strings"
)

// interrupted is the result of a call whose result was lost.
const interrupted = "This call was interrupted: sandboxd stopped while it ran. Nobody knows how far it came; look before you repeat it."

// Repair gives a transcript that every provider accepts: the first message is the user's; each call has one result, in the next message;
// nothing is empty, orphaned, twice or of an unknown kind. Calls without a result get one that says that they were interrupted. It changes
// nothing else, is deterministic, and leaves a good transcript as it is. The messages given are not changed.
func Repair(messages []Message) []Message {
	p := repairer{ids: map[string]bool{}, callIDs: map[string]bool{}}
	for i := 0; i < len(messages); {
		m := p.clean(messages[i], i)
		i++
		if calls := m.calls(); len(calls) > 0 {
			// Its results are in the messages up to the model's next.
			p.open = calls
			p.put(m)
			i = p.answer(messages, i)
			continue
		}
		p.put(m)
	}
	p.begin()
	return p.done
}

// repairer is a repair under way.
type repairer struct {
	done    []Message
	ids     map[string]bool // of messages
	callIDs map[string]bool
	renamed map[string]string // what the calls of the last answer were called, and are called now
	open    []Call            // the calls of the last answer
}

// clean gives a message with those of its parts that can be sent.
func (p *repairer) clean(m Message, at int) Message {
	if m.ID == "" || p.ids[m.ID] {
		m.ID = p.unused(fmt.Sprintf("m%d", at))
	}
	if m.Mark != nil {
		m.Role, m.Parts = User, nil
		return m
	}
	p.renamed = map[string]string{}
	parts := make([]Part, 0, len(m.Parts))
	for i, part := range m.Parts {
		if part, ok := p.part(part, m.Role, fmt.Sprintf("call_%d_%d", at, i)); ok {
			parts = append(parts, part)
		}
	}
	m.Parts = parts
	if m.Role != User && m.Role != Assistant {
		m.Parts = nil
	}
	return m
}

// part gives a part that can be sent; results only pass to answer.
func (p *repairer) part(part Part, role Role, id string) (Part, bool) {
	switch {
	case part.Kind == PartText:
		text := strings.ToValidUTF8(part.Text, "\uFFFD")
		return textPart(text), strings.TrimSpace(text) != ""
	case part.Kind == PartThinking && role == Assistant:
		part = Part{Kind: PartThinking, Text: strings.ToValidUTF8(part.Text, "\uFFFD"), Opaque: part.Opaque}
		return part, part.Text != "" || part.Opaque != nil && part.Opaque.Signature != ""
	case part.Kind == PartImage && part.Image != nil && role == User:
		if why := part.Image.Problem(); why != "" {
			return textPart("(A picture was left out: " + why + ".)"), true
		}
		return Part{Kind: PartImage, Image: part.Image}, true
	case part.Kind == PartCall && part.Call != nil && role == Assistant:
		return Part{Kind: PartCall, Call: p.call(*part.Call, id)}, true
	}
	return Part{}, false
}

// call gives a call with an ID, a name and arguments that can be sent.
func (p *repairer) call(c Call, id string) *Call {
	before := c.ID
	if !goodID.MatchString(c.ID) || p.callIDs[c.ID] {
		for c.ID = id; p.callIDs[c.ID]; {
			c.ID += "_"
		}
	}
	p.callIDs[c.ID] = true
	if _, twice := p.renamed[before]; !twice {
		p.renamed[before] = c.ID
	}
	if !goodID.MatchString(c.Name) {
		c.Name = badName.ReplaceAllString(c.Name, "_")
		c.Name = orElse(c.Name[:min(len(c.Name), 64)], "unnamed")
	}
	arguments, problem := parseArguments(string(c.Arguments))
	if problem != "" {
		c.Broken = strings.ToValidUTF8(string(c.Arguments[:min(len(c.Arguments), maxBroken)]), "")
		arguments = []byte(`{}`)
	}
	c.Arguments, c.problem = arguments, ""
	return &c
}

// answer puts a message with the results of the open calls, and then the messages up to the model's next without them. It gives the index
// of the one after those.
func (p *repairer) answer(messages []Message, i int) int {
	last := p.done[len(p.done)-1].ID
	renamed, open, results := p.renamed, p.open, map[string]*ToolResult{}
	end := i
	for end < len(messages) && (messages[end].Role != Assistant || messages[end].Mark != nil) {
		for _, part := range messages[end].Parts {
			if part.Kind != PartResult || part.Result == nil || messages[end].Mark != nil || messages[end].Role != User {
				continue
			}
			if id, ok := renamed[part.Result.CallID]; ok && results[id] == nil {
				results[id] = repairResult(*part.Result, id)
			}
		}
		end++
	}
	home := p.home(messages[i:end])
	for j := i; j < end; j++ {
		m := p.clean(messages[j], j)
		if j-i == home {
			m.Parts = append(resultParts(open, results), m.Parts...)
		}
		if home < 0 && j == i {
			p.put(Message{ID: p.unused(last + "-results"), Role: User, Auto: true, Parts: resultParts(open, results)})
		}
		p.put(m)
	}
	if i == end {
		p.put(Message{ID: p.unused(last + "-results"), Role: User, Auto: true, Parts: resultParts(open, results)})
	}
	return end
}

// home gives which of the messages after a call is the one for its results: the first, if it has any; -1 for a new one.
func (p *repairer) home(after []Message) int {
	for i, m := range after {
		if m.Mark != nil {
			continue
		}
		if m.Role == User && hasResults(m) {
			return i
		}
		return -1
	}
	return -1
}

// resultParts gives the results of calls in their order.
func resultParts(calls []Call, results map[string]*ToolResult) []Part {
	parts := make([]Part, len(calls))
	for i, c := range calls {
		result := results[c.ID]
		if result == nil {
			result = &ToolResult{CallID: c.ID, Status: Interrupted, Text: interrupted}
		}
		parts[i] = Part{Kind: PartResult, Result: result}
	}
	return parts
}

// repairResult gives a result that can be sent.
func repairResult(r ToolResult, id string) *ToolResult {
	r.CallID = id
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	if !slices.Contains([]Status{OK, Error, Denied, Stopped, Interrupted}, r.Status) {
		r.Status = Error
	}
	r.Images = slices.DeleteFunc(slices.Clone(r.Images), func(i Image) bool { return i.Problem() != "" })
	if len(r.Images) == 0 {
		r.Images = nil
		r.Text = orElse(r.Text, "(no output)")
	}
	return &r
}

// put adds a message that is not empty.
func (p *repairer) put(m Message) {
	if m.Mark == nil && len(m.Parts) == 0 {
		return
	}
	p.ids[m.ID] = true
	p.done = append(p.done, m)
}

// begin makes the first message the user's.
func (p *repairer) begin() {
	for i, m := range p.done {
		if m.Mark != nil {
			continue
		}
		if m.Role == Assistant {
			first := auto("(The beginning of this conversation is missing.)")
			first.ID = p.unused(m.ID + "-begin")
			p.done = slices.Insert(p.done, i, first)
		}
		return
	}
}

// unused gives an ID that no message has, made of one that may have been given.
func (p *repairer) unused(id string) string {
	for p.ids[id] {
		id += "_"
	}
	return id
}
