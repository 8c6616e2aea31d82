package trials

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

const (
	eventBuffer = 64
	storeLimit  = 15 * time.Second // one change of the rows
	noteFirst   = 100 * time.Millisecond
	noteMost    = time.Minute // between two attempts to store what has been done
)

var errClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. This continues when it is back.")

// Sandboxes is what this asks of sandbox.Manager.
type Sandboxes interface {
	All(ctx context.Context) (map[string]sandbox.Sandbox, error)
	Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// Config holds what a Service needs.
type Config struct {
	Store     Store
	Sandboxes Sandboxes
	Snapshots *snapshot.Service
	Chat      *chat.Service
	Doing     *chat.States
	Room      func(ctx context.Context) error // an Unavailable when the host has no room for another sandbox
	Log       *slog.Logger
	Now       func() time.Time // nil for time.Now
}

// Change says that a trial has changed.
type Change struct{ Trial Trial }

// Service is all trials. Safe for concurrent use.
type Service struct {
	c     Config
	life  context.Context
	end   context.CancelCauseFunc
	works sync.WaitGroup
	bus   *event.Bus[Change]
	looks looks

	order sync.Mutex // held while a trial is written, so that what is written last is what is known

	mu      sync.Mutex
	all     map[string]Trial
	of      map[string]Of            // by a clone's id
	under   map[string]chan struct{} // by trial: closed when what is being done has ended
	closing bool
}

// New makes a Service. Load reads what there is, and Run lets it live.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{c: c, bus: event.NewBus[Change](eventBuffer), all: map[string]Trial{}, of: map[string]Of{}, under: map[string]chan struct{}{}}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Load reads the trials. Call it before anything else. Kinds as for Store.
func (s *Service) Load(ctx context.Context) error {
	list, err := s.c.Store.Trials(ctx)
	for _, t := range list {
		s.know(t)
	}
	return err
}

// Run continues what the last end of sandboxd has cut off, until ctx ends, and returns when all that is being done has ended.
func (s *Service) Run(ctx context.Context) error {
	for _, t := range s.find(func(t Trial) bool { return !t.State.Over() }) {
		switch t.State {
		case Making:
			s.begin(t.ID, s.making)
		case Deleting:
			s.begin(t.ID, s.deleting)
		case Keeping: // how far it has come is not known, and a person decides
			s.begin(t.ID, func(ctx context.Context, id string) {
				s.reopen(ctx, id, "sandboxd was restarted while a try was being kept. Look at the sandbox, and keep the try again.")
			})
		}
	}
	<-ctx.Done()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.end(errClosing)
	s.works.Wait()
	return nil
}

// begin does something with a trial, after what is being done with it, and tells when it has ended. false when sandboxd is shutting down.
func (s *Service) begin(id string, do func(ctx context.Context, id string)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	before, done := s.under[id], make(chan struct{})
	s.under[id] = done
	s.works.Go(func() {
		defer s.ended(id, done)
		if before != nil {
			<-before
		}
		if s.life.Err() == nil {
			do(s.life, id)
		}
	})
	return true
}

// ended tells that what was being done with a trial has ended.
func (s *Service) ended(id string, done chan struct{}) {
	close(done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under[id] == done {
		delete(s.under, id)
	}
}

// know keeps a trial in memory.
func (s *Service) know(t Trial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[t.ID] = t
	for i, c := range t.Clones {
		if c.Sandbox != "" {
			s.of[c.Sandbox] = Of{Trial: t.ID, Owner: t.Owner, Name: t.Name, N: i + 1}
		}
	}
}

// forget drops a trial from memory.
func (s *Service) forget(t Trial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, t.ID)
	for _, c := range t.Clones {
		delete(s.of, c.Sandbox)
	}
}

// Forget drops the trials of a sandbox that was deleted: the store has none of them any more.
func (s *Service) Forget(sandbox string) {
	for _, t := range s.List(sandbox) {
		s.forget(t)
	}
}

// change lets f change a trial, stores it and tells of it. f must not block.
func (s *Service) change(ctx context.Context, id string, f func(t *Trial) error) (Trial, error) {
	s.order.Lock()
	defer s.order.Unlock()
	t, err := s.Trial(id)
	if err != nil {
		return t, err
	}
	t.Clones = slices.Clone(t.Clones)
	if err := f(&t); err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	err = s.c.Store.Put(ctx, t)
	if fault.Is(err, fault.NotFound) {
		s.forget(t)
	}
	if err != nil {
		return t, err
	}
	s.know(t)
	s.bus.Publish(Change{t})
	return t, nil
}

// note is change for what was done in the background. While the store refuses it tries again, until ctx ends: else the trial would seem to be
// worked on until the next start. false when ctx has ended, or there is no such trial any more.
func (s *Service) note(ctx context.Context, id string, f func(t *Trial)) (Trial, bool) {
	for wait := noteFirst; ; wait = min(2*wait, noteMost) {
		t, err := s.change(ctx, id, func(t *Trial) error { f(t); return nil })
		if err == nil || fault.Is(err, fault.NotFound) {
			return t, err == nil
		}
		s.c.Log.Warn("store tries", "trial", id, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return t, false
		}
	}
}

// reopen says that something has failed, and that a person can try it again.
func (s *Service) reopen(ctx context.Context, id, problem string) {
	s.note(ctx, id, func(t *Trial) { t.State, t.Kept, t.Problem = Open, "", problem })
}

func (s *Service) find(wanted func(Trial) bool) (list []Trial) {
	s.mu.Lock()
	for _, t := range s.all {
		if wanted(t) {
			list = append(list, t)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Trial) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return list
}

// List gives the trials of the sandbox with an id, the newest first.
func (s *Service) List(sandbox string) []Trial {
	return s.find(func(t Trial) bool { return t.Sandbox == sandbox })
}

// Trial gives one. Kind: NotFound.
func (s *Service) Trial(id string) (Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.all[id]
	if !known {
		return t, NotFound(id)
	}
	return t, nil
}

// Of says what the sandbox with an id is a try of; false when it is none. It does not block.
func (s *Service) Of(sandbox string) (Of, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, is := s.of[sandbox]
	return of, is
}

// Subscribe tells of each change of a trial. The caller must close the subscription.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }

// prune forgets the trials of sandboxes that are gone, and those of one sandbox that were over long ago.
func (s *Service) prune(ctx context.Context, boxes map[string]sandbox.Sandbox, of string) error {
	over := 0
	var errs []error
	for _, t := range s.find(func(t Trial) bool { return t.State.Over() || boxes[t.Sandbox].ID == "" }) {
		if boxes[t.Sandbox].ID != "" {
			if t.Sandbox != of {
				continue
			}
			if over++; over < keptOver {
				continue
			}
		}
		if err := s.c.Store.Delete(ctx, t.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		s.forget(t)
	}
	return errors.Join(errs...)
}
