package agent

import (
	"crypto/rand"
	"encoding/json"
)

// Role says whose a message is.
type Role string

// The roles. A tool's results are in a message of the user's.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of a transcript. It is plain data, independent of providers, and does not change once it is made.
type Message struct {
	ID    string `json:"id"` // unique in the transcript
	Role  Role   `json:"role"`
	Parts []Part `json:"parts,omitempty"`
	Auto  bool   `json:"auto,omitempty"` // written by the loop, not by the person
	Usage *Usage `json:"usage,omitempty"`
	Mark  *Mark  `json:"mark,omitempty"` // set: it has no parts, and says how the messages before are sent to the model
}

// Mark shortens what the model gets of a transcript. The transcript itself stays whole.
type Mark struct {
	Until   string `json:"until"`             // ID of the last message that it is about
	Summary string `json:"summary,omitempty"` // sent instead of all messages up to Until; "" means that only their long outputs are shortened
}

// PartKind says what a part is.
type PartKind string

// The kinds of parts.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking" // the model's, for itself
	PartImage    PartKind = "image"
	PartCall     PartKind = "call"
	PartResult   PartKind = "result"
)

// Part is a part of a message. The field that its kind names is set.
type Part struct {
	Kind   PartKind    `json:"kind"`
	Text   string      `json:"text,omitempty"` // of text and of thinking
	Opaque *Opaque     `json:"opaque,omitempty"`
	Image  *Image      `json:"image,omitempty"`
	Call   *Call       `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
}

// Opaque is what a provider added to a part of thinking and wants back unchanged. Other providers do not get it.
type Opaque struct {
	By        string `json:"by"` // the driver's name
	Signature string `json:"signature,omitempty"`
	Redacted  bool   `json:"redacted,omitempty"` // Signature is the thinking itself, encrypted
}

// Call is a call of a tool.
type Call struct {
	ID        string          `json:"id"` // unique in the transcript: letters, digits, _ and -, at most 64
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`        // always a JSON object
	Broken    string          `json:"broken,omitempty"` // the beginning of what the model sent, when that was no JSON object; Arguments is {} then
	problem   string
}

// Status says how a call ended.
type Status string

// The statuses.
const (
	OK          Status = "ok"
	Error       Status = "error"
	Denied      Status = "denied"      // a person said no
	Stopped     Status = "cancelled"   // the turn was cancelled or reached a limit
	Interrupted Status = "interrupted" // nobody knows how far it came: sandboxd stopped meanwhile
)

// ToolResult is what came of a call.
type ToolResult struct {
	CallID string  `json:"call_id"`
	Status Status  `json:"status"`
	Text   string  `json:"text,omitempty"`
	Images []Image `json:"images,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"` // without the cached ones
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Estimated  bool  `json:"estimated,omitempty"` // the provider did not say, or not all of it
}

// Total is all tokens, in and out.
func (u Usage) Total() int64 { return u.Context() + u.Output }

// Context is all tokens that went in.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// Plus adds up.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Estimated: u.Estimated || v.Estimated,
	}
}

// NewText makes a message of one text, with an ID.
func NewText(role Role, text string) Message {
	return Message{ID: newID(), Role: role, Parts: []Part{{Kind: PartText, Text: text}}}
}

// newID is for messages; newCallID for calls, whose IDs some providers want to be short.
func newID() string     { return rand.Text() }
func newCallID() string { return "call_" + rand.Text() }

// textPart makes a part of text.
func textPart(text string) Part { return Part{Kind: PartText, Text: text} }

// auto makes a message of the loop's own.
func auto(text string) Message {
	m := NewText(User, text)
	m.Auto = true
	return m
}

// calls gives the calls in a message.
func (m Message) calls() []Call {
	var all []Call
	for _, p := range m.Parts {
		if p.Kind == PartCall && p.Call != nil {
			all = append(all, *p.Call)
		}
	}
	return all
}
