package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Sandbox gives a valid sandbox with every field set, created minutes after a fixed time.
func Sandbox(name string, minutes int) sandbox.Sandbox {
	made := time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC).Add(time.Duration(minutes) * time.Minute)
	return sandbox.Sandbox{
		ID: sandbox.NewID(), Name: name, Label: "Label of " + name, Owner: "owner-1",
		Spec: sandbox.Spec{Template: "base", Limits: sandbox.Limits{CPUs: 1.5, Memory: 2 << 30, Pids: 512, Disk: 10 << 30},
			Env: map[string]string{"GREETING": "hello"}},
		State: sandbox.Running, Created: made, Changed: made.Add(time.Second),
		Rest:      catalog.Rest{FreezeAfter: catalog.After(90 * time.Second), StopAfter: catalog.Never},
		Overrides: overrides(),
	}
}

// RunStore checks that what open gives keeps sandbox.Store's contract. open is called for each test and gives an empty
// store, which it closes itself at the end of the test.
func RunStore(t *testing.T, open func(t *testing.T) sandbox.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, sandbox.Store)
	}{
		{"EveryFieldComesBack", storeRoundTrip},
		{"OddTextComesBack", storeOddText},
		{"OwnServicesComeBack", storeOwn},
		{"NameAndIDAreUnique", storeUnique},
		{"UpdateReplacesTheRow", storeUpdate},
		{"DeleteTwiceIsNoError", storeDelete},
		{"NameIsFreeAfterDelete", storeReuse},
		{"DeleteLeavesATombstone", storeTombstone},
		{"DeleteOfThePooledLeavesNoTombstone", storePooledTombstone},
		{"NewestComeFirstThenByName", storeOrder},
		{"FiltersCombine", storeFilter},
		{"UpIsWhatRunsOrIsFrozen", storeUp},
		{"PooledAreListedApart", storePooled},
		{"QueryIsPlainText", storeQuery},
		{"PagesCoverAllOnce", storePages},
		{"ConcurrentInsertsOfOneNameLeaveOne", storeRace},
		{"ConcurrentUseLosesNothing", storeConcurrent},
		{"WhatComesOutIsACopy", storeCopies},
		{"CancelledContextEndsTheCall", storeCancelled},
		{"TimeThatCannotBeKeptIsRefused", storeBadTime},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func storeRoundTrip(t *testing.T, s sandbox.Store) {
	full := Sandbox("full", 0)
	image := Sandbox("image", 1)
	image.Spec = sandbox.Spec{Image: "debian:trixie-slim", Limits: sandbox.Limits{CPUs: 0.1, Memory: math.MaxInt64, Pids: 1}}
	image.State, image.Problem, image.Label = sandbox.Failed, "The image has no shell.", ""
	far := Sandbox("far", 2)
	far.Created = far.Created.In(time.FixedZone("UTC+2", 7200)).Add(999 * time.Nanosecond)
	for _, b := range []sandbox.Sandbox{full, image, far} {
		mustInsert(t, s, b)
		wantByName(t, s, b)
	}
	for _, state := range []sandbox.State{sandbox.Creating, sandbox.Starting, sandbox.Running, sandbox.Frozen, sandbox.Sleeping,
		sandbox.Asleep, sandbox.Stopping, sandbox.Stopped, sandbox.Failed, sandbox.Deleting, sandbox.Capturing, sandbox.Restoring} {
		full.State, full.CutOff = state, state
		full.Root, full.ClonedFrom = "root:"+string(state), string(state)
		full.Base = "base:" + string(state)
		full.Revert = sandbox.Revert{Snapshot: string(state), Root: full.Root, Overrides: full.Overrides, Base: full.Base, Update: true}
		must(t, s.Update(t.Context(), full))
		wantByName(t, s, full)
	}
	for _, revert := range []sandbox.Revert{{Root: "an id"}, {Root: "image:1", Base: "base:1", Overrides: full.Overrides, Filled: true}, {}} { // of a backup
		full.Revert = revert
		must(t, s.Update(t.Context(), full))
		wantByName(t, s, full)
	}
	for _, rest := range []catalog.Rest{{}, {FreezeAfter: catalog.Never}, {FreezeAfter: 1, StopAfter: catalog.After(365 * 24 * time.Hour)}} {
		full.Rest, full.Pooled, full.Fingerprint, full.Resizing = rest, !full.Pooled, full.Fingerprint+"a1", !full.Resizing
		must(t, s.Update(t.Context(), full))
		wantByName(t, s, full)
	}
}

func storeOddText(t *testing.T, s sandbox.Store) {
	odd := []string{"ML Experiments", "Überprüfung", "実験", "🧪🔬", "a'b\"c`d", "100% _x_ \\", "line\nfeed\ttab", "'; DROP TABLE sandboxes; --",
		strings.Repeat("長", 1000), "\u202eright to left", " blanks "}
	for i, text := range odd {
		b := Sandbox(fmt.Sprintf("odd-%d", i), i)
		b.Label, b.Problem, b.Spec.Image = text, text, text
		b.Spec.Env = map[string]string{text: text, "EMPTY": "", "JSON": `{"a":"</script>"}`, "LINES": "a\nb"}
		mustInsert(t, s, b)
		wantByName(t, s, b)
		list, total, err := s.List(t.Context(), sandbox.Filter{Query: text})
		must(t, err)
		if total != 1 || len(list) != 1 || list[0].ID != b.ID {
			t.Errorf("query %q found %d sandboxes, want the one with that label", text, total)
		}
	}
}

func storeUnique(t *testing.T, s sandbox.Store) {
	one, two := Sandbox("one", 0), Sandbox("two", 1)
	mustInsert(t, s, one)
	mustInsert(t, s, two)
	name, id := Sandbox("one", 2), Sandbox("three", 2)
	id.ID = one.ID
	renamed := two
	renamed.Name = "one"
	wantKind(t, "insert a taken name", s.Insert(t.Context(), name), fault.Conflict)
	wantKind(t, "insert a taken id", s.Insert(t.Context(), id), fault.Conflict)
	wantKind(t, "update to a taken name", s.Update(t.Context(), renamed), fault.Conflict)
	wantByName(t, s, one)
	wantByName(t, s, two)
	wantNames(t, s, sandbox.Filter{}, 2, "two", "one")
}

func storeUpdate(t *testing.T, s sandbox.Store) {
	b := Sandbox("before", 0)
	wantKind(t, "update what is not there", s.Update(t.Context(), b), fault.NotFound)
	mustInsert(t, s, b)
	id := b.ID
	b = Sandbox("after", 5)
	b.ID, b.Label, b.Owner, b.State, b.Problem = id, "Other", "owner-2", sandbox.Failed, "It broke."
	b.Rest = catalog.Rest{StopAfter: 5}
	b.Spec = sandbox.Spec{Image: "x", Limits: sandbox.Limits{CPUs: 2, Memory: 1, Pids: 3}, Env: map[string]string{"A": "1", "B": "2"}}
	must(t, s.Update(t.Context(), b))
	wantByName(t, s, b)
	_, err := s.ByName(t.Context(), "before")
	wantKind(t, "find the old name", err, fault.NotFound)
	wantNames(t, s, sandbox.Filter{Query: "other"}, 1, "after")
	wantNames(t, s, sandbox.Filter{Query: "label of"}, 0)
}

func storeDelete(t *testing.T, s sandbox.Store) {
	b, other := Sandbox("b", 0), Sandbox("other", 1)
	mustInsert(t, s, b)
	mustInsert(t, s, other)
	must(t, s.Delete(t.Context(), b.ID))
	must(t, s.Delete(t.Context(), b.ID))
	must(t, s.Delete(t.Context(), "never-was"))
	_, err := s.ByName(t.Context(), "b")
	wantKind(t, "find what was deleted", err, fault.NotFound)
	wantKind(t, "update what was deleted", s.Update(t.Context(), b), fault.NotFound)
	wantNames(t, s, sandbox.Filter{}, 1, "other")
}

func storeReuse(t *testing.T, s sandbox.Store) {
	first, second := Sandbox("again", 0), Sandbox("again", 1)
	mustInsert(t, s, first)
	must(t, s.Delete(t.Context(), first.ID))
	mustInsert(t, s, second)
	must(t, s.Delete(t.Context(), first.ID)) // a late repeat must not hit the new one
	wantByName(t, s, second)
}

func storeOrder(t *testing.T, s sandbox.Store) {
	for _, b := range []sandbox.Sandbox{Sandbox("zz", 1), Sandbox("old", 0), Sandbox("aa", 1), Sandbox("new", 2), Sandbox("mm", 1)} {
		mustInsert(t, s, b)
	}
	wantNames(t, s, sandbox.Filter{}, 5, "new", "aa", "mm", "zz", "old")
	wantNames(t, s, sandbox.Filter{Limit: 2, Offset: 1}, 5, "aa", "mm")
}

func storeFilter(t *testing.T, s sandbox.Store) {
	for i, c := range []struct {
		name, owner, template, image string
		state                        sandbox.State
	}{
		{"ant", "o1", "base", "", sandbox.Running},
		{"bee", "o1", "python-ml", "", sandbox.Stopped},
		{"cat", "o2", "", "debian:trixie-slim", sandbox.Running},
		{"dog", "o2", "base", "", sandbox.Stopped},
	} {
		b := Sandbox(c.name, i)
		b.Label, b.Owner, b.Spec.Template, b.Spec.Image, b.State = "", c.owner, c.template, c.image, c.state
		mustInsert(t, s, b)
	}
	wantNames(t, s, sandbox.Filter{Owner: "o1"}, 2, "bee", "ant")
	wantNames(t, s, sandbox.Filter{Owner: "o"}, 0)
	wantNames(t, s, sandbox.Filter{State: sandbox.Running}, 2, "cat", "ant")
	wantNames(t, s, sandbox.Filter{State: sandbox.Failed}, 0)
	wantNames(t, s, sandbox.Filter{Query: "TRIXIE"}, 1, "cat")
	wantNames(t, s, sandbox.Filter{Query: "thon-m"}, 1, "bee")
	wantNames(t, s, sandbox.Filter{Query: "base"}, 2, "dog", "ant")
	wantNames(t, s, sandbox.Filter{Query: "base", Owner: "o2"}, 1, "dog")
	wantNames(t, s, sandbox.Filter{Query: "base", Owner: "o2", State: sandbox.Running}, 0)
	wantNames(t, s, sandbox.Filter{Query: "o", State: sandbox.Stopped, Limit: 1}, 2, "dog")
}

func storeQuery(t *testing.T, s sandbox.Store) {
	for i, label := range []string{"100% sure", "100 percent", "under_score", "underXscore", `back\slash`, "ÜBER Prüfung", "ДОМ", "don't"} {
		b := Sandbox(fmt.Sprintf("q%d", i), i)
		b.Label, b.Spec.Template = label, ""
		mustInsert(t, s, b)
	}
	wantNames(t, s, sandbox.Filter{Query: "100%"}, 1, "q0")
	wantNames(t, s, sandbox.Filter{Query: "%"}, 1, "q0")
	wantNames(t, s, sandbox.Filter{Query: "under_"}, 1, "q2")
	wantNames(t, s, sandbox.Filter{Query: "_"}, 1, "q2")
	wantNames(t, s, sandbox.Filter{Query: `\`}, 1, "q4")
	wantNames(t, s, sandbox.Filter{Query: "*"}, 0)
	wantNames(t, s, sandbox.Filter{Query: "über prÜF"}, 1, "q5")
	wantNames(t, s, sandbox.Filter{Query: "дом"}, 1, "q6")
	wantNames(t, s, sandbox.Filter{Query: "N'T"}, 1, "q7")
	wantNames(t, s, sandbox.Filter{Query: strings.Repeat("%_", 50_000)}, 0)
}

func storePages(t *testing.T, s sandbox.Store) {
	const n, page = 25, 10
	for i := range n {
		mustInsert(t, s, Sandbox(fmt.Sprintf("p%02d", i), i/3)) // three of each age
	}
	all, total, err := s.List(t.Context(), sandbox.Filter{})
	must(t, err)
	if len(all) != n || total != n {
		t.Fatalf("list gave %d of %d, want %d", len(all), total, n)
	}
	var paged []sandbox.Sandbox
	for offset := 0; offset < n; offset += page {
		some, total, err := s.List(t.Context(), sandbox.Filter{Offset: offset, Limit: page})
		must(t, err)
		if total != n {
			t.Errorf("total at offset %d is %d, want %d", offset, total, n)
		}
		paged = append(paged, some...)
	}
	if diff := cmp.Diff(all, paged); diff != "" {
		t.Errorf("the pages differ from the whole (-whole +pages):\n%s", diff)
	}
	wantNames(t, s, sandbox.Filter{Offset: n, Limit: page}, n)
	wantNames(t, s, sandbox.Filter{Offset: n + 100}, n)
	wantNames(t, s, sandbox.Filter{Offset: n - 1}, n, all[n-1].Name)
}

func storeRace(t *testing.T, s sandbox.Store) {
	const n = 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = s.Insert(t.Context(), Sandbox("contested", i)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantKind(t, "lose the race", err, fault.Conflict)
	}
	if won != 1 {
		t.Errorf("%d inserts of one name succeeded, want 1", won)
	}
	wantNames(t, s, sandbox.Filter{}, 1, "contested")
}

func storeConcurrent(t *testing.T, s sandbox.Store) {
	const workers, each = 4, 10
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				b := Sandbox(fmt.Sprintf("w%d-%d", w, i), i)
				if err := errors.Join(s.Insert(t.Context(), b), s.Update(t.Context(), b)); err != nil {
					t.Errorf("insert and update %s: %v", b.Name, err)
				}
				if _, _, err := s.List(t.Context(), sandbox.Filter{Query: "w", Limit: 5}); err != nil {
					t.Errorf("list: %v", err)
				}
				if i%2 == 0 {
					if err := s.Delete(t.Context(), b.ID); err != nil {
						t.Errorf("delete %s: %v", b.Name, err)
					}
				}
			}
		})
	}
	wg.Wait()
	_, total, err := s.List(t.Context(), sandbox.Filter{})
	must(t, err)
	if want := workers * each / 2; total != want {
		t.Errorf("%d sandboxes are left, want %d", total, want)
	}
}

func storeCopies(t *testing.T, s sandbox.Store) {
	b := Sandbox("b", 0)
	mustInsert(t, s, b)
	want := b
	want.Spec.Env, want.Overrides = map[string]string{"GREETING": "hello"}, overrides()
	b.Spec.Env["GREETING"] = "changed by who put it in"
	spoil(b.Overrides)
	got, err := s.ByName(t.Context(), "b")
	must(t, err)
	got.Spec.Env["GREETING"] = "changed by who took it out"
	spoil(got.Overrides)
	wantByName(t, s, want)
	list, _, err := s.List(t.Context(), sandbox.Filter{})
	must(t, err)
	list[0].Spec.Env["GREETING"] = "changed in the list"
	spoil(list[0].Overrides)
	wantByName(t, s, want)
}

func storeCancelled(t *testing.T, s sandbox.Store) {
	b := Sandbox("b", 0)
	mustInsert(t, s, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	changed := b
	changed.Label = "changed"
	_, byName := s.ByName(ctx, "b")
	_, tombstone := s.Tombstone(ctx, "b")
	_, _, list := s.List(ctx, sandbox.Filter{})
	for call, err := range map[string]error{"Insert": s.Insert(ctx, Sandbox("c", 1)), "Update": s.Update(ctx, changed),
		"Delete": s.Delete(ctx, b.ID), "ByName": byName, "Tombstone": tombstone, "List": list} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v, want context.Canceled", call, err)
		}
	}
	wantNames(t, s, sandbox.Filter{}, 1, "b")
	wantByName(t, s, b)
}

func storeBadTime(t *testing.T, s sandbox.Store) {
	good := Sandbox("good", 0)
	mustInsert(t, s, good)
	for _, bad := range []time.Time{{}, time.Unix(0, 0), time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)} {
		b := Sandbox("bad", 0)
		b.Created = bad
		if err := s.Insert(t.Context(), b); err == nil {
			t.Errorf("a sandbox created at %s was kept", bad)
		}
		changed := good
		changed.Changed = bad
		if err := s.Update(t.Context(), changed); err == nil {
			t.Errorf("a change at %s was kept", bad)
		}
	}
	wantByName(t, s, good)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustInsert(t *testing.T, s sandbox.Store, b sandbox.Sandbox) {
	t.Helper()
	if err := s.Insert(t.Context(), b); err != nil {
		t.Fatalf("insert %s: %v", b.Name, err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: error is %v, want one of kind %s", what, err, kind)
	}
}

// wantByName checks that the sandbox comes back as it was put in, its times to the microsecond and in UTC.
func wantByName(t *testing.T, s sandbox.Store, want sandbox.Sandbox) {
	t.Helper()
	got, err := s.ByName(t.Context(), want.Name)
	must(t, err)
	want.Created, want.Changed = kept(want.Created), kept(want.Changed)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-put in +came back):\n%s", want.Name, diff)
	}
	if got.Created.Location() != time.UTC {
		t.Errorf("time of creation is in %s, want UTC", got.Created.Location())
	}
}

func wantNames(t *testing.T, s sandbox.Store, f sandbox.Filter, total int, names ...string) {
	t.Helper()
	list, n, err := s.List(t.Context(), f)
	must(t, err)
	var got []string
	for _, b := range list {
		got = append(got, b.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" || n != total {
		t.Errorf("list %+.100v: total %d, want %d (-want +got):\n%s", f, n, total, diff)
	}
}
