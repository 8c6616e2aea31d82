// Package updatetest has a Store in memory and what every update.Store must pass.
//
// It is for tests alone and keeps nothing.
//
// Invariant: the Store in memory passes StoreContract, so that a test on it says what one on the real Store would.
package updatetest

import (
	"context"
	"slices"
	"sync"

	"sandboxd/internal/update"
)

// Store is an update.Store in memory. The zero value is empty.
type Store struct {
	mu   sync.Mutex
	runs []update.Run // the newest first
	fail error
}

var _ update.Store = (*Store)(nil)

// Fail makes every call give err, until it is nil.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.fail != nil {
		defer s.mu.Unlock()
		return nil, s.fail
	}
	return s.mu.Unlock, nil
}

// Put implements update.Store.
func (s *Store) Put(ctx context.Context, r update.Run) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r = kept(r)
	if at := slices.IndexFunc(s.runs, func(old update.Run) bool { return old.ID == r.ID }); at >= 0 {
		s.runs[at] = r
		return nil
	}
	s.runs = slices.Insert(s.runs, 0, r)
	s.runs = s.runs[:min(len(s.runs), update.KeptRuns)]
	return nil
}

func kept(r update.Run) update.Run {
	r.Items = slices.Clone(r.Items)
	return r
}

// List implements update.Store.
func (s *Store) List(ctx context.Context) ([]update.Run, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := slices.Clone(s.runs)
	for i := range list {
		list[i] = kept(list[i])
	}
	return list, nil
}
