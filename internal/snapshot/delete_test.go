package snapshot_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

func TestDelete_ThoseThatCameAfterGetItsParent(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		a, b, c := w.take(box, snapshot.Ask{}), w.take(box, snapshot.Ask{}), w.take(box, snapshot.Ask{})
		if a.Parent != "" || b.Parent != a.ID || c.Parent != b.ID {
			t.Errorf("parents %q, %q, %q", a.Parent, b.Parent, c.Parent)
		}
		w.ok(w.Delete(w.t.Context(), b.ID))
		w.wantRows(a.ID, c.ID)
		if got, err := w.Snapshot(c.ID); err != nil || got.Parent != a.ID {
			t.Errorf("the third: %+v, %v", got, err)
		}
		w.wantHead(box, c.ID)
		w.ok(w.Delete(w.t.Context(), c.ID))
		w.wantHead(box, a.ID)
		w.wantParts([]string{a.ID}, []string{a.ID})
		w.ok(w.Delete(w.t.Context(), a.ID))
		w.wantHead(box, "")
		w.wantParts(nil, nil)
		w.wantKind("again", w.Delete(w.t.Context(), a.ID), fault.NotFound, a.ID)
	})
}

func TestDelete_TheImageStaysWhileASandboxIsMadeFromIt(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		safety, err := w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		w.ok(w.Delete(w.t.Context(), snap.ID))
		w.wantParts([]string{safety.ID}, []string{safety.ID, snap.ID})
		last, err := w.Restore(w.t.Context(), box, safety.ID)
		w.ok(err)
		w.wantParts([]string{safety.ID, last.ID}, []string{safety.ID, last.ID})
	})
}

func TestDelete_ADownStoreChangesNothing(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		w.store.Fail("Delete", errDown)
		w.wantKind("delete", w.Delete(w.t.Context(), snap.ID), fault.Unavailable, "It is down.")
		w.wantRows(snap.ID)
		w.wantParts([]string{snap.ID}, []string{snap.ID})
		w.store.Fail("Delete", nil)
		w.ok(w.Delete(w.t.Context(), snap.ID))
		w.wantParts(nil, nil)
	})
}

func TestRun_TriesAgainUntilTheEngineAnswers(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		back := w.engine.Lose()
		w.ok(w.Delete(w.t.Context(), snap.ID))
		w.wantRows()
		<-time.After(10 * time.Minute)
		back()
		w.wantParts(nil, nil)
	})
}

func TestRun_ASandboxThatIsGoneTakesItsSnapshots(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.take(box, snapshot.Ask{})
		other := w.create("two")
		kept := w.take(other, snapshot.Ask{})
		_, err := w.m.Delete(w.t.Context(), box.Ref())
		w.ok(err)
		w.settle()
		w.restart() // nobody has called Forget
		w.wantParts([]string{kept.ID}, []string{kept.ID})
		w.wantRows(kept.ID)
		w.wantHead(box, "")
		w.wantHead(other, kept.ID)
	})
}

func TestForget_CancelsWhatIsMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.take(box, snapshot.Ask{})
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		_, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		synctest.Wait()
		w.delete(box)
		w.settle()
		w.wantRows()
		w.wantHead(box, "")
		w.wantParts(nil, nil)
		if list := w.List(func(snapshot.Snapshot) bool { return true }); len(list) != 0 {
			t.Errorf("listed %+v", list)
		}
	})
}

func TestRetention_AutomaticOnesGoWhenTheyAreMany(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		automatic := snapshot.Ask{Kind: snapshot.Automatic}
		manual := w.take(box, snapshot.Ask{})
		var ids []string
		for range 5 {
			<-time.After(time.Minute)
			ids = append(ids, w.take(box, automatic).ID)
		}
		w.settle()
		w.wantRows(append(ids[2:], manual.ID)...)
		named, err := w.Edit(w.t.Context(), ids[2], "keep this", "")
		if err != nil || named.Kind != snapshot.Manual || named.Name != "keep this" {
			t.Errorf("named: %+v, %v", named, err)
		}
		noted, err := w.Edit(w.t.Context(), ids[3], "", "a note")
		if err != nil || noted.Kind != snapshot.Automatic || noted.Note != "a note" {
			t.Errorf("noted: %+v, %v", noted, err)
		}
		w.restart()
		more := w.take(box, automatic).ID
		w.settle()
		w.wantRows(ids[2], ids[3], ids[4], more, manual.ID)
		<-time.After(26 * time.Hour)
		w.wantRows(ids[2], manual.ID)
		w.wantParts([]string{ids[2], manual.ID}, []string{ids[2], manual.ID})
	})
}

func TestHold_KeepsASnapshotUntilItIsReleased(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		automatic := snapshot.Ask{Kind: snapshot.Automatic}
		held := w.take(box, automatic).ID
		release, err := w.Hold(box, held)
		w.ok(err)
		var ids []string
		for range 4 {
			<-time.After(time.Minute)
			ids = append(ids, w.take(box, automatic).ID)
		}
		w.settle()
		w.wantRows(append(ids[1:], held)...)
		release()
		w.settle()
		w.wantRows(ids[1:]...)
		if _, err := w.Hold(box, held); !fault.Is(err, fault.NotFound) {
			t.Errorf("hold one that is gone: %v", err)
		}
	})
}

func TestRetention_TenOfThoseThatRestoresTakeAreKept(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		var ids []string
		for range 12 {
			<-time.After(time.Minute)
			safety, err := w.Restore(w.t.Context(), box, snap.ID)
			w.ok(err)
			ids = append(ids, safety.ID)
		}
		w.settle()
		w.wantRows(append(ids[2:], snap.ID)...)
		<-time.After(30 * 24 * time.Hour)
		w.wantRows(append(ids[2:], snap.ID)...)
	})
}

func TestRetention_TheOneThatTheSandboxIsAsStays(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		snap := w.take(box, snapshot.Ask{})
		oldest, err := w.Restore(w.t.Context(), box, snap.ID)
		w.ok(err)
		for range 9 {
			<-time.After(time.Minute)
			_, err := w.Restore(w.t.Context(), box, snap.ID)
			w.ok(err)
		}
		w.put(box, "last")
		_, err = w.Restore(w.t.Context(), box, oldest.ID) // which takes an eleventh
		w.ok(err)
		w.wantHome(box, "first")
		w.settle()
		if _, err := w.Snapshot(oldest.ID); err != nil {
			t.Errorf("the oldest: %v", err)
		}
		undo, ok := w.Undo(box.ID)
		if !ok {
			t.Fatal("there is nothing to undo")
		}
		_, err = w.Restore(w.t.Context(), box, undo.ID)
		w.ok(err)
		w.wantHome(box, "last")
		w.settle()
		if _, err := w.Snapshot(oldest.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("the oldest is there: %v", err)
		}
	})
}

// TestSweep_KeepsTheSnapshotsOfASandboxThatOnlyItsRowIsLostOf plays a database that was damaged: the sandbox can be adopted.
func TestSweep_KeepsTheSnapshotsOfASandboxThatOnlyItsRowIsLostOf(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		b := w.take(box, snapshot.Ask{})
		w.ok(w.boxes.Delete(w.t.Context(), box.ID))
		w.restart()
		w.settle()
		w.wantRows(b.ID)
		w.wantParts([]string{b.ID}, []string{b.ID})
		w.ok(w.engine.Remove(w.t.Context(), box.ID))
		w.restart()
		w.settle()
		w.wantRows()
		w.wantParts(nil, nil)
	})
}
