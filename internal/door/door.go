// Package door is the one way into a sandbox: whoever wants to use one (a terminal, a command, a proxied request)
// opens its door, and gets a live link to its guest.
//
// It does not decide who may come in (delivery does, before) and it changes no state itself: the Manager does.
//
// Invariant: a use is registered before the sandbox is asked to be awake and until Release, so that nothing puts it
// to sleep in between.
package door

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
)

// answerLimit is how long the guest of a running sandbox may take to be connected: after a restart of sandboxd it
// dials in again within a fraction of this.
const answerLimit = 5 * time.Second

// Waker gives a sandbox that runs, or says why not. Implemented by sandbox.Manager.
type Waker interface {
	Awake(ctx context.Context, name string) (sandbox.Sandbox, error)
}

// Sessions gives the live link to a guest, waiting for it until ctx ends. Implemented by link.Hub.
type Sessions interface {
	Session(ctx context.Context, id string) (*link.Session, error)
}

// Doors opens sandboxes. Safe for concurrent use.
type Doors struct {
	waker    Waker
	sessions Sessions

	mu   sync.Mutex
	uses map[string]map[string]int // sandbox name → use → how many
}

// New makes the doors. It does no I/O.
func New(w Waker, s Sessions) *Doors {
	return &Doors{waker: w, sessions: s, uses: map[string]map[string]int{}}
}

// Entry is one use of one sandbox, from Open to Release.
type Entry struct {
	Sandbox sandbox.Sandbox
	Session *link.Session
	release func()
}

// Release ends the use. It may be called more than once.
func (e *Entry) Release() { e.release() }

// Open registers a use (a short word such as "terminal" or "exec") of the sandbox called name and gives its live link.
// It blocks while the sandbox is on its way up, until ctx ends. NotFound, Conflict (stopped or failed, the message
// says so), Unavailable (the guest does not answer), Timeout.
func (d *Doors) Open(ctx context.Context, name, use string) (*Entry, error) {
	e := &Entry{release: sync.OnceFunc(func() { d.count(name, use, -1) })}
	d.count(name, use, 1)
	err := d.enter(ctx, name, e)
	if err != nil {
		e.Release()
		return nil, err
	}
	return e, nil
}

func (d *Doors) enter(ctx context.Context, name string, e *Entry) (err error) {
	if e.Sandbox, err = d.waker.Awake(ctx, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	e.Session, err = d.sessions.Session(ctx, e.Sandbox.ID)
	if err != nil && ctx.Err() != nil {
		return fault.Wrap(err, fault.Unavailable, "%s runs, but the program inside it does not answer. Restart it if this lasts.", name)
	}
	return err
}

// Uses tells how many uses of each kind a sandbox has now.
func (d *Doors) Uses(name string) map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]int, len(d.uses[name]))
	for use, n := range d.uses[name] {
		out[use] = n
	}
	return out
}

func (d *Doors) count(name, use string, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uses[name] == nil {
		d.uses[name] = map[string]int{}
	}
	d.uses[name][use] += by
	if d.uses[name][use] == 0 {
		delete(d.uses[name], use)
	}
	if len(d.uses[name]) == 0 {
		delete(d.uses, name)
	}
}
