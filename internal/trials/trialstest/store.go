// Package trialstest has a trials.Store in memory, for tests, and the contract of every Store.
//
// It is no store of a server: what it has is gone with the process.
//
// Invariant: it behaves as sqlite.Trials does, which StoreContract shows of both.
package trialstest

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/trials"
)

// Store is a trials.Store in memory, for which every sandbox and every user exists whose id is not "gone".
type Store struct {
	mu  sync.Mutex
	all []trials.Trial
}

// Trials implements trials.Store.
func (s *Store) Trials(context.Context) ([]trials.Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.all)
	slices.SortFunc(list, func(a, b trials.Trial) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// Put implements trials.Store.
func (s *Store) Put(ctx context.Context, t trials.Trial) error {
	if t.Sandbox == "gone" || t.Owner == "gone" {
		return fault.New(fault.NotFound, "The sandbox, or its owner, is not there any more.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Clones = slices.Clone(t.Clones)
	s.all = append(slices.DeleteFunc(s.all, func(o trials.Trial) bool { return o.ID == t.ID }), t)
	return ctx.Err()
}

// Delete implements trials.Store.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o trials.Trial) bool { return o.ID == id })
	return nil
}

// StoreContract tests an empty store that has a sandbox and a user with these ids, and none with the id "gone".
func StoreContract(t *testing.T, s trials.Store, sandbox, owner string) {
	t.Helper()
	ctx := t.Context()
	at := time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)
	first := trials.Trial{
		ID: "00000000000000e1", Sandbox: sandbox, Name: "lab", Owner: owner, Text: "Make it ‘fast’", Agent: "sandboxd", Model: "best", Mode: chat.Auto,
		State: trials.Making, Problem: "p", Snapshot: "s", Kept: "k", Created: at,
		Clones: []trials.Clone{{Name: "lab-try-1", Sandbox: "b", Conversation: "c", Sent: true}, {Name: "lab-try-2", Problem: "The host is full."}},
	}
	second := first
	second.ID, second.Created, second.Clones = "00000000000000e0", at.Add(time.Second), []trials.Clone{{Name: "lab-try-3"}}
	check := func(what string, want ...trials.Trial) {
		t.Helper()
		got, err := s.Trials(ctx)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
		}
	}
	put := func(x trials.Trial) {
		t.Helper()
		if err := s.Put(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	put(second)
	put(first)
	check("the oldest comes first", first, second)
	first.State, first.Clones = trials.Open, first.Clones[:1]
	put(first)
	check("a trial is replaced", first, second)
	for _, gone := range []trials.Trial{{ID: "x", Sandbox: "gone", Owner: owner, Created: at}, {ID: "x", Sandbox: sandbox, Owner: "gone", Created: at}} {
		if err := s.Put(ctx, gone); !fault.Is(err, fault.NotFound) {
			t.Errorf("a trial of what is gone: %v", err)
		}
	}
	for range 2 {
		if err := s.Delete(ctx, second.ID); err != nil {
			t.Fatal(err)
		}
	}
	check("one is deleted", first)
}
