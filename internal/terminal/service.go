// Package terminal moves bytes and sizes between a viewer (a browser's websocket) and a shell in a sandbox that outlives
// the viewer, in ttyd's protocol at both ends.
//
// It does not decide who may watch (delivery does), holds no screen (tmux or the guest does), and upgrades nothing: it is
// handed a websocket after Attach has done everything that can fail.
//
// What a person types is use of the sandbox, and wakes it: a frozen one is thawed and the connection stays. Output
// is use for as long as a person may be watching, and what terminals and pages send by themselves (answers to
// programs, sizes, acknowledgements, a connection made again) wakes nothing.
//
// Invariant: no byte of output is lost or reordered between the terminal and the viewer; the queue in between is
// bounded, and a viewer that does not read holds its terminal back instead. PAUSE and RESUME never reach a real ttyd, which
// loses output on them.
package terminal

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Main is the tab that is meant when none is named.
const Main = "main"

// Subprotocol is what both ends of a terminal's websocket name.
const Subprotocol = "tty"

// Bounds of what a viewer waits for.
const (
	wakeLimit   = 60 * time.Second // a sandbox that is asleep
	attachLimit = 10 * time.Second // beyond that; dialling a fresh ttyd takes about 20 ms
	askLimit    = 5 * time.Second  // an answer of the guest
)

// States tells how a sandbox stands, waiting until nothing is under way. Implemented by sandbox.Manager.
type States interface {
	Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// Service attaches viewers to terminals. Safe for concurrent use.
type Service struct {
	states States
	log    *slog.Logger
}

// New makes a service. It does no I/O.
func New(states States, log *slog.Logger) *Service {
	return &Service{states: states, log: log}
}

// Attachment is a terminal that waits for its viewer: Pump it once, or Close it.
type Attachment struct {
	service *Service
	guest   access.Guest
	use     use
	handle  access.Handle
	tab     string
	ttyd    *websocket.Conn
	refusal *ending // what the viewer is told at once; then there is no terminal
}

// Attach connects to a tab ("" for Main) of a sandbox, because a person wants it: one that is at rest is
// woken, for up to a minute. Everything that can fail fails here, before the viewer is upgraded: Invalid (the tab's name),
// and what access.Handle's errors say. That the sandbox is still at rest is no failure: Pump tells the viewer (CloseAsleep), and
// why it could not be woken.
func (s *Service) Attach(ctx context.Context, h access.Handle, tab string) (*Attachment, error) {
	return s.attach(ctx, h, tab, h.OpenStream, false)
}

// Join is Attach for a viewer that comes by itself (a page that was reloaded or lost its connection): it wakes nothing.
func (s *Service) Join(ctx context.Context, h access.Handle, tab string) (*Attachment, error) {
	return s.attach(ctx, h, tab, h.JoinStream, true)
}

func (s *Service) attach(ctx context.Context, h access.Handle, tab string, open opener, unattended bool) (*Attachment, error) {
	if tab == "" {
		tab = Main
	}
	if wire.CheckTab(tab) != nil {
		return nil, fault.Field("tab", "A terminal's name is made of up to 32 lower-case letters, digits and hyphens, and begins with a letter or digit.")
	}
	a := &Attachment{service: s, handle: h, tab: tab}
	waking, cancel := context.WithTimeout(ctx, wakeLimit)
	session, err := open(waking, useOf(tab, unattended))
	cancel()
	if err != nil {
		if a.refusal = s.rests(ctx, h, err); a.refusal != nil {
			return a, nil
		}
		return nil, fmt.Errorf("attach to terminal %s of %s: %w", tab, h.Name(), err)
	}
	a.guest, a.use = session.Guest, session
	ctx, cancel = context.WithTimeout(ctx, attachLimit)
	defer cancel()
	if a.ttyd, err = dial(ctx, a.guest, tab); err != nil {
		a.use.Release()
		return nil, fmt.Errorf("attach to terminal %s of %s: %w", tab, h.Name(), unavailable(err))
	}
	return a, nil
}

// rests gives what to tell a viewer who was not let in because the sandbox is at rest; nil when it is not.
func (s *Service) rests(ctx context.Context, h access.Handle, err error) *ending {
	ctx, cancel := context.WithTimeout(ctx, whyLimit)
	defer cancel()
	box, stateErr := s.states.Wait(ctx, h.Ref())
	if stateErr != nil || !box.State.Resting() {
		return nil
	}
	return &ending{code: CloseAsleep, reason: text.OneLine(fault.Message(err), maxReason), discard: true}
}

// unavailable classifies what the link or the guest's server did wrong, unless the link has.
func unavailable(err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The terminal does not answer. Try again, or restart the sandbox if this lasts.")
}

// Close ends an attachment that is not pumped. After Pump it does nothing.
func (a *Attachment) Close() {
	if a.refusal == nil {
		a.ttyd.Close()
		a.use.Release()
	}
}

// Tabs gives the tabs of a sandbox that runs. It wakes nothing and is no use of the sandbox: a Conflict when it does not
// run, be it asleep or stopped.
func (s *Service) Tabs(ctx context.Context, h access.Handle) ([]wire.Terminal, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("list terminals of %s: %w", h.Name(), err)
	}
	tabs, err := session.Guest.Terminals(ctx)
	if err != nil {
		return nil, fmt.Errorf("list terminals of %s: %w", h.Name(), unavailable(err))
	}
	return tabs, nil
}

// CloseTab ends a tab's shell and everyone's view of it. A tab that is not there is no error; a sandbox whose processes
// have ended, asleep or stopped, has none, and is not woken to find out. A frozen one still has it, and is thawed.
func (s *Service) CloseTab(ctx context.Context, h access.Handle, tab string) error {
	if wire.CheckTab(tab) != nil {
		return fault.Field("tab", "There is no terminal of that name.")
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	box, err := s.states.Wait(ctx, h.Ref())
	if err != nil {
		return fmt.Errorf("close terminal %s of %s: %w", tab, h.Name(), err)
	}
	if box.State != sandbox.Running && box.State != sandbox.Frozen {
		return nil
	}
	session, err := h.OpenStream(ctx, useOf(tab, false))
	if err != nil {
		return fmt.Errorf("close terminal %s of %s: %w", tab, h.Name(), err)
	}
	defer session.Release()
	if err := session.Guest.CloseTerminal(ctx, tab); err != nil {
		return fmt.Errorf("close terminal %s of %s: %w", tab, h.Name(), unavailable(err))
	}
	return nil
}
