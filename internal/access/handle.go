package access

import (
	"context"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

const (
	// answerLimit is how long the guest of a running sandbox may take to be connected: after a restart of sandboxd, or a
	// thaw after one, it dials in again within a fraction of this.
	answerLimit = 5 * time.Second
	// lookLimit is the same for those who only look, and show something else meanwhile.
	lookLimit = time.Second
)

// ErrAsleep says that a sandbox is at rest, and was not woken because nobody has asked for that. Its kind is Conflict.
var ErrAsleep = fault.New(fault.Conflict, "The sandbox is asleep. Use it, or start it, to wake it.")

// Handle is one sandbox that the caller may use, judged by Resolve. It keeps to that sandbox: once it is deleted, everything
// is Gone, also when another one has its name. It is a value, and does not notice when the right to it is lost: long
// work asks Resolve again. The zero Handle is of no sandbox; it must not be opened.
type Handle struct {
	control *Control
	sandbox sandbox.Sandbox
	limited bool // for a token that is limited to this sandbox
}

// Sandbox is the row as it was judged.
func (h Handle) Sandbox() sandbox.Sandbox { return h.sandbox }

// With gives the handle with a newer row of the same sandbox; the row of another one changes nothing.
func (h Handle) With(row sandbox.Sandbox) Handle {
	if row.ID == h.sandbox.ID {
		h.sandbox = row
	}
	return h
}

// Ref is what names the sandbox for the Manager.
func (h Handle) Ref() sandbox.Ref { return h.sandbox.Ref() }

// ID is the sandbox's.
func (h Handle) ID() string { return h.sandbox.ID }

// Name is the sandbox's.
func (h Handle) Name() string { return h.sandbox.Name }

// Acquire takes one of the most places that the sandbox has, as semaphore.Keyed does. Tokens that are limited to it get half of
// them together, so that they never keep its owner out.
func (h Handle) Acquire(ctx context.Context, places *semaphore.Keyed, most, queue int) (release func(), err error) {
	if !h.limited {
		return places.Acquire(ctx, h.ID(), most, queue)
	}
	half, err := places.Acquire(ctx, h.ID()+" by limited tokens", most/2, queue/2)
	if err != nil {
		return nil, err
	}
	one, err := places.Acquire(ctx, h.ID(), most, queue)
	if err != nil {
		half()
		return nil, err
	}
	return func() { one(); half() }, nil
}

// Current gives the row as it is now. Gone once the sandbox is deleted.
func (h Handle) Current(ctx context.Context) (sandbox.Sandbox, error) {
	return h.control.sandboxes.Current(ctx, h.Ref())
}

// Open registers a use of the sandbox, wakes it if it is at rest, and gives its live link. It is in use until Release,
// whatever passes through. It blocks while the sandbox is on its way up, until ctx ends, which should have a deadline of its
// own. Kinds: Gone (deleted), Conflict (stopped by its owner, or failed; the message says so), Unavailable (the host is full,
// or the guest does not answer), Timeout.
func (h Handle) Open(ctx context.Context, u idle.Use) (*Session, error) {
	lease := h.control.uses.Begin(h.ID(), u)
	s, err := h.connect(ctx, h.awake)
	if err != nil {
		lease.End()
		return nil, err
	}
	s.lease = lease
	h.control.note(h.ID(), u)
	return s, nil
}

// OpenNow is Open for a sandbox that runs and whose guest is connected at this moment, without waiting or waking. ok is false
// for any other.
func (h Handle) OpenNow(u idle.Use) (s *Session, ok bool) {
	lease := h.control.uses.Begin(h.ID(), u)
	row, err := h.running(ended)
	if err == nil {
		s, err = h.link(ended, row)
	}
	if err != nil {
		lease.End()
		return nil, false
	}
	s.lease = lease
	h.control.note(h.ID(), u)
	return s, true
}

// ended is a context for a look that must not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// OpenStream is Open for what may be open for hours without being used: from when it is open, it counts only around its
// Touches.
func (h Handle) OpenStream(ctx context.Context, u idle.Use) (*Session, error) {
	return h.stream(ctx, u, h.awake)
}

// JoinStream is OpenStream for a page that comes back by itself: it waits for a sandbox that is on its way up, but wakes
// none: ErrAsleep then. u should be unattended.
func (h Handle) JoinStream(ctx context.Context, u idle.Use) (*Session, error) {
	return h.stream(ctx, u, h.unlessAtRest)
}

// Look gives the live link of a sandbox that runs at this moment. That is no use of it, and wakes nothing: for lists and
// dashboards. The session need not be released, and its Touch does nothing. It waits a second at most. Kinds: Gone, Conflict
// (it does not run: ErrAsleep, or the message says why), Unavailable.
func (h Handle) Look(ctx context.Context) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return h.connect(ctx, h.running)
}

func (h Handle) stream(ctx context.Context, u idle.Use, up ensureRunning) (*Session, error) {
	opening := h.control.uses.Begin(h.ID(), u)
	defer opening.End()
	s, err := h.connect(ctx, up)
	if err != nil {
		return nil, err
	}
	s.lease = h.control.uses.Watch(h.ID(), u)
	h.control.note(h.ID(), u)
	return s, nil
}

// ensureRunning gives the row of a sandbox that runs, by whatever means are allowed.
type ensureRunning func(ctx context.Context) (sandbox.Sandbox, error)

func (h Handle) connect(ctx context.Context, up ensureRunning) (*Session, error) {
	s, err := up(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	session, err := h.link(ctx, s)
	if err != nil && ctx.Err() != nil {
		err = fault.Wrap(err, fault.Unavailable, "%s runs, but the program inside it does not answer. Restart it if this lasts.", s.Name)
	}
	return session, err
}

// link gives the session of a sandbox whose row is s now.
func (h Handle) link(ctx context.Context, s sandbox.Sandbox) (*Session, error) {
	guest, err := h.control.links(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	h.sandbox = s
	return &Session{Guest: guest, handle: h}, nil
}

func (h Handle) awake(ctx context.Context) (sandbox.Sandbox, error) {
	return h.control.sandboxes.Awake(ctx, h.Ref())
}

// notResting gives the row, with ErrAsleep when the sandbox is at rest.
func (h Handle) notResting(ctx context.Context) (sandbox.Sandbox, error) {
	s, err := h.Current(ctx)
	if err == nil && s.State.Resting() {
		err = fault.Wrap(ErrAsleep, fault.Conflict, "%s is asleep. Use it, or start it, to wake it.", s.Name)
	}
	return s, err
}

func (h Handle) unlessAtRest(ctx context.Context) (sandbox.Sandbox, error) {
	if s, err := h.notResting(ctx); err != nil || s.State == sandbox.Running {
		return s, err
	}
	return h.awake(ctx)
}

func (h Handle) running(ctx context.Context) (sandbox.Sandbox, error) {
	s, err := h.notResting(ctx)
	switch {
	case err != nil || s.State == sandbox.Running:
		return s, err
	case s.State == sandbox.Stopped || s.State == sandbox.Failed:
		return s, fault.New(fault.Conflict, "%s is %s. Start it first.", s.Name, s.State)
	}
	return s, fault.New(fault.Conflict, "%s is %s. Try again when it runs.", s.Name, s.State)
}
