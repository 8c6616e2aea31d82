package web

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// fakeRooms is the inside of every sandbox: what a test has put there.
type fakeRooms struct {
	mu     sync.Mutex
	asleep bool                          // until it is used
	live   map[string]wire.ServiceStatus // by service
	ports  []wire.PortOpen
	fails  error         // instead of any look
	did    []string      // what was asked of the guest
	opened chan struct{} // closed when ports changes
}

func newFakeRooms() *fakeRooms {
	return &fakeRooms{live: map[string]wire.ServiceStatus{}, opened: make(chan struct{})}
}

// runs makes a service run, as the guest says.
func (f *fakeRooms) runs(name string, change func(*wire.ServiceStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := wire.ServiceStatus{Name: name, State: wire.ServiceRunning, PID: 42, Since: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if change != nil {
		change(&st)
	}
	f.live[name] = st
}

func (f *fakeRooms) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, what)
}

func (f *fakeRooms) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.did...)
}

func (f *fakeRooms) StartService(_ context.Context, name string) error {
	f.note("start " + name)
	f.runs(name, nil)
	return nil
}

func (f *fakeRooms) StopService(_ context.Context, name string) error {
	f.note("stop " + name)
	f.runs(name, func(st *wire.ServiceStatus) { st.State, st.PID, st.ExitCode = wire.ServiceStopped, 0, 143 })
	return nil
}

func (f *fakeRooms) RestartService(_ context.Context, name string) error {
	f.note("restart " + name)
	f.runs(name, func(st *wire.ServiceStatus) { st.PID = 43 })
	return nil
}

func (f *fakeRooms) Services(context.Context) ([]wire.ServiceStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []wire.ServiceStatus
	for _, st := range f.live {
		all = append(all, st)
	}
	return all, nil
}

func (f *fakeRooms) Ports(context.Context) ([]wire.PortOpen, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ports, nil
}

func (f *fakeRooms) WatchPorts(ctx context.Context, emit func([]wire.PortOpen) error) error {
	for {
		f.mu.Lock()
		l, opened := f.ports, f.opened
		f.mu.Unlock()
		if err := emit(l); err != nil {
			return err
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen says what listens from now on, and tells the watchers.
func (f *fakeRooms) listen(open ...wire.PortOpen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ports = open
	close(f.opened)
	f.opened = make(chan struct{})
}

// Services implements services.Boxes for a stage: there is no template that would have any.
func (f *fakeBoxes) Services(s sandbox.Sandbox) []catalog.Service { return s.Overrides.Services }

// ChangeServices implements services.Boxes.
func (f *fakeBoxes) ChangeServices(ctx context.Context, ref sandbox.Ref, change func([]catalog.Service) ([]catalog.Service, error)) (sandbox.Sandbox, error) {
	box, err := f.Current(ctx, ref)
	if err != nil {
		return box, err
	}
	list, err := change(box.Overrides.Services)
	if err == nil {
		err = catalog.CheckServices(list)
	}
	if err != nil {
		return box, err
	}
	box.Overrides.Services, box.Overrides.HasServices = list, list != nil
	return box, f.store.Update(ctx, box)
}
