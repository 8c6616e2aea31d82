package activitytest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/activity"
)

// noon is when the entries of the suite begin; each is a minute after the one before.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// StoreContract checks that what open gives, which must be empty, is a Store.
func StoreContract(t *testing.T, open func(t *testing.T) activity.Store) {
	t.Run("keeps whole entries", func(t *testing.T) { keepsWhole(t, open(t)) })
	t.Run("leaves out what it has", func(t *testing.T) { leavesOut(t, open(t)) })
	t.Run("remembers the last ID", func(t *testing.T) { remembersLast(t, open(t)) })
	t.Run("finds", func(t *testing.T) { finds(t, open(t)) })
	t.Run("finds by scope", func(t *testing.T) { findsByScope(t, open(t)) })
	t.Run("pages", func(t *testing.T) { pages(t, open(t)) })
	t.Run("sweeps by age", func(t *testing.T) { sweeps(t, open(t), noon.Add(4*time.Minute), 100, 4, 5) })
	t.Run("sweeps by number", func(t *testing.T) { sweeps(t, open(t), noon, 3, 5, 6) })
	t.Run("sweeps nothing", func(t *testing.T) { sweeps(t, open(t), noon, 8, 0, 1) })
	t.Run("is used by many at once", func(t *testing.T) { concurrent(t, open(t)) })
}

// entries are what the suite asks for: of ada, of bob, of a stranger and of sandboxd, about lab of ada and den of bob, and about none.
func entries() []activity.Entry {
	ada := activity.Entry{UserID: "u-ada", User: "ada", Via: activity.Page, From: "192.0.2.1", Outcome: activity.Done, Count: 1}
	lab := func(e activity.Entry) activity.Entry {
		e.SandboxID, e.Sandbox, e.Owner = "s-lab", "lab", "u-ada"
		return e
	}
	den := func(e activity.Entry) activity.Entry {
		e.SandboxID, e.Sandbox, e.Owner = "s-den", "den", "u-bob"
		return e
	}
	with := func(e activity.Entry, a activity.Action, via activity.Via, outcome activity.Outcome) activity.Entry {
		e.Action, e.Via, e.Outcome = a, via, outcome
		return e
	}
	bob := ada
	bob.UserID, bob.User, bob.From = "u-bob", "bob", "2001:db8::1"
	itself := activity.Entry{Via: activity.Itself, Outcome: activity.Done, Count: 1}
	out := []activity.Entry{
		with(ada, "account.login", activity.Page, activity.Done),
		lab(with(ada, "sandbox.create", activity.API, activity.Done)),
		den(with(bob, "sandbox.create", activity.Page, activity.Done)),
		lab(with(ada, "command.run", activity.API, activity.Failed)),
		lab(with(bob, "command.run", activity.SSH, activity.Refused)),
		den(with(ada, "file.write", activity.Page, activity.Done)),
		lab(with(itself, "sandbox.sleep", activity.Itself, activity.Done)),
		with(activity.Entry{Count: 1}, "account.login", activity.Page, activity.Refused),
	}
	out[1].Token = "t-1"
	out[3].Object, out[3].Problem, out[3].Count = "make 100%_Test\\all", "It did not end.", 12
	out[4].Request = "0123456789abcdef"
	for i := range out {
		out[i].ID, out[i].Time = activity.ID(i+1), noon.Add(time.Duration(i)*time.Minute)
	}
	return out
}

// all sees everything.
var all = activity.Scope{All: true}

