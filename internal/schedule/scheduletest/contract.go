package scheduletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/schedule"
)

// Owner is a user that the store of a StoreContract has.
const Owner = "00000000000000u1"

// StoreContract checks that what open gives keeps schedule.Store's contract. open is called for each test and gives an empty store with
// the user Owner, which it closes itself at the end of the test.
func StoreContract(t *testing.T, open func(t *testing.T) schedule.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, schedule.Store){
		"EveryFieldComesBack":      contractFields,
		"OwnerMustBeThere":         contractOwner,
		"DeleteTakesTheRuns":       contractDelete,
		"BeginSetsTheNextTime":     contractBegin,
		"RunsAreNewestFirst":       contractRuns,
		"OldRunsAreDeleted":        contractOld,
		"UnkeptAreNotedAndTaken":   contractUnkept,
		"CancelledContextEndsIt":   contractCancelled,
		"WhatIsGoneStaysGoneAsRun": contractGone,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// Schedule gives a valid one with every field set, made minutes after a fixed time.
func Schedule(id string, minutes int) schedule.Schedule {
	at := time.Date(2026, 11, 21, 9, minutes, 0, 123456000, time.UTC)
	return schedule.Schedule{
		ID: id, Name: "Every ‘night’", Owner: Owner, Cron: "30 3 * * *", Zone: "Europe/Berlin", Repository: "nas", Root: true, TestCron: "@weekly", Enabled: true,
		Target: schedule.Target{Kind: schedule.One, SandboxID: "00000000000000aa", Template: "base"}, Keep: schedule.Keep{Last: 3, Daily: 7, Weekly: 4, Monthly: 12},
		Created: at, Changed: at.Add(time.Second), Next: at.Add(time.Hour), NextTest: at.Add(2 * time.Hour),
	}
}

// Run gives one of a schedule with every field set, begun minutes after a fixed time.
func Run(id, of string, minutes int) schedule.Run {
	at := time.Date(2026, 11, 22, 3, minutes, 0, 0, time.UTC)
	return schedule.Run{
		ID: id, Schedule: of, Work: schedule.Backups, State: schedule.Done, Due: at, Missed: 2, Began: at.Add(time.Second), Ended: at.Add(time.Minute), Problem: "none",
		Items: []schedule.Item{{SandboxID: "00000000000000aa", Sandbox: "lab", Backup: "b", Problem: "p", Tries: 2, Temporary: "t", Ended: at.Add(time.Minute)}},
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantRows(t *testing.T, s schedule.Store, want ...schedule.Schedule) {
	t.Helper()
	got, err := s.Schedules(t.Context())
	ok(t, err)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("schedules\n%+v, want\n%+v", got, want)
	}
}

func wantRuns(t *testing.T, s schedule.Store, of string, want ...schedule.Run) {
	t.Helper()
	got, err := s.Runs(t.Context(), of, schedule.KeptRuns)
	ok(t, err)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("runs\n%+v, want\n%+v", got, want)
	}
}

func contractFields(t *testing.T, s schedule.Store) {
	a, b := Schedule("a", 0), Schedule("b", 1)
	ok(t, s.Put(t.Context(), b), s.Put(t.Context(), a))
	wantRows(t, s, a, b)
	a = schedule.Schedule{ID: "a", Owner: Owner, Target: schedule.Target{Kind: schedule.All}, Created: a.Created, Changed: a.Changed}
	ok(t, s.Put(t.Context(), a))
	wantRows(t, s, a, b)
}

func contractOwner(t *testing.T, s schedule.Store) {
	a := Schedule("a", 0)
	a.Owner = "nobody"
	if err := s.Put(t.Context(), a); !fault.Is(err, fault.NotFound) {
		t.Errorf("error is %v", err)
	}
	wantRows(t, s)
}

func contractDelete(t *testing.T, s schedule.Store) {
	a, b := Schedule("a", 0), Schedule("b", 1)
	ok(t, s.Put(t.Context(), a), s.Put(t.Context(), b), s.Begin(t.Context(), Run("r", "a", 0), time.Time{}), s.Begin(t.Context(), Run("q", "b", 0), time.Time{}))
	ok(t, s.Delete(t.Context(), "a"), s.Delete(t.Context(), "none"))
	wantRows(t, s, b)
	wantRuns(t, s, "a")
	wantRuns(t, s, "b", Run("q", "b", 0))
}

func contractBegin(t *testing.T, s schedule.Store) {
	a := Schedule("a", 0)
	ok(t, s.Put(t.Context(), a), s.Begin(t.Context(), Run("one", "a", 0), a.Next.Add(time.Hour)))
	a.Next = a.Next.Add(time.Hour)
	wantRows(t, s, a)
	test := Run("two", "a", 1)
	test.Work = schedule.Tests
	ok(t, s.Begin(t.Context(), test, a.NextTest.Add(time.Hour)))
	a.NextTest = a.NextTest.Add(time.Hour)
	wantRows(t, s, a)
	if err := s.Begin(t.Context(), Run("three", "none", 2), a.Next); !fault.Is(err, fault.NotFound) {
		t.Errorf("error is %v", err)
	}
}

func contractRuns(t *testing.T, s schedule.Store) {
	ok(t, s.Put(t.Context(), Schedule("a", 0)))
	one, two := Run("one", "a", 1), Run("two", "a", 2)
	two.Due, two.Ended, two.State, two.Items = time.Time{}, time.Time{}, schedule.Running, nil
	ok(t, s.Begin(t.Context(), one, time.Time{}), s.Begin(t.Context(), two, time.Time{}))
	wantRuns(t, s, "a", two, one)
	two = Run("two", "a", 2)
	ok(t, s.PutRun(t.Context(), two))
	wantRuns(t, s, "a", two, one)
	if list, err := s.Runs(t.Context(), "a", 1); err != nil || len(list) != 1 || list[0].ID != "two" {
		t.Errorf("the newest: %+v, %v", list, err)
	}
}

func contractOld(t *testing.T, s schedule.Store) {
	ok(t, s.Put(t.Context(), Schedule("a", 0)))
	for i := range schedule.KeptRuns + 3 {
		ok(t, s.Begin(t.Context(), Run(fmt.Sprint("r", i), "a", i), time.Time{}))
	}
	list, err := s.Runs(t.Context(), "a", 10*schedule.KeptRuns)
	if err != nil || len(list) != schedule.KeptRuns || list[0].ID != fmt.Sprint("r", schedule.KeptRuns+2) {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

func contractUnkept(t *testing.T, s schedule.Store) {
	at := Schedule("a", 0).Created
	ok(t, s.SetUnkept(t.Context(), "one", at), s.SetUnkept(t.Context(), "two", at), s.SetUnkept(t.Context(), "one", at.Add(time.Hour)))
	ok(t, s.SetUnkept(t.Context(), "two", time.Time{}), s.SetUnkept(t.Context(), "none", time.Time{}))
	if got, err := s.Unkept(t.Context()); err != nil || !reflect.DeepEqual(got, map[string]time.Time{"one": at.Add(time.Hour)}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func contractCancelled(t *testing.T, s schedule.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, one := s.Schedules(ctx)
	_, two := s.Runs(ctx, "a", 1)
	_, three := s.Unkept(ctx)
	for i, err := range []error{one, two, three, s.Put(ctx, Schedule("a", 0)), s.Delete(ctx, "a"), s.Begin(ctx, Run("r", "a", 0), time.Time{}), s.PutRun(ctx, Run("r", "a", 0)), s.SetUnkept(ctx, "b", time.Time{})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func contractGone(t *testing.T, s schedule.Store) {
	ok(t, s.Put(t.Context(), Schedule("a", 0)), s.PutRun(t.Context(), Run("r", "a", 0)))
	wantRuns(t, s, "a")
}
