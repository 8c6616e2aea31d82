// Package scheduletest has a Store in memory and what every schedule.Store must pass.
//
// It is for tests alone and keeps nothing.
//
// Invariant: the Store in memory passes StoreContract, so that a test on it says what one on the real Store would.
package scheduletest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/schedule"
)

// Store is a schedule.Store in memory. The zero value is not ready: use NewStore.
type Store struct {
	owners []string

	mu     sync.Mutex
	rows   []schedule.Schedule
	runs   map[string][]schedule.Run // by schedule, the oldest first
	unkept map[string]time.Time
}

var _ schedule.Store = (*Store)(nil)

// NewStore makes an empty one, in which these users are.
func NewStore(owners ...string) *Store {
	return &Store{owners: owners, runs: map[string][]schedule.Run{}, unkept: map[string]time.Time{}}
}

func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	return s.mu.Unlock, nil
}

func (s *Store) at(id string) int {
	return slices.IndexFunc(s.rows, func(one schedule.Schedule) bool { return one.ID == id })
}

// Schedules implements schedule.Store.
func (s *Store) Schedules(ctx context.Context) ([]schedule.Schedule, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := slices.Clone(s.rows)
	slices.SortStableFunc(list, func(a, b schedule.Schedule) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// Put implements schedule.Store.
func (s *Store) Put(ctx context.Context, one schedule.Schedule) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.Contains(s.owners, one.Owner) {
		return fault.New(fault.NotFound, "The user has been deleted.")
	}
	if i := s.at(one.ID); i >= 0 {
		s.rows[i] = one
	} else {
		s.rows = append(s.rows, one)
	}
	return nil
}

// Delete implements schedule.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.rows = slices.DeleteFunc(s.rows, func(one schedule.Schedule) bool { return one.ID == id })
	delete(s.runs, id)
	return nil
}

// Begin implements schedule.Store.
func (s *Store) Begin(ctx context.Context, r schedule.Run, next time.Time) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	i := s.at(r.Schedule)
	switch {
	case i < 0:
		return schedule.NotFound(r.Schedule)
	case next.IsZero():
	case r.Work == schedule.Tests:
		s.rows[i].NextTest = next
	default:
		s.rows[i].Next = next
	}
	list := append(s.runs[r.Schedule], kept(r))
	s.runs[r.Schedule] = list[max(0, len(list)-schedule.KeptRuns):]
	return nil
}

func kept(r schedule.Run) schedule.Run {
	r.Items = slices.Clone(r.Items)
	return r
}

// PutRun implements schedule.Store.
func (s *Store) PutRun(ctx context.Context, r schedule.Run) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for i, old := range s.runs[r.Schedule] {
		if old.ID == r.ID {
			s.runs[r.Schedule][i] = kept(r)
		}
	}
	return nil
}

// Runs implements schedule.Store.
func (s *Store) Runs(ctx context.Context, id string, limit int) ([]schedule.Run, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var list []schedule.Run
	for _, r := range slices.Backward(s.runs[id]) {
		if len(list) < limit {
			list = append(list, kept(r))
		}
	}
	return list, nil
}

// Unkept implements schedule.Store.
func (s *Store) Unkept(ctx context.Context) (map[string]time.Time, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return maps.Clone(s.unkept), nil
}

// SetUnkept implements schedule.Store.
func (s *Store) SetUnkept(ctx context.Context, backup string, since time.Time) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if delete(s.unkept, backup); !since.IsZero() {
		s.unkept[backup] = since
	}
	return nil
}
