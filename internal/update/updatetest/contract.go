package updatetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sandboxd/internal/update"
)

// StoreContract checks that what open gives keeps update.Store's contract. open is called for each test and gives an empty store, which it
// closes itself at the end of the test.
func StoreContract(t *testing.T, open func(t *testing.T) update.Store) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, update.Store){
		"EveryFieldComesBack":    contractFields,
		"OldRunsAreDeleted":      contractOld,
		"CancelledContextEndsIt": contractCancelled,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// Run gives one with every field set, begun minutes after a fixed time.
func Run(id string, minutes int) update.Run {
	at := time.Date(2026, 11, 22, 3, minutes, 0, 123456000, time.UTC)
	return update.Run{
		ID: id, Template: "base", SandboxID: "00000000000000aa", By: "00000000000000u1", Force: true, MaxFailures: 3, State: update.Stopped,
		Image: "sandboxd/base:0123456789ab", Problem: "‘none’", Began: at, Ended: at.Add(time.Minute),
		Items: []update.Item{{
			SandboxID: "00000000000000aa", Sandbox: "lab", Owner: "00000000000000u1", State: update.Broken, Problem: "p", Log: []string{"one", "two"},
			TakenBack: true, Safety: "5afe", Began: at, Ended: at.Add(time.Second),
		}, {SandboxID: "00000000000000bb", Sandbox: "other", State: update.Waiting}},
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantRuns(t *testing.T, s update.Store, want ...update.Run) {
	t.Helper()
	got, err := s.List(t.Context())
	ok(t, err)
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("runs\n%+v, want\n%+v", got, want)
	}
}

func contractFields(t *testing.T, s update.Store) {
	wantRuns(t, s)
	one, two := Run("one", 1), Run("two", 2)
	one.State, one.Ended, one.Image, one.SandboxID, one.Force = update.Running, time.Time{}, "", "", false
	ok(t, s.Put(t.Context(), one), s.Put(t.Context(), two))
	wantRuns(t, s, two, one)
	one.State, one.Ended, one.Image, one.Problem, one.Items = update.Done, one.Began.Add(time.Hour), "image", "", one.Items[:1]
	ok(t, s.Put(t.Context(), one))
	wantRuns(t, s, two, one)
}

func contractOld(t *testing.T, s update.Store) {
	for i := range update.KeptRuns + 3 {
		ok(t, s.Put(t.Context(), Run(fmt.Sprint("r", i), i)))
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != update.KeptRuns || list[0].ID != fmt.Sprint("r", update.KeptRuns+2) {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

func contractCancelled(t *testing.T, s update.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.List(ctx)
	for _, err := range []error{err, s.Put(ctx, Run("one", 1))} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	}
	wantRuns(t, s)
}
