package snapshot_test

import (
	"context"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

func TestLend_KeepsItAndContinuesWhenTheCallerLeaves(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		ctx, leave := context.WithCancel(w.t.Context())
		held, left := make(chan struct{}), make(chan error, 1)
		go func() {
			left <- w.Lend(ctx, box, snap.ID, func(_ context.Context, n snapshot.Snapshot) error {
				<-held
				if n.ID != snap.ID || n.Origin.Spec.Env["KEY"] != "value" {
					t.Errorf("lent is %+v", n)
				}
				return fault.New(fault.Unavailable, "The disk is full.")
			})
		}()
		synctest.Wait()
		w.wantKind("delete", w.Delete(w.t.Context(), snap.ID), fault.Conflict, "made into a template")
		leave()
		if err := <-left; err != context.Canceled {
			t.Errorf("who leaves gets %v", err)
		}
		close(held)
		synctest.Wait()
		w.wantFailed("lend", "one: The disk is full.")
		if got := w.Problem(box.ID); got != "The disk is full." {
			t.Errorf("the problem is %q", got)
		}
		w.ok(w.Delete(w.t.Context(), snap.ID))
		none := func(context.Context, snapshot.Snapshot) error { t.Error("it was lent"); return nil }
		w.wantKind("lend what is gone", w.Lend(w.t.Context(), box, snap.ID, none), fault.NotFound, "")
		snap = w.take(box, snapshot.Ask{})
		w.ok(w.engine.RemoveImage(w.t.Context(), snap.ID))
		w.wantKind("lend what is not whole", w.Lend(w.t.Context(), box, snap.ID, none), fault.NotFound, "removed by another program")
	})
}
