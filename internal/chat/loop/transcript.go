package loop

import (
	"encoding/json"
	"fmt"
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
	for _, it := range items {
		switch it.Kind {
		case chat.Message:
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
				messages, loose = append(messages, m), nil
			}
		case chat.Text, chat.CallItem:
			loose = append(loose, it)
		}
	}
	return append(messages, begun(loose)...)
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
