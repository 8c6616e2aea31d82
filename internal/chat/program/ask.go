package program

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
	"sandboxd/internal/tools/risk"
)

// answer is what a person said to a question; text is "" when it lapsed.
type answer struct{ ask, text string }

// wait lets goroutines wait for answers; quit ends them.
func (r *run) wait(ctx context.Context) {
	waiting, cancel := context.WithCancel(ctx)
	r.waiting = waiting
	r.quit = func() {
		cancel()
		r.waits.Wait()
	}
}

// pose asks the person for a request.
func (r asks) pose(a asked, q chat.Ask) {
	r.s.Questions++
	q.ID = fmt.Sprintf("acp-%d", r.s.Questions)
	a.Ask = q.ID
	p, err := r.t.Pose(q)
	if err != nil { // too long to be shown whole
		r.t.Notice(fmt.Sprintf("%s asked for something that is too long to be shown, and was refused.", r.how.Name))
		r.reply(r.s.Peer.Answer(a.ID, a.lapsed()))
		return
	}
	r.s.Asked = append(r.s.Asked, a)
	r.await(p, q.ID)
}

func (r asks) await(p *chat.Posed, id string) {
	waiting := r.waiting
	r.waits.Go(func() {
		text, err := p.Wait(waiting)
		if err != nil {
			text = ""
		}
		select {
		case r.answers <- answer{id, text}:
		case <-waiting.Done():
		}
	})
}

// poseAgain asks what was asked before the turn was broken off. An agent whose question is lost, or has lapsed, is told that it gets no
// answer.
func (r asks) poseAgain(questions []chat.Item) {
	posed := map[string]bool{}
	for _, it := range questions {
		var q chat.Ask
		if json.Unmarshal(it.Data, &q) != nil || q.Lapsed || posed[q.ID] || !slices.ContainsFunc(r.s.Asked, func(a asked) bool { return a.Ask == q.ID }) {
			continue
		}
		q.Answer, q.By = "", "" // when it was answered and the agent not told, Pose knows
		if p, err := r.t.Pose(q); err == nil {
			posed[q.ID] = true
			r.await(p, q.ID)
		}
	}
	r.s.Asked = slices.DeleteFunc(r.s.Asked, func(a asked) bool {
		if !posed[a.Ask] {
			r.reply(r.s.Peer.Answer(a.ID, a.lapsed()))
		}
		return !posed[a.Ask]
	})
}

// answered tells the agent what the person said.
func (r asks) answered(a answer) {
	at := slices.IndexFunc(r.s.Asked, func(o asked) bool { return o.Ask == a.ask })
	if at < 0 {
		return
	}
	r.together(func() {
		one := r.s.Asked[at]
		r.s.Asked = slices.Delete(r.s.Asked, at, at+1)
		choice := chosenOf(a.text, len(one.Options))
		switch {
		case one.Form != nil && a.text != "":
			r.filled(one, a.text)
			return
		case choice < 0:
			r.reply(r.s.Peer.Answer(one.ID, one.lapsed()))
			return
		}
		option := one.Options[choice]
		if strings.HasPrefix(option.Kind, "reject") {
			r.t.Update(r.s.Calls[one.Call], func(c *chat.Call) { c.Status = "denied" })
		}
		r.reply(r.s.Peer.Answer(one.ID, acp.Selected(option.OptionID)))
	})
}

// choiceID is the id of the choice with a number, and chosenOf gives that number: -1 for what is none of n choices.
func choiceID(i int) string { return "o" + itoa(i) }

func chosenOf(id string, n int) int {
	for i := range n {
		if choiceID(i) == id {
			return i
		}
	}
	return -1
}

// lapsed is the answer when the person gives none.
func (a *asked) lapsed() any {
	if a.Form != nil {
		return acp.Declined(true)
	}
	return acp.Selected("")
}

