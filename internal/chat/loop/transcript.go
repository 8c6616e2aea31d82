package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
)

// transcript gives what the model is told of a conversation: the person's messages and the records of what the loop added. What came after
// the last record was being said when sandboxd ended at any line: it is the beginning of an answer. Of code that the person ran they are told
// with the message that asked for it, else with the next one.
func transcript(items []chat.Item) []agent.Message {
	var messages []agent.Message
	var loose []chat.Item
	var ran []string
	var open unanswered
	for _, it := range items {
		switch it.Kind {
		case chat.Message:
			messages = open.end(messages)
			m := said(it)
			for _, note := range ran {
				m.Parts = append(m.Parts, agent.Part{Kind: agent.PartText, Text: note})
			}
			messages = append(messages, begun(loose)...) // what a turn that was cut off, or a branch in its middle, has of an answer
			messages, loose, ran = append(messages, m), nil, nil
		case chat.RunItem:
			note, auto := it.RunNote()
			if m := len(messages) - 1; auto && m >= 0 && messages[m].Role == agent.User && !messages[m].Auto {
				messages[m].Parts = append(messages[m].Parts, agent.Part{Kind: agent.PartText, Text: note})
			} else if note != "" {
				ran = append(ran, note)
			}
		case chat.Record:
			var m agent.Message
			if json.Unmarshal(it.Data, &m) == nil && m.ID != "" {
				if m.Role == agent.Assistant {
					messages = open.end(messages)
				}
				open.parts = nil // it has their results
				messages, loose = append(messages, m), nil
			}
		case chat.Question:
			open.asked(it, items)
		case chat.Text, chat.CallItem:
			loose = append(loose, it)
		}
	}
	return append(open.end(messages), begun(loose)...)
}

// unanswered are results of calls of which the person had not said whether they may be made when the turn was broken off.
type unanswered struct{ parts []agent.Part }

const notMade = "The turn was broken off before the person had answered whether this call may be made. Nothing was done. Make the call again if it is still right: they are asked again."

// asked notes a question, if it has no answer.
func (u *unanswered) asked(it chat.Item, items []chat.Item) {
	var a chat.Ask
	var c chat.Call
	if json.Unmarshal(it.Data, &a) != nil || a.Call == 0 || a.Answer != "" {
		return
	}
	at, found := slices.BinarySearchFunc(items, a.Call, func(it chat.Item, n int64) int { return cmp.Compare(it.N, n) })
	if found && json.Unmarshal(items[at].Data, &c) == nil {
		u.parts = append(u.parts, agent.Part{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: c.ID, Status: agent.Stopped, Text: notMade}})
	}
}

// end adds the results. No record has them.
func (u *unanswered) end(messages []agent.Message) []agent.Message {
	if len(u.parts) == 0 || len(messages) == 0 {
		return messages
	}
	m := agent.Message{ID: messages[len(messages)-1].ID + "-unanswered", Role: agent.User, Auto: true, Parts: u.parts}
	u.parts = nil
	return append(messages, m)
}

// said gives a person's message. Its ID is that of its place, so that what marks it does so in a branch too.
func said(it chat.Item) agent.Message {
	m := agent.Message{ID: fmt.Sprintf("item-%d", it.N), Role: agent.User}
	text := it.Text
	for _, f := range filesOf(it) {
		if len(f.Data) > 0 {
			m.Parts = append(m.Parts, agent.Part{Kind: agent.PartImage, Image: &agent.Image{MediaType: f.Type, Data: f.Data}})
		}
		if f.Path != "" {
			text += fmt.Sprintf("\n\n[The person attached the file %s.]", f.Path)
		}
	}
	if text = strings.TrimSpace(text); text != "" {
		m.Parts = append(m.Parts, agent.Part{Kind: agent.PartText, Text: text})
	}
	return m
}

func filesOf(it chat.Item) []chat.File {
	var about struct{ Files []chat.File }
	if json.Unmarshal(it.Data, &about) != nil {
		return nil // a message without any
	}
	return about.Files
}

// begun gives the beginning of an answer as a message. Its calls have no results: agent.Repair says that they were interrupted.
func begun(items []chat.Item) []agent.Message {
	m := agent.Message{Role: agent.Assistant}
	for _, it := range items {
		if it.Kind == chat.Text && it.Text != "" {
			m.Parts = append(m.Parts, agent.Part{Kind: agent.PartText, Text: it.Text})
		}
		var c chat.Call
		if it.Kind == chat.CallItem && json.Unmarshal(it.Data, &c) == nil && json.Valid(c.Args) {
			m.Parts = append(m.Parts, agent.Part{Kind: agent.PartCall, Call: &agent.Call{ID: c.ID, Name: c.Tool, Arguments: c.Args}})
		}
	}
	if len(m.Parts) == 0 {
		return nil
	}
	m.ID = fmt.Sprintf("item-%d", items[0].N)
	return []agent.Message{m}
}
