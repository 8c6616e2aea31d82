package sandboxtest

import (
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func storeTombstone(t *testing.T, s sandbox.Store) {
	_, err := s.Tombstone(t.Context(), "b")
	wantKind(t, "tombstone of what never was", err, fault.NotFound)
	first, second := Sandbox("b", 0), Sandbox("b", 1)
	second.Owner = "owner-2"
	for _, b := range []sandbox.Sandbox{first, second} {
		mustInsert(t, s, b)
		began := time.Now()
		must(t, s.Delete(t.Context(), b.ID))
		must(t, s.Delete(t.Context(), b.ID))
		wantTombstone(t, s, b, began)
	}
	must(t, s.Delete(t.Context(), first.ID)) // a late repeat
	wantTombstone(t, s, second, time.Now().Add(-time.Hour))
	_, err = s.Tombstone(t.Context(), "B")
	wantKind(t, "tombstone of another name", err, fault.NotFound)

	moved := Sandbox("before", 2)
	mustInsert(t, s, moved)
	moved.Name = "after"
	must(t, s.Update(t.Context(), moved))
	must(t, s.Delete(t.Context(), moved.ID))
	wantTombstone(t, s, moved, time.Now().Add(-time.Hour))
	_, err = s.Tombstone(t.Context(), "before")
	wantKind(t, "tombstone of an earlier name", err, fault.NotFound)
}

// wantTombstone checks that the last of that name was b, deleted since began.
func wantTombstone(t *testing.T, s sandbox.Store, b sandbox.Sandbox, began time.Time) {
	t.Helper()
	g, err := s.Tombstone(t.Context(), b.Name)
	must(t, err)
	if g.Name != b.Name || g.Owner != b.Owner || g.Deleted.Location() != time.UTC {
		t.Errorf("tombstone is %+v, want one of %s's %s", g, b.Owner, b.Name)
	}
	if g.Deleted.Before(kept(began)) || g.Deleted.After(time.Now()) {
		t.Errorf("deleted at %s, not between %s and now", g.Deleted, began)
	}
}

func storePooledTombstone(t *testing.T, s sandbox.Store) {
	b := Sandbox("spare", 0)
	b.Pooled = true
	mustInsert(t, s, b)
	must(t, s.Delete(t.Context(), b.ID))
	_, err := s.Tombstone(t.Context(), "spare")
	wantKind(t, "tombstone of what was nobody's", err, fault.NotFound)
}

func storeUp(t *testing.T, s sandbox.Store) {
	for i, state := range []sandbox.State{sandbox.Creating, sandbox.Starting, sandbox.Running, sandbox.Frozen, sandbox.Sleeping,
		sandbox.Asleep, sandbox.Stopping, sandbox.Stopped, sandbox.Failed, sandbox.Deleting, sandbox.Capturing, sandbox.Restoring} {
		b := Sandbox(string(state), i)
		b.State = state
		mustInsert(t, s, b)
	}
	wantNames(t, s, sandbox.Filter{Up: true}, 2, "frozen", "running")
	wantNames(t, s, sandbox.Filter{Up: true, Limit: 1, Offset: 1}, 2, "running")
	wantNames(t, s, sandbox.Filter{Up: true, State: sandbox.Frozen}, 1, "frozen")
	wantNames(t, s, sandbox.Filter{Up: true, State: sandbox.Stopped}, 0)
	wantNames(t, s, sandbox.Filter{Up: true, Query: "runn", Owner: "owner-1"}, 1, "running")
	wantNames(t, s, sandbox.Filter{Up: true, Owner: "owner-2"}, 0)
}

func storePooled(t *testing.T, s sandbox.Store) {
	for i, name := range []string{"mine", "spare", "cold"} {
		b := Sandbox(name, i)
		if b.Pooled = name != "mine"; name == "spare" {
			b.State = sandbox.Frozen
		} else {
			b.State = sandbox.Stopped
		}
		mustInsert(t, s, b)
	}
	wantNames(t, s, sandbox.Filter{}, 1, "mine")
	wantNames(t, s, sandbox.Filter{Query: "spare"}, 0)
	wantNames(t, s, sandbox.Filter{Up: true}, 0)
	wantNames(t, s, sandbox.Filter{Pooled: true}, 2, "cold", "spare")
	wantNames(t, s, sandbox.Filter{Pooled: true, Limit: 1}, 2, "cold")
	wantNames(t, s, sandbox.Filter{Pooled: true, Up: true}, 1, "spare")
	claimed, err := s.ByName(t.Context(), "spare")
	must(t, err)
	claimed.Pooled = false
	must(t, s.Update(t.Context(), claimed))
	wantNames(t, s, sandbox.Filter{}, 2, "spare", "mine")
	wantNames(t, s, sandbox.Filter{Pooled: true}, 1, "cold")
}
