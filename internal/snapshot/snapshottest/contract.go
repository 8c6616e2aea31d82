package snapshottest

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// StoreContract checks that what open gives keeps snapshot.Store's contract. open is called for each test and gives an empty store, which
// it closes itself at the end of the test.
func StoreContract(t *testing.T, open func(t *testing.T) snapshot.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, snapshot.Store){
		"EveryFieldComesBack":          contractFields,
		"LittleComesBackAsWell":        contractLittle,
		"IDIsUnique":                   contractUnique,
		"UpdateOfAMissingIsNotFound":   contractMissing,
		"DeleteGivesItsParentOn":       contractDelete,
		"HeadsAreOfEachSandbox":        contractHeads,
		"ConcurrentUseLosesNothing":    contractConcurrent,
		"CancelledContextEndsTheCall":  contractCancelled,
		"TimeThatCannotBeIsAnError":    contractTime,
		"WhatComesOutIsTheCallersOwn":  contractCopies,
		"DeletingAMissingIsNoError":    contractDeleteMissing,
		"ParentMayBeOfAnotherSandbox":  contractOtherParent,
		"LongListOfLossesComesBack":    contractLosses,
		"EnvironmentIsKeptAsItIsGiven": contractEnv,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// Snapshot gives a valid snapshot with every field set, made minutes after a fixed time.
func Snapshot(id string, minutes int) snapshot.Snapshot {
	on := true
	return snapshot.Snapshot{
		ID: id, SandboxID: "00000000000000aa", Owner: "owner-1", Name: "Before ‘it’", Note: "two\nlines", Parent: "p", Kind: snapshot.Automatic,
		Created: time.Date(2026, 11, 21, 9, minutes, 0, 123456000, time.UTC), State: snapshot.Ready, Problem: "none",
		Stats: archive.Stats{Files: 3, Folders: 2, Bytes: 1 << 40, Lost: []archive.Loss{{Path: "s", Reason: "a socket"}}, MoreLost: 7},
		Still: true, Took: 1500 * time.Millisecond, Memory: 3 << 30, Image: "image:" + id,
		Origin: snapshot.Origin{
			Name: "ml", Label: "ML", Rest: snapshot.RestTimes{FreezeAfter: time.Minute, StopAfter: -1},
			Spec: sandbox.Spec{Template: "base", Image: "debian", Env: map[string]string{"A": "b=\n"}, Limits: sandbox.Limits{CPUs: 0.5, Memory: 1 << 30, Pids: 99, Disk: 3 << 40}},
			Overrides: sandbox.Overrides{IDE: &on, HasServices: true, Services: []catalog.Service{{Name: "web", Command: []string{"serve"}, Port: 80,
				Env: map[string]string{"C": "d"}, Health: &catalog.Health{Path: "/", Interval: time.Second}}}},
		},
	}
}

func contractFields(t *testing.T, s snapshot.Store) {
	a, b := Snapshot("a", 0), Snapshot("b", 1)
	ok(t, s.Insert(t.Context(), a), s.Insert(t.Context(), b))
	wantRows(t, s, a, b)
	a = Snapshot("a", 5)
	a.Name, a.Still, a.Stats, a.State, a.Origin = "", false, archive.Stats{}, snapshot.Making, snapshot.Origin{}
	ok(t, s.Update(t.Context(), a))
	wantRows(t, s, a, b)
}

func contractLittle(t *testing.T, s snapshot.Store) {
	a := snapshot.Snapshot{ID: "a", SandboxID: "x", Kind: snapshot.Manual, State: snapshot.Making, Created: Snapshot("a", 0).Created}
	ok(t, s.Insert(t.Context(), a))
	wantRows(t, s, a)
}

func contractUnique(t *testing.T, s snapshot.Store) {
	ok(t, s.Insert(t.Context(), Snapshot("a", 0)))
	wantKind(t, s.Insert(t.Context(), Snapshot("a", 1)), fault.Conflict)
	wantRows(t, s, Snapshot("a", 0))
}

func contractMissing(t *testing.T, s snapshot.Store) {
	wantKind(t, s.Update(t.Context(), Snapshot("a", 1)), fault.NotFound)
	wantRows(t, s)
}

func contractDelete(t *testing.T, s snapshot.Store) {
	a, b, c, d := Snapshot("a", 0), Snapshot("b", 1), Snapshot("c", 2), Snapshot("d", 3)
	a.Parent, b.Parent, c.Parent, d.Parent = "", "a", "b", "b"
	for _, p := range []snapshot.Snapshot{a, b, c, d} {
		ok(t, s.Insert(t.Context(), p))
	}
	ok(t, s.SetHead(t.Context(), "x", snapshot.Head{Snapshot: "b", Undo: "d"}), s.SetHead(t.Context(), "y", snapshot.Head{Snapshot: "d", Undo: "b"}))
	ok(t, s.Delete(t.Context(), "b"))
	c.Parent, d.Parent = "a", "a"
	wantRows(t, s, a, c, d)
	wantHeads(t, s, map[string]snapshot.Head{"x": {Snapshot: "a"}, "y": {Snapshot: "d"}})
	ok(t, s.Delete(t.Context(), "a"), s.Delete(t.Context(), "d"))
	c.Parent = ""
	wantRows(t, s, c)
	wantHeads(t, s, map[string]snapshot.Head{})
}

func contractDeleteMissing(t *testing.T, s snapshot.Store) {
	a := Snapshot("a", 0)
	ok(t, s.Insert(t.Context(), a), s.Delete(t.Context(), "none"))
	wantRows(t, s, a)
	ok(t, s.Delete(t.Context(), a.Parent)) // a row that is not there has no parent to give
	a.Parent = ""
	wantRows(t, s, a)
}

func contractOtherParent(t *testing.T, s snapshot.Store) {
	a, b := Snapshot("a", 0), Snapshot("b", 1)
	a.Parent, b.Parent, b.SandboxID = "", "a", "00000000000000bb"
	ok(t, s.Insert(t.Context(), a), s.Insert(t.Context(), b), s.Delete(t.Context(), "a"))
	b.Parent = ""
	wantRows(t, s, b)
}

func contractHeads(t *testing.T, s snapshot.Store) {
	wantHeads(t, s, map[string]snapshot.Head{})
	one, two := snapshot.Head{Snapshot: "a", Undo: "b"}, snapshot.Head{Snapshot: "c"}
	ok(t, s.SetHead(t.Context(), "x", one), s.SetHead(t.Context(), "y", one), s.SetHead(t.Context(), "x", two))
	wantHeads(t, s, map[string]snapshot.Head{"x": two, "y": one})
	ok(t, s.SetHead(t.Context(), "y", snapshot.Head{}), s.SetHead(t.Context(), "z", snapshot.Head{}))
	wantHeads(t, s, map[string]snapshot.Head{"x": two})
}

func contractConcurrent(t *testing.T, s snapshot.Store) {
	var works sync.WaitGroup
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for i, id := range ids {
		works.Go(func() {
			p := Snapshot(id, i)
			err := errors.Join(s.Insert(t.Context(), p), s.SetHead(t.Context(), id, snapshot.Head{Snapshot: id}), s.Update(t.Context(), p))
			if err != nil {
				t.Error(err)
			}
		})
	}
	works.Wait()
	list, err := s.List(t.Context())
	heads, headsErr := s.Heads(t.Context())
	if err := errors.Join(err, headsErr); err != nil || len(list) != len(ids) || len(heads) != len(ids) {
		t.Errorf("%d rows and %d heads, %v", len(list), len(heads), err)
	}
}

func contractCancelled(t *testing.T, s snapshot.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, listErr := s.List(ctx)
	_, headsErr := s.Heads(ctx)
	for i, err := range []error{listErr, headsErr, s.Insert(ctx, Snapshot("a", 0)), s.Update(ctx, Snapshot("a", 0)), s.Delete(ctx, "a"),
		s.SetHead(ctx, "x", snapshot.Head{Snapshot: "a"})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d gives %v", i, err)
		}
	}
}

