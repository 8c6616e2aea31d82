// Package chat keeps conversations of persons with agents that work in sandboxes: what was said, what was done, what waits, and what is asked.
//
// It knows no model and no protocol: a Driver works on a turn and tells what happens through it. It serves nobody: delivery reads, sends and
// subscribes.
//
// Invariant: what a reader was told is stored. Changes of a conversation are numbered without gaps, and a reader that names the last number
// that it saw gets all that changed since, once.
package chat

import (
	"encoding/json"
	"time"
)

// OwnAgent is the name of the agent that comes with sandboxd.
const OwnAgent = "sandboxd"

// State is what a conversation is doing.
type State string

// The states.
const (
	Idle    State = "idle"    // waits for a message
	Working State = "working" // a turn is under way
	Asking  State = "asking"  // a turn waits for a person's answer
	Failed  State = "failed"  // the last turn did not end well; Resume continues it
)

// Mode is what an agent does without asking.
type Mode string

// The modes.
const (
	AskChanges Mode = "ask"   // asks before anything that changes something
	AskRisky   Mode = "risky" // asks before what is risky
	Auto       Mode = "auto"  // asks nothing
)

// Asks reports whether a person is asked first, of an act that changes something or is risky.
func (m Mode) Asks(changes, risky bool) bool {
	return m == AskChanges && (changes || risky) || m == AskRisky && risky
}

// Conversation is a conversation without its items.
type Conversation struct {
	ID      string // 16 hex digits
	Sandbox string // id
	Owner   string // user id
	Title   string // of the first message, until it is renamed
	Agent   string // the driver's name
	Model   string // as the gateway knows it; "" for the agent's own choice
	Mode    Mode
	State   State
	Since   time.Time // since when it is in State
	Problem string    // Failed: why, a sentence for a person
	Held    bool      // messages that wait do so until the next one is sent; while a turn works: a person has stopped it
	Rev     int64     // number of the last change
	Items   int64     // number of the last item
	Turn    int64     // number of the last turn
	Used    Used
	From    string // id of the conversation that it is a branch of, or ""
	Created time.Time
	Changed time.Time

	Settings Settings
}

// Used is what a conversation has taken so far.
type Used struct {
	Input, Output, Cached int64 // tokens
	Cost                  int64 // millionths of a dollar; what has no price is not in it
	Unpriced              bool  // there was something without a price
	Context, Window       int64 // tokens of the last request, and how many its model takes; 0 when not known
	Bytes                 int64 // about what its items take in the store
}

// Kind is what an item is.
type Kind string

// The kinds of items.
const (
	Message    Kind = "message"    // a person's
	Text       Kind = "text"       // an agent's, Markdown
	Thinking   Kind = "thinking"   // an agent's
	CallItem   Kind = "call"       // a tool call; Data is a Call
	Question   Kind = "question"   // of an agent, also for leave to do something; Data is an Ask
	Plan       Kind = "plan"       // Data is []Step
	Notice     Kind = "notice"     // of sandboxd, such as why a turn ended
	Checkpoint Kind = "checkpoint" // Data is a Point
	Record     Kind = "record"     // of a driver, in Data; not shown
	RunItem    Kind = "run"        // code that a person runs: Output is its stdout, Text its stderr; Data is a Run
)

// Item is one thing in a conversation, in the order in which they began.
type Item struct {
	N      int64 // from 1, without gaps
	Turn   int64
	Kind   Kind
	Rev    int64  // number of the change that made it what it is
	Text   string // at most MaxText
	Output string // of a call or a run, what it wrote so far: at most MaxOutput
	Data   json.RawMessage
	Undone bool // its turn was undone
	Open   bool // it is not complete
	At     time.Time
}

// Call is a tool call.
type Call struct {
	ID     string          `json:"id"` // the model's
	Tool   string          `json:"tool"`
	Title  string          `json:"title,omitempty"` // what it does, for a person
	Args   json.RawMessage `json:"args,omitempty"`
	Code   string          `json:"code,omitempty"` // the very command or code that runs, or text that is written
	Path   string          `json:"path,omitempty"`
	Status string          `json:"status,omitempty"` // how it ended: "ok", "error", "denied", "cancelled" or "interrupted"
	Failed bool            `json:"failed,omitempty"`
	Result string          `json:"result,omitempty"` // what the model was told
	Diffs  []Diff          `json:"diffs,omitempty"`
	Exit   *int            `json:"exit,omitempty"`
	Took   time.Duration   `json:"took,omitempty"`
	// Pictures have a type and data.
	Pictures []File `json:"pictures,omitempty"`
}

