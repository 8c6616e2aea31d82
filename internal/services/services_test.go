package services_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/wire"
)

// house is one sandbox, s.lab, and its inside. It works in a synctest bubble.
type house struct {
	*accesstest.Sandbox

	mu     sync.Mutex
	doing  string // what used it when a service was last started or ended
	mute   bool   // the guest says nothing
	live   []wire.ServiceStatus
	ports  []wire.PortOpen
	change chan struct{} // closed and replaced when ports or the state change
}

func newHouse(t *testing.T) (*house, *on) {
	h := &house{change: make(chan struct{})}
	h.Sandbox = accesstest.New("lab", guest{h: h})
	return h, &on{services.New(h), h.Handle(t)}
}

// on is the service, of the one sandbox.
type on struct {
	*services.Service
	lab access.Handle
}

func (h *house) becomes(state sandbox.State) { h.set(func() { h.Becomes(state) }) }

// woken tells how often it was woken.
func (h *house) woken() int {
	_, n := h.Awakes()
	return n
}

// used tells what uses it now.
func (h *house) used() int { return len(h.Status().Because) }

func (h *house) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	close(h.change)
	h.change = make(chan struct{})
}

var template = []catalog.Service{{Name: "web", Command: []string{"serve"}, Port: 80, Autostart: true}}

func (h *house) Services(s sandbox.Sandbox) []catalog.Service {
	if s.Overrides.HasServices {
		return slices.Clone(s.Overrides.Services)
	}
	return slices.Clone(template)
}

func (h *house) ChangeServices(ctx context.Context, ref sandbox.Ref, change func([]catalog.Service) ([]catalog.Service, error)) (sandbox.Sandbox, error) {
	s, err := h.Current(ctx, ref)
	if err != nil {
		return s, err
	}
	list, err := change(h.Services(s))
	if err == nil {
		err = catalog.CheckServices(list)
	}
	if err != nil {
		return s, err
	}
	h.Change(func(row *sandbox.Sandbox) {
		row.Overrides.Services, row.Overrides.HasServices = list, list != nil
		s = *row
	})
	return s, nil
}

// guest is the house from within.
type guest struct {
	access.Guest
	h *house
}

func (guest) Done() <-chan struct{} { return nil }

// puts makes a service stand as state.
func (g guest) puts(name string, state wire.ServiceState) error {
	because := g.h.Status().Because
	g.h.set(func() {
		if len(because) == 1 {
			g.h.doing = because[0].Detail
		}
		g.h.live = slices.DeleteFunc(g.h.live, func(st wire.ServiceStatus) bool { return st.Name == name })
		g.h.live = append(g.h.live, wire.ServiceStatus{Name: name, State: state, Health: wire.HealthHealthy, PID: 7})
	})
	return nil
}

func (g guest) StartService(_ context.Context, name string) error {
	return g.puts(name, wire.ServiceRunning)
}
func (g guest) StopService(_ context.Context, name string) error {
	return g.puts(name, wire.ServiceStopped)
}
func (g guest) RestartService(_ context.Context, name string) error {
	return g.puts(name, wire.ServiceWaiting)
}

func (g guest) Services(context.Context) ([]wire.ServiceStatus, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if g.h.mute {
		return nil, fault.New(fault.Unavailable, "It does not answer.")
	}
	return slices.Clone(g.h.live), nil
}

func (g guest) Ports(context.Context) ([]wire.PortOpen, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if g.h.mute {
		return nil, fault.New(fault.Unavailable, "It does not answer.")
	}
	return slices.Clone(g.h.ports), nil
}

