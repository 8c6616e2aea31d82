package services

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/wire"
)

// rested is how often one who watches a sandbox that does not run looks whether it does.
const rested = time.Second

// Start lets a service run, waking its sandbox first; one that waits to be started again is started now.
func (s *Service) Start(ctx context.Context, h access.Handle, service string) (Status, error) {
	return s.power(ctx, h, service, "start", access.Guest.StartService)
}

// Stop ends a service, waking its sandbox first, and returns when it has ended.
func (s *Service) Stop(ctx context.Context, h access.Handle, service string) (Status, error) {
	return s.power(ctx, h, service, "stop", access.Guest.StopService)
}

// Restart ends a service and starts it anew, waking its sandbox first.
func (s *Service) Restart(ctx context.Context, h access.Handle, service string) (Status, error) {
	return s.power(ctx, h, service, "restart", access.Guest.RestartService)
}

// power does something with a declared service, and gives how it stands then.
func (s *Service) power(ctx context.Context, h access.Handle, service, verb string, do func(access.Guest, context.Context, string) error) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, useLimit)
	defer cancel()
	if _, err := s.Find(ctx, h, service); err != nil {
		return Status{}, err
	}
	session, err := h.Open(ctx, idle.Use{Kind: idle.Exec, Detail: verb + " " + service})
	if err != nil {
		return Status{}, err
	}
	defer session.Release()
	if err := do(session.Guest, ctx, service); err != nil {
		return Status{}, err
	}
	return s.Find(ctx, h, service)
}

// Ports gives the ports on which something listens now; none for a sandbox that does not run.
func (s *Service) Ports(ctx context.Context, h access.Handle) ([]wire.PortOpen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if fault.Is(err, fault.Conflict) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return session.Guest.Ports(ctx)
}

// WatchPorts gives the open ports to emit, now and whenever they change, until ctx ends, emit fails or the sandbox is gone
// (Gone). It also stays while the sandbox is down (no ports) and until it runs again.
func (s *Service) WatchPorts(ctx context.Context, h access.Handle, emit func([]wire.PortOpen) error) error {
	leave, err := s.enter(h)
	if err != nil {
		return err
	}
	defer leave()
	w := &portWatch{emit: emit}
	for {
		session, err := h.Look(ctx)
		if err == nil {
			err = session.Guest.WatchPorts(ctx, w.see)
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

var errTold = errors.New("the watcher has ended")

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
func (s *Service) enter(h access.Handle) (leave func(), err error) {
	leave, err = h.Acquire(context.Background(), &s.streams, maxStreams, 0)
	if err != nil {
		return nil, fault.New(fault.Limited, "%d lists of ports of %s are followed already. End some first.", maxStreams, h.Name())
	}
	return leave, nil
}
