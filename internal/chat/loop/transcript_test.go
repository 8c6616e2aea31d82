package loop

import (
	"encoding/json"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/chat"
)

// TestTranscript_HasAnAnswerWithoutItsRecord has a branch begin at an answer that is shown: the model knows it, as the person does.
func TestTranscript_HasAnAnswerWithoutItsRecord(t *testing.T) {
	got := transcript([]chat.Item{
		{N: 1, Kind: chat.Message, Text: "What is it?"},
		{N: 2, Kind: chat.Text, Text: "Forty-two."},
		{N: 3, Kind: chat.Message, Text: "Why?"},
	})
	var said []string
	for _, m := range got {
		for _, p := range m.Parts {
			said = append(said, string(m.Role)+": "+p.Text)
		}
	}
	if all := strings.Join(said, "; "); all != "user: What is it?; assistant: Forty-two.; user: Why?" {
		t.Errorf("got %s", all)
	}
}

// TestTranscript_SaysThatACallWasNotMadeWhoseQuestionHadNoAnswer has sandboxd killed while a question waits, and again in the next turn.
func TestTranscript_SaysThatACallWasNotMadeWhoseQuestionHadNoAnswer(t *testing.T) {
	encode := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	call := func(id string) agent.Message {
		return agent.Message{ID: "m-" + id, Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartCall, Call: &agent.Call{ID: id, Name: "run_command", Arguments: json.RawMessage(`{}`)}}}}
	}
	refused := agent.Message{ID: "r", Role: agent.User, Auto: true, Parts: []agent.Part{{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: "two", Status: agent.Stopped, Text: "cancelled"}}}}
	items := []chat.Item{
		{N: 1, Kind: chat.Message, Text: "Clean up."},
		{N: 2, Kind: chat.CallItem, Data: encode(chat.Call{ID: "one"})},
		{N: 3, Kind: chat.Record, Data: encode(call("one"))},
		{N: 4, Kind: chat.Question, Data: encode(chat.Ask{ID: "q1", Call: 2, Lapsed: true})}, // killed
		{N: 5, Kind: chat.CallItem, Data: encode(chat.Call{ID: "two"})},
		{N: 6, Kind: chat.Record, Data: encode(call("two"))},
		{N: 7, Kind: chat.Question, Data: encode(chat.Ask{ID: "q2", Call: 5, Lapsed: true})}, // stopped
		{N: 8, Kind: chat.Record, Data: encode(refused)},
		{N: 9, Kind: chat.Message, Text: "Now do it."},
		{N: 10, Kind: chat.CallItem, Data: encode(chat.Call{ID: "three"})},
		{N: 11, Kind: chat.Record, Data: encode(call("three"))},
		{N: 12, Kind: chat.Question, Open: true, Data: encode(chat.Ask{ID: "q3", Call: 10})}, // killed
	}
	got := map[string]string{}
	for _, m := range agent.Repair(transcript(items)) {
		for _, p := range m.Parts {
			if p.Kind == agent.PartResult {
				got[p.Result.CallID] += p.Result.Text
			}
		}
	}
	if got["one"] != notMade || got["two"] != "cancelled" || got["three"] != notMade {
		t.Errorf("got %q", got)
	}
}
