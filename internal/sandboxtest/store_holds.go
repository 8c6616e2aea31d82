package sandboxtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Hold gives a valid hold on a sandbox, placed minutes after a fixed time.
func Hold(sandboxID, reason string, minutes int) sandbox.Hold {
	placed := time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC).Add(time.Duration(minutes) * time.Minute)
	return sandbox.Hold{ID: sandbox.NewID(), SandboxID: sandboxID, Owner: "owner-1", Reason: reason, Created: placed, Expires: placed.Add(time.Hour)}
}

// HoldStores are a store of holds and the store of the sandboxes that they are on.
type HoldStores struct {
	Holds     sandbox.HoldStore
	Sandboxes sandbox.Store
}

// RunHolds checks that what open gives keeps sandbox.HoldStore's contract. open is as for RunStore.
func RunHolds(t *testing.T, open func(t *testing.T) HoldStores) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, HoldStores)
	}{
		{"EveryFieldComesBackOldestFirst", holdsRoundTrip},
		{"PutReplacesByID", holdsReplace},
		{"DeleteTwiceIsNoError", holdsDelete},
		{"DeleteExpiredLeavesWhatIsRenewed", holdsDeleteExpired},
		{"HoldsGoWithTheirSandbox", holdsCascade},
		{"HoldOnNothingIsNotFound", holdsOrphan},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// wantHolds checks that these are all, in this order.
func wantHolds(t *testing.T, s HoldStores, want ...sandbox.Hold) {
	t.Helper()
	got, err := s.Holds.Holds(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("holds differ (-want +got):\n%s", diff)
	}
}

func holdsRoundTrip(t *testing.T, s HoldStores) {
	wantHolds(t, s)
	a, b := Sandbox("a", 0), Sandbox("b", 1)
	mustInsert(t, s.Sandboxes, a)
	mustInsert(t, s.Sandboxes, b)
	late, early, expired := Hold(a.ID, "training 'm\n実験'", 5), Hold(b.ID, "", 1), Hold(a.ID, "over", 3)
	expired.Expires = expired.Created.Add(time.Nanosecond).Add(time.Microsecond)
	for _, h := range []sandbox.Hold{late, early, expired} {
		must(t, s.Holds.PutHold(t.Context(), h))
	}
	expired.Expires = kept(expired.Expires)
	wantHolds(t, s, early, expired, late)
}

func holdsReplace(t *testing.T, s HoldStores) {
	a := Sandbox("a", 0)
	mustInsert(t, s.Sandboxes, a)
	h, other := Hold(a.ID, "one", 0), Hold(a.ID, "other", 1)
	must(t, s.Holds.PutHold(t.Context(), h))
	must(t, s.Holds.PutHold(t.Context(), other))
	h.Reason, h.Expires = "renewed", h.Expires.Add(time.Hour)
	must(t, s.Holds.PutHold(t.Context(), h))
	wantHolds(t, s, h, other)
}

func holdsDelete(t *testing.T, s HoldStores) {
	a := Sandbox("a", 0)
	mustInsert(t, s.Sandboxes, a)
	h, other := Hold(a.ID, "one", 0), Hold(a.ID, "other", 1)
	must(t, s.Holds.PutHold(t.Context(), h))
	must(t, s.Holds.PutHold(t.Context(), other))
	must(t, s.Holds.DeleteHold(t.Context(), h.ID))
	must(t, s.Holds.DeleteHold(t.Context(), h.ID))
	wantHolds(t, s, other)
}

func holdsDeleteExpired(t *testing.T, s HoldStores) {
	a := Sandbox("a", 0)
	mustInsert(t, s.Sandboxes, a)
	over, renewed, later := Hold(a.ID, "over", 0), Hold(a.ID, "renewed", 1), Hold(a.ID, "later", 2)
	at := over.Expires
	renewed.Expires, later.Expires = at, at.Add(time.Microsecond)
	for _, h := range []sandbox.Hold{over, renewed, later} {
		must(t, s.Holds.PutHold(t.Context(), h))
	}
	renewed.Expires = at.Add(time.Hour)
	must(t, s.Holds.PutHold(t.Context(), renewed))
	must(t, s.Holds.DeleteExpiredHolds(t.Context(), at))
	wantHolds(t, s, renewed, later)
}

func holdsCascade(t *testing.T, s HoldStores) {
	a, b := Sandbox("a", 0), Sandbox("b", 1)
	mustInsert(t, s.Sandboxes, a)
	mustInsert(t, s.Sandboxes, b)
	on, other := Hold(a.ID, "one", 0), Hold(b.ID, "other", 1)
	must(t, s.Holds.PutHold(t.Context(), on))
	must(t, s.Holds.PutHold(t.Context(), other))
	a.Name, a.State = "renamed", sandbox.Frozen // changes leave it
	must(t, s.Sandboxes.Update(t.Context(), a))
	wantHolds(t, s, on, other)
	must(t, s.Sandboxes.Delete(t.Context(), a.ID))
	wantHolds(t, s, other)
}

func holdsOrphan(t *testing.T, s HoldStores) {
	wantKind(t, "hold nothing", s.Holds.PutHold(t.Context(), Hold("never-was", "x", 0)), fault.NotFound)
	wantHolds(t, s)
}
