package install

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const (
	installLimit = 30 * time.Minute
	removeLimit  = 5 * time.Minute
	fileLimit    = 15 * time.Second // to write what is missing
	keepFailure  = 24 * time.Hour   // for which it is told that an installation failed
)

var (
	errClosing   = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")
	errCancelled = errors.New("the installation was cancelled")
)

// Config is what a Service works with.
type Config struct {
	Catalog *Catalog
	Exec    *exec.Service
	Log     *slog.Logger
	Now     func() time.Time // nil means time.Now
}

// Service installs agents. What it knows of installations is in memory: one that the end of sandboxd cut off is found in the sandbox.
// Safe for concurrent use.
type Service struct {
	c     Config
	life  context.Context
	end   context.CancelCauseFunc
	works sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job // by id of the sandbox: the one under way, or the last one that failed
}

// job is an installation. All but done and cancel is guarded by the Service's mu.
type job struct {
	entry    Entry
	progress progress
	removing bool // it is a removal
	problem  string
	ended    time.Time // zero while it is under way
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when it has ended
}

// New makes a Service, which works until Run ends. It does no I/O.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{c: c, jobs: map[string]*job{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Run ends all installations when ctx ends, and waits for them.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.end(errClosing)
	s.mu.Unlock()
	s.works.Wait()
	return nil
}

// begin takes the sandbox's one place for work on its agents. Conflict when it is taken.
func (s *Service) begin(h access.Handle, j *job) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, errClosing
	}
	if now := s.jobs[h.ID()]; now != nil && now.ended.IsZero() {
		if now.removing {
			return nil, fault.New(fault.Conflict, "An agent is being removed from %s. Try again in a moment.", h.Name())
		}
		return nil, fault.New(fault.Conflict, "%s is being installed in %s. Wait until it is, or cancel it.", now.entry.Name, h.Name())
	}
	limit := s.c.Now().Add(-keepFailure)
	maps.DeleteFunc(s.jobs, func(_ string, j *job) bool { return !j.ended.IsZero() && j.ended.Before(limit) })
	ctx, cancel := context.WithCancelCause(s.life)
	j.cancel, j.done = cancel, make(chan struct{})
	s.jobs[h.ID()] = j
	s.works.Add(1) // with mu, so that Run does not end between
	return ctx, nil
}

// leave ends a job. One without a problem is forgotten.
func (s *Service) leave(h access.Handle, j *job, problem string) {
	defer s.works.Done()
	j.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.problem, j.ended = problem, s.c.Now()
	if problem == "" {
		delete(s.jobs, h.ID())
	}
	close(j.done)
}

// Install begins the installation of an agent, in place of an older version, and wakes the sandbox. It continues when the caller leaves;
// List tells how far it is. NotFound for an agent that there is none of; Conflict while another one is installed or removed.
func (s *Service) Install(ctx context.Context, h access.Handle, id string) error {
	entry, node, err := s.c.Catalog.find(id)
	if err != nil {
		return err
	}
	j := &job{entry: entry, progress: progress{total: int64(entry.SizeMB) << 10}}
	life, err := s.begin(h, j)
	if err != nil {
		return err
	}
	life = sandbox.Asked(life, ctx)
	go func() { s.leave(h, j, s.work(life, h, j, node)) }()
	return nil
}

// work installs, and says why it could not.
func (s *Service) work(ctx context.Context, h access.Handle, j *job, node nodeVersions) (problem string) {
	result, err := exec.Result{}, s.writeFiles(ctx, h, j.entry.Files) // first, so that an agent that is there has them
	if err == nil {
		result, err = s.c.Exec.Stream(ctx, h, installRequest(j.entry, node), func(e exec.Event) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return j.progress.write(e.Data)
		})
	}
	if err == nil && result.ExitCode == 0 {
		s.c.Log.Info("agent installed", "sandbox", h.Name(), "agent", j.entry.ID, "version", j.entry.Version, "took", result.Duration)
		return ""
	}
	if context.Cause(ctx) == errCancelled { // it is this very value
		s.clean(h)
		return ""
	}
	s.mu.Lock()
	problem = j.progress.why(j.entry, result, err)
	s.mu.Unlock()
	s.c.Log.Warn("agent not installed", "sandbox", h.Name(), "agent", j.entry.ID, "reason", problem)
	return problem
}

// clean removes what a killed installation has left. What cannot be removed is removed by the next one.
func (s *Service) clean(h access.Handle) {
	r := exec.Request{Command: shell(cleanScript, Root), Title: "clean up", Cwd: "/", Timeout: removeLimit}
	if _, err := s.c.Exec.Run(s.life, h, r); err != nil {
		s.c.Log.Warn("the rest of a cancelled installation stays for now", "sandbox", h.Name(), "error", err)
	}
}

// writeFiles writes the files that are not there.
func (s *Service) writeFiles(ctx context.Context, h access.Handle, files []File) error {
	if len(files) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	session, err := h.Open(ctx, idle.Use{Kind: idle.Files, Detail: "install-agent"})
	if err != nil {
		return err
	}
	defer session.Release()
	for _, f := range files {
		put := wire.FilePut{Path: wire.HomePath + "/" + f.Path, Size: int64(len(f.Text)), IfNone: true, Mode: 0o600, Parents: true}
		_, err := session.Guest.FileWrite(ctx, put, bytes.NewReader([]byte(f.Text)))
		if err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

// Remove removes an agent from a sandbox, also one that the catalog no longer has, and cancels its installation when that is under way.
// It blocks, and wakes the sandbox. Conflict while another agent is installed or removed; other kinds as for exec.
func (s *Service) Remove(ctx context.Context, h access.Handle, id string) error {
	if !agentID.MatchString(id) {
		return fault.New(fault.NotFound, "There is no agent %.40q.", id)
	}
	if cancelled, err := s.cancel(ctx, h, id); cancelled {
		return err
	}
	j := &job{entry: Entry{ID: id}, removing: true}
	life, err := s.begin(h, j)
	if err != nil {
		return err
	}
	defer s.leave(h, j, "")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })()
	r := exec.Request{Command: shell(removeScript, Root, id), Title: "remove the agent " + id, Cwd: "/", Timeout: removeLimit}
	result, err := s.c.Exec.Run(ctx, h, r)
	if err == nil && result.ExitCode != 0 {
		err = fault.New(fault.Unavailable, "The agent could not be removed from the sandbox. Try again, or remove %s/%s in a terminal.", Root, id)
	}
	return err
}

// cancel ends the installation of an agent when it is under way, and waits for its end.
func (s *Service) cancel(ctx context.Context, h access.Handle, id string) (cancelled bool, err error) {
	s.mu.Lock()
	j := s.jobs[h.ID()]
	cancelled = j != nil && j.ended.IsZero() && !j.removing && j.entry.ID == id
	s.mu.Unlock()
	if !cancelled {
		return false, nil
	}
	j.cancel(errCancelled)
	select {
	case <-j.done:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
