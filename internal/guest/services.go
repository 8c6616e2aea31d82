package guest

import (
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

// spawnFunc starts a program.
type spawnFunc func(wire.ExecStart) (*process, error)

// supervisor keeps the declared services. It owns their processes until stop. Safe for concurrent use.
type supervisor struct {
	spawn spawnFunc
	pace  pace
	lines *journal
	runs  sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	order   []string // as declared
	byName  map[string]*service
}

func newSupervisor(spawn spawnFunc) *supervisor {
	return &supervisor{spawn: spawn, pace: defaultPace, lines: newJournal(), byName: map[string]*service{}}
}

// apply makes the declared services the ones there are. One whose definition is as before is left alone, whether it
// runs or was stopped; one that is new or different is started if it starts by itself or runs as it was. It does not wait.
func (s *supervisor) apply(defs []wire.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	old := s.byName
	s.byName, s.order = map[string]*service{}, nil
	for _, def := range defs {
		before := old[def.Name]
		s.order = append(s.order, def.Name)
		if before != nil && alike(before.definition(), def) {
			before.redefine(def.Autostart)
			s.byName[def.Name] = before
			delete(old, def.Name)
			continue
		}
		sv, start := s.declare(def, before)
		s.byName[def.Name] = sv
		if start {
			sv.start()
		}
	}
	for _, gone := range old {
		gone.close(wire.StopGrace)
	}
}

// declare makes a service that takes the place of before, if there is one, and says whether it is to be started.
func (s *supervisor) declare(def wire.Service, before *service) (sv *service, start bool) {
	sv = &service{def: def, spawn: s.spawn, pace: s.pace, runs: &s.runs, lines: s.lines}
	sv.status = wire.ServiceStatus{Name: def.Name, Port: def.Port, State: wire.ServiceStopped, Since: time.Now()}
	if before == nil {
		return sv, def.Autostart
	}
	sv.idle = before.whenIdle() // two versions do not run at the same time
	return sv, def.Autostart || before.wanted()
}

// alike reports whether two definitions make no difference to a run.
func alike(a, b wire.Service) bool {
	a.Autostart = b.Autostart
	return reflect.DeepEqual(a, b)
}

// stop ends all services for good and waits for them.
func (s *supervisor) stop(grace time.Duration) {
	s.mu.Lock()
	s.stopped = true
	all := make([]*service, 0, len(s.byName))
	for _, sv := range s.byName {
		all = append(all, sv)
	}
	s.mu.Unlock()
	for _, sv := range all {
		sv.close(grace)
	}
	s.runs.Wait()
}

func (s *supervisor) list() wire.ServiceStatuses {
	s.mu.Lock()
	all := make([]*service, 0, len(s.order))
	for _, name := range s.order {
		all = append(all, s.byName[name])
	}
	s.mu.Unlock()
	l := make(wire.ServiceStatuses, 0, len(all))
	for _, sv := range all {
		l = append(l, sv.now())
	}
	return l
}

func (s *supervisor) find(name string) (*service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv := s.byName[name]; sv != nil && !s.stopped {
		return sv, nil
	}
	return nil, problem(wire.CodeNotFound, "The sandbox has no service "+name+"; it has: "+list(s.order)+".")
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	l := ""
	for i, n := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			l += ", "
		}
		l += n
	}
	return l
}

func (s *supervisor) serveList(w http.ResponseWriter, _ *http.Request) {
	l := s.list()
	answer(w, &l)
}

// on serves a request about one service.
func (s *supervisor) on(serve func(w http.ResponseWriter, r *http.Request, sv *service)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sv, err := s.find(r.PathValue("name"))
		if err != nil {
			fail(w, err)
			return
		}
		serve(w, r, sv)
	}
}

func serveServiceStart(w http.ResponseWriter, _ *http.Request, sv *service) {
	sv.start()
	w.WriteHeader(http.StatusNoContent)
}

func serveServiceStop(w http.ResponseWriter, r *http.Request, sv *service) {
	afterwards(w, r, sv.stop(wire.StopGrace))
}

func serveServiceRestart(w http.ResponseWriter, r *http.Request, sv *service) {
	afterwards(w, r, sv.restart(wire.StopGrace))
}

// afterwards answers when a run has ended, unless the request has ended before.
func afterwards(w http.ResponseWriter, r *http.Request, ended <-chan struct{}) {
	select {
	case <-ended:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}
