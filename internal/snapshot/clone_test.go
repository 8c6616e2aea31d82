package snapshot_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

func (w *world) delete(box sandbox.Sandbox) {
	w.t.Helper()
	_, err := w.m.Delete(w.t.Context(), box.Ref())
	w.ok(err)
	if _, err := w.m.Wait(w.t.Context(), box.Ref()); !fault.Is(err, fault.Gone) {
		w.t.Errorf("after the deletion: %v", err)
	}
	w.ok(w.Forget(w.t.Context(), box.ID))
}

func TestClone_AsItIsNow(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		own := w.take(box, snapshot.Ask{})
		w.put(box, "second")
		clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "bob", Name: "copy", Count: 3})
		w.ok(err)
		if len(clones) != 3 {
			t.Fatalf("%d clones", len(clones))
		}
		image := clones[0].Root
		for i, c := range clones {
			if want := []string{"copy-1", "copy-2", "copy-3"}[i]; c.Name != want || c.Owner != "bob" || c.Label != "" || c.Spec.Env["KEY"] != "value" ||
				c.Spec.Template != "base" || c.Root != image || c.ClonedFrom != "one" || c.State != sandbox.Running {
				t.Errorf("clone %d: %+v", i, c)
			}
			w.wantHome(c, "second")
			w.wantHead(c, "")
		}
		w.wantHead(box, own.ID)
		w.wantRows(own.ID)
		passing := image[len(sandboxtest.FakeImage("")):]
		w.wantParts([]string{own.ID}, []string{own.ID, passing})
		w.delete(clones[0])
		w.delete(clones[1])
		w.wantParts([]string{own.ID}, []string{own.ID, passing})
		w.restart()
		w.wantParts([]string{own.ID}, []string{own.ID, passing})
		w.delete(clones[2])
		w.wantParts([]string{own.ID}, []string{own.ID})
	})
}

func TestClone_OfASnapshot(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{Name: "good"})
		w.put(box, "second")
		clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Count: 2, Snapshot: snap.ID})
		w.ok(err)
		for _, c := range clones {
			w.wantHome(c, "first")
			w.wantHead(c, snap.ID)
			if c.Name == "" || c.Root != snap.Image {
				t.Errorf("clone %+v", c)
			}
		}
		of := w.take(clones[0], snapshot.Ask{})
		if of.Parent != snap.ID {
			t.Errorf("its own snapshot comes after %q", of.Parent)
		}
		w.delete(box)
		w.wantRows(of.ID)
		if got, err := w.Snapshot(of.ID); err != nil || got.Parent != "" {
			t.Errorf("its own snapshot: %+v, %v", got, err)
		}
		w.wantHead(clones[0], of.ID)
		w.wantHead(clones[1], "")
		w.wantParts([]string{of.ID}, []string{of.ID, snap.ID})
	})
}

func TestClone_GivesThoseThatCouldBeMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		taken := w.create("copy-2")
		clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Name: "copy", Count: 3})
		w.wantKind("clone", err, fault.Conflict, "1 of 3 clones could not be made")
		if len(clones) != 2 || clones[0].Name != "copy-1" || clones[1].Name != "copy-3" {
			t.Errorf("clones %+v", clones)
		}
		clones, err = w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Name: taken.Name, Count: 1})
		w.wantKind("clone", err, fault.Conflict, "")
		if len(clones) != 0 {
			t.Errorf("clones %+v", clones)
		}
		w.wantHome(taken, "first")
		w.wantRows()
		w.wantParts(nil, []string{w.rootOf("copy-1")})
	})
}

// rootOf gives the id of the snapshot that a sandbox's container is made from.
func (w *world) rootOf(name string) string {
	w.t.Helper()
	box, err := w.m.Sandbox(w.t.Context(), name)
	w.ok(err)
	return box.Root[len(sandboxtest.FakeImage("")):]
}

func TestClone_RefusesBeforeAnythingIsDone(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		for _, c := range []struct {
			field string
			ask   snapshot.CloneAsk
		}{
			{"count", snapshot.CloneAsk{}}, {"count", snapshot.CloneAsk{Count: snapshot.MaxClones + 1}}, {"count", snapshot.CloneAsk{Count: -1}},
			{"name", snapshot.CloneAsk{Count: 1, Name: "Bad"}}, {"name", snapshot.CloneAsk{Count: 2, Name: "a-"}},
			{"name", snapshot.CloneAsk{Count: 10, Name: "a23456789012345678901234567890123456789012345678901234567890-1"}},
		} {
			_, err := w.Clone(w.t.Context(), box, c.ask)
			if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field {
				t.Errorf("%+v: %v", c.ask, err)
			}
		}
		if n := w.engine.Calls(sandboxtest.OpCommit); n != 0 {
			t.Errorf("%d commits", n)
		}
	})
}

func TestClone_AFailureLeavesNothing(t *testing.T) {
	for _, op := range []sandboxtest.Op{sandboxtest.OpCommit, sandboxtest.OpCopyOut, sandboxtest.OpCopyIn, sandboxtest.OpCreate} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			w.engine.Fail(op, fault.New(fault.Unavailable, "The disk is full."))
			clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Name: "copy", Count: 1})
			w.wantKind(string(op), err, fault.Unavailable, "The disk is full.")
			w.wantRows()
			w.wantParts(nil, nil)
			if _, err := w.m.Sandbox(w.t.Context(), "copy"); len(clones) != 0 || !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: a clone is left: %+v, %v", op, clones, err)
			}
			if problem := w.Problem(box.ID); (problem != "") != (op == sandboxtest.OpCommit || op == sandboxtest.OpCopyOut) {
				t.Errorf("%s: problem %q", op, problem)
			}
			if list := w.List(func(snapshot.Snapshot) bool { return true }); len(list) != 0 {
				t.Errorf("%s: listed %+v", op, list)
			}
		})
	}
}

func TestClone_TheDeletedSandboxStaysUntilTheyAreMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap, unused := w.take(box, snapshot.Ask{}), w.take(box, snapshot.Ask{})
		w.engine.Delay(sandboxtest.OpCopyIn, time.Minute)
		var clones []sandbox.Sandbox
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			clones, err = w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Count: 4, Snapshot: snap.ID})
		}()
		synctest.Wait()
		w.delete(box)
		w.wantKind("delete", w.Delete(w.t.Context(), snap.ID), fault.Conflict, "cloned")
		w.wantRows(snap.ID)
		w.wantParts([]string{snap.ID}, []string{snap.ID})
		if slices.Contains([]string{snap.ID}, unused.ID) {
			t.Error("two snapshots have one id")
		}
		<-done
		w.ok(err)
		for _, c := range clones {
			w.wantHome(c, "first")
		}
		w.settle()
		w.wantRows()
		w.wantParts(nil, []string{snap.ID})
	})
}

func TestClone_ADownStoreLeavesTheTruth(t *testing.T) {
	for _, method := range []string{"Insert", "Update", "Delete"} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			w.store.Fail(method, errDown)
			clones, err := w.Clone(w.t.Context(), box, snapshot.CloneAsk{Owner: "ann", Count: 1})
			w.settle()
			w.store.Fail(method, nil)
			w.settle()
			w.wantRows()
			if method == "Delete" {
				w.ok(err)
				w.wantParts(nil, []string{w.rootOf(clones[0].Name)})
				return
			}
			w.wantKind(method, err, fault.Unavailable, "It is down.")
			w.wantParts(nil, nil)
		})
	}
}
