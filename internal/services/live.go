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

// Log gives the newest output of a service to emit, bytes as it wrote them; with follow also what comes, until ctx ends, the
// service is not declared any more (nil), emit fails, or the link ends (Unavailable). Conflict when the sandbox does not
// run: a log does not outlive its guest.
func (s *Service) Log(ctx context.Context, h access.Handle, service string, follow bool, emit func([]byte) error) error {
	if _, err := s.Find(ctx, h, service); err != nil {
		return err
	}
	session, err := h.Look(ctx)
	if err != nil {
		return err
	}
	if !follow {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		b, err := session.Guest.ServiceLog(ctx, service)
		if err != nil {
			return err
		}
		return emit(b)
	}
	leave, err := s.enter(h)
	if err != nil {
		return err
	}
	defer leave()
	return session.Guest.FollowServiceLog(ctx, service, emit)
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
		return nil, fault.New(fault.Limited, "%d logs and ports of %s are followed already. End some first.", maxStreams, h.Name())
	}
	return leave, nil
}
