// Package access is the one way to a sandbox. It says who may use which one, and gives those who may a Handle, through which
// they open it: for a terminal, a command, a proxied request.
//
// It knows no HTTP and no SSH: delivery says who asks. It does not decide what counts as use (the tracker does), and it
// changes no state itself: the Manager does.
//
// Invariant: a Handle is made by Resolve alone, and reaches the sandbox that was judged or none, even when another one has its name by then.
// A use is registered before the sandbox is asked to be awake and until Release, and a touch before its state is looked at.
// What puts a sandbox to rest writes the state first and asks for uses afterwards; so one of the two always sees the other,
// and nothing that counts finds the sandbox asleep.
package access

import (
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// Sandboxes finds sandboxes and wakes them. Implemented by sandbox.Manager, whose comments hold.
type Sandboxes interface {
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
	Tombstone(ctx context.Context, name string) (sandbox.Tombstone, error)
	Current(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Awake(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// Links gives the live link to the guest of the sandbox with that id, waiting for it until ctx ends; FromHub makes one.
type Links func(ctx context.Context, id string) (Guest, error)

// Uses is told of every use, by the sandbox's ID. Tracked makes one of an idle.Tracker.
type Uses interface {
	// Begin notes a use that lasts until its end, and Watch one that counts around its touches alone.
	Begin(id string, u idle.Use) Lease
	Watch(id string, u idle.Use) Lease
}

// Lease is a use under way. Implemented by idle.Lease.
type Lease interface {
	Touch(unattended bool)
	// End may be called more than once.
	End()
}

// Tracked has a tracker told of uses.
func Tracked(t *idle.Tracker) Uses { return tracked{t} }

type tracked struct{ t *idle.Tracker }

func (t tracked) Begin(id string, u idle.Use) Lease { return t.t.Begin(id, u) }
func (t tracked) Watch(id string, u idle.Use) Lease { return t.t.Watch(id, u) }

// Control judges who may use which sandbox. Safe for concurrent use.
type Control struct {
	sandboxes Sandboxes
	links     Links
	uses      Uses
	used      func(id string) // see Noting; never nil
}

// New makes a Control; uses is told of every use. It does no I/O.
func New(s Sandboxes, l Links, uses Uses) *Control {
	return &Control{sandboxes: s, links: l, uses: uses, used: func(string) {}}
}

// Noting has used called whenever a sandbox is really used: a command, a file, a page or a port of it, or a key in a terminal. That its
// page shows a terminal and its folders is none, as the page of a new sandbox does so at once. It must not block.
func (c *Control) Noting(used func(id string)) *Control {
	c.used = used
	return c
}

// note is for a use that begins.
func (c *Control) note(id string, u idle.Use) {
	if u.Kind != idle.Terminal && !u.Looks {
		c.used(id)
	}
}

// Claim is the grounds on which a caller asks for a sandbox.
type Claim interface {
	// Admits gives nil when these grounds allow the use of s, else the error for the caller.
	Admits(ctx context.Context, s sandbox.Sandbox) error
	// Missing gives the caller's error when there is no sandbox of that name. deleted is the one that had it lately, if any.
	Missing(ctx context.Context, name string, deleted *sandbox.Tombstone) error
}

// Resolve finds the sandbox called name for one who claims it: the only way from a name to a sandbox. It asks for the row
// once. The errors are the claim's: a sandbox that is not to be seen is to be NotFound in the words of one that is not there.
func (c *Control) Resolve(ctx context.Context, name string, by Claim) (Handle, error) {
	s, err := c.sandboxes.Sandbox(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && s.Pooled { // a pooled one is nobody's
		return Handle{}, c.missing(ctx, name, by)
	}
	if err == nil {
		err = by.Admits(ctx, s)
	}
	if err != nil {
		return Handle{}, err
	}
	p, ok := by.(principal)
	return Handle{control: c, sandbox: s, limited: ok && p.who.LimitedToken()}, nil
}

func (c *Control) missing(ctx context.Context, name string, by Claim) error {
	deleted, err := c.sandboxes.Tombstone(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return by.Missing(ctx, name, nil)
	}
	if err != nil {
		return err
	}
	return by.Missing(ctx, name, &deleted)
}

// By is the claim of one who is signed in or shows a token. A sandbox that they may not use is NotFound, like one that is not
// there; one that they might have used and that was deleted lately is Gone.
func By(who auth.Principal) Claim { return principal{who} }

type principal struct{ who auth.Principal }

// Admits implements Claim.
func (p principal) Admits(_ context.Context, s sandbox.Sandbox) error {
	if !p.who.May(s.Owner, s.ID) {
		return NotFound(s.Name)
	}
	return nil
}

// Missing implements Claim.
func (p principal) Missing(_ context.Context, name string, deleted *sandbox.Tombstone) error {
	if deleted == nil || !p.who.May(deleted.Owner, deleted.ID) {
		return NotFound(name)
	}
	return deleted.Gone()
}

// NotFound says that there is no such sandbox, or none that may be seen.
func NotFound(name string) error {
	return fault.New(fault.NotFound, "There is no sandbox called %.64q.", name)
}
