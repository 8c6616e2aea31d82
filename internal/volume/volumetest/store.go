// Package volumetest has a volume.Store in memory, for tests, and the contract of every Store.
//
// It is no store of a server: what it has is gone with the process.
//
// Invariant: it behaves as sqlite.Volumes does, which StoreContract shows of both.
package volumetest

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/volume"
)

// Store is a volume.Store in memory.
type Store struct {
	mu  sync.Mutex
	all []volume.Volume
}

// Volumes implements volume.Store.
func (s *Store) Volumes(context.Context) ([]volume.Volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.all)
	slices.SortFunc(list, func(a, b volume.Volume) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// Put implements volume.Store.
func (s *Store) Put(_ context.Context, v volume.Volume) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.all {
		if o.ID != v.ID && o.Name == v.Name && !o.Deleting && !v.Deleting {
			return &fault.Error{Kind: fault.Conflict, Field: "name", Message: "The name is taken."}
		}
	}
	s.all = append(slices.DeleteFunc(s.all, func(o volume.Volume) bool { return o.ID == v.ID }), v)
	return nil
}

// Remove implements volume.Store.
func (s *Store) Remove(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o volume.Volume) bool { return o.ID == id })
	return nil
}

// StoreContract tests an empty store.
func StoreContract(t *testing.T, s volume.Store) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made := time.Unix(1700000000, 0).UTC()
	a := volume.Volume{ID: "a", Name: "models", Mode: volume.ReadOnly, Created: made, Note: "Weights",
		Grants: volume.Grants{Templates: []string{"base", "node-api"}, Sandboxes: []string{"0123456789abcdef"}}}
	b := volume.Volume{ID: "b", Name: "cache", Mode: volume.ReadWrite, Created: made, Grants: volume.Grants{All: true}}
	must(s.Put(ctx, a))
	must(s.Put(ctx, b))
	again := volume.Volume{ID: "c", Name: "models", Mode: volume.ReadOnly, Created: made}
	if err := s.Put(ctx, again); !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
		t.Errorf("a taken name gives %v", err)
	}
	b.Name = "models"
	if err := s.Put(ctx, b); !fault.Is(err, fault.Conflict) {
		t.Errorf("renaming to a taken name gives %v", err)
	}
	b.Name, a.Deleting = "cache", true
	must(s.Put(ctx, a))
	must(s.Put(ctx, again)) // its name is free while the other one is being deleted
	list, err := s.Volumes(ctx)
	must(err)
	slices.SortFunc(list, func(x, y volume.Volume) int { return cmp.Compare(x.ID, y.ID) })
	if want := []volume.Volume{a, b, again}; !reflect.DeepEqual(want, list) {
		t.Errorf("rows are %+v, want %+v", list, want)
	}
	must(s.Remove(ctx, "a"))
	must(s.Remove(ctx, "a"))
	if list, err = s.Volumes(ctx); err != nil || len(list) != 2 {
		t.Errorf("after a removal there are %d, %v", len(list), err)
	}
}
