// Package services is what people and programs do with the services and ports of a sandbox: see which are declared and how
// they stand, change, start, stop and read them, and learn which ports are open.
//
// It keeps nothing: the Manager has the declarations, the guest the processes. It does not decide who may ask, or which
// addresses and rules a port has.
//
// Invariant: reading wakes nothing and counts as no use. Only Start, Stop and Restart do, as using a sandbox does.
package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/wire"
)

// Bounds of calls to a guest.
const (
	useLimit   = 90 * time.Second // to wake a sandbox and have a service started or ended
	lookLimit  = 5 * time.Second  // to read
	maxStreams = 64               // lists of ports of one sandbox that are followed at once
)

// State is where a service stands.
type State string

// The states of a service.
const (
	Stopped State = "stopped" // never started or ended by hand, or its sandbox does not run
	Running State = "running"
	Waiting State = "waiting" // about to run: at Retry, where it has ended by itself, else right now
	Asleep  State = "asleep"  // its sandbox is at rest; the next use wakes both
	Unknown State = "unknown" // its sandbox runs, but the program inside does not say
)

// Status is a declared service with its state.
type Status struct {
	catalog.Service
	State    State
	Health   wire.ServiceHealth // "" while nothing is checked or known
	PID      int                // while it runs, as the sandbox counts
	ExitCode int                // of the last run that ended; 128+n for a signal
	Restarts int                // since it was last started by hand or by a change
	Since    time.Time          // when State began; zero when that is not known
	Retry    time.Time          // when it is started again, while waiting after a run that ended
	Problem  string             // why it could not be started or is unhealthy, a sentence
}

// List is the services of a sandbox, in the order of their declaration.
type List struct {
	Services   []Status
	Overridden bool   // the sandbox has a list of its own in place of its template's
	ETag       string // of the declared services, in quotes
}

// Boxes is the part of sandbox.Manager that this package uses.
type Boxes interface {
	Services(s sandbox.Sandbox) []catalog.Service
	ChangeServices(ctx context.Context, ref sandbox.Ref, change func([]catalog.Service) ([]catalog.Service, error)) (sandbox.Sandbox, error)
}

// ErrChanged says that the services have changed since the caller saw them. Its kind is Conflict.
var ErrChanged = fault.New(fault.Conflict, "The services have been changed meanwhile. Look at them again.")

// Service answers for the services of all sandboxes. Safe for concurrent use.
type Service struct {
	boxes   Boxes
	streams semaphore.Keyed // that are open, by sandbox
}

// New makes a Service. It does no I/O.
func New(b Boxes) *Service { return &Service{boxes: b} }

// Declared gives the services that a sandbox has by its row, without asking it.
func (s *Service) Declared(box sandbox.Sandbox) []catalog.Service { return s.boxes.Services(box) }

// List gives the declared services with their status, of a sandbox in any state. Gone.
func (s *Service) List(ctx context.Context, h access.Handle) (List, error) {
	box, err := h.Current(ctx)
	if err != nil {
		return List{}, err
	}
	return s.listOf(ctx, h, box), nil
}

func (s *Service) listOf(ctx context.Context, h access.Handle, box sandbox.Sandbox) List {
	declared := s.boxes.Services(box)
	l := List{Services: make([]Status, 0, len(declared)), Overridden: box.Overrides.HasServices, ETag: etag(declared)}
	live, known := s.live(ctx, h, box)
	for _, d := range declared {
		l.Services = append(l.Services, status(d, box.State, live, known))
	}
	return l
}

// Find gives one service of a sandbox. NotFound names those that there are.
func (s *Service) Find(ctx context.Context, h access.Handle, service string) (Status, error) {
	l, err := s.List(ctx, h)
	if err != nil {
		return Status{}, err
	}
	return l.Find(service)
}

// Find gives one of the list. NotFound.
func (l List) Find(service string) (Status, error) {
	i := slices.IndexFunc(l.Services, func(o Status) bool { return o.Name == service })
	if i < 0 {
		return Status{}, noService(service)
	}
	return l.Services[i], nil
}

// live asks the guest how its services stand; known is false when it does not say. One that does not run is not asked.
func (s *Service) live(ctx context.Context, h access.Handle, box sandbox.Sandbox) (live map[string]wire.ServiceStatus, known bool) {
	if box.State != sandbox.Running {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if err != nil {
		return nil, false
	}
	all, err := session.Guest.Services(ctx)
	if err != nil {
		return nil, false
	}
	live = make(map[string]wire.ServiceStatus, len(all))
	for _, one := range all {
		live[one.Name] = one
	}
	return live, true
}

// status joins a declared service with the guest's report.
func status(d catalog.Service, state sandbox.State, live map[string]wire.ServiceStatus, known bool) Status {
	now, there := live[d.Name]
	if known && there {
		return Status{Service: d, State: State(now.State), Health: now.Health, PID: now.PID, ExitCode: now.ExitCode,
			Restarts: now.Restarts, Since: now.Since, Retry: now.Retry, Problem: now.Problem}
	}
	out := Status{Service: d, State: Stopped}
	switch {
	case state == sandbox.Running:
		out.State = Unknown
	case state.Resting():
		out.State = Asleep
	case (state == sandbox.Creating || state == sandbox.Starting) && d.Autostart:
		out.State = Waiting
	}
	return out
}

// etag identifies the declared services.
func etag(list []catalog.Service) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("services cannot be written: %v", err)) // texts, numbers and maps of texts always can
	}
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

func noService(name string) error {
	return fault.New(fault.NotFound, "There is no service called %.64q.", name)
}
