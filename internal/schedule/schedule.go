// Package schedule makes backups of sandboxes at set times, deletes those that need not be kept, and tests that they can be restored.
//
// How a backup is made, checked and restored is internal/backup's. It knows nothing of HTTP and of SQL, and wakes no sandbox.
//
// Invariant: a due time is run, or is on record as missed, also over a crash, a restart and a jump of the clock. A run of a schedule is
// alone, and retention deletes only backups that the same schedule made of the same sandbox, never the newest.
package schedule

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds.
const (
	MaxSchedules = 100 // of one owner
	MaxName      = 64  // bytes
	MaxKeep      = 999 // of each number of Keep
	KeptRuns     = 50  // of one schedule
)

// Kind says which sandboxes a schedule covers.
type Kind string

// The kinds. Members may have the first two, of their own sandboxes.
const (
	One        Kind = "sandbox"
	Mine       Kind = "mine" // all of the schedule's owner
	OfTemplate Kind = "template"
	All        Kind = "all"
)

// Target is what a schedule covers, as it is at each run.
type Target struct {
	Kind      Kind
	SandboxID string // of One
	Template  string // of OfTemplate
}

// Keep says how many backups of each sandbox stay: the last ones, and the newest one of each of the last days, weeks and months that
// have one. 0 for none of that sort. The newest backup always stays.
type Keep struct{ Last, Daily, Weekly, Monthly int }

// Schedule is a value.
type Schedule struct {
	ID         string // 16 hex digits
	Name       string // for people
	Owner      string // user id
	Cron       string // five fields, or @hourly, @daily, @weekly or @monthly
	Zone       string // IANA name
	Target     Target
	Repository string // where its backups go; "" for the backup folder
	Root       bool   // they have what was changed of the root file system, too
	Keep       Keep
	TestCron   string // when the newest backups are restored as a test; "" for never
	Enabled    bool
	Created    time.Time
	Changed    time.Time // when it was last changed or enabled

	Next     time.Time // when backups are due; zero while it is not enabled
	NextTest time.Time // as well; zero for never
}

// Work is what a run does.
type Work string

// The sorts of work.
const (
	Backups Work = "backup"
	Tests   Work = "test" // restores the newest backup of each sandbox
)

// State is where a run stands.
type State string

// The states. All but Running are final.
const (
	Running State = "running"
	Done    State = "done"    // its items say how it went
	Missed  State = "missed"  // it was not begun, because another run of the schedule was under way
	CutOff  State = "cut-off" // sandboxd ended meanwhile
)

// Run is one run of a schedule. It is a value, but for Items.
type Run struct {
	ID       string
	Schedule string // its id
	Work     Work
	State    State
	Due      time.Time // zero for one that a person started
	Missed   int       // due times that passed unnoticed before, which this run makes up for
	Began    time.Time
	Ended    time.Time // zero while it is Running
	Retry    time.Time // when what has failed is tried once more, while the run waits for that; it is not stored
	Problem  string    // why nothing was done; "" when Items say how it went
	Items    []Item    // by sandbox
}

// Item is what a run did for one sandbox.
type Item struct {
	SandboxID string    `json:"sandbox_id"`
	Sandbox   string    `json:"sandbox"`           // its name then
	Backup    string    `json:"backup,omitempty"`  // id of the one that was made or tested
	Problem   string    `json:"problem,omitempty"` // why there is none, or what is wrong with it
	Tries     int       `json:"tries,omitempty"`
	Temporary string    `json:"temporary,omitempty"` // name of the sandbox that the test restores into
	Ended     time.Time `json:"ended,omitzero"`      // zero for what is not done yet

	failed string // id of the backup that could not be made at the last try
}

// Failed counts the items with a problem.
func (r Run) Failed() (n int) {
	for _, i := range r.Items {
		if i.Problem != "" {
			n++
		}
	}
	return n
}

// Good reports whether all went well.
func (r Run) Good() bool { return r.State == Done && r.Problem == "" && r.Failed() == 0 }

// Store keeps schedules and their runs. Implementations pass StoreContract. Safe for concurrent use.
type Store interface {
	// Schedules gives all, the oldest first.
	Schedules(ctx context.Context) ([]Schedule, error)
	// Put adds a schedule, or changes the one with its id. NotFound when its owner is gone.
	Put(ctx context.Context, s Schedule) error
	// Delete deletes one with its runs; none is no error.
	Delete(ctx context.Context, id string) error
	// Begin adds a run, and sets when its schedule's next work of that sort is due, both or none; a zero next leaves that alone. Of too
	// many runs of a schedule it deletes the oldest. NotFound when the schedule is gone.
	Begin(ctx context.Context, r Run, next time.Time) error
	// PutRun changes a run. One that is gone stays so.
	PutRun(ctx context.Context, r Run) error
	// Runs gives the newest runs of a schedule, at most so many, the newest first.
	Runs(ctx context.Context, schedule string, limit int) ([]Run, error)
	// Unkept gives the backups that no schedule covers any more, and since when, by id.
	Unkept(ctx context.Context) (map[string]time.Time, error)
	// SetUnkept notes that; the zero time takes it back.
	SetUnkept(ctx context.Context, backup string, since time.Time) error
}

// Maker is what this asks of backup.Service.
type Maker interface {
	Begin(box sandbox.Sandbox, o backup.Options) (b backup.Backup, begun bool, err error)
	Wait(ctx context.Context, id string) (backup.Backup, error)
	List(wanted func(backup.Backup) bool) []backup.Backup
	Delete(id string) error
	SetExpires(id string, at time.Time)
}

// Tester is what this asks of backup.Tester.
type Tester interface {
	TestRestore(ctx context.Context, id, name string) error
}

// Sandboxes is what this asks of sandbox.Manager.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// Config holds what a Service needs. All fields are needed.
type Config struct {
	Store      Store
	Backups    Maker
	Tester     Tester
	Sandboxes  Sandboxes
	Keep       time.Duration                                          // of a backup that no schedule covers any more
	Admin      func(ctx context.Context, userID string) (bool, error) // whether a user may cover the sandboxes of others
	Template   func(name string) bool                                 // whether there is one of that name
	Repository func(name string) bool                                 // the same; it is not asked about ""
	Log        *slog.Logger
}

// NotFound says that there is no such schedule, or none that may be seen.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "There is no schedule %.64q. It may have been deleted.", id)
}
