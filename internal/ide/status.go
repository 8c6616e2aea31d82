package ide

import (
	"context"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// State is where VS Code stands for a sandbox.
type State string

// The states of VS Code.
const (
	Off      State = "off"      // switched off in this sandbox
	Building State = "building" // being made ready on this server, or in line for that
	Failed   State = "failed"   // that came to nothing; Problem says why. Switching it on tries again
	Ready    State = "ready"    // it starts when it is opened
	Starting State = "starting"
	Running  State = "running"
)

// Status is how VS Code stands for a sandbox.
type Status struct {
	Enabled  bool
	State    State
	URL      string
	Progress Progress // while Building
	Problem  string   // of Failed, and of a run that has ended by itself
}

// askLimit bounds a question to a guest.
const askLimit = 3 * time.Second

// Status tells how VS Code stands for a sandbox in any state. It wakes and begins nothing. Gone.
func (s *Service) Status(ctx context.Context, h access.Handle) (Status, error) {
	box, err := h.Current(ctx)
	if err != nil {
		return Status{}, err
	}
	return s.statusOf(ctx, box)
}

func (s *Service) statusOf(ctx context.Context, box sandbox.Sandbox) (Status, error) {
	st := Status{State: Off, URL: s.cfg.Hosts.IDEURL(box.Name)}
	if !s.cfg.Boxes.OffersIDE(box) {
		return st, nil
	}
	st.Enabled, st.State = true, Ready
	version, err := s.usable()
	if err != nil {
		return Status{}, err
	}
	if version == "" {
		st.State, st.Progress, st.Problem = s.making()
		return st, nil
	}
	if inside, ok := s.ask(ctx, box); ok {
		st.Problem = inside.Problem
		switch inside.State {
		case wire.IDERunning:
			st.State = Running
		case wire.IDEStarting:
			st.State = Starting
		}
	}
	return st, nil
}

// making tells how the version that is missing comes along.
func (s *Service) making() (State, Progress, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.job != nil:
		return Building, s.job.progress, ""
	case s.problem != "":
		return Failed, Progress{}, s.problem
	}
	return Building, Progress{}, ""
}

// ask asks the guest of a sandbox that runs.
func (s *Service) ask(ctx context.Context, box sandbox.Sandbox) (wire.IDEStatus, bool) {
	if box.State != sandbox.Running {
		return wire.IDEStatus{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	guest, err := s.cfg.Links(ctx, box.ID)
	if err != nil {
		return wire.IDEStatus{}, false
	}
	st, err := guest.IDE(ctx)
	return st, err == nil
}

// Enable switches VS Code on or off for a sandbox. Switched on, it is built if it is not there, also when that has failed
// before; switched off, it is ended in the sandbox. Kinds: Gone, and those of Manager.SetIDE.
func (s *Service) Enable(ctx context.Context, h access.Handle, on bool) (Status, error) {
	box, err := s.cfg.Boxes.SetIDE(ctx, h.Ref(), on)
	if err != nil {
		return Status{}, err
	}
	if on {
		if version, err := s.present(); err != nil {
			return Status{}, err
		} else if version == "" {
			s.begin(0)
		}
	}
	return s.statusOf(ctx, box)
}

// usable gives the version to start: the present one, else the newest that there is, else "".
func (s *Service) usable() (string, error) {
	if version, err := s.present(); err != nil || version != "" {
		return version, err
	}
	all, err := s.tree.versions()
	if err != nil || len(all) == 0 {
		return "", nil // there is no folder yet
	}
	return all[0], nil
}

// Start says what a guest is to start VS Code with. While there is none it is Unavailable and says how far it has come; a build
// that nobody has begun yet is begun. It is a link.IDE.
func (s *Service) Start(context.Context, string) (wire.IDEStart, error) {
	version, err := s.usable()
	if err != nil {
		return wire.IDEStart{}, err
	}
	if now, err := s.version(); err == nil && now != version {
		s.begin(repeatAfter)
	}
	if version != "" {
		return wire.IDEStart{Version: version, Ports: s.ports()}, nil
	}
	switch state, p, problem := s.making(); {
	case state == Failed:
		return wire.IDEStart{}, fault.New(fault.Unavailable, "VS Code could not be built on this server: %s", problem)
	case p.Steps > 0:
		return wire.IDEStart{}, fault.New(fault.Unavailable, "VS Code is being made ready on this server, once for all sandboxes: %d %% done.", int(100*p.Part))
	}
	return wire.IDEStart{}, fault.New(fault.Unavailable, "VS Code is being made ready on this server, once for all sandboxes.")
}

// ports is where VS Code finds a sandbox's ports, with places for their number and for the sandbox's name.
func (s *Service) ports() string {
	const port, name = 65535, "name"
	return placed(s.cfg.Hosts.Origin(hostname.Target{Kind: hostname.Port, Name: name, Port: port}))
}
