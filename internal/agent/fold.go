package agent

import "strings"

// Fold gives the transcript that results from events: also the part of a message that was still being streamed when they end, as after a
// crash. It needs Repair before it is sent.
func Fold(messages []Message, events ...Event) []Message {
	f := folder{messages: append([]Message(nil), messages...)}
	for _, e := range events {
		f.take(e)
	}
	f.flush()
	return f.messages
}

// folder puts streamed pieces together.
type folder struct {
	messages []Message
	open     []Part // of the answer that is being streamed
	kind     PartKind
	text     strings.Builder // of the part of that kind, which is not in open yet
	results  []Part          // of the tools that have run since
}

func (f *folder) take(e Event) {
	switch e.Kind {
	case TextDelta:
		f.extend(PartText, e.Text)
	case ThinkingDelta:
		f.extend(PartThinking, e.Text)
	case CallDone:
		f.close()
		f.open = append(f.open, Part{Kind: PartCall, Call: e.Call})
	case ToolDone:
		f.results = append(f.results, Part{Kind: PartResult, Result: e.Result})
	case MessageAdded:
		f.add(*e.Message)
	}
}

func (f *folder) add(m Message) {
	switch {
	case m.Mark != nil:
	case m.Role == Assistant:
		f.text.Reset()
		f.open = nil
	default:
		f.results = nil
	}
	f.messages = append(f.messages, m)
}

func (f *folder) extend(kind PartKind, text string) {
	if f.kind != kind {
		f.close()
	}
	f.kind = kind
	f.text.WriteString(text)
}

// close ends the part of text that is being put together.
func (f *folder) close() {
	if f.text.Len() > 0 {
		f.open = append(f.open, Part{Kind: f.kind, Text: f.text.String()})
	}
	f.text.Reset()
}

func (f *folder) flush() {
	f.close()
	after := "folded" // derived, so that folding again gives the same
	if n := len(f.messages); n > 0 {
		after = f.messages[n-1].ID
	}
	if len(f.open) > 0 {
		f.messages = append(f.messages, Message{ID: after + "-partial", Role: Assistant, Parts: f.open})
	}
	if len(f.results) > 0 {
		f.messages = append(f.messages, Message{ID: after + "-results", Role: User, Parts: f.results})
	}
}
