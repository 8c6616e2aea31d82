// Package snapshottest has a Store in memory and what every snapshot.Store must pass.
//
// It is for tests alone and keeps nothing.
//
// Invariant: the Store in memory passes StoreContract, so that a test on it says what one on the real Store would.
package snapshottest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/snapshot"
)

// Store is a snapshot.Store in memory. The zero value is not ready: use NewStore.
type Store struct {
	mu    sync.Mutex
	rows  map[string]snapshot.Snapshot
	heads map[string]snapshot.Head
	fail  map[string]error // by method
}

var _ snapshot.Store = (*Store)(nil)

// errNoTime is what a database says of a time that it cannot keep.
var errNoTime = errors.New("the time cannot be kept")

// NewStore makes an empty one.
func NewStore() *Store {
	return &Store{rows: map[string]snapshot.Snapshot{}, heads: map[string]snapshot.Head{}, fail: map[string]error{}}
}

// Fail makes every call of a method fail with err from now on, "" for all; nil ends that.
func (s *Store) Fail(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[method] = err
}

func (s *Store) lock(ctx context.Context, method string) (unlock func(), err error) {
	s.mu.Lock()
	if err := cmp.Or(ctx.Err(), s.fail[method], s.fail[""]); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

// Insert implements snapshot.Store.
func (s *Store) Insert(ctx context.Context, p snapshot.Snapshot) error {
	unlock, err := s.lock(ctx, "Insert")
	if err != nil {
		return err
	}
	defer unlock()
	if _, there := s.rows[p.ID]; there {
		return fault.New(fault.Conflict, "There is a snapshot with the id %s already.", p.ID)
	}
	if p.Created.Year() < 1970 {
		return errNoTime
	}
	s.rows[p.ID] = kept(p)
	return nil
}

// Update implements snapshot.Store.
func (s *Store) Update(ctx context.Context, p snapshot.Snapshot) error {
	unlock, err := s.lock(ctx, "Update")
	if err != nil {
		return err
	}
	defer unlock()
	if _, there := s.rows[p.ID]; !there {
		return snapshot.NotFound(p.ID)
	}
	s.rows[p.ID] = kept(p)
	return nil
}

// Delete implements snapshot.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx, "Delete")
	if err != nil {
		return err
	}
	defer unlock()
	parent := s.rows[id].Parent
	for other, p := range s.rows {
		if p.Parent == id {
			p.Parent = parent
			s.rows[other] = p
		}
	}
	for of, h := range s.heads {
		if h.Snapshot == id {
			h = snapshot.Head{Snapshot: parent}
		}
		if h.Undo == id {
			h.Undo = ""
		}
		if s.heads[of] = h; h == (snapshot.Head{}) {
			delete(s.heads, of)
		}
	}
	delete(s.rows, id)
	return nil
}

// List implements snapshot.Store.
func (s *Store) List(ctx context.Context) ([]snapshot.Snapshot, error) {
	unlock, err := s.lock(ctx, "List")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var list []snapshot.Snapshot
	for _, p := range s.rows {
		list = append(list, kept(p))
	}
	return list, nil
}

// Heads implements snapshot.Store.
func (s *Store) Heads(ctx context.Context) (map[string]snapshot.Head, error) {
	unlock, err := s.lock(ctx, "Heads")
	if err != nil {
		return nil, err
	}
	defer unlock()
	return maps.Clone(s.heads), nil
}

// SetHead implements snapshot.Store.
func (s *Store) SetHead(ctx context.Context, sandboxID string, h snapshot.Head) error {
	unlock, err := s.lock(ctx, "SetHead")
	if err != nil {
		return err
	}
	defer unlock()
	if s.heads[sandboxID] = h; h == (snapshot.Head{}) {
		delete(s.heads, sandboxID)
	}
	return nil
}

// kept gives a copy of p as a database would give it back.
func kept(p snapshot.Snapshot) snapshot.Snapshot {
	p.Created = p.Created.UTC().Truncate(time.Microsecond)
	p.Stats.Lost = slices.Clone(p.Stats.Lost)
	p.Origin.Spec.Env = maps.Clone(p.Origin.Spec.Env)
	return p
}