// Diff is a change of a file.
type Diff struct {
	Path           string `json:"path"`
	Unified        string `json:"unified,omitempty"` // "" for a file that is too large, or no text
	Created        bool   `json:"created,omitempty"`
	Deleted        bool   `json:"deleted,omitempty"`
	Added, Removed int    // lines
	Cut            bool   `json:"cut,omitempty"`  // Unified is only the beginning
	Same           bool   `json:"same,omitempty"` // the old text and the new one are the same
}

// Ask is a question to the person.
type Ask struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`             // one line
	Text    string   `json:"text,omitempty"`    // exactly what will be done: the command, the file
	Call    int64    `json:"call,omitempty"`    // the item that waits for it
	Folder  string   `json:"folder,omitempty"`  // where it will be done; "" for the home
	Reasons []string `json:"reasons,omitempty"` // why it is risky, phrases
	Choices []Choice `json:"choices,omitempty"` // none: the answer is a text
	Free    bool     `json:"free,omitempty"`    // the answer may be a text in place of a choice
	Answer  string   `json:"answer,omitempty"`  // id of a choice, or the text; "" until it is answered
	By      string   `json:"by,omitempty"`      // user id of who answered; "" when it lapsed
	Lapsed  bool     `json:"lapsed,omitempty"`  // its turn ended first
}

// Choice is one answer.
type Choice struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style string `json:"style,omitempty"` // "allow", "always", "refuse" or ""
}

// Step is one of a plan.
type Step struct {
	Text  string `json:"text"`
	State string `json:"state"` // "pending", "in_progress" or "completed"
}

// Point is what a sandbox was before a turn.
type Point struct {
	Snapshot string `json:"snapshot"`       // id; "" when none could be taken
	Redo     string `json:"redo,omitempty"` // id of the snapshot that was taken before the turn was undone
	Problem  string `json:"problem,omitempty"`
}

// Queued is a message that waits for the turn under way to end.
type Queued struct {
	ID    string `json:"id"` // the sender's: the same again is one message
	User  string `json:"user"`
	Text  string `json:"text"`
	Files []File `json:"files,omitempty"`
	At    time.Time
}

// File is something beside a message. Its content is in the sandbox, or an image in Data, or both: Data is what it was when it was sent.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"`           // media type
	Path string `json:"path,omitempty"` // in the sandbox
	Data []byte `json:"data,omitempty"` // of an image, at most MaxImage with those of its message
}

// PictureTypes are the media types that Data may have.
var PictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Change is one numbered change of a conversation. What is nil has not changed.
type Change struct {
	Rev          int64
	Conversation *Conversation
	Items        []Item   // new, or in place of those before
	Appends      []Append // after Items
	Queue        *[]Queued
	Memory       json.RawMessage // what the driver keeps, in place of what it kept; readers do not get it
	Gone         bool            // the conversation was deleted; nothing follows
}

// Append is text at the end of an item.
type Append struct {
	N     int64
	Field Field
	At    int // bytes that were there before
	Text  string
}

// Field is a text of an item that grows.
type Field string

// The fields.
const (
	InText   Field = "text"
	InOutput Field = "output"
)

// Limits.
const (
	MaxText          = 1 << 20   // bytes of one item; more is a further item
	MaxOutput        = 256 << 10 // bytes of a call's Output
	MaxMessage       = 256 << 10 // bytes of a person's message
	MaxFiles         = 20        // beside one message
	MaxImage         = 5 << 20   // bytes of the pictures beside one message
	MaxSteps         = 200       // of a plan
	MaxStep          = 2000      // bytes of one
	MaxQueue         = 50        // messages that wait in one conversation
	MaxWaiting       = 10 << 20  // bytes of the pictures beside all of them
	MaxConversations = 1000      // of one sandbox
	MaxItems         = 100_000   // of one conversation
	MaxBytes         = 256 << 20 // of all its items, about
)
