// Package terminal moves bytes and sizes between a viewer (a browser's websocket) and a shell in a sandbox that outlives
// the viewer, in ttyd's protocol at both ends.
//
// It does not decide who may watch (delivery does), holds no screen (tmux or the guest does), and upgrades nothing: it is
// handed a websocket after Attach has done everything that can fail.
//
// Invariant: no byte of output is lost or reordered between the terminal and the viewer; what is queued in between is
// bounded, and a viewer that does not read holds its terminal back instead. PAUSE and RESUME never reach a real ttyd, which
// loses output on them.
package terminal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Main is the tab that is meant when none is named.
const Main = "main"

// Subprotocol is what both ends of a terminal's websocket name.
const Subprotocol = "tty"

// attachLimit bounds Attach beyond waking the sandbox: dialling a fresh ttyd takes about 20 ms.
const attachLimit = 10 * time.Second

// askLimit bounds questions to the guest.
const askLimit = 5 * time.Second

// Guest is the live link to a sandbox, as far as terminals need it. Implemented by link.Session.
type Guest interface {
	// DialTerminal connects to the HTTP server of a tab, starting the tab when needed.
	DialTerminal(ctx context.Context, tab string) (net.Conn, error)
	Terminals(ctx context.Context) ([]wire.Terminal, error)
	CloseTerminal(ctx context.Context, tab string) error
}

// Doors opens sandboxes; release ends the use, and may be called more than once. Through makes one of door.Doors.
type Doors interface {
	Open(ctx context.Context, name, use string) (g Guest, release func(), err error)
}

// States tells how a sandbox stands, waiting until nothing is under way. Implemented by sandbox.Manager.
type States interface {
	Wait(ctx context.Context, name string) (sandbox.Sandbox, error)
}

// Service attaches viewers to terminals. Safe for concurrent use.
type Service struct {
	doors  Doors
	states States
	log    *slog.Logger
}

// New makes a service. It does no I/O.
func New(doors Doors, states States, log *slog.Logger) *Service {
	return &Service{doors: doors, states: states, log: log}
}

// Attachment is a terminal that waits for its viewer: Pump it once, or Close it.
type Attachment struct {
	service *Service
	guest   Guest
	name    string
	tab     string
	ttyd    *websocket.Conn
	release func()
}

// Attach connects to a tab ("" for Main) of the sandbox called name, waking it when it sleeps. Everything that can fail
// fails here, before the viewer is upgraded: Invalid (the tab's name), and what Doors' errors say.
func (s *Service) Attach(ctx context.Context, name, tab string) (*Attachment, error) {
	if tab == "" {
		tab = Main
	}
	if wire.CheckTab(tab) != nil {
		return nil, fault.Field("tab", "A terminal's name is made of up to 32 lower-case letters, digits and hyphens, and begins with a letter or digit.")
	}
	guest, release, err := s.doors.Open(ctx, name, "terminal")
	if err != nil {
		return nil, fmt.Errorf("attach to terminal %s of %s: %w", tab, name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, attachLimit)
	defer cancel()
	ttyd, err := dial(ctx, guest, tab)
	if err != nil {
		release()
		return nil, fmt.Errorf("attach to terminal %s of %s: %w", tab, name, unavailable(err))
	}
	return &Attachment{service: s, guest: guest, name: name, tab: tab, ttyd: ttyd, release: release}, nil
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
	a.ttyd.Close()
	a.release()
}

// Tabs gives the tabs of a sandbox. It opens the sandbox, so it wakes one that sleeps.
func (s *Service) Tabs(ctx context.Context, name string) ([]wire.Terminal, error) {
	guest, release, err := s.doors.Open(ctx, name, "terminal")
	if err != nil {
		return nil, fmt.Errorf("list terminals of %s: %w", name, err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	tabs, err := guest.Terminals(ctx)
	if err != nil {
		return nil, fmt.Errorf("list terminals of %s: %w", name, unavailable(err))
	}
	return tabs, nil
}

// CloseTab ends a tab's shell and everyone's view of it. A tab that is not there is no error.
func (s *Service) CloseTab(ctx context.Context, name, tab string) error {
	if wire.CheckTab(tab) != nil {
		return fault.Field("tab", "There is no terminal of that name.")
	}
	guest, release, err := s.doors.Open(ctx, name, "terminal")
	if err != nil {
		return fmt.Errorf("close terminal %s of %s: %w", tab, name, err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := guest.CloseTerminal(ctx, tab); err != nil {
		return fmt.Errorf("close terminal %s of %s: %w", tab, name, unavailable(err))
	}
	return nil
}
