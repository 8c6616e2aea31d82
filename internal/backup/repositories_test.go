package backup

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"sync"
	"testing"

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

// madeThere is a backup of a sandbox in the repository nas.
func madeThere(t *testing.T, s *Service, box sandbox.Sandbox) Backup {
	t.Helper()
	b, _, err := s.Begin(box, Options{Repository: "nas"})
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
	b := madeThere(t, s, lab)
	if b.Repository != "nas" || b.State != Ready || b.Stats.Files != 1 || b.Size == 0 || s.used["ann"] != b.Size {
		t.Errorf("%+v, %d bytes used", b, s.used["ann"])
	}
	if again := madeThere(t, s, lab); !bytes.Equal(streamOf(t, places, b.ID), streamOf(t, places, again.ID)) {
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
	engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
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
	b := madeThere(t, s, box("lab"))
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