// permission answers a request for leave by the conversation's mode, or asks the person.
func (r asks) permission(m acp.Message) {
	p, err := acp.ReadPermission(m.Body)
	if err != nil {
		r.reply(r.s.Peer.Refuse(m.ID, acp.InvalidParams, err.Error()))
		return
	}
	shows(r).toolCall(p.Tool, true)
	t := r.tools[p.Tool.ID]
	if t == nil { // it says that it is over
		t = &tool{ToolCall: p.Tool}
	}
	j, outside := r.judge(t)
	changes := j.Level > risk.Harmless
	if mode := r.t.Conversation().Mode; mode != chat.AskChanges && !mode.Asks(changes, j.Level == risk.Risky || outside) {
		for _, o := range p.Options {
			if o.Kind == acp.AllowOnce {
				r.reply(r.s.Peer.Answer(m.ID, acp.Selected(o.OptionID)))
				return
			}
		}
	}
	q := chat.Ask{Title: t.call().Title, Text: whole(t), Folder: strings.Join(t.Folders(), ", "), Reasons: j.Reasons, Call: r.s.Calls[t.ID]}
	if outside {
		q.Reasons = append(q.Reasons, "it changes files outside of the home")
	}
	a := asked{ID: m.ID, Call: t.ID, Options: offered(p.Options, r.t.Conversation().Mode)}
	for i, o := range a.Options {
		style := map[string]string{acp.AllowOnce: "allow", acp.AllowAlways: "always", acp.RejectOnce: "refuse", acp.RejectAlways: "refuse"}[o.Kind]
		q.Choices = append(q.Choices, chat.Choice{ID: choiceID(i), Label: o.Name, Style: style})
	}
	r.pose(a, q)
}

// offered leaves out what would allow more than one call when each is to be asked for, unless there is no other way to allow it.
func offered(all []acp.PermissionOption, mode chat.Mode) []acp.PermissionOption {
	is := func(kind string) func(acp.PermissionOption) bool {
		return func(o acp.PermissionOption) bool { return o.Kind == kind }
	}
	if mode != chat.AskChanges || !slices.ContainsFunc(all, is(acp.AllowOnce)) {
		return all
	}
	return slices.DeleteFunc(all, is(acp.AllowAlways))
}

// form asks the person what a form asks, field by field.
func (r asks) form(m acp.Message) {
	f, err := acp.ReadForm(m.Body)
	if err != nil {
		r.reply(r.s.Peer.Refuse(m.ID, acp.InvalidParams, err.Error()))
		return
	}
	a := asked{ID: m.ID, Form: &form{Fields: f.Fields, Content: map[string]json.RawMessage{}}}
	if f.URL != "" || len(f.Fields) == 0 {
		r.pose(a, chat.Ask{Title: f.Message, Text: f.URL, Choices: []chat.Choice{{ID: "yes", Label: "Continue", Style: "allow"}, declines}})
		return
	}
	r.field(a, f.Message)
}

// Choices beside the values of a field. Their ids are nothing that a person writes.
var (
	declines = chat.Choice{ID: "(decline)", Label: "Don't answer", Style: "refuse"}
	skips    = chat.Choice{ID: "(skip)", Label: "Skip"}
)

// field asks the next field of a form.
func (r asks) field(a asked, message string) {
	f := a.Form.Fields[0]
	q := chat.Ask{Title: f.Title, Text: strings.TrimSpace(message + "\n\n" + f.About)}
	for i, v := range f.Values {
		q.Choices = append(q.Choices, chat.Choice{ID: choiceID(i), Label: v.Name})
	}
	if !f.Required {
		q.Choices = append(q.Choices, skips)
	}
	q.Choices = append(q.Choices, declines)
	q.Free = len(f.Values) == 0
	r.pose(a, q)
}

// filled takes the answer to a field, and asks the next one or answers the agent.
func (r asks) filled(a asked, said string) {
	if said == declines.ID {
		r.reply(r.s.Peer.Answer(a.ID, acp.Declined(false)))
		return
	}
	if len(a.Form.Fields) > 0 {
		f := a.Form.Fields[0]
		if at := chosenOf(said, len(f.Values)); at >= 0 {
			said = f.Values[at].ID
		}
		if said != skips.ID || f.Required {
			value, err := f.Read(said)
			if err != nil {
				r.field(a, "That is no number.")
				return
			}
			a.Form.Content[f.Name] = value
		}
		if a.Form.Fields = a.Form.Fields[1:]; len(a.Form.Fields) > 0 {
			r.field(a, "")
			return
		}
	}
	r.reply(r.s.Peer.Answer(a.ID, acp.Accepted(a.Form.Content)))
}
