package sqlite

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/sandboxtest"
)

func TestLastUses_GoWithTheirSandbox(t *testing.T) {
	s := fresh(t)
	a, b := sandboxtest.Sandbox("a", 0), sandboxtest.Sandbox("b", 1)
	must(t, s.Sandboxes().Insert(t.Context(), a))
	must(t, s.Sandboxes().Insert(t.Context(), b))
	want := func(uses map[string]time.Time) {
		t.Helper()
		got, err := s.LastUses().LastUses(t.Context())
		must(t, err)
		if diff := cmp.Diff(uses, got); diff != "" {
			t.Error(diff)
		}
	}
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	want(map[string]time.Time{})
	must(t, s.LastUses().PutLastUses(t.Context(), map[string]time.Time{a.ID: at(0), b.ID: at(1), "never-was": at(2)}))
	must(t, s.LastUses().PutLastUses(t.Context(), map[string]time.Time{a.ID: at(3)}))
	want(map[string]time.Time{a.ID: at(3), b.ID: at(1)})
	must(t, s.Sandboxes().Delete(t.Context(), a.ID))
	want(map[string]time.Time{b.ID: at(1)})
}
