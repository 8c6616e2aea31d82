package guest

import (
	"io"
	"sync"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// pace is how a service that ends by itself is started again.
type pace struct {
	first   time.Duration // the first pause; each further one is twice as long
	longest time.Duration
	healthy time.Duration // a run of at least this makes the next pause the first again
}

var defaultPace = pace{first: 500 * time.Millisecond, longest: 30 * time.Second, healthy: 10 * time.Second}

// service is one declared service. At most one run of it is alive at a time. Safe for concurrent use.
type service struct {
	def   wire.Service
	spawn spawnFunc
	pace  pace
	log   ring
	runs  *sync.WaitGroup

	mu     sync.Mutex
	closed bool // never starts again
	status wire.ServiceStatus
	halt   chan struct{} // closed to end the run; nil when none shall be
	grace  time.Duration // for that end
	idle   chan struct{} // closed when the last run has ended; nil when there was none
}

// start lets it run until stop. Starting what runs, or is about to, does nothing; what waits to be started again is
// started now. From here on it counts as waiting, not as stopped.
func (s *service) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.halt != nil && s.status.Retry.IsZero() {
		return
	}
	if s.halt != nil {
		close(s.halt)
	}
	before, halt, idle := s.idle, make(chan struct{}), make(chan struct{})
	s.halt, s.idle = halt, idle
	s.status.State, s.status.Since, s.status.PID, s.status.Retry = wire.ServiceWaiting, time.Now(), 0, time.Time{}
	s.status.Restarts, s.status.Problem = 0, ""
	s.runs.Go(func() {
		defer close(idle)
		if before != nil {
			<-before
		}
		s.run(halt)
	})
}

// stop asks the run to end, and kills it after grace. It does not wait.
func (s *service) stop(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace = grace
	if s.halt != nil {
		close(s.halt)
		s.halt = nil
	}
}

// close is stop for good.
func (s *service) close(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(grace)
}

// whenIdle gives a channel that is closed once no run is alive, unless a new one is begun.
func (s *service) whenIdle() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = make(chan struct{})
		close(s.idle)
	}
	return s.idle
}

// now gives its status.
func (s *service) now() wire.ServiceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *service) set(state wire.ServiceState, change func(*wire.ServiceStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since = state, time.Now()
	s.status.PID, s.status.Retry = 0, time.Time{}
	change(&s.status)
}

// over notes that a run has ended because it was to. When the next was begun meanwhile, that one is about to run.
func (s *service) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since = wire.ServiceStopped, time.Now()
	if s.halt != nil {
		s.status.State = wire.ServiceWaiting
	}
	s.status.PID, s.status.Retry = 0, time.Time{}
}

// run starts the program again and again until halt.
func (s *service) run(halt <-chan struct{}) {
	defer s.over()
	pause := s.pace.first
	for {
		select {
		case <-halt:
			return
		default:
		}
		began := time.Now()
		code, problem := s.once(halt)
		if time.Since(began) >= s.pace.healthy {
			pause = s.pace.first
		}
		s.set(wire.ServiceWaiting, func(st *wire.ServiceStatus) {
			st.ExitCode, st.Problem, st.Retry = code, problem, time.Now().Add(pause)
			st.Restarts++
		})
		retry := time.NewTimer(pause)
		select {
		case <-halt:
			retry.Stop()
			return
		case <-retry.C:
		}
		pause = min(2*pause, s.pace.longest)
	}
}

// once runs the program to its end and cleans up after it: nothing of a run is left when the next begins.
func (s *service) once(halt <-chan struct{}) (code int, problem string) {
	p, err := s.spawn(wire.ExecStart{Command: s.def.Command, Cwd: s.def.Cwd, Env: s.def.Env})
	if err != nil {
		return 127, err.Error()
	}
	p.stdin.Close()
	s.set(wire.ServiceRunning, func(st *wire.ServiceStatus) { st.PID, st.Problem = p.pid, "" })
	var pumps sync.WaitGroup
	for _, o := range p.output {
		pumps.Go(func() { io.Copy(&s.log, o.file) })
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		code = p.wait().code
	}()
	select {
	case <-exited:
	case <-halt:
		s.end(p, exited)
	}
	p.kill()
	<-exited
	for _, o := range p.output { // its last words are logged; whoever has slipped away with the pipe gets no more time
		o.file.SetReadDeadline(time.Now().Add(drainTime))
	}
	pumps.Wait()
	p.close()
	return code, ""
}

// end asks p to end and waits for the grace of stop.
func (s *service) end(p *process, exited <-chan struct{}) {
	p.signal("TERM")
	s.mu.Lock()
	grace := s.grace
	s.mu.Unlock()
	thaw.Wait(exited, grace)
}
