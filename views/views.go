// Package views draws pages: templ components and the plain structs they take.
//
// It does no I/O, knows no domain type and no clock, and decides nothing: every field is ready to show, and a text in
// it may be hostile (templ escapes it).
//
// Invariant: no inline script, no inline style and no address outside of our own origin, so that the strictest
// content policy holds; what a live stream swaps in is the very component that the page was made of.
package views

// Frame is the part around every page.
type Frame struct {
	Title    string
	Nav      string // the part of the site that the page belongs to: "sandboxes", "templates", "backups", "logs", "activity", "alerts", "volumes", "host", "settings" or ""
	Viewer   Person // the zero value when nobody is signed in
	Theme    string // "auto", "light" or "dark"
	Assets   Assets
	Live     Live
	Followed bool   // a part of the page follows for the frame too
	Alarm    string // sandboxd's own trouble, such as an engine that does not answer; or ""
	Alerts   int    // how many fire
	Here     string // path and query of this page, to come back to
	Plots    bool   // it has plots

	PlotsStyle bool   // it looks like pages with plots, and has none
	New        []Card // templates that the menu beside the button for a new sandbox has; none for no menu
}

// awaited names the scripts of the page.
func (f Frame) awaited() string {
	if f.Plots {
		return "app plots"
	}
	return "app"
}

// Live says how a page is kept up to date. The zero value is for pages that do not change, but for their frame.
type Live struct {
	Topic string // what to follow over the page's live connection
	Seen  string // query that says what the page shows, so that nothing is sent twice
}

// Assets are the addresses of the bundled files; "" where the bundle was not made.
type Assets struct {
	Style    string
	Script   Script
	Icon     string
	Touch    string // the icon for home screens, a picture
	Sans     string // the font of pages
	Mono     string // the font of terminals and code; only the workspace has it at once
	Licences string
	Problem  string // why there are none, and what to run
	// Only the workspace loads these.
	WorkspaceStyle  string
	WorkspaceScript Script
	// Only pages with plots load these.
	PlotsStyle  string
	PlotsScript Script
}

// Script is a script of a page, and those that it imports before it can run.
type Script struct {
	URL   string
	Needs []string
}

// Person is a user as others see one.
type Person struct {
	Name  string
	Admin bool
}

// Time is a moment, in three forms.
type Time struct {
	Machine  string // RFC 3339
	Absolute string `json:"-"` // for the tooltip
	Relative string `json:"-"` // "2 h ago"; not JSON, since pages compare that to see changes, and keep this fresh themselves
	Form     string // how Relative is written, for the module that keeps it fresh: "" or one of those below
}

// The forms of Time.Relative that are not the usual one.
const (
	UntilForm = "until" // at what time of day, with the day when that is not today: "18:28", "Sat 09:00"
	SpanForm  = "span"  // how long it has lasted: "2 h", also beyond a week
	LeftForm  = "left"  // how long it is until then: "2 h", also beyond a week
	AheadForm = "ahead" // when it is due: "in 2 h", "in 8 s", and "now" once that is over
)

// State is where something stands, with its tone, its icon and its word: never a colour alone.
type State struct {
	Tone  string // "good", "busy", "bad", "calm" or "still"
	Icon  string
	Text  string
	Why   string // the cause or the work in progress, or ""
	Notes []Note // where there is no Why: what keeps it there and what comes next, in order
	Title string // Notes in full, for the tooltip; or ""
	// Bar says how to draw progress: BarNone, BarUnknown, or percent done. Where Pace is known it is drawn instead.
	Bar  int
	Pace Pace
}

// Note is a few words beside a state, with the time that ends them: "freezes" and "in 12 min". Either may be empty.
type Note struct {
	Text string
	Time Time
}

// The values of State.Bar that are no percentage.
const (
	BarNone    = -2
	BarUnknown = -1
)

// Link leads somewhere in a sandbox.
type Link struct {
	Icon  string
	Text  string
	Title string // tooltip
	URL   string
	Port  string // the number, as a small addition to the text; or ""
}

// Action is something that can be done: a page to open, or a form to post.
type Action struct {
	Icon    string
	Text    string
	Hint    string // what it does, where its text does not say that; or ""
	URL     string
	Post    bool // post to URL instead of opening it
	Sheet   bool // open URL in a dialog where scripts run
	Primary bool
	Danger  bool
}

// title is the tooltip of its button.
func (a Action) title() string {
	if a.Hint == "" {
		return a.Text
	}
	return a.Text + ". " + a.Hint
}

// Field is one input of a form, with its value and its error.
type Field struct {
	Value string
	Fault string
}

// percent gives a bar's value as an attribute.
func (s State) unknown() bool { return s.Bar == BarUnknown }
func (s State) barred() bool  { return s.Bar > BarNone || s.Pace.on() }
