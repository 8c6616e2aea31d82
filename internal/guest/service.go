package guest

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// pace is how a service that ends by itself is started again.
type pace struct {
	first   time.Duration // the first pause; each further one is twice as long
	longest time.Duration
	healthy time.Duration // a good run of at least this makes the next pause the first again
	look    time.Duration // between two checks, where the service does not say
	early   time.Duration // between two checks at most, until it was healthy once
	settle  time.Duration // how long it may take until it is healthy, before that counts as failing
}

var defaultPace = pace{first: 500 * time.Millisecond, longest: 30 * time.Second, healthy: 10 * time.Second,
	look: 10 * time.Second, early: time.Second, settle: time.Minute}

// service is one declared service. At most one run of it is alive at a time. Safe for concurrent use.
type service struct {
	spawn spawnFunc
	pace  pace
	lines *journal
	runs  *sync.WaitGroup

	mu     sync.Mutex
	def    wire.Service
	closed bool // never starts again
	status wire.ServiceStatus
	halt   chan struct{} // closed to end the run; nil when none shall be
	grace  time.Duration // for that end
	idle   chan struct{} // closed when the last run has ended; nil when there was none
}

// start lets it run until stop. Starting one that runs, or is about to, does nothing; one that waits to be started again is
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
	s.status.Restarts, s.status.Problem, s.status.Health = 0, "", wire.HealthUnknown
	s.runs.Go(func() {
		defer close(idle)
		if before != nil {
			<-before
		}
		s.run(halt)
	})
}

// stop asks the run to end, and kills it after grace. It does not wait; ended is closed when that run has ended, also if
// another is started meanwhile.
func (s *service) stop(grace time.Duration) (ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace = grace
	if s.halt != nil {
		close(s.halt)
		s.halt = nil
	}
	return s.rests()
}

// close is stop for good.
func (s *service) close(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(grace)
}

// restart is stop and start; ended is closed when the old run has ended.
func (s *service) restart(grace time.Duration) (ended <-chan struct{}) {
	ended = s.stop(grace)
	s.start()
	return ended
}

// wanted reports whether it runs, or is about to.
func (s *service) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halt != nil
}

// definition is the present one.
func (s *service) definition() wire.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.def
}

// redefine changes whether it starts by itself, which is nothing to a run.
func (s *service) redefine(autostart bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.def.Autostart = autostart
}

// whenIdle gives a channel that is closed once no run is alive, unless a new one is begun.
func (s *service) whenIdle() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rests()
}

// rests is whenIdle for those who hold mu.
func (s *service) rests() chan struct{} {
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

// begun notes that a run has begun.
func (s *service) begun(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since, s.status.PID, s.status.Retry = wire.ServiceRunning, time.Now(), pid, time.Time{}
	s.status.Problem, s.status.Health = "", wire.HealthUnknown
}

// over notes that a run has ended because it was to. When the next was begun meanwhile, that one is about to run.
func (s *service) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since = wire.ServiceStopped, time.Now()
	if s.halt != nil {
		s.status.State = wire.ServiceWaiting
	}
	if s.status.Health == wire.HealthUnhealthy {
		s.status.Problem = ""
	}
	s.status.PID, s.status.Retry, s.status.Health = 0, time.Time{}, wire.HealthUnknown
}

// ending is how a run has ended.
type ending struct {
	code    int
	problem string // why it could not begin or was ended, a sentence
	sick    bool   // it was ended because it was unhealthy
	healthy bool   // it was so at some time; without checks it always is
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
		e := s.once(halt)
		if e.healthy && time.Since(began) >= s.pace.healthy {
			pause = s.pace.first
		}
		if !s.pauses(e, pause, halt) {
			s.lines.note(s.definition().Name, "It was stopped (exit code %d).", e.code)
			return
		}
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

// pauses notes how a run has ended and that there is a pause now; false when there is to be none, because the run was ended
// from outside.
func (s *service) pauses(e ending, pause time.Duration, halt <-chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.ExitCode = e.code
	select {
	case <-halt:
		return false
	default:
	}
	now := time.Now()
	s.status.State, s.status.Since, s.status.PID, s.status.Retry = wire.ServiceWaiting, now, 0, now.Add(pause)
	s.status.Problem, s.status.Health = e.problem, wire.HealthUnknown
	if e.sick {
		s.status.Health = wire.HealthUnhealthy
	}
	s.status.Restarts++
	s.lines.note(s.def.Name, "It has ended with exit code %d, and is started again in %s. %s", e.code, pause, e.problem)
	return true
}

// once runs the program to its end and cleans up after it: nothing of a run is left when the next begins.
func (s *service) once(halt <-chan struct{}) (e ending) {
	def := s.definition()
	p, err := s.spawn(wire.ExecStart{Command: def.Command, Cwd: def.Cwd, Env: def.Env})
	if err != nil {
		s.lines.note(def.Name, "It cannot be started: %v", err)
		return ending{code: 127, problem: err.Error()}
	}
	s.lines.note(def.Name, "It has started as process %d.", p.pid)
	p.stdin.Close()
	s.begun(p.pid)
	var pumps sync.WaitGroup
	exited := make(chan struct{})
	reading, cut := context.WithCancel(context.Background())
	defer cut()
	for _, o := range p.output {
		pumps.Go(func() {
			lines := &lineWriter{journal: s.lines, service: def.Name}
			if err := pump(reading, lines, o.file, exited); err != nil && reading.Err() == nil {
				s.lines.note(def.Name, "Its output cannot be read: %v", err)
			}
			lines.flush()
		})
	}
	checks := s.check(def)
	go func() {
		defer close(exited)
		e.code = p.wait().code
	}()
	select {
	case <-exited:
	case <-halt:
		s.end(p, exited, s.graceOf())
	case <-checks.alarm():
		e.sick, e.problem = true, s.now().Problem
		s.end(p, exited, wire.StopGrace)
	}
	e.healthy = checks.stop()
	p.kill()
	<-exited
	defer time.AfterFunc(drainTime, cut).Stop() // its last output is logged; a process that has left the tree with the pipe gets no more time
	pumps.Wait()
	p.close()
	return e
}

// end asks p to end and waits for grace.
func (s *service) end(p *process, exited <-chan struct{}, grace time.Duration) {
	p.signal("TERM")
	thaw.Wait(exited, grace)
}

// graceOf is the grace of the last stop.
func (s *service) graceOf() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grace
}
