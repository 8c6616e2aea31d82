package agent

// EventKind says what happened.
type EventKind string

// The kinds of events, with the fields that are set beside Kind.
const (
	StepBegun     EventKind = "step"           // Step, counted from 1
	TextDelta     EventKind = "text"           // Text
	ThinkingDelta EventKind = "thinking"       // Text
	CallBegun     EventKind = "call"           // CallID, Name
	CallDelta     EventKind = "call_arguments" // CallID, Text: more of the arguments, as the model writes them
	CallDone      EventKind = "call_done"      // CallID, Name, Call
	ToolBegun     EventKind = "tool"           // CallID, Name: it is permitted and runs
	ToolOutput    EventKind = "tool_output"    // CallID, Text: what it writes while it runs; valid UTF-8
	ToolDone      EventKind = "tool_done"      // CallID, Result
	MessageAdded  EventKind = "message"        // Message: it is complete, and part of the transcript
	UsageAdded    EventKind = "usage"          // Usage and Cost of one request, or NoPrice; Context
	NoticeGiven   EventKind = "notice"         // Text: a sentence for the person, such as why the turn waits
)

// Event is something that happened in a turn. It is plain data.
type Event struct {
	Kind    EventKind   `json:"kind"`
	Step    int         `json:"step,omitempty"`
	Text    string      `json:"text,omitempty"`
	CallID  string      `json:"call_id,omitempty"`
	Name    string      `json:"name,omitempty"`
	Call    *Call       `json:"call,omitempty"`
	Result  *ToolResult `json:"result,omitempty"`
	Message *Message    `json:"message,omitempty"`
	Usage   *Usage      `json:"usage,omitempty"`
	Cost    int64       `json:"cost,omitempty"` // millionths of a dollar
	NoPrice bool        `json:"no_price,omitempty"`
	Context int         `json:"context,omitempty"` // tokens of the window that are in use
}
