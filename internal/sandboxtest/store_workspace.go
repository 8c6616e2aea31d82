package sandboxtest

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// WorkspaceStore keeps how people have arranged their pages, and what they call a sandbox's terminals.
type WorkspaceStore interface {
	Preference(ctx context.Context, user, name string) (string, error)
	SetPreference(ctx context.Context, user, name, value string) error
	TabNames(ctx context.Context, sandboxID string) (map[string]string, error)
	NameTab(ctx context.Context, sandboxID, tab, name string) error
}

// WorkspaceStores are a WorkspaceStore and the stores of those whom it is about.
type WorkspaceStores struct {
	Workspace WorkspaceStore
	Sandboxes sandbox.Store
	Accounts  auth.Store
}

// RunWorkspace checks that what open gives keeps the contract of a WorkspaceStore. open is as for RunStore.
func RunWorkspace(t *testing.T, open func(t *testing.T) WorkspaceStores) {
	t.Helper()
	t.Run("PreferencesAreEachUsersOwn", func(t *testing.T) { preferencesRoundTrip(t, open(t)) })
	t.Run("PreferenceOfNobodyIsNotFound", func(t *testing.T) {
		s := open(t)
		wantKind(t, "keep", s.Workspace.SetPreference(t.Context(), "nobody", "workspace", "{}"), fault.NotFound)
	})
	t.Run("NamesGoWithTheirSandbox", func(t *testing.T) { tabNamesRoundTrip(t, open(t)) })
	t.Run("NameInNothingIsNotFound", func(t *testing.T) {
		s := open(t)
		wantKind(t, "name", s.Workspace.NameTab(t.Context(), "never-was", "main", "x"), fault.NotFound)
		must(t, s.Workspace.NameTab(t.Context(), "never-was", "main", ""))
	})
}

func preferencesRoundTrip(t *testing.T, s WorkspaceStores) {
	ada, bob := Account("ada", auth.Member, 0), Account("bob", auth.Member, 1)
	must(t, s.Accounts.InsertUser(t.Context(), ada))
	must(t, s.Accounts.InsertUser(t.Context(), bob))
	want := func(user, name, value string) {
		t.Helper()
		got, err := s.Workspace.Preference(t.Context(), user, name)
		must(t, err)
		if got != value {
			t.Errorf("%s of %s is %q, want %q", name, user, got, value)
		}
	}
	want(ada.ID, "workspace", "")
	for _, value := range []string{`{"a":1}`, `{"ä":"\u0000"}`} {
		must(t, s.Workspace.SetPreference(t.Context(), ada.ID, "workspace", value))
		want(ada.ID, "workspace", value)
	}
	must(t, s.Workspace.SetPreference(t.Context(), bob.ID, "workspace", `{}`))
	want(ada.ID, "other", "")
	want(bob.ID, "workspace", `{}`)
	must(t, s.Accounts.DeleteUser(t.Context(), ada.ID, func(auth.Account, int) error { return nil }))
	want(ada.ID, "workspace", "")
	want(bob.ID, "workspace", `{}`)
}

func tabNamesRoundTrip(t *testing.T, s WorkspaceStores) {
	a, b := Sandbox("a", 0), Sandbox("b", 1)
	mustInsert(t, s.Sandboxes, a)
	mustInsert(t, s.Sandboxes, b)
	want := func(id string, names map[string]string) {
		t.Helper()
		got, err := s.Workspace.TabNames(t.Context(), id)
		must(t, err)
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("names differ (-want +got):\n%s", diff)
		}
	}
	want(a.ID, map[string]string{})
	must(t, s.Workspace.NameTab(t.Context(), a.ID, "main", "server"))
	must(t, s.Workspace.NameTab(t.Context(), a.ID, "2", "tests"))
	must(t, s.Workspace.NameTab(t.Context(), a.ID, "main", "日志 ‘x’"))
	must(t, s.Workspace.NameTab(t.Context(), b.ID, "main", "other"))
	want(a.ID, map[string]string{"main": "日志 ‘x’", "2": "tests"})
	for range 2 {
		must(t, s.Workspace.NameTab(t.Context(), a.ID, "2", ""))
	}
	want(a.ID, map[string]string{"main": "日志 ‘x’"})
	must(t, s.Sandboxes.Delete(t.Context(), a.ID))
	want(a.ID, map[string]string{})
	want(b.ID, map[string]string{"main": "other"})
}

// MemWorkspace is a WorkspaceStore in memory, over the stores that it is about.
type MemWorkspace struct {
	boxes *MemStore
	users *MemAccounts

	mu    sync.Mutex
	kept  map[[2]string]string
	names map[string]map[string]string
}

// NewMemWorkspace gives one that has nothing.
func NewMemWorkspace(boxes *MemStore, users *MemAccounts) *MemWorkspace {
	return &MemWorkspace{boxes: boxes, users: users, kept: map[[2]string]string{}, names: map[string]map[string]string{}}
}

func (m *MemWorkspace) user(ctx context.Context, id string) bool {
	_, err := m.users.User(ctx, id)
	return err == nil
}

func (m *MemWorkspace) box(id string) bool {
	m.boxes.mu.Lock()
	defer m.boxes.mu.Unlock()
	_, ok := m.boxes.rows[id]
	return ok
}

// Preference gives what is kept, "" when nothing is.
func (m *MemWorkspace) Preference(ctx context.Context, user, name string) (string, error) {
	if !m.user(ctx, user) {
		return "", ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[[2]string{user, name}], ctx.Err()
}

// SetPreference keeps value instead of what was there.
func (m *MemWorkspace) SetPreference(ctx context.Context, user, name, value string) error {
	if !m.user(ctx, user) {
		return fault.New(fault.NotFound, "The user has been deleted.")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[[2]string{user, name}] = value
	return ctx.Err()
}

// TabNames gives the names of a sandbox's terminals.
func (m *MemWorkspace) TabNames(ctx context.Context, sandboxID string) (map[string]string, error) {
	if !m.box(sandboxID) {
		return map[string]string{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	names := maps.Clone(m.names[sandboxID])
	if names == nil {
		names = map[string]string{}
	}
	return names, ctx.Err()
}

// NameTab calls a terminal so from now on; "" takes its name away.
func (m *MemWorkspace) NameTab(ctx context.Context, sandboxID, tab, name string) error {
	here := m.box(sandboxID)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case name == "":
		delete(m.names[sandboxID], tab)
	case !here:
		return fault.New(fault.NotFound, "The sandbox has been deleted.")
	case m.names[sandboxID] == nil:
		m.names[sandboxID] = map[string]string{tab: name}
	default:
		m.names[sandboxID][tab] = name
	}
	return ctx.Err()
}
