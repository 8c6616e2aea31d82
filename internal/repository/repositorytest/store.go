// Package repositorytest has a Store and an Engine in memory, and what every repository.Store and repository.Engine must pass.
//
// It is for tests alone and keeps nothing.
//
// Invariant: what is in memory passes the contracts, so that a test on it says what one on the real thing would.
package repositorytest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// Store is a repository.Store in memory. The zero value is ready.
type Store struct {
	mu   sync.Mutex
	rows map[string]repository.Record
}

var _ repository.Store = (*Store)(nil)

// List implements repository.Store.
func (s *Store) List(context.Context) (list []repository.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b repository.Record) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Put implements repository.Store.
func (s *Store) Put(_ context.Context, r repository.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string]repository.Record{}
	}
	s.rows[r.Name] = r
	return nil
}

// Keep implements repository.Store.
func (s *Store) Keep(_ context.Context, name string, kept []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[name]
	if !ok {
		return repository.NotFound(name)
	}
	r.Kept = kept
	s.rows[name] = r
	return nil
}

// Delete implements repository.Store.
func (s *Store) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.rows[name]; !ok {
		return repository.NotFound(name)
	}
	delete(s.rows, name)
	return nil
}

// StoreContract checks that an empty store keeps repository.Store's contract.
func StoreContract(t *testing.T, s repository.Store) {
	t.Helper()
	one := repository.Record{Name: "nas", Identity: "00ff", Created: time.Unix(1700000000, 0).UTC(), Secrets: []byte{0, 1, 2},
		Place: repository.Place{Kind: repository.SFTP, Path: "/srv", Host: "nas", Port: 22, User: "ann", HostKey: "ssh-ed25519 AAAA"}}
	two := repository.Record{Name: "cloud", Created: time.Unix(1700000001, 0).UTC(), Secrets: []byte("x"), Kept: []byte("list"),
		Place: repository.Place{Kind: repository.S3, Endpoint: "s3", Bucket: "b", Prefix: "p/", Region: "r", AccessKey: "k", PlainHTTP: true, CA: "pem"}}
	ctx := t.Context()
	for _, r := range []repository.Record{one, two} {
		if err := s.Put(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	one.Kept = []byte("seen")
	two.Place.Region, two.Kept = "", nil
	if err := s.Keep(ctx, "nas", one.Kept); err != nil {
		t.Error(err)
	}
	if err := s.Put(ctx, two); err != nil { // in place of what was there
		t.Error(err)
	}
	got, err := s.List(ctx)
	if want := []repository.Record{two, one}; err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	if err := s.Delete(ctx, "nas"); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{"delete": s.Delete(ctx, "nas"), "keep": s.Keep(ctx, "nas", nil)} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of one that is missing: %v", what, err)
		}
	}
	if got, err := s.List(ctx); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
