package sqlite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/lastview"
	"sandboxd/internal/sandboxtest"
)

func TestWorkspace_KeepsTheContract(t *testing.T) {
	t.Run("PreferencesAreEachUsersOwn", func(t *testing.T) { preferencesRoundTrip(t, fresh(t)) })
	t.Run("PreferenceOfNobodyIsNotFound", func(t *testing.T) {
		s := fresh(t)
		wantKind(t, "keep", s.Workspace().SetPreference(t.Context(), "nobody", "workspace", "{}"), fault.NotFound)
	})
	t.Run("NamesGoWithTheirSandbox", func(t *testing.T) { tabNamesRoundTrip(t, fresh(t)) })
	t.Run("LastViewsGoWithTheirSandbox", func(t *testing.T) { lastViewRoundTrip(t, fresh(t)) })
	t.Run("NameInNothingIsNotFound", func(t *testing.T) {
		s := fresh(t)
		wantKind(t, "name", s.Workspace().NameTab(t.Context(), "never-was", "main", "x"), fault.NotFound)
		must(t, s.Workspace().NameTab(t.Context(), "never-was", "main", ""))
	})
}

func preferencesRoundTrip(t *testing.T, s *DB) {
	ada, bob := account("ada", auth.Member, 0), account("bob", auth.Member, 1)
	must(t, s.Auth().InsertUser(t.Context(), ada))
	must(t, s.Auth().InsertUser(t.Context(), bob))
	want := func(user, name, value string) {
		t.Helper()
		got, err := s.Workspace().Preference(t.Context(), user, name)
		must(t, err)
		if got != value {
			t.Errorf("%s of %s is %q, want %q", name, user, got, value)
		}
	}
	want(ada.ID, "workspace", "")
	for _, value := range []string{`{"a":1}`, `{"ä":"\u0000"}`} {
		must(t, s.Workspace().SetPreference(t.Context(), ada.ID, "workspace", value))
		want(ada.ID, "workspace", value)
	}
	must(t, s.Workspace().SetPreference(t.Context(), bob.ID, "workspace", `{}`))
	want(ada.ID, "other", "")
	want(bob.ID, "workspace", `{}`)
	must(t, s.Auth().DeleteUser(t.Context(), ada.ID, func(auth.Account, int) error { return nil }))
	want(ada.ID, "workspace", "")
	want(bob.ID, "workspace", `{}`)
}

func tabNamesRoundTrip(t *testing.T, s *DB) {
	a, b := sandboxtest.Sandbox("a", 0), sandboxtest.Sandbox("b", 1)
	must(t, s.Sandboxes().Insert(t.Context(), a))
	must(t, s.Sandboxes().Insert(t.Context(), b))
	want := func(id string, names map[string]string) {
		t.Helper()
		got, err := s.Workspace().TabNames(t.Context(), id)
		must(t, err)
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("names differ (-want +got):\n%s", diff)
		}
	}
	want(a.ID, map[string]string{})
	must(t, s.Workspace().NameTab(t.Context(), a.ID, "main", "server"))
	must(t, s.Workspace().NameTab(t.Context(), a.ID, "2", "tests"))
	must(t, s.Workspace().NameTab(t.Context(), a.ID, "main", "日志 ‘x’"))
	must(t, s.Workspace().NameTab(t.Context(), b.ID, "main", "other"))
	want(a.ID, map[string]string{"main": "日志 ‘x’", "2": "tests"})
	for range 2 {
		must(t, s.Workspace().NameTab(t.Context(), a.ID, "2", ""))
	}
	want(a.ID, map[string]string{"main": "日志 ‘x’"})
	must(t, s.Sandboxes().Delete(t.Context(), a.ID))
	want(a.ID, map[string]string{})
	want(b.ID, map[string]string{"main": "other"})
}

func lastViewRoundTrip(t *testing.T, s *DB) {
	a := sandboxtest.Sandbox("a", 0)
	must(t, s.Sandboxes().Insert(t.Context(), a))
	want := func(v lastview.View) {
		t.Helper()
		got, err := s.Workspace().LastView(t.Context(), a.ID)
		must(t, err)
		if diff := cmp.Diff(v, got); diff != "" {
			t.Error(diff)
		}
	}
	want(lastview.View{})
	for _, line := range []string{"\x1b[1m$\x1b[0m", "é\ufffd\x00"} {
		v := lastview.View{Screen: []string{line}, Files: []lastview.File{{Name: "src", Folder: true}}, Taken: a.Created}
		must(t, s.Workspace().KeepView(t.Context(), a.ID, v))
		want(v)
	}
	must(t, s.Sandboxes().Delete(t.Context(), a.ID))
	want(lastview.View{})
	wantKind(t, "keep", s.Workspace().KeepView(t.Context(), a.ID, lastview.View{}), fault.NotFound)
}
