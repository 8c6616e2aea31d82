package snapshot

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds of the work.
const (
	takenAtOnce  = 3                // snapshots, of all sandboxes
	clonedAtOnce = 3                // clones, of all requests
	keptFailed   = 50               // failed ones, and problems, that are remembered
	sweepEvery   = time.Hour        // when nothing else asks for it
	retryEvery   = 15 * time.Second // when a sweep has failed
	afterNudge   = time.Second      // before the sweep that it asks for
	storeLimit   = 15 * time.Second // one change of the rows
	eventBuffer  = 64
)

var (
	errCancelled = fault.New(fault.Gone, "The snapshot was cancelled.")
	// ErrClosing is in the error of what the end of sandboxd has cut off or refused.
	ErrClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")
)

// Service takes snapshots, restores and clones. Safe for concurrent use.
type Service struct {
	*records // finds, changes and deletes snapshots, and sweeps
	life     context.Context
	end      context.CancelFunc
	works    sync.WaitGroup
}

// New reads the rows, and deletes those of snapshots that a crash has cut off, or that were for a clone. Kinds as for Store.
func New(ctx context.Context, c Config) (*Service, error) {
	s := &Service{records: &records{
		Config: c, bus: event.NewBus[Change](eventBuffer), nudged: make(chan struct{}, 1),
		all: map[string]*entry{}, restoring: map[string]bool{}, problems: map[string]string{},
		owed: owed{deletes: map[string]bool{}, heads: map[string]bool{}},
	}}
	s.life, s.end = context.WithCancel(context.Background())
	list, err := c.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, snap := range list {
		if snap.State == Ready && snap.Kind != Passing {
			s.all[snap.ID] = &entry{Snapshot: snap}
		} else if err := c.Store.Delete(ctx, snap.ID); err != nil {
			return nil, err
		}
	}
	if s.heads, err = c.Store.Heads(ctx); err != nil {
		return nil, err
	}
	return s, s.headsOfReverts(ctx, "")
}

// Run sweeps now, once an hour, and when something is left to be removed, until ctx ends. Then it cuts off what is being done, and
// returns when that has ended.
func (s *Service) Run(ctx context.Context) error {
	failing := false
	for {
		wait := sweepEvery
		err := errors.Join(s.prune(ctx, ""), s.sweep(ctx))
		if err != nil && ctx.Err() == nil {
			wait = retryEvery
			if !failing {
				s.Log.Warn("what is left of snapshots cannot be removed yet", "error", err)
			}
		}
		failing = err != nil
		select {
		case <-time.After(wait):
		case <-s.nudged:
			select { // further nudges first: they come in bursts
			case <-time.After(afterNudge):
			case <-ctx.Done():
			}
		case <-ctx.Done():
			s.mu.Lock() // nothing is started from here on
			s.end()
			s.mu.Unlock()
			s.works.Wait()
			return nil
		}
	}
}

// beyond gives a context with the values of ctx that ends with the Service instead. The caller must cancel it.
func (s *Service) beyond(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.life, func() { cancel(ErrClosing) })
	return life, func(cause error) {
		stop()
		cancel(cause)
	}
}

// detached starts work that ends with the Service, and waits for it until ctx ends. begin is asked before, with mu held, whether it may.
func detached[T any](ctx context.Context, s *Service, begin func() error, work func(ctx context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	start := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.open(ctx); err != nil {
			return err
		}
		if err := begin(); err != nil {
			return err
		}
		life, cancel := s.beyond(ctx)
		s.works.Go(func() {
			defer cancel(nil)
			value, err := work(life)
			done <- outcome{value, causeOf(life, err)}
		})
		return nil
	}
	if err := start(); err != nil {
		return *new(T), err
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// unheard notes and tells of what has failed when the caller has left, whose context ctx is.
func (s *Service) unheard(ctx context.Context, box sandbox.Sandbox, err error) {
	if err == nil || ctx.Err() == nil {
		return
	}
	s.mu.Lock()
	s.setProblem(box.ID, err)
	s.mu.Unlock()
	s.Failed(box, err)
}

// open reports whether something can be started for a caller. It needs mu.
func (s *Service) open(ctx context.Context) error {
	if s.life.Err() != nil {
		return ErrClosing
	}
	return ctx.Err()
}

// causeOf puts why ctx has ended before an error that came of that. The Manager may have ended before.
func causeOf(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	case errors.Is(err, context.Canceled) && fault.Is(err, fault.Internal):
		return errors.Join(ErrClosing, err)
	}
	return err
}
