package loop

import (
	"strings"
	"testing"

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
