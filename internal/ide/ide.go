// Package ide has VS Code in the browser (code-server) at hand for all sandboxes: built once for this server, kept as a folder
// that is mounted read-only into each of them, and switched on and off for one.
//
// It does not run it, the guest does; it does not lead anybody to it, the proxy does; and it does not decide who may switch
// it on.
//
// Invariant: a version's folder is there as a whole or not at all, whatever broke off in between, and is never changed or,
// while a sandbox uses it, removed.
package ide

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// Template is the template's name of the image that VS Code is built as.
const Template = "code-server"

// imageFolder is where that image has it.
const imageFolder = "/ide"

// Images builds the image. Implemented by catalog.Images.
type Images interface {
	// Run lives as long as anything may be built.
	Run(ctx context.Context) error
	// Ensure gives the image's reference, building it first if it is not there.
	Ensure(ctx context.Context, t catalog.Template, report func(catalog.BuildEvent)) (ref string, err error)
	// Reference gives the reference without asking anybody.
	Reference(t catalog.Template) (ref string, err error)
}

// Engine takes the folder out of the image. Implemented by docker.Engine.
type Engine interface {
	// CopyOut hands a folder of an image to take, as a tar archive.
	CopyOut(ctx context.Context, ref, folder, owner string, take func(io.Reader) error) error
	// DropStages removes what the build has left beside the image.
	DropStages(ctx context.Context, name string) error
}

// Boxes is the part of sandbox.Manager that this package uses.
type Boxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	OffersIDE(s sandbox.Sandbox) bool
	SetIDE(ctx context.Context, ref sandbox.Ref, on bool) (sandbox.Sandbox, error)
}

// Config is what a Service is made of. Log is needed; without Boxes and Links it only builds.
type Config struct {
	Folder string // of the versions; made when it is not there
	Owner  string // who copies out of images on that engine: one at a time
	Images Images
	Engine Engine
	Boxes  Boxes
	Links  access.Links
	Hosts  hostname.Hosts
	Report func(catalog.BuildEvent) // hears what a build says; may be nil
	Log    *slog.Logger
}

// Service has VS Code at hand. Safe for concurrent use.
type Service struct {
	cfg  Config
	tree tree
	work chan struct{} // told that a job waits to be run

	mu      sync.Mutex
	job     *job   // under way or in line; nil for none
	problem string // why the last one came to nothing
	again   time.Time
	ended   bool
}

// job makes the present version present.
type job struct {
	done     chan struct{}
	err      error // once done
	progress Progress
}

// Progress is how far a build has come.
type Progress struct {
	Step, Steps int     // 0 while it waits in line
	Line        string  // what it said last
	Part        float64 // of the whole, 0 to 1
}

// New makes a Service. It does no I/O; nothing is built before Run.
func New(c Config) *Service {
	return &Service{cfg: c, tree: tree{folder: c.Folder}, work: make(chan struct{}, 1)}
}

// How often it looks whether something is to be done, and how long a build that has failed is not repeated unasked, and not by
// pages that try again by themselves.
const (
	lookEvery   = 30 * time.Second
	sweepEvery  = time.Hour
	retryAfter  = 15 * time.Minute
	repeatAfter = 20 * time.Second
)

var errEnding = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// Run builds wanted versions and removes unused ones, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.cfg.Images.Run(ctx) })
	g.Go(func() error { s.live(ctx); return nil })
	return g.Wait()
}

func (s *Service) live(ctx context.Context) {
	defer s.end()
	look, sweep := time.NewTicker(lookEvery), time.NewTicker(sweepEvery)
	defer look.Stop()
	defer sweep.Stop()
	s.sweep(ctx)
	s.want(ctx)
	for ctx.Err() == nil {
		select {
		case <-s.work:
			s.run(ctx)
		case <-look.C:
			s.want(ctx)
		case <-sweep.C:
			s.sweep(ctx)
		case <-ctx.Done():
		}
	}
}

// end releases the waiters.
func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if f := s.job; f != nil {
		s.conclude(f, errEnding)
	}
}

// want begins a build when a sandbox offers VS Code and the present version is not there: an earlier sandboxd was stopped in
// the middle of it, or a newer one has come, or a template has it from the beginning.
func (s *Service) want(ctx context.Context) {
	if s.cfg.Boxes == nil {
		return
	}
	if version, err := s.present(); err != nil || version != "" {
		return
	}
	boxes, _, err := s.cfg.Boxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return
	}
	for _, box := range boxes {
		if s.cfg.Boxes.OffersIDE(box) {
			s.begin(retryAfter)
			return
		}
	}
}

// present gives the present version if it is there, else "".
func (s *Service) present() (version string, err error) {
	if version, err = s.version(); err != nil || !s.tree.has(version) {
		return "", err
	}
	return version, nil
}

// version is what the present build description gives.
func (s *Service) version() (string, error) {
	ref, err := s.cfg.Images.Reference(catalog.Template{Name: Template})
	if err != nil {
		return "", err
	}
	return tagOf(ref), nil
}

// Ensure returns when the present version is there, building it first if it is not. Concurrent callers share one build, which
// outlives its callers. Kinds: those of catalog.Images.Ensure, and Unavailable (no space on the disk).
func (s *Service) Ensure(ctx context.Context) (version string, err error) {
	if version, err = s.present(); err != nil || version != "" {
		return version, err
	}
	f := s.begin(0)
	select {
	case <-f.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if f.err != nil {
		return "", f.err
	}
	return s.present()
}

// begin gives the job under way or in line, else lines one up, unless one has failed less than pause ago: that is nil.
func (s *Service) begin(pause time.Duration) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.job != nil:
		return s.job
	case s.ended:
		f := &job{done: make(chan struct{}), err: errEnding}
		close(f.done)
		return f
	case pause > 0 && s.problem != "" && time.Since(s.again) < pause:
		return nil
	}
	s.job = &job{done: make(chan struct{})}
	select {
	case s.work <- struct{}{}:
	default:
	}
	return s.job
}

// run makes the present version present for the job in line.
func (s *Service) run(ctx context.Context) {
	s.mu.Lock()
	f := s.job
	s.mu.Unlock()
	if f == nil {
		return
	}
	begun := time.Now()
	version, err := s.build(ctx, f)
	if err != nil && ctx.Err() != nil {
		err = errEnding
	}
	switch {
	case err == nil:
		s.cfg.Log.Info("VS Code is ready", "version", version, "took", time.Since(begun).Round(time.Second))
	case !errors.Is(err, errEnding):
		s.cfg.Log.Error("VS Code could not be built", "error", fault.Message(err))
	}
	s.mu.Lock()
	s.conclude(f, err)
	s.mu.Unlock()
	if err == nil {
		s.sweep(ctx)
	}
}

// conclude ends a job. It needs mu.
func (s *Service) conclude(f *job, err error) {
	s.job, s.problem = nil, ""
	if f.err = err; err != nil && !errors.Is(err, errEnding) {
		s.problem, s.again = fault.Message(err), time.Now()
	}
	close(f.done)
}