func add(t *testing.T, s activity.Store, entries ...activity.Entry) {
	t.Helper()
	if err := s.Add(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
}

// found gives the IDs of what a query finds, newest first.
func found(t *testing.T, s activity.Store, q activity.Query) (ids []activity.ID) {
	t.Helper()
	got, err := s.Find(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	for _, e := range got {
		ids = append(ids, e.ID)
	}
	return ids
}

func keepsWhole(t *testing.T, s activity.Store) {
	want := entries()
	add(t, s, want...)
	got, err := s.Find(t.Context(), activity.Query{Scope: all})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func leavesOut(t *testing.T, s activity.Store) {
	e := entries()
	add(t, s)
	add(t, s, e[:3]...)
	again := slices.Clone(e[:5])
	again[0].User = "changed"
	add(t, s, again...)
	add(t, s, again...)
	if got := found(t, s, activity.Query{Scope: all}); !slices.Equal(got, []activity.ID{5, 4, 3, 2, 1}) {
		t.Errorf("got %v", got)
	}
	if got := found(t, s, activity.Query{Scope: all, User: "changed"}); got != nil {
		t.Errorf("%v was changed", got)
	}
}

func remembersLast(t *testing.T, s activity.Store) {
	last := func(want activity.ID) {
		t.Helper()
		if got, err := s.Last(t.Context()); got != want || err != nil {
			t.Errorf("got %d, %v; want %d", got, err, want)
		}
	}
	last(0)
	add(t, s, entries()...)
	last(8)
	if n, err := s.Sweep(t.Context(), noon.Add(time.Hour), 0); n != 8 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	last(8)
	add(t, s, entries()...)
	if got := found(t, s, activity.Query{Scope: all}); got != nil {
		t.Errorf("%v is back", got)
	}
}

func finds(t *testing.T, s activity.Store) {
	add(t, s, entries()...)
	for _, c := range []struct {
		q    activity.Query
		want string
	}{
		{activity.Query{}, "8 7 6 5 4 3 2 1"},
		{activity.Query{Limit: 2}, "8 7"},
		{activity.Query{Before: 3}, "2 1"},
		{activity.Query{Sandbox: "lab"}, "7 5 4 2"},
		{activity.Query{Sandbox: "s-den"}, "6 3"},
		{activity.Query{Sandbox: "la"}, ""},
		{activity.Query{User: "ada"}, "6 4 2 1"},
		{activity.Query{Via: activity.API}, "4 2"},
		{activity.Query{Via: activity.Itself}, "7"},
		{activity.Query{Action: "sandbox.create"}, "3 2"},
		{activity.Query{Action: "sandbox."}, "7 3 2"},
		{activity.Query{Action: "sandbox"}, ""},
		{activity.Query{Outcome: activity.Done}, "7 6 3 2 1"},
		{activity.Query{Outcome: activity.Refused}, "8 5"},
		{activity.Query{Text: "NOT end"}, "4"},
		{activity.Query{Text: "100%_test\\ALL"}, "4"},
		{activity.Query{Text: "100_"}, ""},
		{activity.Query{Text: "DEN"}, "6 3"},
		{activity.Query{Text: "bob"}, "5 3"},
		{activity.Query{Since: noon.Add(6 * time.Minute)}, "8 7"},
		{activity.Query{Until: noon.Add(time.Minute)}, "1"},
		{activity.Query{Since: noon.Add(time.Minute), Until: noon.Add(3 * time.Minute)}, "3 2"},
		{activity.Query{Since: noon.Add(time.Hour)}, ""},
		{activity.Query{Until: noon}, ""},
		{activity.Query{Until: time.Unix(1, 0)}, ""},
		{activity.Query{Sandbox: "lab", User: "ada", Via: activity.API, Action: "command.", Outcome: activity.Failed, Text: "make", Since: noon, Until: noon.Add(time.Hour), Before: 5, Limit: 5}, "4"},
	} {
		c.q.Scope = all
		if got := strings.Trim(fmt.Sprint(found(t, s, c.q)), "[]"); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.q, got, c.want)
		}
	}
}

func findsByScope(t *testing.T, s activity.Store) {
	add(t, s, entries()...)
	for _, c := range []struct {
		scope activity.Scope
		want  string
	}{
		{activity.Scope{}, ""},
		{activity.Scope{SandboxID: "s-lab"}, ""},
		{activity.Scope{User: "u-ada"}, "7 6 5 4 2 1"},
		{activity.Scope{User: "u-bob"}, "6 5 3"},
		{activity.Scope{User: "u-eve"}, ""},
		{activity.Scope{User: "u-ada", SandboxID: "s-lab"}, "7 5 4 2"},
		{activity.Scope{User: "u-bob", SandboxID: "s-lab"}, "5"},
		{activity.Scope{All: true, SandboxID: "s-den"}, "6 3"},
		{activity.Scope{All: true, User: "u-eve"}, "8 7 6 5 4 3 2 1"},
	} {
		if got := strings.Trim(fmt.Sprint(found(t, s, activity.Query{Scope: c.scope})), "[]"); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.scope, got, c.want)
		}
	}
	hers := activity.Scope{User: "u-ada", SandboxID: "s-lab"}
	if got := found(t, s, activity.Query{Scope: hers, Sandbox: "den"}); got != nil {
		t.Errorf("another sandbox than the scope's: %v", got)
	}
	if got := found(t, s, activity.Query{Scope: activity.Scope{User: "u-bob"}, Sandbox: "s-lab", Limit: 1}); !slices.Equal(got, []activity.ID{5}) {
		t.Errorf("his own of her sandbox: %v", got)
	}
}

// pages reads page by page what a user may see in two ways at once.
func pages(t *testing.T, s activity.Store) {
	const count = 50
	var more []activity.Entry
	for i := range count {
		e := entries()[1+i%3]
		e.ID, e.Time = activity.ID(2*i+1), noon.Add(time.Duration(i)*time.Second)
		more = append(more, e)
	}
	add(t, s, more...)
	q := activity.Query{Scope: activity.Scope{User: "u-ada"}, Limit: 7}
	var got []activity.ID
	for {
		page := found(t, s, q)
		got = append(got, page...)
		if len(page) < q.Limit {
			break
		}
		q.Before = page[len(page)-1]
	}
	q.Before, q.Limit = 0, count
	if want := found(t, s, q); !slices.Equal(got, want) || len(got) != 33 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func sweeps(t *testing.T, s activity.Store, before time.Time, most, deleted int, first activity.ID) {
	add(t, s, entries()...)
	if n, err := s.Sweep(t.Context(), before, most); n != deleted || err != nil {
		t.Errorf("swept %d, %v; want %d", n, err, deleted)
	}
	if got := found(t, s, activity.Query{Scope: all}); len(got) != 8-deleted || got[len(got)-1] != first {
		t.Errorf("left are %v", got)
	}
	if n, err := s.Sweep(t.Context(), before, most); n != 0 || err != nil {
		t.Errorf("swept %d more, %v", n, err)
	}
}

func concurrent(t *testing.T, s activity.Store) {
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for range 20 {
				if _, err := s.Find(t.Context(), activity.Query{Scope: all}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		e := entries()[0]
		e.ID = activity.ID(i + 1)
		add(t, s, e)
	}
	running.Wait()
	if got := found(t, s, activity.Query{Scope: all}); len(got) != 20 {
		t.Errorf("got %v", got)
	}
}
