package views

// Schedules is the page of all schedules of backups.
type Schedules struct {
	Frame Frame
	List  ScheduleList
}

// ScheduleList is the part of it that changes by itself.
type ScheduleList struct {
	Items []Schedule
	Kept  string // how long the backups of a deleted one are kept
}

// Schedule is one schedule in a list, and the head of its own page.
type Schedule struct {
	ID      string
	Name    string
	Owner   string // when it is another's
	When    string // "Every day at 03:30"
	Zone    string
	Target  string // "lab", "All my sandboxes"
	URL     string // of the sandbox's backups; or ""
	Place   string // the repository that its backups go to; "" for the backup folder
	Root    bool   // they have the root file system, too
	Keep    string // "keeps the last 3 and one a day for 7 days"
	Test    string // "restore test every week on Sunday at 05:00"; or ""
	Next    Time   // zero while it is paused
	Paused  bool
	Over    bool  // its sandbox is deleted
	Last    State // how the last run went
	Began   Time  // the last run
	Running bool
	Tests   bool // it has backups that can be tested
	Back    string
}

func (s Schedule) url(act string) string { return "/schedules/" + s.ID + act }

// ScheduleDetail is the page of one schedule.
type ScheduleDetail struct {
	Frame    Frame
	Schedule Schedule
	Runs     []ScheduleRun
}

// ScheduleRun is one run.
type ScheduleRun struct {
	ID      string
	Work    string // "Backups" or "Restore test"
	State   State
	Began   Time
	Due     string // "due at 03:30 CET", "started by hand"
	Took    string // "12 s"; or ""
	Notes   []string
	Problem string
	Items   []RunItem
	Summary string // "4 sandboxes"
	Open    bool   // they show at once: some failed, or are not done
}

// RunItem is what a run did for one sandbox.
type RunItem struct {
	Sandbox string
	URL     string // of its backup; "" when there is none any more
	Size    string // of that
	State   State
	Problem string
}

// ScheduleForm makes a schedule, or changes one.
type ScheduleForm struct {
	Frame   Frame
	ID      string // "" for a new one
	Fault   string
	Name    Field
	Target  LogChoice
	Place   LogChoice // the repositories, if there are any
	Root    bool
	Every   LogChoice
	At      Field // "03:30"
	Weekday LogChoice
	Cron    Field
	Zone    Field
	OwnZone bool // a script may put the browser's zone in
	Last    Field
	Daily   Field
	Weekly  Field
	Monthly Field
	Keep    Field // its fault is about all four
	Test    LogChoice
	Preview SchedulePreview
	Next    string
}

func (f ScheduleForm) title() string {
	if f.ID == "" {
		return "New backup schedule"
	}
	return "Edit schedule"
}

func (f ScheduleForm) url() string {
	if f.ID == "" {
		return "/schedules"
	}
	return "/schedules/" + f.ID + "/edit"
}

// focus gives the name of the input to begin with.
func (f ScheduleForm) focus() string {
	return firstFault(f.ID == "", namedField{"name", f.Name}, namedField{"target", f.Target.Field}, namedField{"repository", f.Place.Field}, namedField{"at", f.At}, namedField{"cron", f.Cron}, namedField{"zone", f.Zone},
		namedField{"last", f.Keep})
}

// SchedulePreview says what a schedule that is being entered will do.
type SchedulePreview struct {
	Times []string
	Fault string
	Keep  string
}

// DeleteSchedule asks before a schedule is deleted.
type DeleteSchedule struct {
	Frame   Frame
	ID      string
	Name    string
	Backups string // "Its 4 backups are kept for 7 d more."; or ""
	Next    string
}
