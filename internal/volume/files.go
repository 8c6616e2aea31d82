package volume

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

// readyLimit is how long the program that serves a volume's files may take from its start until it has reported.
const readyLimit = 30 * time.Second

// Guests is the volumes' end of the guest link, by LinkID. Safe for concurrent use.
type Guests interface {
	// Expect lets a guest dial in, and gives the folder of its link.
	Expect(id string, s sandbox.Setup) (folder string, err error)
	// Ready blocks until it has reported, or ctx ends.
	Ready(ctx context.Context, id string) error
	// Connected reports whether it is there now.
	Connected(id string) bool
	// Forget stops listening for it, and removes the folder.
	Forget(id string) error
}

// LinkID is the id of a volume's link. No sandbox has such an id.
func LinkID(id string) string { return "volume-" + id }

// Files lets access open volumes as it opens sandboxes: to it each is a sandbox of the volume's id and name, which is asleep unless the
// program that serves its files runs, and is woken by starting that. It implements access.Sandboxes and access.Uses. Safe for concurrent
// use.
type Files struct {
	service *Service
	guests  Guests
	turns   semaphore.Keyed // one start or end at a time of a volume

	mu   sync.Mutex
	uses map[string]*serving // by volume
}

// serving is what uses a volume's files, and when something has last.
type serving struct {
	uses int
	last time.Time
}

var (
	_ access.Sandboxes = (*Files)(nil)
	_ access.Uses      = (*Files)(nil)
)

// row is a volume as access sees it. It has no owner.
func (f *Files) row(v Volume) sandbox.Sandbox {
	s := sandbox.Sandbox{ID: v.ID, Name: v.Name, State: sandbox.Asleep, Created: v.Created}
	if f.guests.Connected(LinkID(v.ID)) {
		s.State = sandbox.Running
	}
	return s
}

// Sandbox implements access.Sandboxes.
func (f *Files) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	v, err := f.service.Volume(name)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return f.row(v), nil
}

// Tombstone implements access.Sandboxes: volumes have none.
func (f *Files) Tombstone(_ context.Context, name string) (sandbox.Tombstone, error) {
	return sandbox.Tombstone{}, NotFound(name)
}

// Current implements access.Sandboxes.
func (f *Files) Current(_ context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	v, err := f.service.byID(ref.ID())
	if err != nil {
		return sandbox.Sandbox{}, fault.New(fault.Gone, "The volume %s was deleted.", ref.Name())
	}
	return f.row(v), nil
}

// Awake implements access.Sandboxes: it starts the program that serves the files.
func (f *Files) Awake(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	if s, err := f.Current(ctx, ref); err != nil || s.State == sandbox.Running {
		return s, err
	}
	release, err := f.turns.Acquire(ctx, ref.ID(), 1, -1)
	if err != nil {
		return sandbox.Sandbox{}, fault.Wrap(err, fault.Timeout, "The files of the volume %s are still being opened. Try again in a moment.", ref.Name())
	}
	defer release()
	s, err := f.Current(ctx, ref)
	if err != nil || s.State == sandbox.Running {
		return s, err
	}
	v, err := f.service.byID(ref.ID())
	if err == nil {
		err = f.start(ctx, v)
	}
	if err != nil {
		return s, err
	}
	return f.row(v), nil
}

// start starts the program, in the volume's turn, and waits for it.
func (f *Files) start(ctx context.Context, v Volume) error {
	if err := f.service.make(ctx, v); err != nil {
		return err
	}
	folder, err := f.guests.Expect(LinkID(v.ID), sandbox.Setup{Name: v.Name, Env: map[string]string{}})
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	if err := f.service.c.Engine.ServeVolume(asked, v.ID, v.Target(), folder); err != nil {
		return err
	}
	ctx, end := context.WithTimeout(ctx, readyLimit)
	defer end()
	return f.guests.Ready(ctx, LinkID(v.ID))
}

// Begin implements access.Uses.
func (f *Files) Begin(id string, _ idle.Use) access.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.uses[id]
	if one == nil {
		one = &serving{}
		f.uses[id] = one
	}
	one.uses++
	one.last = time.Now()
	return &lease{files: f, id: id}
}

// Watch implements access.Uses. A page that watches a volume's folders uses it until it is closed.
func (f *Files) Watch(id string, u idle.Use) access.Lease { return f.Begin(id, u) }

// lease is one use.
type lease struct {
	files *Files
	id    string
	once  sync.Once
}

// Touch implements access.Lease: a use that lasts needs none.
func (l *lease) Touch(bool) {}

// End implements access.Lease.
func (l *lease) End() {
	l.once.Do(func() {
		f := l.files
		f.mu.Lock()
		one := f.uses[l.id]
		one.uses--
		one.last = time.Now()
		f.mu.Unlock()
		f.service.c.Measure()
	})
}

// unused gives the volumes that nothing uses, and has not for a while.
func (f *Files) unused(after time.Duration) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, one := range f.uses {
		if one.uses == 0 && time.Since(one.last) >= after {
			ids = append(ids, id)
		}
	}
	return ids
}

// reap ends the programs that are not used.
func (f *Files) reap(ctx context.Context) {
	for _, id := range f.unused(reapAfter) {
		release, ok := f.turns.Try(id, 1)
		if !ok {
			continue // it is being started
		}
		if f.forget(id) {
			f.endNow(ctx, id)
		}
		release()
	}
}

// forget drops what is known of a volume's uses, in its turn, unless one has begun: that starts the program anew in a later turn.
func (f *Files) forget(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.uses[id]; one == nil || one.uses > 0 {
		return false
	}
	delete(f.uses, id)
	return true
}

// end ends the program of a volume, whatever uses it.
func (f *Files) end(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	release, err := f.turns.Acquire(ctx, id, 1, -1)
	if err != nil {
		return
	}
	defer release()
	f.endNow(ctx, id)
}

// endNow needs the volume's turn.
func (f *Files) endNow(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := f.service.c.Engine.EndVolume(ctx, id); err != nil {
		f.service.c.Log.Warn("the program that serves a volume's files is not ended yet", "id", id, "error", err)
	}
	if err := f.guests.Forget(LinkID(id)); err != nil {
		f.service.c.Log.Warn("the link of a volume is not removed yet", "id", id, "error", err)
	}
}

// endAll ends the programs of all volumes, when nothing is served any more.
func (f *Files) endAll(ctx context.Context) {
	f.mu.Lock()
	ids := make([]string, 0, len(f.uses))
	for id := range f.uses {
		ids = append(ids, id)
	}
	f.mu.Unlock()
	for _, id := range ids {
		f.end(ctx, id)
	}
}

// By is the claim of who is signed in or shows a token: only admins use the files of volumes, and no token that is limited to a sandbox.
func By(who auth.Principal) access.Claim { return claim{who} }

type claim struct{ who auth.Principal }

// Admits implements access.Claim.
func (c claim) Admits(context.Context, sandbox.Sandbox) error {
	if c.who.User.Role != auth.Admin || c.who.LimitedToken() {
		return fault.New(fault.Forbidden, "Only admins use the files of volumes here. In a sandbox that has the volume, they are at its path.")
	}
	return nil
}

// Missing implements access.Claim.
func (c claim) Missing(ctx context.Context, name string, _ *sandbox.Tombstone) error {
	if err := c.Admits(ctx, sandbox.Sandbox{}); err != nil {
		return err
	}
	return NotFound(name)
}
