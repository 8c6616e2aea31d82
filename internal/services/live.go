package services

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/door"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/wire"
)

// rested is how often one who watches a sandbox that does not run looks whether it does.
const rested = time.Second

// Rooms lets into sandboxes; Through makes one.
type Rooms interface {
	// Look gives the guest of a sandbox that runs, without waking or using it. Conflict when it does not run.
	Look(ctx context.Context, name string) (Guest, error)
	// Enter wakes the sandbox and gives its guest; it is in use, for what doing says, until release.
	Enter(ctx context.Context, name, doing string) (g Guest, release func(), err error)
}

// Guest is the program inside a sandbox. Implemented by link.Session; its errors are faults.
type Guest interface {
	powers
	records
	openings
}

type powers interface {
	StartService(ctx context.Context, name string) error
	StopService(ctx context.Context, name string) error
	RestartService(ctx context.Context, name string) error
}

type records interface {
	Services(ctx context.Context) ([]wire.ServiceStatus, error)
	ServiceLog(ctx context.Context, name string) ([]byte, error)
	FollowServiceLog(ctx context.Context, name string, emit func([]byte) error) error
}

type openings interface {
	Ports(ctx context.Context) ([]wire.PortOpen, error)
	WatchPorts(ctx context.Context, emit func([]wire.PortOpen) error) error
}

// Doors is what is asked of door.Doors.
type Doors interface {
	Open(ctx context.Context, name string, u idle.Use) (*door.Entry, error)
	Look(ctx context.Context, name string) (*door.Entry, error)
}

// Through makes Rooms of the doors of sandboxes.
func Through(d Doors) Rooms { return rooms{d} }

type rooms struct{ doors Doors }

// Look implements Rooms.
func (r rooms) Look(ctx context.Context, name string) (Guest, error) {
	e, err := r.doors.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.Session, nil
}

// Enter implements Rooms.
func (r rooms) Enter(ctx context.Context, name, doing string) (Guest, func(), error) {
	e, err := r.doors.Open(ctx, name, idle.Use{Kind: idle.Exec, Detail: doing})
	if err != nil {
		return nil, nil, err
	}
	return e.Session, e.Release, nil
}

// Start lets a service run, waking its sandbox first; one that waits to be started again is started now.
func (s *Service) Start(ctx context.Context, name, service string) (Status, error) {
	return s.power(ctx, name, service, "start", Guest.StartService)
}

// Stop ends a service, waking its sandbox first, and returns when it has ended.
func (s *Service) Stop(ctx context.Context, name, service string) (Status, error) {
	return s.power(ctx, name, service, "stop", Guest.StopService)
}

// Restart ends a service and starts it anew, waking its sandbox first.
func (s *Service) Restart(ctx context.Context, name, service string) (Status, error) {
	return s.power(ctx, name, service, "restart", Guest.RestartService)
}

// power does something with a declared service, and gives how it stands then.
func (s *Service) power(ctx context.Context, name, service, verb string, do func(Guest, context.Context, string) error) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, useLimit)
	defer cancel()
	if _, err := s.Find(ctx, name, service); err != nil {
		return Status{}, err
	}
	guest, release, err := s.rooms.Enter(ctx, name, verb+" "+service)
	if err != nil {
		return Status{}, err
	}
	defer release()
	if err := do(guest, ctx, service); err != nil {
		return Status{}, err
	}
	return s.Find(ctx, name, service)
}

// Log gives the newest output of a service to emit, bytes as it wrote them; with follow also what comes, until ctx ends, the
// service is not declared any more (nil), emit fails, or the link ends (Unavailable). Conflict when the sandbox does not
// run: a log does not outlive its guest.
func (s *Service) Log(ctx context.Context, name, service string, follow bool, emit func([]byte) error) error {
	if _, err := s.Find(ctx, name, service); err != nil {
		return err
	}
	guest, err := s.rooms.Look(ctx, name)
	if err != nil {
		return err
	}
	if !follow {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		b, err := guest.ServiceLog(ctx, service)
		if err != nil {
			return err
		}
		return emit(b)
	}
	leave, err := s.enter(name)
	if err != nil {
		return err
	}
	defer leave()
	return guest.FollowServiceLog(ctx, service, emit)
}

// Ports gives the ports on which something listens now; none for a sandbox that does not run.
func (s *Service) Ports(ctx context.Context, name string) ([]wire.PortOpen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	guest, err := s.rooms.Look(ctx, name)
	if fault.Is(err, fault.Conflict) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return guest.Ports(ctx)
}

// WatchPorts gives the open ports to emit, now and whenever they change, until ctx ends, emit fails or the sandbox is gone
// (NotFound). It goes on while the sandbox does not run, when there are none, and when it runs again.
func (s *Service) WatchPorts(ctx context.Context, name string, emit func([]wire.PortOpen) error) error {
	leave, err := s.enter(name)
	if err != nil {
		return err
	}
	defer leave()
	w := &portWatch{emit: emit}
	for {
		guest, err := s.rooms.Look(ctx, name)
		if err == nil {
			err = guest.WatchPorts(ctx, w.see)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case w.err != nil:
			return w.err
		case err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Unavailable):
			return err
		}
		if w.see(nil); w.err != nil {
			return w.err
		}
		select {
		case <-time.After(rested):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// portWatch tells ports when they are other ones than were told last.
type portWatch struct {
	emit func([]wire.PortOpen) error
	told []wire.PortOpen
	any  bool  // something was told
	err  error // emit's own
}

var errTold = errors.New("whoever watches has said no")

func (w *portWatch) see(l []wire.PortOpen) error {
	if w.any && slices.Equal(w.told, l) {
		return nil
	}
	w.any, w.told = true, slices.Clone(l)
	if w.err = w.emit(l); w.err != nil {
		return errTold
	}
	return nil
}

// enter counts a stream in, or refuses it when too many are open. The caller must call leave.
func (s *Service) enter(name string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[name] >= maxStreams {
		return nil, fault.New(fault.Limited, "%d logs and ports of %s are followed already. End some first.", maxStreams, name)
	}
	s.streams[name]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.streams[name]--; s.streams[name] == 0 {
			delete(s.streams, name)
		}
	}), nil
}
