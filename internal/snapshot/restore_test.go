package snapshot_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

// put changes a home.
func (w *world) put(box sandbox.Sandbox, content string) {
	w.engine.PutHome(box.ID, map[string]string{"file": content})
}

func TestRestore_MakesItAsItWasAndBack(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{Name: "good"})
		w.put(box, "second")
		safety, err := w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		w.wantHome(box, "first")
		w.wantHead(box, snap.ID)
		if now := w.now(box); now.State != sandbox.Running || now.Root != snap.Image || w.Restoring(box.ID) || w.Problem(box.ID) != "" {
			t.Errorf("the sandbox is %+v", now)
		}
		if safety.Kind != snapshot.Safety || safety.Parent != snap.ID {
			t.Errorf("taken before: %+v", safety)
		}
		w.restart()
		undo, ok := w.Undo(box.ID)
		if !ok || undo.ID != safety.ID {
			t.Fatalf("undo is %+v, %t", undo, ok)
		}
		second, err := w.Restore(w.t.Context(), box, undo.ID)
		w.ok(err)
		w.wantHome(box, "second")
		w.wantHead(box, safety.ID)
		if undo, ok := w.Undo(box.ID); !ok || undo.ID != second.ID {
			t.Errorf("undo of the undo is %+v, %t", undo, ok)
		}
		w.wantRows(snap.ID, safety.ID, second.ID)
		w.wantParts([]string{snap.ID, safety.ID, second.ID}, []string{snap.ID, safety.ID, second.ID})
		w.ok(w.Delete(w.t.Context(), second.ID))
		if undo, ok := w.Undo(box.ID); ok {
			t.Errorf("a deleted one is offered: %+v", undo)
		}
	})
}

func TestRestore_AFailureChangesNothing(t *testing.T) {
	for _, op := range []sandboxtest.Op{sandboxtest.OpCopyOut, sandboxtest.OpCommit, sandboxtest.OpCopyIn} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			snap := w.take(box, snapshot.Ask{})
			w.put(box, "second")
			w.engine.Fail(op, fault.New(fault.Unavailable, "The disk is full."))
			safety, err := w.Restore(w.t.Context(), box, snap.ID)
			w.wantKind("restore", err, fault.Unavailable, "The disk is full.")
			w.wantFailed("a restore whose caller waits")
			if w.Problem(box.ID) == "" || w.Restoring(box.ID) {
				t.Errorf("%s: problem %q, restoring %t", op, w.Problem(box.ID), w.Restoring(box.ID))
			}
			w.wantHome(box, "second")
			if now := w.now(box); now.State != sandbox.Running || now.Root != "" {
				t.Errorf("%s: the sandbox is %+v", op, now)
			}
			if _, ok := w.Undo(box.ID); ok {
				t.Errorf("%s: there is something to undo", op)
			}
			if op == sandboxtest.OpCopyIn { // it is as it was taken just now
				w.wantHead(box, safety.ID)
				w.wantRows(snap.ID, safety.ID)
			} else {
				w.wantHead(box, snap.ID)
				w.wantRows(snap.ID)
				w.wantParts([]string{snap.ID}, []string{snap.ID})
			}
			w.ok(w.Delete(w.t.Context(), snap.ID))
			snap = w.take(box, snapshot.Ask{})
			if _, err := w.Restore(w.t.Context(), box, snap.ID); err != nil || w.Problem(box.ID) != "" {
				t.Errorf("%s: again: %v, problem %q", op, err, w.Problem(box.ID))
			}
		})
	}
}

func TestRestore_AFailureIsToldOfWhenItsCallerHasLeft(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		for what, ask := range map[string]func(ctx context.Context) error{
			"restore": func(ctx context.Context) error { _, err := w.Restore(ctx, box, snap.ID); return err },
			"clone": func(ctx context.Context) error {
				_, err := w.Clone(ctx, box, snapshot.CloneAsk{Count: 1, Owner: "ann", Snapshot: snap.ID})
				return err
			},
		} {
			w.engine.Fail(sandboxtest.OpCopyIn, fault.New(fault.Unavailable, "The disk is full."))
			w.engine.Delay(sandboxtest.OpCopyIn, time.Minute)
			ctx, leave := context.WithTimeout(w.t.Context(), time.Second)
			if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: who leaves gets %v", what, err)
			}
			leave()
			<-time.After(5 * time.Minute)
			w.wantFailed(what, "one: The disk is full.")
			if got := w.Problem(box.ID); got != "The disk is full." {
				t.Errorf("%s: the problem is %q", what, got)
			}
		}
	})
}

func TestRestore_OneWithoutItsContainerIsLeftAlone(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		w.put(box, "second")
		w.engine.Destroy(box.ID)
		w.settle()
		box = w.now(box)
		if box.State != sandbox.Failed {
			t.Fatalf("the sandbox is %s", box.State)
		}
		_, err := w.Restore(w.t.Context(), box, snap.ID)
		w.wantKind("restore", err, fault.NotFound, "Start the sandbox, or make a clone")
		w.wantHome(box, "second")
		_, err = w.m.Start(w.t.Context(), box.Ref())
		w.ok(err)
		box, err = w.m.Wait(w.t.Context(), box.Ref())
		w.ok(err)
		_, err = w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		w.wantHome(box, "first")
	})
}

