package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
)

// transcript gives what the model is told of a conversation: the person's messages and the records of what the loop added. What came after
// the last record was being said when sandboxd ended at any line: it is the beginning of an answer.
func transcript(items []chat.Item) []agent.Message {
	var messages []agent.Message
	var loose []chat.Item
	for _, it := range items {
		switch it.Kind {
		case chat.Message:
			messages, loose = append(messages, said(it)), nil
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
		if len(f.Data) > 0 && slices.Contains(agent.ImageTypes, f.Type) {
			m.Parts = append(m.Parts, agent.Part{Kind: agent.PartImage, Image: &agent.Image{MediaType: f.Type, Data: f.Data}})
		} else if f.Path != "" {
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
