package loop

import (
	"encoding/json"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
)

func TestTranscript_TellsOfRunsWithThePersonsMessages(t *testing.T) {
	data := func(r chat.Run) json.RawMessage {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	record, err := json.Marshal(agent.Message{ID: "a", Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartText, Text: "answer"}}})
	if err != nil {
		t.Fatal(err)
	}
	zero := 0
	all := transcript([]chat.Item{
		{N: 1, Kind: chat.Message, Text: "run it"},
		{N: 2, Kind: chat.RunItem, Output: "by itself", Data: data(chat.Run{Auto: true, Language: "sh", Exit: &zero, Status: "ok"})},
		{N: 3, Kind: chat.Record, Data: record},
		{N: 4, Kind: chat.RunItem, Text: "by hand", Data: data(chat.Run{Language: "go", Code: "package main", Status: "timeout"})},
		{N: 5, Kind: chat.Message, Text: "and now?"},
	})
	var said []string
	for _, m := range all {
		var b strings.Builder
		b.WriteString(string(m.Role))
		for _, p := range m.Parts {
			b.WriteString(" | " + p.Text)
		}
		said = append(said, b.String())
	}
	want := []string{
		"user | run it | [The sh code in this message was run in the sandbox. Its exit code was 0.\nstdout:\nby itself]",
		"assistant | answer",
		"user | and now? | [The person ran the go code that begins with \"package main\" in the sandbox. It was ended after 10 minutes.\nstderr:\nby hand]",
	}
	if got := strings.Join(said, "\n---\n"); got != strings.Join(want, "\n---\n") {
		t.Errorf("the model is told\n%s", got)
	}
}
