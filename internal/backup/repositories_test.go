package backup

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
	"sandboxd/internal/sandbox"
	sealing "sandboxd/internal/seal"
)

// nas gives repositories with one called nas, over an engine in memory.
func nas(t *testing.T) (*repository.Service, *repositorytest.Engine) {
	t.Helper()
	engine := &repositorytest.Engine{}
	key := filepath.Join(t.TempDir(), "secret.key")
	s, err := repository.Open(t.Context(), repository.Config{Store: &repositorytest.Store{}, Engine: engine, Log: discard,
		Seal: func() (repository.Sealer, error) { return sealing.Open(key) }})
	if err == nil {
		_, _, err = s.Put(t.Context(), repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: "/mnt/nas"}}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s, engine
}

// madeThere is a backup of a sandbox in the repository nas, for a schedule or for none.
func madeThere(t *testing.T, s *Service, box sandbox.Sandbox, schedule string) Backup {
	t.Helper()
	b, _, err := s.Begin(box, Options{Repository: "nas", Schedule: schedule})
	if err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func streamOf(t *testing.T, r *repository.Service, id string) []byte {
	t.Helper()
	stream, err := r.Read(t.Context(), "nas", id)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRepository_ABackupIsMadeRestoredExportedAndDeleted(t *testing.T) {
	places, _ := nas(t)
	s, boxes := open(t, func(c *Config) { c.Repositories = places })
	lab := box("lab")
	boxes.put(lab.ID, "a/file", "before")
	b := madeThere(t, s, lab, "")
	if b.Repository != "nas" || b.State != Ready || b.Stats.Files != 1 || b.Size == 0 || s.used["ann"] != b.Size {
		t.Errorf("%+v, %d bytes used", b, s.used["ann"])
	}
	if again := madeThere(t, s, lab, ""); !bytes.Equal(streamOf(t, places, b.ID), streamOf(t, places, again.ID)) {
		t.Error("an unchanged home gives other bytes")
	}
	boxes.put(lab.ID, "a/file", "after")
	a, err := s.Archive(b.ID)
	if err == nil {
		err = s.Restore(t.Context(), lab, a, false)
	}
	if err != nil || boxes.get(lab.ID, "a/file") != "before" {
		t.Errorf("%v; the home has %q", err, boxes.get(lab.ID, "a/file"))
	}
	var file bytes.Buffer
	if err := s.Export(t.Context(), b.ID, &file); err != nil {
		t.Fatal(err)
	}
	if a, err = s.Receive(t.Context(), "bob", &file); err != nil {
		t.Fatal(err)
	}
	got, err := s.RestoreNew(t.Context(), sandbox.Request{Name: "two", Owner: "bob"}, a)
	if d := cmp.Diff(lab.Spec, got.Spec); err != nil || d != "" || boxes.get(got.ID, "a/file") != "before" {
		t.Errorf("%+v, %v\n%s", got, err, d)
	}
	later, _ := open(t, func(c *Config) { c.Repositories = places })
	if found, err := later.Backup(b.ID); err != nil || !cmp.Equal(found, b) {
		t.Errorf("after a start: %+v, %v; want %+v", found, err, b)
	}
	if err := s.Delete(b.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(b.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if c, _, err := places.Contents("nas"); err != nil || len(c.Items) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRepository_WhatCannotBeMadeThereLeavesNothing(t *testing.T) {
	places, engine := nas(t)
	s, boxes := open(t, func(c *Config) { c.Repositories, c.Quota = places, 300<<10 })
	lab := box("lab")
	boxes.put(lab.ID, "noise", noise(600<<10))
	b, _, err := s.Begin(lab, Options{Repository: "nas"})
	if err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	wantKind(t, "over the quota", err, fault.TooLarge)
	engine.Fail(fault.Wrap(repository.PlaceError{Public: "The disk is gone.", Err: io.EOF}, fault.Unavailable, "The disk is gone: /mnt/nas."))
	if b, _, err = s.Begin(lab, Options{Repository: "nas"}); err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	wantKind(t, "a repository that is gone", err, fault.Unavailable)
	if b.Problem != "The disk is gone." || s.used["ann"] != 0 {
		t.Errorf("%+v, %d bytes used", b, s.used["ann"])
	}
	engine.Fail(nil)
	if c, _, err := places.Contents("nas"); err != nil || len(c.Items) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	_, _, err = s.Begin(lab, Options{Repository: "other"})
	wantKind(t, "no such repository", err, fault.Invalid)
}

func TestRepository_BackupsComeAndGoWithIt(t *testing.T) {
	places, engine := nas(t)
	s, _ := open(t, func(c *Config) { c.Repositories = places })
	b := madeThere(t, s, box("lab"), "")
	changes := s.Subscribe()
	defer changes.Close()
	engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
	if err := places.Refresh(t.Context(), "nas"); err == nil {
		t.Error("refreshed")
	}
	if c := <-changes.C; c.Backup.ID != b.ID || c.Backup.Unreachable != "The disk is gone." {
		t.Errorf("%+v", c)
	}
	if err := places.Forget(t.Context(), "nas"); err != nil {
		t.Fatal(err)
	}
	if c := <-changes.C; c.Backup.ID != b.ID || !c.Deleted {
		t.Errorf("%+v", c)
	}
}

func TestRepository_ABackupOfAScheduleIsTested(t *testing.T) {
	places, engine := nas(t)
	s, boxes := open(t, func(c *Config) { c.Repositories = places })
	lab := box("lab")
	boxes.put(lab.ID, "src/main.go", "package main")
	b := madeThere(t, s, lab, "nightly")
	if b.Schedule != "nightly" || !b.Expires.IsZero() {
		t.Errorf("made %+v", b)
	}
	later, _ := open(t, func(c *Config) { c.Repositories = places })
	if now, err := later.Backup(b.ID); err != nil || now.Schedule != "nightly" || !now.Expires.IsZero() {
		t.Errorf("after a start: %+v, %v", now, err)
	}
	test := func(name string) error { return NewTester(s).TestRestore(t.Context(), b.ID, name) }
	if err := test("restore-test-1"); err != nil || len(boxes.made) != 1 {
		t.Fatalf("%v, made %+v", err, boxes.made)
	}
	boxes.alter = func(home string) {
		if err := os.Remove(filepath.Join(home, "src/main.go")); err != nil {
			t.Error(err)
		}
	}
	wantKind(t, "another home", test("restore-test-2"), fault.Internal)
	engine.Alter(b.ID, func(stream []byte) []byte { return stream[:len(stream)-endSize-512-512] }) // the last file, and the end
	wantKind(t, "one that is cut off", test("restore-test-3"), fault.Invalid)
	engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
	wantKind(t, "one that cannot be reached", test("restore-test-4"), fault.Unavailable)
	if len(boxes.made) != 2 || len(boxes.deleted) != 2 {
		t.Errorf("made %d and deleted %d sandboxes", len(boxes.made), len(boxes.deleted))
	}
}

func TestRepository_ExpiryWaitsForItAndForTheOneWhoAddedIt(t *testing.T) {
	places, engine := nas(t)
	s, _ := open(t, func(c *Config) { c.Repositories, c.Keep = places, time.Hour })
	b := madeThere(t, s, box("lab"), "")
	engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
	if err := places.Refresh(t.Context(), "nas"); err == nil {
		t.Error("refreshed")
	}
	stored{s}.load("nas")
	s.dropExpired(b.Expires.Add(time.Minute))
	if now, err := s.Backup(b.ID); err != nil || now.Unreachable == "" {
		t.Errorf("while it cannot be reached: %+v, %v", now, err)
	}
	engine.Fail(nil)
	item := repository.Item{ID: b.ID}
	m := &Manifest{Format: formatName, Version: formatVersion, ID: b.ID, Made: time.Now().AddDate(-1, 0, 0)}
	var err error
	if item.About, err = m.text(); err != nil {
		t.Fatal(err)
	}
	if e, err := (stored{s}).entryOf("nas", item); err != nil || time.Until(e.Expires) < 50*time.Minute {
		t.Errorf("one of a server that was lost a year ago: %+v, %v", e, err)
	}
}

// hanging are repositories of which one does not answer.
type hanging struct{ Repositories }

func (hanging) Delete(ctx context.Context, _ string, _ ...string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRun_EndsWhileARepositoryDoesNotAnswer(t *testing.T) {
	places, _ := nas(t)
	s, err := Open(Config{Folder: t.TempDir(), Repositories: hanging{places}, Sandboxes: &boxes{t: t, home: map[string]string{}}, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	madeThere(t, s, box("lab"), "") // it is too old at once
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestBegin_AScheduleGetsTheOneThatIsMadeInAnotherPlace(t *testing.T) {
	places, _ := nas(t)
	s, boxes := open(t, func(c *Config) { c.Repositories = places })
	boxes.hold = make(chan struct{})
	b, _, err := s.Begin(box("lab"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Begin(box("lab"), Options{Repository: "nas"})
	wantKind(t, "by hand", err, fault.Conflict)
	if same, begun, err := s.Begin(box("lab"), Options{Repository: "nas", Schedule: "nightly"}); err != nil || begun || same.ID != b.ID {
		t.Errorf("for a schedule: %+v, %v", same, err)
	}
	close(boxes.hold)
	if _, err := s.Wait(t.Context(), b.ID); err != nil {
		t.Error(err)
	}
}
