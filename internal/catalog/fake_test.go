package catalog

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

// fakeEngine keeps images in a map. A build takes a minute of the test's time and says each of its steps.
type fakeEngine struct {
	mu     sync.Mutex
	images map[string]bool
	built  []Build
	pulled []string
	fail   map[string]error // by repository or reference
	output []string         // of the last step of every build
	asked  int              // calls of HasImage
	listed int              // calls of ImageTags
	down   error
	cached bool // every step finds its result
}

const buildTime = time.Minute

func newFakeEngine(present ...string) *fakeEngine {
	e := &fakeEngine{images: map[string]bool{}, fail: map[string]error{}}
	for _, ref := range present {
		e.images[ref] = true
	}
	return e
}

func (e *fakeEngine) HasImage(_ context.Context, ref string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return e.images[ref], e.down
}

func (e *fakeEngine) BuildImage(ctx context.Context, b Build, out func(BuildEvent)) error {
	repository, _, _ := strings.Cut(b.Tag, ":")
	for step := 1; step <= 2; step++ {
		out(BuildEvent{Step: step, Steps: 2, Line: "Step of " + repository, Cached: e.cached})
		if err := e.pause(ctx, buildTime/2); err != nil {
			return err
		}
	}
	for _, line := range e.output {
		out(BuildEvent{Line: line})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.built = append(e.built, b)
	if err := e.fail[repository]; err != nil {
		return err
	}
	e.images[b.Tag] = true
	return nil
}

func (e *fakeEngine) PullImage(ctx context.Context, ref string, out func(BuildEvent)) error {
	out(BuildEvent{Done: 1, Total: 2, Line: "pulling"})
	if err := e.pause(ctx, buildTime); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pulled = append(e.pulled, ref)
	if err := e.fail[ref]; err != nil {
		return err
	}
	e.images[ref] = true
	return nil
}

func (e *fakeEngine) ImageTags(_ context.Context, repository string) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listed++
	tags := slices.Sorted(maps.Keys(e.images))
	return slices.DeleteFunc(tags, func(ref string) bool { return !strings.HasPrefix(ref, repository+":") }), e.down
}

func (e *fakeEngine) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Unavailable, "The engine was interrupted.")
	}
}

// builds gives the repositories of all builds in order.
func (e *fakeEngine) builds() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, b := range e.built {
		name, _, _ := strings.Cut(b.Tag, ":")
		names = append(names, strings.TrimPrefix(name, repositoryPrefix))
	}
	return names
}

func (e *fakeEngine) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

const onBase = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN true\n"

// rig is an Images over a fake engine, running in a bubble of time.
type rig struct {
	*Images
	t      *testing.T
	engine *fakeEngine
	dir    string
	stop   func()
}

// bubble runs test with the templates base (FROM debian:trixie-slim), top and side (on base).
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	dir := tree(t, join(
		minimal("base", "", "FROM debian:trixie-slim\nRUN true\n"), minimal("top", "base: base\n", onBase),
		minimal("side", "base: base\n", onBase+"# side\n"),
	))
	synctest.Test(t, func(t *testing.T) {
		engine := newFakeEngine("debian:trixie-slim")
		c := open(t, dir)
		i := NewImages(c, engine, ImageOptions{Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		stop := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run ended with %v", err)
			}
		})
		test(&rig{Images: i, t: t, engine: engine, dir: dir, stop: stop})
		stop()
	})
}

func (r *rig) template(name string) Template {
	r.t.Helper()
	tpl, err := r.catalog.Template(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return tpl
}

func (r *rig) ensure(name string) (string, error) {
	r.t.Helper()
	return r.Ensure(r.t.Context(), r.template(name), nil)
}

// state checks how a template's image stands.
func (r *rig) state(name string, want ImageState) ImageStatus {
	r.t.Helper()
	s := r.Status(r.t.Context(), name)
	if s.State != want {
		r.t.Errorf("image of %s is %s (%s), want %s", name, s.State, s.Problem, want)
	}
	return s
}
