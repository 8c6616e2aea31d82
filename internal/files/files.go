// Package files lets programs and pages use the files of sandboxes: read, write, list, move, search, watch, and whole
// folders as archives. It opens the sandbox's door, which wakes it, and asks its guest, who does everything as the
// sandbox's user.
//
// It does not decide who may use which sandbox (delivery does, before), it knows nothing about HTTP, and it never touches a
// file itself.
//
// Invariant: both ends contain. A path is judged here by its text before it goes to a guest, and there by what is on the
// disk; an archive is judged here entry by entry in either direction, so that no entry of one reaches outside of what was
// asked. Whatever comes from a guest is bounded in size, flows only while somebody takes it, and ends when nothing moves for
// a minute; what it cuts off is an error and never looks whole.
package files

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"sandboxd/internal/door"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/wire"
)

// Bounds on what goes on at once and for how long.
const (
	openLimit    = 60 * time.Second // until the sandbox is awake and its guest is there
	callLimit    = 2 * time.Minute  // for what moves no content: a list, a rename
	workLimit    = 30 * time.Minute // for what the guest does to whole trees: a copy, a delete
	searchLimit  = 2 * time.Minute
	stallLimit   = 60 * time.Second // a transfer in which nothing moves for so long is ended
	maxTransfers = 32               // in one sandbox
	maxArchives  = 4                // in one sandbox; each of them is a transfer too
	maxCalls     = 32               // in one sandbox, of what is no transfer; each may hold a list of some megabytes
	maxWaiting   = 256              // for one of those
	callPatience = 20 * time.Second // of who waits
	copyBuffer   = 256 << 10
)

// buffers are for what is copied.
var buffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Guest is what files ask of the program inside a sandbox. Implemented by link.Session, whose comments hold.
type Guest interface {
	contentGuest
	treeGuest
	trashGuest
	archiveGuest
	watchGuest
}

type contentGuest interface {
	Hello() wire.Hello
	FileStat(ctx context.Context, path string) (wire.Entry, error)
	FileList(ctx context.Context, path, after string, limit int) (wire.Listing, error)
	FileRead(ctx context.Context, path string, offset, length int64) (wire.Entry, io.ReadCloser, error)
	FileWrite(ctx context.Context, put wire.FilePut, body io.Reader) (wire.Written, error)
	FileUpload(ctx context.Context, path, upload string) (offset int64, err error)
	FileAbandon(ctx context.Context, path, upload string) error
}

type treeGuest interface {
	FileMkdir(ctx context.Context, path string, parents bool) error
	FileMove(ctx context.Context, from []string, to string, overwrite bool) error
	FileRename(ctx context.Context, from, to string, overwrite bool) error
	FileCopy(ctx context.Context, from []string, to string, overwrite bool) error
	FileChmod(ctx context.Context, path string, mode uint32) error
	FileTouch(ctx context.Context, path string, modified time.Time) error
	FileLink(ctx context.Context, path, target string) error
}

type trashGuest interface {
	FileDelete(ctx context.Context, paths []string, permanent bool) ([]wire.Trashed, error)
	FileRemove(ctx context.Context, path string, only wire.Only) error
	FileTrash(ctx context.Context) ([]wire.Trashed, error)
	FileRestore(ctx context.Context, ids []string) error
	FileEmptyTrash(ctx context.Context, ids []string) error
}

type archiveGuest interface {
	FilePack(ctx context.Context, base string, names []string) (io.ReadCloser, error)
	FileUnpack(ctx context.Context, path string, keepLinks bool, body io.Reader) (wire.Unpacked, error)
}

type watchGuest interface {
	FileSearch(ctx context.Context, search wire.Search, emit func(wire.Found) error) (more bool, err error)
	FileWatch(ctx context.Context, paths []string, emit func(folder string) error) error
}

// Way gives the guest of a sandbox; Through makes one. What Open gives must be released.
type Way interface {
	// Open wakes the sandbox, which is in use until Release. Kinds: NotFound, Gone, Conflict (it does not run), Unavailable.
	Open(ctx context.Context, name, doing string) (Opened, error)
	// Look is no use and wakes nothing: Conflict for one that rests.
	Look(ctx context.Context, name string) (Guest, error)
}

// Opened is a sandbox that is in use until Release.
type Opened struct {
	Guest   Guest
	Owner   string // whose it is
	Release func()
}

// Doors opens sandboxes. Implemented by door.Doors.
type Doors interface {
	Open(ctx context.Context, name string, u idle.Use) (*door.Entry, error)
	Look(ctx context.Context, name string) (*door.Entry, error)
}

// Through makes the Way that goes through sandboxes' doors and over their guests' links.
func Through(d Doors) Way { return way{d} }

type way struct{ doors Doors }

func (w way) Open(ctx context.Context, name, doing string) (Opened, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	e, err := w.doors.Open(ctx, name, idle.Use{Kind: idle.Files, Detail: doing})
	if err != nil {
		return Opened{}, err
	}
	return Opened{Guest: e.Session, Owner: e.Sandbox.Owner, Release: e.Release}, nil
}

func (w way) Look(ctx context.Context, name string) (Guest, error) {
	e, err := w.doors.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.Session, nil
}

// Service uses files. Every method takes the sandbox's name first and a path that CheckPath takes. Unless it says otherwise it
// wakes the sandbox and counts as its use; kinds are NotFound (no such sandbox or file), Gone, Conflict (the sandbox does not
// run, or what is there does not allow it), Invalid, Forbidden (the sandbox's user may not), Limited (too much at once),
// Unavailable, Timeout. Safe for concurrent use.
type Service struct {
	way    Way
	stall  time.Duration
	spools spools

	mu        sync.Mutex
	transfers map[string]int // under way, by sandbox
	archives  map[string]int
	calls     semaphore.Keyed
}

// New makes a Service. It does no I/O. The little that it must keep on a disk goes where the system has temporary files.
func New(w Way) *Service { return NewIn("", w) }

// NewIn is New for a Service that keeps in folder what does not fit in memory. That is made when it is needed.
func NewIn(folder string, w Way) *Service {
	return &Service{way: w, stall: stallLimit, spools: spools{folder: folder, most: spoolsMost},
		transfers: map[string]int{}, archives: map[string]int{}}
}

// call runs what takes a moment or does its work within the guest.
func (s *Service) call(ctx context.Context, name, doing string, limit time.Duration, f func(ctx context.Context, g Guest) error) error {
	leave, err := s.enterCall(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	box, err := s.way.Open(ctx, name, doing)
	if err != nil {
		return err
	}
	defer box.Release()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx, box.Guest)
}

// enterCall counts a call in as soon as there is room: a page asks for all the folders that it shows at once, and a program that
// copies a tree over SFTP for as much as it may. The caller must call leave.
func (s *Service) enterCall(ctx context.Context, name string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	leave, err = s.calls.Acquire(waiting, name, maxCalls, maxWaiting)
	switch {
	case errors.Is(err, semaphore.ErrFull):
		err = tooMuch(maxCalls+maxWaiting, "requests about files", name)
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = tooMuch(maxCalls, "requests about files", name)
	}
	return leave, err
}

func tooMuch(most int, what, name string) error {
	return fault.New(fault.Limited, "%d %s are under way in %s. Wait until one has ended.", most, what, name)
}

// enter counts something in, or refuses it when too much is under way. The caller must call leave.
func (s *Service) enter(n map[string]int, name string, most int, what string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n[name] >= most {
		return nil, tooMuch(most, what, name)
	}
	n[name]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n[name]--; n[name] == 0 {
			delete(n, name)
		}
	}), nil
}
