package templatetest

import (
	"reflect"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/template"
)

// epoch is when the contract's times begin.
var epoch = time.Date(2026, 11, 26, 4, 0, 0, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, what string, want T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
		}
	}
}

// StoreContract checks an empty store.
func StoreContract(t *testing.T, s template.Store) {
	ctx := t.Context()
	t.Run("sources", func(t *testing.T) {
		rust := template.Source{Template: "rust", URL: "https://h/t.git", Ref: "main", Path: "rust", Secret: []byte{1, 2}, Commit: "c0ffee", Date: epoch, Fetched: epoch, Tried: epoch}
		golang := template.Source{Template: "go", URL: "ssh://git@h/t", HostKeys: "h ssh-ed25519 AAAA", Problem: "The server is away.", Tried: epoch}
		must(t, s.PutSource(ctx, rust))
		must(t, s.PutSource(ctx, golang))
		same(t, "both", []template.Source{golang, rust})(s.Sources(ctx))
		rust.Commit, rust.Secret = "cafe", nil
		must(t, s.PutSource(ctx, rust))
		must(t, s.DeleteSource(ctx, "go"))
		must(t, s.DeleteSource(ctx, "nope"))
		same(t, "one", []template.Source{rust})(s.Sources(ctx))
	})
	t.Run("plans", func(t *testing.T) {
		p := template.Plan{Template: "rust", Cron: "0 4 * * 1", Zone: "Europe/Berlin", NoCache: true, Next: epoch}
		must(t, s.PutPlan(ctx, p))
		p.Next, p.NoCache = epoch.Add(time.Hour), false
		must(t, s.PutPlan(ctx, p))
		same(t, "one", []template.Plan{p})(s.Plans(ctx))
		must(t, s.DeletePlan(ctx, "rust"))
		must(t, s.DeletePlan(ctx, "rust"))
		list, err := s.Plans(ctx)
		same(t, "none", 0)(len(list), err)
	})
	t.Run("builds", func(t *testing.T) { builds(t, s) })
}

func builds(t *testing.T, s template.Store) {
	ctx := t.Context()
	b := template.Build{Template: "rust", Ref: "sandboxd/rust:1", Commit: "c0ffee", Why: "asked", By: "ann", State: template.Running, Began: epoch}
	var err error
	b.ID, err = s.Begin(ctx, b)
	must(t, err)
	same(t, "one that runs", b)(s.Build(ctx, "rust", b.ID))
	b.State, b.Problem, b.Ended, b.Log = template.Failed, "Step 3 failed.", epoch.Add(time.Minute), "one\ntwo"
	must(t, s.End(ctx, b))
	same(t, "one that ended", b)(s.Build(ctx, "rust", b.ID))
	short := b
	short.Log = ""
	same(t, "the list", []template.Build{short})(s.Builds(ctx, "rust"))
	if _, err := s.Build(ctx, "go", b.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("as another template's it gives %v", err)
	}
	last := b.ID
	for range template.KeptBuilds {
		id, err := s.Begin(ctx, template.Build{Template: "rust", State: template.Running, Began: epoch})
		must(t, err)
		if id <= last {
			t.Errorf("build %d came after %d", id, last)
		}
		last = id
	}
	other, err := s.Begin(ctx, template.Build{Template: "go", State: template.Done, Began: epoch, Ended: epoch})
	must(t, err)
	if _, err := s.Build(ctx, "rust", b.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the oldest gives %v", err)
	}
	must(t, s.End(ctx, b)) // it stays gone
	must(t, s.Cut(ctx, epoch.Add(time.Hour)))
	list, err := s.Builds(ctx, "rust")
	if err != nil || len(list) != template.KeptBuilds || list[0].ID != last || list[0].State != template.CutOff || !list[0].Ended.Equal(epoch.Add(time.Hour)) {
		t.Errorf("list is %+v, %v", list, err)
	}
	must(t, s.DeleteBuilds(ctx, "rust"))
	list, err = s.Builds(ctx, "rust")
	same(t, "none", 0)(len(list), err)
	got, err := s.Build(ctx, "go", other)
	same(t, "the other", template.Done)(got.State, err)
}