// WatchPorts ends with the sandbox's run, as the link does.
func (g guest) WatchPorts(ctx context.Context, emit func([]wire.PortOpen) error) error {
	for {
		g.h.mu.Lock()
		l, state, change := slices.Clone(g.h.ports), g.h.Row().State, g.h.change
		g.h.mu.Unlock()
		if state != sandbox.Running {
			return fault.New(fault.Unavailable, "The connection to the sandbox was lost.")
		}
		if err := emit(l); err != nil {
			return err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func worker(name string) catalog.Service {
	return catalog.Service{Name: name, Command: []string{"work"}}
}

func TestList_TellsWhatIsDeclaredInEveryStateAndWakesNothing(t *testing.T) {
	for state, want := range map[sandbox.State]services.State{
		sandbox.Running: services.Waiting, sandbox.Frozen: services.Asleep, sandbox.Asleep: services.Asleep,
		sandbox.Sleeping: services.Asleep, sandbox.Stopped: services.Stopped, sandbox.Failed: services.Stopped,
		sandbox.Starting: services.Waiting, sandbox.Creating: services.Waiting,
	} {
		h, s := newHouse(t)
		h.live = []wire.ServiceStatus{{Name: "web", State: wire.ServiceWaiting, Restarts: 3, Problem: "it ended"}}
		h.becomes(state)
		l, err := s.List(t.Context(), s.lab)
		if err != nil || len(l.Services) != 1 || l.Overridden || l.Services[0].State != want || l.Services[0].Port != 80 {
			t.Errorf("%s: %+v, %v", state, l, err)
		}
		if live := l.Services[0].Restarts == 3; live != (state == sandbox.Running) {
			t.Errorf("%s: %+v", state, l.Services[0])
		}
		if h.woken() != 0 || h.used() != 0 {
			t.Errorf("%s: it was woken %d times", state, h.woken())
		}
	}
}

func TestList_OfOneSandboxIsNotThatOfAnotherOfItsName(t *testing.T) {
	h, s := newHouse(t)
	if _, err := s.List(t.Context(), s.lab); err != nil {
		t.Errorf("its own: %v", err)
	}
	h.Change(func(row *sandbox.Sandbox) { row.ID = "another" })
	if l, err := s.List(t.Context(), s.lab); !fault.Is(err, fault.Gone) || len(l.Services) > 0 {
		t.Errorf("another's: %+v, %v", l, err)
	}
}

func TestList_AGuestThatDoesNotSayIsUnknown(t *testing.T) {
	h, s := newHouse(t)
	h.mute = true
	l, err := s.List(t.Context(), s.lab)
	if err != nil || l.Services[0].State != services.Unknown {
		t.Errorf("%+v, %v", l, err)
	}
	h.mute = false // it says, but of others
	if l, err = s.List(t.Context(), s.lab); err != nil || l.Services[0].State != services.Unknown {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestSet_AddsReplacesAndDeletesOneOfMany(t *testing.T) {
	_, s := newHouse(t)
	l, created, err := s.Set(t.Context(), s.lab, worker("a"), nil)
	if err != nil || !created || len(l.Services) != 2 || !l.Overridden {
		t.Fatalf("%+v, %v, %v", l, created, err)
	}
	changed := worker("web")
	changed.Command = []string{"other"}
	l, created, err = s.Set(t.Context(), s.lab, changed, nil)
	if err != nil || created || len(l.Services) != 2 || l.Services[0].Command[0] != "other" || template[0].Command[0] != "serve" {
		t.Fatalf("%+v, %v, %v", l, created, err)
	}
	for _, name := range []string{"a", "web"} {
		if l, err = s.Delete(t.Context(), s.lab, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.Services) != 0 || !l.Overridden {
		t.Errorf("the last one deleted, the template's are back: %+v", l)
	}
	if _, err := s.Delete(t.Context(), s.lab, "a", nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if l, err = s.Put(t.Context(), s.lab, nil, nil); err != nil || l.Overridden || len(l.Services) != 1 {
		t.Errorf("reset: %+v, %v", l, err)
	}
}

func TestChange_OnlyWhatItsCallerHasSeen(t *testing.T) {
	_, s := newHouse(t)
	first, err := s.List(t.Context(), s.lab)
	if err != nil {
		t.Fatal(err)
	}
	is := func(tag string) services.Match { return func(etag string) bool { return etag == tag } }
	l, _, err := s.Set(t.Context(), s.lab, worker("a"), is(first.ETag))
	if err != nil || l.ETag == first.ETag {
		t.Fatalf("%+v, %v", l, err)
	}
	if _, _, err := s.Set(t.Context(), s.lab, worker("b"), is(first.ETag)); !errors.Is(err, services.ErrChanged) {
		t.Errorf("set: %v", err)
	}
	if _, err := s.Put(t.Context(), s.lab, nil, is(first.ETag)); !errors.Is(err, services.ErrChanged) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Delete(t.Context(), s.lab, "a", is(first.ETag)); !errors.Is(err, services.ErrChanged) {
		t.Errorf("delete: %v", err)
	}
	if now, err := s.List(t.Context(), s.lab); err != nil || now.ETag != l.ETag {
		t.Errorf("it was changed: %+v, %v", now, err)
	}
	if back, err := s.Delete(t.Context(), s.lab, "a", is(l.ETag)); err != nil || back.ETag != first.ETag {
		t.Errorf("the same again has another ETag: %+v, %v", back, err)
	}
}

func TestPower_WakesAndIsAUseUntilItIsDone(t *testing.T) {
	for verb, do := range map[string]func(*on) (services.Status, error){
		"start web":   func(s *on) (services.Status, error) { return s.Start(t.Context(), s.lab, "web") },
		"stop web":    func(s *on) (services.Status, error) { return s.Stop(t.Context(), s.lab, "web") },
		"restart web": func(s *on) (services.Status, error) { return s.Restart(t.Context(), s.lab, "web") },
	} {
		h, s := newHouse(t)
		h.becomes(sandbox.Asleep)
		st, err := do(s)
		if err != nil || st.Name != "web" || st.Health != wire.HealthHealthy {
			t.Errorf("%s: %+v, %v", verb, st, err)
		}
		if h.woken() != 1 || h.doing != verb || h.used() != 0 {
			t.Errorf("%s: woken %d times, used for %q, then by %d", verb, h.woken(), h.doing, h.used())
		}
	}
	h, s := newHouse(t)
	h.becomes(sandbox.Asleep)
	if _, err := s.Start(t.Context(), s.lab, "none"); !fault.Is(err, fault.NotFound) || h.woken() != 0 {
		t.Errorf("one that is not declared: %v, woken %d times", err, h.woken())
	}
}

func TestPorts_OfOneThatDoesNotRunAreNone(t *testing.T) {
	h, s := newHouse(t)
	h.ports = []wire.PortOpen{{Port: 3000}}
	if got, err := s.Ports(t.Context(), s.lab); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	h.becomes(sandbox.Asleep)
	if got, err := s.Ports(t.Context(), s.lab); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	h.becomes(sandbox.Running)
	h.mute = true
	if _, err := s.Ports(t.Context(), s.lab); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestWatchPorts_GoesOnOverSleepAndTellsChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		ended := make(chan error, 1)
		go func() {
			ended <- s.WatchPorts(ctx, s.lab, func(l []wire.PortOpen) error {
				names := ""
				for _, p := range l {
					names += p.Process + " "
				}
				told = append(told, names)
				return nil
			})
		}()
		open := func(names ...string) {
			h.set(func() {
				h.ports = nil
				for i, n := range names {
					h.ports = append(h.ports, wire.PortOpen{Port: i + 1, Process: n})
				}
			})
			synctest.Wait()
		}
		synctest.Wait()
		open("node")
		open("node")
		h.becomes(sandbox.Frozen) // its ports cannot be asked for, and the fake link ends
		time.Sleep(time.Hour)
		h.becomes(sandbox.Running)
		time.Sleep(time.Minute)
		open("node", "vite")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if want := []string{"", "node ", "", "node ", "node vite "}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if h.woken() != 0 || h.used() != 0 {
			t.Errorf("it was woken %d times", h.woken())
		}
	})
}

func TestWatchPorts_EndsWithItsListener(t *testing.T) {
	_, s := newHouse(t)
	enough := errors.New("enough")
	if err := s.WatchPorts(t.Context(), s.lab, func([]wire.PortOpen) error { return enough }); err != enough {
		t.Errorf("got %v", err)
	}
}
