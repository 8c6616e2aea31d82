package idle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

var ctx = context.Background()

// held runs f with the holds of a world without a reaper.
func held(t *testing.T, f func(t *testing.T, w *world, holds *idle.Holds)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Holds = idle.NewHolds(w.store.Holds(), w.tracker)
		f(t, w, w.config.Holds)
	})
}

func TestHolds_BoundsSayWhichFieldIsWrong(t *testing.T) {
	held(t, func(t *testing.T, w *world, holds *idle.Holds) {
		for _, c := range []struct {
			reason string
			ttl    time.Duration
			field  string
		}{
			{"", time.Hour, "reason"},
			{" \x00\n ", time.Hour, "reason"},
			{"\u3164", time.Hour, "reason"},
			{"\u2800 \u115f\u1160\uffa0\u200b\ufeff", time.Hour, "reason"},
			{strings.Repeat("x", 201), time.Hour, "reason"},
			{"fine", 9 * time.Second, "ttl"},
			{"fine", 7*24*time.Hour + 1, "ttl"},
			{"fine", -time.Hour, "ttl"},
		} {
			if _, err := holds.Place(ctx, w.row(box), "ann", c.reason, c.ttl); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field {
				t.Errorf("%.20q for %s: %v", c.reason, c.ttl, err)
			}
		}
		h, err := holds.Place(ctx, w.row(box), "ann", " training\x1b[31m, two\nhours ", 7*24*time.Hour)
		if err != nil || h.Reason != "training[31m, two hours" || h.Owner != "ann" || h.SandboxID != w.row(box).ID {
			t.Errorf("%+v, %v", h, err)
		}
		if _, err := holds.Renew(ctx, w.row(box), h.ID, time.Second); fault.FieldOf(err) != "ttl" {
			t.Errorf("renewed for a second: %v", err)
		}
	})
}

// TestHolds_AreToldWhenOneChanges keeps a page that shows their ends up to date.
func TestHolds_AreToldWhenOneChanges(t *testing.T) {
	held(t, func(t *testing.T, w *world, _ *idle.Holds) {
		sub := w.tracker.Subscribe()
		defer sub.Close()
		one := ""
		for _, do := range []func(){func() { one = w.place("one", time.Hour) }, func() { w.renew(one, 2*time.Hour) }, func() { w.revoke(one) }, func() { w.place("again", time.Hour) }} {
			do()
			if got := drain(sub); got != 1 {
				t.Errorf("%d changes, want 1", got)
			}
		}
	})
}

func TestHolds_AtMost32OfOneSandbox(t *testing.T) {
	held(t, func(t *testing.T, w *world, holds *idle.Holds) {
		w.add("other", catalog.Rest{})
		for range 32 {
			w.place("one of many", time.Hour)
		}
		if _, err := holds.Place(ctx, w.row(box), "ann", "one more", time.Hour); !fault.Is(err, fault.Conflict) {
			t.Errorf("the 33rd: %v", err)
		}
		if _, err := holds.Place(ctx, w.row("other"), "ann", "the first", time.Hour); err != nil {
			t.Errorf("on another: %v", err)
		}
		elapse(time.Hour)
		w.place("after they have expired", time.Hour)
	})
}

