package views

// SandboxSnapshots is the page of the snapshots of one sandbox.
type SandboxSnapshots struct {
	Frame      Frame
	Name       string // of the sandbox
	Title      string
	ClonedFrom string // name then of the sandbox that it is a clone of; "" for none
	State      State
	Take       TakeSnapshot
	Restored   Restored
	Failed     string // why the last restore or clone has failed; or ""
	List       SnapshotList
}

// TakeSnapshot are the buttons for the sandbox as it is now.
type TakeSnapshot struct {
	URL   string // of the form
	Clone string // of the other form
	Off   string // why neither can be done now; or ""
}

// Restored says what a sandbox was restored to, and offers to undo that. It is empty without Undo.
type Restored struct {
	Updated bool // it was updated to a newer image, and not restored

	To   string // name of the snapshot; "" when it has none
	Made Time   // when that was taken
	Undo string // what is posted to undo it
	Warn string // what did not succeed of it; or ""
	Off  string // why it cannot be undone now; or ""
	Next string
}

func (r Restored) tone() string {
	if r.Warn != "" {
		return "busy"
	}
	return "good"
}

func (r Restored) icon() string {
	if r.Warn != "" {
		return "warn"
	}
	return "check"
}

// SnapshotList is the part of the page that changes by itself.
type SnapshotList struct {
	Items []Snapshot
	Foot  string // how many there are, and how long automatic ones are kept
}

// Snapshot is one snapshot in a list.
type Snapshot struct {
	ID       string
	URL      string // of what can be done with it, which an action completes
	Box      string // query that names the sandbox by its id
	Clone    string // the form that clones it
	Name     string // "" when it has none
	About    string // the same, or when it was taken: for labels
	Note     string
	Made     Time
	Kind     string // "automatic", "before a restore or update" or ""
	Rail     Rail
	Current  bool // the sandbox is based on it
	State    State
	Making   bool
	Ready    bool
	Problem  string // why it failed
	Size     string
	Files    string // "3,400 files"; "" when they were not counted
	Memory   string // what it has of the memory of programs; or ""
	Paused   string // how long the sandbox was paused for it; or ""
	Running  bool   // its programs ran meanwhile
	Lost     string // "2 entries could not be kept"; or ""
	Losses   []Loss
	Restores bool // the sandbox can be restored to it now
	Next     string

	Templates bool // its viewer can make a template of it
}

// Rail is how a snapshot hangs together with those above and below it in the list: as lines at its left.
type Rail struct {
	Lane  int    // from 0: how many lines pass at its left
	Above bool   // one that came after it is above it, on the same line
	Below bool   // the one before it is below it, on the same line
	Joins bool   // the same, on the line at its left
	From  string // of one that joins: the one that it came after, in words
}

func (r Rail) passing() []struct{} { return make([]struct{}, r.Lane) }

func (s Snapshot) url(act string) string { return s.URL + act + s.Box }

// AboutSnapshot says in a sheet which snapshot it is about.
type AboutSnapshot struct {
	Name  string // "" when it has none
	Made  Time
	Size  string
	Files string
	// Memory is how much it has of the memory of programs; "" for none.
	Memory string
}

// NewSnapshot is the form that takes a snapshot.
type NewSnapshot struct {
	Frame Frame
	URL   string
	Box   string // the sandbox's name
	Means string // what happens to the sandbox meanwhile
	Name  Field
	Note  Field
	Fault string
	Next  string

	OffersMemory bool  // that of programs can be kept
	Memory       Field // "on" when it is to be
}

// EditSnapshot is the form for the name and the note of a snapshot.
type EditSnapshot struct {
	Frame Frame
	About AboutSnapshot
	URL   string
	Name  Field
	Note  Field
	Fault string
	Next  string
}

// SnapshotTemplate is the form that makes a template of a snapshot.
type SnapshotTemplate struct {
	Frame       Frame
	About       AboutSnapshot
	URL         string
	Takes       string // what of the sandbox and of its template
	Most        string // of a home
	Name        Field
	Description Field
	Home        bool
	HomeFault   string
	Fault       string
	Next        string
}

// RestoreSnapshot asks before a sandbox is restored to a snapshot.
type RestoreSnapshot struct {
	Frame Frame
	About AboutSnapshot
	Box   string
	URL   string
	Means []string // what happens, as sentences
	Fault string
	Next  string
}

// DeleteSnapshot asks before a snapshot is deleted.
type DeleteSnapshot struct {
	Frame Frame
	About AboutSnapshot
	URL   string
	Next  string
}

// CloneSandbox is the form that clones a sandbox.
type CloneSandbox struct {
	Frame  Frame
	About  AboutSnapshot // that it is cloned from; empty for the sandbox as it is
	Now    bool          // as it is
	Memory bool          // with the memory of programs
	Box    string
	URL    string
	Means  string // what happens to the sandbox meanwhile; or ""
	Name   Field
	Count  Field
	Most   string
	Fault  string
	Next   string
}

// SnapshotDiff shows what has changed since a snapshot.
type SnapshotDiff struct {
	Frame     Frame
	Name      string
	Title     string
	Snapshots string // URL of the page of snapshots
	About     AboutSnapshot
	Fault     string // why nothing is known
	Total     string
	Changes   []Change
	Path      string // of the file that is shown, "" for none
	File      FileDiff
}

// Change is something that has changed.
type Change struct {
	Path   string
	URL    string // that shows its lines; "" for a folder
	Change string // "added", "changed" or "deleted"
	Size   string // or what it is
}

// tone is that of the change.
func (c Change) tone() string {
	switch c.Change {
	case "added":
		return "good"
	case "deleted":
		return "bad"
	}
	return "busy"
}

// FileDiff is what has changed in a file.
type FileDiff struct {
	Path  string
	Fault string
	Cut   bool   // only the beginning was compared
	Says  string // why there are no lines
	Lines []DiffLine
}

// DiffLine is a line of a file, with its sign.
type DiffLine struct {
	Kind string
	Text string
}

// The kinds of lines, which are their classes.
const (
	LineSame    = "same"
	LineAt      = "at" // says where in the file the next ones are
	LineAdded   = "added"
	LineDeleted = "deleted"
)
