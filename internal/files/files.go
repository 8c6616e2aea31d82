// Package files lets programs and pages use the files of sandboxes: read, write, list, move, search, watch, and whole
// folders as archives. It opens the sandbox, which wakes it, and asks its guest, who does everything as the
// sandbox's user.
//
// It does not decide who may use which sandbox (delivery does, before), it knows nothing about HTTP, and it never touches a
// file itself.
//
// Invariant: both ends contain. A path is judged here by its text before it goes to a guest, and there by the files on the
// disk; an archive is judged here entry by entry in either direction, so that no entry of one reaches outside the requested
// folder. Whatever comes from a guest is bounded in size, flows only as fast as it is read, and ends when nothing moves for
// a minute; what it cuts off is an error and never looks whole.
package files

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/semaphore"
)

// Bounds on concurrent transfers and their length.
const (
	openLimit    = 60 * time.Second // until the sandbox is awake and its guest is there
	callLimit    = 2 * time.Minute  // for what moves no content: a list, a rename
	workLimit    = 30 * time.Minute // for what the guest does to whole trees: a copy, a delete
	searchLimit  = 2 * time.Minute
	stallLimit   = 60 * time.Second // a transfer in which nothing moves for so long is ended
	maxTransfers = 32               // in one sandbox
	maxArchives  = 4                // in one sandbox; each of them is a transfer too
	maxCalls     = 32               // other than transfers, per sandbox; each may hold a list of some megabytes
	maxWaiting   = 256              // for one of those
	callPatience = 20 * time.Second // of who waits
	copyBuffer   = 256 << 10
)

// buffers are for copying.
var buffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Service uses files. Every method takes the sandbox first and a path that CheckPath takes. Unless it says otherwise it
// wakes the sandbox and counts as its use; kinds are NotFound (no such file), Gone (the sandbox is), Conflict (the sandbox does not
// run, or the existing file does not allow it), Invalid, Forbidden (the sandbox's user may not), Limited (too much at once),
// Unavailable, Timeout. Safe for concurrent use.
type Service struct {
	stall  time.Duration
	spools spools

	transfers semaphore.Keyed // under way, by sandbox
	archives  semaphore.Keyed
	calls     semaphore.Keyed
}

// New makes a Service that keeps in folder what does not fit in memory; "" is where the system has temporary files. The folder
// is made when it is needed. It does no I/O.
func New(folder string) *Service {
	return &Service{stall: stallLimit, spools: spools{folder: folder, most: spoolsMost}}
}

// call runs what takes a moment or does its work within the guest.
func (s *Service) call(ctx context.Context, h access.Handle, doing string, limit time.Duration, f func(ctx context.Context, g access.Guest) error) error {
	leave, err := s.enterCall(ctx, h)
	if err != nil {
		return err
	}
	defer leave()
	session, err := open(ctx, h, doing)
	if err != nil {
		return err
	}
	defer session.Release()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx, session.Guest)
}

// open wakes the sandbox, which is in use until Release.
func open(ctx context.Context, h access.Handle, doing string) (*access.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return h.Open(ctx, idle.Use{Kind: idle.Files, Detail: doing, Looks: slices.Contains(looks, doing)})
}

// looks are the calls by which a page shows what there is.
var looks = []string{"stat", "list", "search", "trash"}

// enterCall counts a call in as soon as there is room: a page asks for all the folders that it shows at once. The caller must call
// leave.
func (s *Service) enterCall(ctx context.Context, h access.Handle) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	leave, err = h.Acquire(waiting, &s.calls, maxCalls, maxWaiting)
	switch {
	case errors.Is(err, semaphore.ErrFull):
		err = tooMuch(maxCalls+maxWaiting, "requests about files", h.Name())
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = tooMuch(maxCalls, "requests about files", h.Name())
	}
	return leave, err
}

func tooMuch(most int, what, name string) error {
	return fault.New(fault.Limited, "%d %s are under way in %s. Wait until one has ended.", most, what, name)
}

// enter counts something in, or refuses it when too much is under way. The caller must call leave.
func enter(n *semaphore.Keyed, h access.Handle, most int, what string) (leave func(), err error) {
	leave, err = h.Acquire(context.Background(), n, most, 0)
	if err != nil {
		return nil, tooMuch(most, what, h.Name())
	}
	return leave, nil
}