func TestHolds_ListedRenewedAndRevoked(t *testing.T) {
	held(t, func(t *testing.T, w *world, holds *idle.Holds) {
		one := w.place("one", time.Hour)
		elapse(time.Minute)
		two := w.place("two", 10*time.Minute)
		elapse(5 * time.Minute)
		w.renew(two, 10*time.Minute)
		got, err := holds.List(ctx, w.row(box))
		stored, storeErr := w.store.Holds().Holds(ctx)
		if err != nil || storeErr != nil || len(got) != 2 || got[0].ID != one || time.Until(got[1].Expires) != 10*time.Minute {
			t.Errorf("%+v, %v, %v", got, err, storeErr)
		}
		if diff := cmp.Diff(stored, got); diff != "" {
			t.Errorf("stored and listed differ:\n%s", diff)
		}
		w.revoke(one)
		elapse(10 * time.Minute)
		for what, err := range map[string]error{
			"revoke one that is revoked": holds.Revoke(ctx, w.row(box), one),
			"revoke one that is none":    holds.Revoke(ctx, w.row(box), "../x"),
			"revoke one of another":      holds.Revoke(ctx, sandbox.Sandbox{Name: "other", ID: "x"}, two),
			"renew one that has expired": renewal(holds, w.row(box), two),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := w.tracker.Status(box); len(got.Because) > 0 || time.Since(got.Idle) != 0 {
			t.Errorf("after both: %+v, want unused since the second one expired", got)
		}
	})
}

func renewal(holds *idle.Holds, s sandbox.Sandbox, id string) error {
	_, err := holds.Renew(ctx, s, id, time.Hour)
	return err
}

func TestHolds_StoreThatFailsChangesNothing(t *testing.T) {
	held(t, func(t *testing.T, w *world, holds *idle.Holds) {
		full := fault.New(fault.Unavailable, "The store is full.")
		w.store.FailNextOf("PutHold", full)
		if _, err := holds.Place(ctx, w.row(box), "ann", "no", time.Hour); !fault.Is(err, fault.Unavailable) {
			t.Errorf("place: %v", err)
		}
		if got, _ := holds.List(ctx, w.row(box)); len(got) != 0 {
			t.Errorf("it holds all the same: %v", got)
		}
		id := w.place("yes", time.Hour)
		w.store.FailNextOf("PutHold", full)
		w.store.FailNextOf("DeleteHold", full)
		elapse(time.Minute)
		if err := renewal(holds, w.row(box), id); !fault.Is(err, fault.Unavailable) {
			t.Errorf("renew: %v", err)
		}
		if err := holds.Revoke(ctx, w.row(box), id); !fault.Is(err, fault.Unavailable) {
			t.Errorf("revoke: %v", err)
		}
		if got, _ := holds.List(ctx, w.row(box)); len(got) != 1 || time.Until(got[0].Expires) != 59*time.Minute {
			t.Errorf("after what has failed: %+v", got)
		}
		w.store.FailNextOf("Holds", full)
		if err := holds.Load(ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("load: %v", err)
		}
	})
}

func TestHolds_OnlyForWhatIsThere(t *testing.T) {
	held(t, func(t *testing.T, w *world, holds *idle.Holds) {
		going := w.row(box)
		going.State = sandbox.Deleting
		if _, err := holds.Place(ctx, going, "ann", "no", time.Hour); !fault.Is(err, fault.Conflict) {
			t.Errorf("on one that is being deleted: %v", err)
		}
		if _, err := holds.Place(ctx, sandbox.Sandbox{ID: "gone", Name: "gone"}, "ann", "no", time.Hour); !fault.Is(err, fault.NotFound) {
			t.Errorf("on one that is gone: %v", err)
		}
	})
}

func TestHolds_SweepRemovesWhatIsOver(t *testing.T) {
	within(t, nil, func(w *world) {
		w.place("short", 30*time.Second)
		w.place("long", time.Hour)
		w.pass(2 * time.Minute)
		if stored, err := w.store.Holds().Holds(ctx); err != nil || len(stored) != 1 {
			t.Errorf("stored are %v, %v", stored, err)
		}
		if err := w.store.Delete(ctx, w.row(box).ID); err != nil { // and the event of it is missed
			t.Error(err)
		}
		w.pass(4 * time.Minute)
		if got := w.because(); len(got) > 0 {
			t.Errorf("the holds of a deleted one keep %v", got)
		}
	})
}

func TestHolds_RevokeAndRenewAtOnceLeaveNone(t *testing.T) {
	w := newWorld(t)
	w.config.Holds = idle.NewHolds(w.store.Holds(), w.tracker)
	for range 200 {
		id := w.place("contended", time.Hour)
		done := make(chan error, 1)
		go func() { done <- renewal(w.config.Holds, w.row(box), id) }()
		w.revoke(id)
		if err := <-done; err != nil && !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
	stored, err := w.store.Holds().Holds(ctx)
	if left, _ := w.config.Holds.List(ctx, w.row(box)); err != nil || len(stored)+len(left) > 0 {
		t.Errorf("%d are stored and %d hold, %v", len(stored), len(left), err)
	}
}

// TestStatus_NamesEveryKindHoweverManyHoldsThereAre places so many that they would fill the list.
func TestStatus_NamesEveryKindHoweverManyHoldsThereAre(t *testing.T) {
	held(t, func(t *testing.T, w *world, _ *idle.Holds) {
		for i := range 16 {
			w.place(fmt.Sprint("job ", i), time.Hour)
			elapse(time.Second)
		}
		w.place("job 3", time.Hour)
		for i := range 20 {
			w.tracker.Begin(box, idle.Use{Kind: idle.Web, Detail: fmt.Sprint("GET /", i)})
		}
		others := []idle.Kind{idle.Stream, idle.Terminal, idle.Exec, idle.Files, idle.Work}
		for _, kind := range others {
			w.tracker.Touch(box, idle.Use{Kind: kind})
		}
		got := w.tracker.Status(box).Because
		counts := map[idle.Kind]int{}
		for _, r := range got {
			counts[r.Kind]++
		}
		want := map[idle.Kind]int{idle.Held: 9, idle.Web: 2}
		for _, kind := range others {
			want[kind] = 1
		}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("reasons of each kind differ (-want +got):\n%s", diff)
		}
		if end := w.began.Add(16*time.Second + time.Hour); !got[3].Until.Equal(end) { // of the later of two with the same words
			t.Errorf("job 3 lasts until %s, want %s", got[3].Until, end)
		}
		last := idle.Reason{Kind: idle.Held, Detail: "and 8 more holds", Since: w.began.Add(8 * time.Second), More: 8}
		if diff := cmp.Diff(last, got[8]); diff != "" || got[0].Detail != "job 0" || got[7].Detail != "job 7" {
			t.Errorf("holds %+v\n%s", got[:9], diff)
		}
	})
}

func TestStatus_CountsTheHoldsThatItDoesNotName(t *testing.T) {
	held(t, func(t *testing.T, w *world, _ *idle.Holds) {
		for i := range 9 {
			w.place(fmt.Sprint("job ", i), time.Hour)
			elapse(time.Second)
		}
		check := func(want string) {
			t.Helper()
			if got := w.tracker.Status(box).Because; len(got) != 9 || got[8].Detail != want {
				t.Errorf("%+v, want %q at last", got, want)
			}
		}
		check("and 1 more hold")
		w.place("job 2", time.Hour) // is named already
		check("and 1 more hold")
		w.place("job 8", time.Hour)
		check("and 2 more holds")
	})
}
