package views

// SandboxBackups is the page of the backups of one sandbox.
type SandboxBackups struct {
	Frame  Frame
	Name   string // of the sandbox
	Title  string
	State  State
	BackUp BackUp
	Failed FailedRestore
	List   BackupList
	Upload ArchiveUpload
}

// Backups is the page of all backups.
type Backups struct {
	Frame    Frame
	Sandbox  LogChoice
	Filtered bool
	List     BackupList
	Upload   ArchiveUpload
}

// BackupList is the part of both pages that changes by itself.
type BackupList struct {
	Items    []Backup
	All      bool   // of all sandboxes
	Filtered bool   // only those of one, on the page of all
	Ready    int    // how many are ready
	Total    string // size of those
	Kept     string // how long each is kept
	Used     string // size of all of the person's own
	Quota    string // that they may take; "" for no bound
	Share    int    // percent of the quota that is used
	Planned  bool   // some are of schedules
}

// Backup is one backup in a list.
type Backup struct {
	ID       string
	About    string // the sandbox's name
	Sandbox  string // the same on the page of all; else ""
	URL      string // of the sandbox's backups; "" when it is deleted
	Deleted  bool   // its sandbox is
	Owner    string // when it is another's
	Made     Time
	Expires  Time // zero for one that has failed
	State    State
	Problem  string // why it failed
	Size     string
	Files    string // "3,400 files"
	Unpacked string // size of the home
	Running  bool   // its programs ran while it was made
	Root     bool   // it has the root file system, too
	Lost     string // "2 entries could not be kept"; or ""
	Losses   []Loss
	Making   bool
	Ready    bool
	Restores bool   // it can be restored to its sandbox
	Schedule string // name of the one that made it; or ""
	OfOne    string // its page; "" when it is deleted
	Tested   State  // how its last restore test went; no Text when there was none
	TestedAt Time

	Repository  string // that it is in; "" for the folder
	Unreachable string // why that cannot be reached now
	Next        string
}

// Loss is something that a backup lacks. One without a path says how many more there are.
type Loss struct {
	Path   string
	Reason string
}

func (b Backup) url(act string) string { return "/backups/" + b.ID + act }

// BackUp is the button that makes a backup.
type BackUp struct {
	URL  string
	Plan string // form of a schedule for it
	Next string
	Off  string   // why it cannot be done now; or ""
	To   []string // names of the repositories that it can be in
}

// FailedRestore says why the last restore to a sandbox has failed.
type FailedRestore struct {
	Problem string // "" when none has
	URL     string // of the sandbox's backups
	Dismiss string // takes the note away
	Next    string
}

// ArchiveUpload is the form that restores a file.
type ArchiveUpload struct {
	Name      string // of the sandbox; "" for a new one
	URL       string
	Cancel    string // what is deleted to cut off a restore; "" for a new sandbox
	Next      string // page to go to: of the sandbox, or what its name completes
	Templates []Option
}

// AboutBackup says in a sheet which backup it is about.
type AboutBackup struct {
	ID      string
	Sandbox string
	Made    Time
	Size    string
	Files   string
	Root    bool // it has the root file system, too

	Repository string // that it is in; "" for the folder
}

// RestoreBackup asks before a backup is restored.
type RestoreBackup struct {
	Frame     Frame
	About     AboutBackup
	Lost      []string
	SaveFirst bool
	HomeOnly  bool
	Fault     string
	Next      string
}

// NewFromBackup asks for the name of a new sandbox.
type NewFromBackup struct {
	Frame    Frame
	About    AboutBackup
	Template string // or image
	Name     Field
	Fault    string
	Next     string
}

// DeleteBackup asks before a backup is deleted.
type DeleteBackup struct {
	Frame Frame
	About AboutBackup
	Gone  bool // its sandbox is deleted
	Next  string
}