func TestRestore_OneAtATime(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap, other := w.take(box, snapshot.Ask{}), w.take(box, snapshot.Ask{})
		w.put(box, "second")
		w.engine.Delay(sandboxtest.OpCopyIn, time.Minute)
		ctx, leave := context.WithCancel(w.t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := w.Restore(ctx, box, snap.ID)
			left <- err
		}()
		synctest.Wait()
		if !w.Restoring(box.ID) {
			t.Error("it does not say that it is restored")
		}
		_, err := w.Restore(w.t.Context(), box, other.ID)
		w.wantKind("another restore", err, fault.Conflict, "already")
		_, _, err = w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.wantKind("begin", err, fault.Conflict, "being restored")
		w.wantKind("delete", w.Delete(w.t.Context(), snap.ID), fault.Conflict, "Wait for that")
		leave()
		if err := <-left; err != context.Canceled {
			t.Errorf("the caller who has left is told %v", err)
		}
		<-time.After(2 * time.Minute)
		w.wantHome(box, "first")
		w.wantHead(box, snap.ID)
		w.ok(w.Delete(w.t.Context(), snap.ID))
	})
}

func TestRestore_WaitsForASnapshotThatIsMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		w.put(box, "second")
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		made, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{Kind: snapshot.Automatic})
		w.ok(err)
		safety, err := w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		w.wantHome(box, "first")
		w.wantRows(snap.ID, made.ID, safety.ID)
	})
}

func TestRestore_OnlyItsOwnAndReady(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		other := w.create("two")
		snap := w.take(other, snapshot.Ask{})
		_, err := w.Restore(w.t.Context(), box, snap.ID)
		w.wantKind("another's", err, fault.NotFound, snap.ID)
		_, err = w.Clone(w.t.Context(), box, snapshot.CloneAsk{Count: 1, Snapshot: snap.ID})
		w.wantKind("clone of another's", err, fault.NotFound, snap.ID)
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		made, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		_, err = w.Restore(w.t.Context(), box, made.ID)
		w.wantKind("one that is made", err, fault.Conflict, "not ready")
	})
}

func TestRestore_ACrashIsFinishedByTheNextStart(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		w.put(box, "second")
		w.engine.Delay(sandboxtest.OpCopyIn, time.Minute)
		go func() { _, _ = w.Restore(w.t.Context(), box, snap.ID) }()
		<-time.After(30 * time.Second)
		to := w.now(box).Revert
		if to.Snapshot != snap.ID {
			t.Fatalf("it is to be as %+v", to)
		}
		w.endManager() // which leaves all to its next start
		synctest.Wait()
		w.end()
		safety := w.List(func(s snapshot.Snapshot) bool { return s.Kind == snapshot.Safety })[0]
		w.engine.Delay(sandboxtest.OpCopyIn, 0)
		w.start()
		w.settle()
		if now := w.now(box); now.State != sandbox.Running || now.Root != snap.Image {
			t.Errorf("the sandbox is %+v", now)
		}
		w.wantHome(box, "first")
		w.wantHead(box, snap.ID)
		if undo, ok := w.Undo(box.ID); !ok || undo.ID != safety.ID {
			t.Errorf("undo is %+v, %t", undo, ok)
		}
	})
}

func TestRestore_ADownStoreLeavesTheTruth(t *testing.T) {
	for _, method := range []string{"Insert", "Update", "SetHead"} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			snap := w.take(box, snapshot.Ask{})
			w.put(box, "second")
			w.store.Fail(method, errDown)
			_, err := w.Restore(w.t.Context(), box, snap.ID)
			w.store.Fail(method, nil)
			w.settle()
			if method == "SetHead" {
				w.ok(err)
				w.wantHome(box, "first")
				w.wantHead(box, snap.ID)
				return
			}
			w.wantKind(method, err, fault.Unavailable, "Nothing was restored")
			w.wantHome(box, "second")
			w.wantHead(box, snap.ID)
			w.wantRows(snap.ID)
			w.wantParts([]string{snap.ID}, []string{snap.ID})
		})
	}
}

// TestRestore_OfWhatTheEngineHasLostTouchesNothing has a volume or an image removed by hand.
func TestRestore_OfWhatTheEngineHasLostTouchesNothing(t *testing.T) {
	for what, remove := range map[string]func(w *world, id string) error{
		"the copy":  func(w *world, id string) error { return w.engine.RemoveCopy(w.t.Context(), id) },
		"the image": func(w *world, id string) error { return w.engine.RemoveImage(w.t.Context(), id) },
	} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			snap := w.take(box, snapshot.Ask{})
			w.ok(remove(w, snap.ID))
			w.put(box, "second")
			stops := w.engine.Calls(sandboxtest.OpStop)
			_, err := w.Restore(w.t.Context(), box, snap.ID)
			w.wantKind(what, err, fault.NotFound, "removed by another program")
			_, err = w.Clone(w.t.Context(), box, snapshot.CloneAsk{Count: 1, Snapshot: snap.ID})
			w.wantKind(what, err, fault.NotFound, "removed by another program")
			w.wantHome(box, "second")
			w.wantRows(snap.ID)
			if w.engine.Calls(sandboxtest.OpStop) != stops {
				t.Errorf("without %s it was stopped", what)
			}
			w.ok(w.Delete(w.t.Context(), snap.ID)) // which is in no use
		})
	}
}
