// Package template keeps the templates that admins make here, written in a page or fetched from git repositories, and rebuilds images of
// all templates: when asked, and at set times, with a record of builds.
//
// What a template must be, and how an image is built, is internal/catalog's; git is internal/git's. It knows nothing of HTTP and of SQL.
//
// Invariant: the folder of a template is a link to a version that is complete, was checked, and is never changed. A change makes a new
// version beside it and then moves the link, so that a crash, or a change that is refused, leaves the former one.
package template

import (
	"context"
	"log/slog"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/git"
)

// Bounds.
const (
	MaxText     = 256 << 10 // bytes of one file that is shown and written here
	MaxFiles    = 200       // of a template that is written here
	MaxBytes    = 32 << 20  // of those together
	KeptBuilds  = 20        // records of one template
	maxOwn      = 200       // templates
	maxMessage  = 2000      // bytes of a problem
	eventBuffer = 64
)

// Origin says where a template is from.
type Origin string

// The origins. Only those of Own can be changed here.
const (
	Shipped Origin = "shipped" // with sandboxd, or in a folder of the configuration
	Own     Origin = "own"
	Git     Origin = "git"
)

// Source is where a template is fetched from, as it is stored. It is a value.
type Source struct {
	Template string
	URL      string
	Ref      string // branch or tag; "" for the default branch
	Path     string // folder in the repository; "" for all of it
	Secret   []byte // sealed; nil for none
	HostKeys string // of the ssh host, as lines of a known_hosts file
	Commit   string // that was fetched last
	Date     time.Time
	Fetched  time.Time // when it was last looked at with success
	Tried    time.Time // when it was last looked at
	Problem  string    // why that failed; "" when it did not
}

// Plan says when a template is rebuilt without being asked. It is a value.
type Plan struct {
	Template string
	Cron     string
	Zone     string // IANA name
	NoCache  bool   // run every step again
	Next     time.Time
}

// State is how a build stands.
type State string

// The states. All but Running are final.
const (
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	CutOff    State = "cut-off"   // sandboxd ended meanwhile
	Cancelled State = "cancelled" // by a user, as Problem says
)

// Build is the record of one build. It is a value.
type Build struct {
	ID       int64 // grows
	Template string
	Ref      string // of the image; "" when it did not come to that
	Commit   string // of a template from git; ""
	Why      string // as catalog.Order has it
	By       string
	State    State
	Problem  string
	Began    time.Time
	Ended    time.Time // zero while it is Running
	Log      string    // "" in lists
}

// Store keeps sources, plans and builds. Implementations pass templatetest.StoreContract. Safe for concurrent use.
type Store interface {
	// Sources gives all, by template.
	Sources(ctx context.Context) ([]Source, error)
	// PutSource adds a source, or replaces the one of its template.
	PutSource(ctx context.Context, s Source) error
	// DeleteSource deletes that of a template; none is no error.
	DeleteSource(ctx context.Context, template string) error
	// Plans gives all, by template.
	Plans(ctx context.Context) ([]Plan, error)
	// PutPlan adds a plan, or replaces the one of its template.
	PutPlan(ctx context.Context, p Plan) error
	// DeletePlan deletes that of a template; none is no error.
	DeletePlan(ctx context.Context, template string) error
	// Begin adds a build and gives its id. Of more than KeptBuilds of a template it deletes the oldest.
	Begin(ctx context.Context, b Build) (id int64, err error)
	// End keeps how a build has ended. One that is gone stays so.
	End(ctx context.Context, b Build) error
	// Builds gives the newest builds of a template without their logs, the newest first.
	Builds(ctx context.Context, template string) ([]Build, error)
	// Build gives one with its log. NotFound if there is none of that id and template.
	Build(ctx context.Context, template string, id int64) (Build, error)
	// Cut marks the builds as cut off that have no end.
	Cut(ctx context.Context, at time.Time) error
	// DeleteBuilds deletes those of a template.
	DeleteBuilds(ctx context.Context, template string) error
}

// Sealer encrypts for a purpose. Implemented by seal.Key.
type Sealer interface {
	Seal(purpose string, text []byte) ([]byte, error)
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Templates is what this asks of catalog.Catalog.
type Templates interface {
	List() []catalog.Entry
	Template(name string) (catalog.Template, error)
	Check(name string, files map[string][]byte) []catalog.Problem
	CheckFolder(name, dir string) []catalog.Problem
	BuiltOn(name string) []string
}

// Fetcher is what this asks of git.Client.
type Fetcher interface {
	Fetch(ctx context.Context, s git.Source, work string) (git.Revision, error)
}

// Config holds what a Service needs. All fields are needed, but for Failed.
type Config struct {
	Folder    string // of the templates that are made here; the catalog reads it last
	Store     Store
	Seal      func() (Sealer, error) // asked for at first need
	Git       Fetcher
	Templates Templates
	Roots     Roots
	Build     func(name string, o catalog.Order) error                               // catalog.Images.Build
	Users     func(ctx context.Context, template string) (names []string, err error) // the sandboxes of a template
	Log       *slog.Logger
	// Failed is told of a rebuild that was due and could not even be begun, or of a fetch that failed. It must not block.
	Failed func(template string, scheduled bool, why error)
}

// Change says that a template's files, source, plan or builds have changed.
type Change struct{ Template string }

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }

// ErrChanged says that a template is not any more as the caller has seen it.
var ErrChanged = fault.New(fault.Conflict, "The template has been changed meanwhile. Both versions are kept: look at the other one, then save again.")

// errClosing says that nothing is begun any more.
var errClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// NoBuild says that there is no such build.
func NoBuild(template string, id int64) error {
	return fault.New(fault.NotFound, "There is no build %d of the template %.64s. The last %d are kept.", id, template, KeptBuilds)
}