func contractTime(t *testing.T, s snapshot.Store) {
	p := Snapshot("a", 0)
	p.Created = time.Time{}
	if err := s.Insert(t.Context(), p); err == nil {
		t.Error("a snapshot of no time is kept")
	}
	wantRows(t, s)
}

func contractCopies(t *testing.T, s snapshot.Store) {
	ok(t, s.Insert(t.Context(), Snapshot("a", 0)))
	list, err := s.List(t.Context())
	ok(t, err)
	list[0].Origin.Spec.Env["A"] = "changed"
	list[0].Stats.Lost[0].Path = "changed"
	wantRows(t, s, Snapshot("a", 0))
}

func contractLosses(t *testing.T, s snapshot.Store) {
	p := Snapshot("a", 0)
	for range 1000 {
		p.Stats.Lost = append(p.Stats.Lost, archive.Loss{Path: "<&\u2028>", Reason: "«»"})
	}
	ok(t, s.Insert(t.Context(), p))
	wantRows(t, s, p)
}

func contractEnv(t *testing.T, s snapshot.Store) {
	p := Snapshot("a", 0)
	p.Origin.Spec.Env = map[string]string{"A": "", "B": "\"}{\x01 日本"}
	ok(t, s.Insert(t.Context(), p))
	wantRows(t, s, p)
}

func wantRows(t *testing.T, s snapshot.Store, want ...snapshot.Snapshot) {
	t.Helper()
	got, err := s.List(t.Context())
	ok(t, err)
	slices.SortFunc(got, func(a, b snapshot.Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("rows are\n%+v\nwant\n%+v", got, want)
	}
}

func wantHeads(t *testing.T, s snapshot.Store, want map[string]snapshot.Head) {
	t.Helper()
	got, err := s.Heads(t.Context())
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("heads are %+v, want %+v", got, want)
	}
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("error is %v, want %s", err, kind)
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
