// Package backup keeps the homes of sandboxes, their settings and, if asked, what they have changed elsewhere, as files: it makes them,
// checks them, and makes sandboxes of them again.
//
// How a home becomes entries of an archive is internal/archive's, and freezing the sandbox meanwhile the Manager's. It knows nothing of
// HTTP, and how a repository stores what it is given is internal/repository's.
//
// Invariant: a backup is offered only after it was read back and found to be what was written: a file as a whole, in a repository what is
// new of it. No sandbox is touched for an archive that was not checked to its end.
package backup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

// Bounds.
const (
	atOnce      = 2         // backups that are made at a time, and as many that are checked, and that are restored
	keptFailed  = 50        // failed ones that are remembered, until the next restart
	sweepEvery  = time.Hour // between two looks for those that are too old
	eventBuffer = 64
)

// Sandboxes is what this asks of sandbox.Manager.
type Sandboxes interface {
	Capture(ctx context.Context, ref sandbox.Ref, live bool, read func(context.Context, sandbox.Capture) error) error
	Restore(ctx context.Context, ref sandbox.Ref, fill func(context.Context, sandbox.Home) error) error
	RestoreWithRoot(ctx context.Context, ref sandbox.Ref, root sandbox.Rootfs, fill func(context.Context, sandbox.Home) error) error
	CreateFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin) (sandbox.Sandbox, error)
	Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// Config holds what a Service needs. All fields are needed but Repositories and Failed.
type Config struct {
	Folder       string // made when needed; nothing else may be in it
	Repositories Repositories
	Sandboxes    Sandboxes
	Version      string        // of sandboxd
	Keep         time.Duration // how long one is kept
	Disk         func() int64  // bytes of the disk that holds the homes, free or not
	Quota        int64         // bytes that all of one owner may take; 0 for no bound
	Log          *slog.Logger
	Failed       func(Backup) // is told of each that could not be made, unless it was cancelled; it must not block
}

// State says how far a backup is.
type State string

// The states of a backup.
const (
	Making State = "making"
	Ready  State = "ready" // and checked
	Failed State = "failed"
)

// Backup is one of a sandbox, which may be gone by now. It is a value.
type Backup struct {
	ID        string // 16 hex digits
	SandboxID string
	Sandbox   string // its name
	Owner     string // user id
	Template  string // or image
	Created   time.Time
	State     State
	Comparing bool  // its root file system is being read
	Checking  bool  // all is written and is being read back
	Size      int64 // bytes of the file, or that were added to the repository, so far
	Stats     archive.Stats
	Still     bool      // nothing in it ran meanwhile
	Root      bool      // it has what was changed of the root file system, too
	Problem   string    // why it failed, for a person
	Schedule  string    // id of the schedule that asked for it; "" when a person did
	Expires   time.Time // zero while its schedule decides that

	Repository  string // "" for the folder
	Unreachable string // why that cannot be reached now, for a person
}

// Change says that a backup has changed, or is gone, or that something about the restores to a sandbox has.
type Change struct {
	Backup  Backup
	Deleted bool
	Restore string // the sandbox's id; there is no Backup then
}

// Service makes and restores backups. Safe for concurrent use.
type Service struct {
	Config
	bus    *event.Bus[Change]
	places semaphore.Keyed
	life   context.Context
	end    context.CancelFunc
	works  sync.WaitGroup

	mu       sync.Mutex
	all      map[string]*entry
	restores map[string]context.CancelCauseFunc // under way, by the sandbox's id
	problems map[string]string                  // of the last restores that have failed, by the sandbox's id
	used     map[string]int64                   // bytes by owner, of those that are ready and of what is being written
}

// entry is a backup and the work on it.
type entry struct {
	Backup
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is made, or has failed
	kind   fault.Kind    // of Problem
}

// Open reads the folder, and removes what a crash has left there. A file that is no backup is left alone and logged. Unavailable when
// the folder cannot be used.
func Open(c Config) (*Service, error) {
	s := &Service{Config: c, bus: event.NewBus[Change](eventBuffer), all: map[string]*entry{}, used: map[string]int64{},
		restores: map[string]context.CancelCauseFunc{}, problems: map[string]string{}}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.readFolder(); err != nil {
		return nil, err
	}
	stored{s}.loadAll()
	return s, nil
}

// Run removes backups that are too old until ctx ends. Then it cuts off those that are being made, and returns when they have ended.
func (s *Service) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var following sync.WaitGroup
	following.Go(func() { stored{s}.follow(ctx) })
	defer following.Wait()
	defer context.AfterFunc(ctx, func() { // also while backups are being removed
		s.mu.Lock() // nothing is started from here on
		s.end()
		s.mu.Unlock()
	})()
	for {
		s.dropExpired(time.Now())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			<-s.life.Done()
			s.works.Wait()
			return nil
		}
	}
}

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }
