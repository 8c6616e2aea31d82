package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

func TestBegin_TakesASandboxInEveryState(t *testing.T) {
	for name, bring := range map[string]func(w *world, box sandbox.Sandbox) error{
		"running": func(*world, sandbox.Sandbox) error { return nil },
		"frozen": func(w *world, box sandbox.Sandbox) error {
			_, err := w.m.Freeze(w.t.Context(), box.Ref(), func() bool { return true })
			return err
		},
		"stopped": func(w *world, box sandbox.Sandbox) error {
			_, err := w.m.Stop(w.t.Context(), box.Ref())
			return err
		},
		"asleep": func(w *world, box sandbox.Sandbox) error {
			_, err := w.m.Sleep(w.t.Context(), box.Ref(), func() bool { return true })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, nil, func(w *world, box sandbox.Sandbox) {
				w.ok(bring(w, box))
				box, err := w.m.Wait(w.t.Context(), box.Ref())
				w.ok(err)
				if string(box.State) != name {
					t.Fatalf("the sandbox is %s", box.State)
				}
				snap := w.take(box, snapshot.Ask{Name: " a name ", Note: "two\r\nlines"})
				if snap.State != snapshot.Ready || snap.Name != "a name" || snap.Note != "two\nlines" || snap.Kind != snapshot.Manual || !snap.Still ||
					snap.Stats.Files != 1 || snap.Image != sandboxtest.FakeImage(snap.ID) || snap.Origin.Name != "one" || snap.Origin.Spec.Env["KEY"] != "value" {
					t.Errorf("snapshot %+v", snap)
				}
				if now := w.now(box); now.State != box.State {
					t.Errorf("the sandbox is %s afterwards", now.State)
				}
				w.wantRows(snap.ID)
				w.wantHead(box, snap.ID)
				w.wantParts([]string{snap.ID}, []string{snap.ID})
				w.restart()
				if got, err := w.Snapshot(snap.ID); err != nil || got.Image != snap.Image {
					t.Errorf("after a restart: %+v, %v", got, err)
				}
				w.wantHead(box, snap.ID)
				w.wantParts([]string{snap.ID}, []string{snap.ID})
			})
		})
	}
}

func TestBegin_AFailureLeavesNothing(t *testing.T) {
	for _, op := range []sandboxtest.Op{sandboxtest.OpCommit, sandboxtest.OpCopyOut, sandboxtest.OpOpenHome, sandboxtest.OpFreeze} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			w.engine.Fail(op, fault.New(fault.Unavailable, "The disk is full."))
			snap, begun, err := w.Begin(w.t.Context(), box, snapshot.Ask{Name: "x"})
			if err != nil || !begun || snap.State == snapshot.Ready {
				t.Fatalf("%s: %+v, %t, %v", op, snap, begun, err)
			}
			_, err = w.Wait(w.t.Context(), snap.ID)
			w.wantKind("wait", err, fault.Unavailable, "The disk is full.")
			w.wantFailed(string(op), "one: The disk is full.")
			w.wantRows()
			w.wantHead(box, "")
			w.wantParts(nil, nil)
			list := w.List(func(snapshot.Snapshot) bool { return true })
			if len(list) != 1 || list[0].State != snapshot.Failed || list[0].Problem != "The disk is full." {
				t.Errorf("%s: listed %+v", op, list)
			}
			w.ok(w.Delete(w.t.Context(), snap.ID))
			if list := w.List(func(snapshot.Snapshot) bool { return true }); len(list) != 0 {
				t.Errorf("%s: listed after its deletion: %+v", op, list)
			}
			again := w.take(box, snapshot.Ask{Name: "x"})
			w.wantRows(again.ID)
			w.wantParts([]string{again.ID}, []string{again.ID})
		})
	}
}

func TestBegin_ACrashInTheMiddleLeavesNothing(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		first := w.take(box, snapshot.Ask{})
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		_, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		synctest.Wait() // the home is copied
		w.store.Fail("", errDown)
		w.engine.Delay(sandboxtest.OpCommit, 0)
		w.restart()
		w.wantRows(first.ID)
		w.wantHead(box, first.ID)
		w.wantParts([]string{first.ID}, []string{first.ID})
	})
}

func TestBegin_OneAtATime(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		a, begun, err := w.Begin(w.t.Context(), box, snapshot.Ask{Name: "a"})
		w.ok(err)
		same, again, err := w.Begin(w.t.Context(), box, snapshot.Ask{Name: "a"})
		if err != nil || !begun || again || same.ID != a.ID {
			t.Errorf("%+v, %t, %v", same, again, err)
		}
		_, _, err = w.Begin(w.t.Context(), box, snapshot.Ask{Name: "b"})
		w.wantKind("another", err, fault.Conflict, "being made")
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		if _, err := w.Wait(ctx, a.ID); err != context.Canceled {
			t.Errorf("wait of one who has left: %v", err)
		}
		snap, err := w.Wait(w.t.Context(), a.ID)
		if err != nil || snap.State != snapshot.Ready {
			t.Errorf("%+v, %v", snap, err)
		}
	})
}

func TestTake_IsAfterOneThatIsMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		made, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		taken, err := w.Take(w.t.Context(), box, snapshot.Ask{Kind: snapshot.Automatic, Note: "later"})
		w.ok(err)
		if taken.State != snapshot.Ready || taken.Note != "later" {
			t.Errorf("taken %+v", taken)
		}
		w.wantRows(made.ID, taken.ID)
		again, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if _, err := w.Take(ctx, box, snapshot.Ask{Note: "not waited for"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its caller has left: %v", err)
		}
		_, err = w.Wait(w.t.Context(), again.ID)
		w.ok(err)
	})
}

func TestBegin_RefusesWhatIsNoName(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		for field, ask := range map[string]snapshot.Ask{
			"name": {Name: strings.Repeat("é", snapshot.MaxName+1)}, "name ": {Name: "a\nb"}, "name  ": {Name: "a\xff"},
			"note": {Note: strings.Repeat("é", snapshot.MaxNote+1)}, "note ": {Note: "a\x1b[m"}, "note  ": {Note: "\xff"},
			"kind": {Kind: snapshot.Safety},
		} {
			_, _, err := w.Begin(w.t.Context(), box, ask)
			if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != strings.TrimSpace(field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		snap := w.take(box, snapshot.Ask{Name: strings.Repeat("é", snapshot.MaxName), Note: strings.Repeat("日", snapshot.MaxNote)})
		w.wantRows(snap.ID)
		_, err := w.Edit(w.t.Context(), snap.ID, "a\x00", "")
		w.wantKind("edit", err, fault.Invalid, "")
	})
}

func TestBegin_ASandboxHasSoMany(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		var first snapshot.Snapshot
		for range 6 {
			first = w.take(box, snapshot.Ask{})
		}
		_, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.wantKind("the seventh", err, fault.Conflict, "Delete some")
		other := w.create("two")
		w.take(other, snapshot.Ask{})
		if _, err := w.Restore(w.t.Context(), box, first.ID); err != nil {
			t.Errorf("restore: %v", err)
		}
		w.ok(w.Delete(w.t.Context(), first.ID))
		w.ok(w.Delete(w.t.Context(), w.List(func(s snapshot.Snapshot) bool { return s.Kind == snapshot.Safety })[0].ID))
		w.take(box, snapshot.Ask{})
	})
}

func TestBegin_ADownStoreLeavesTheTruth(t *testing.T) {
	for _, method := range []string{"Insert", "Update", "SetHead"} {
		within(t, nil, func(w *world, box sandbox.Sandbox) {
			w.store.Fail(method, errDown)
			if method == "Update" {
				w.store.Fail("Delete", errDown)
			}
			snap, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
			if err == nil {
				snap, err = w.Wait(w.t.Context(), snap.ID)
			}
			w.settle()
			w.store.Fail(method, nil)
			w.store.Fail("Delete", nil)
			if method == "SetHead" {
				w.ok(err)
				w.settle()
				w.wantRows(snap.ID)
				w.wantHead(box, snap.ID)
				w.wantParts([]string{snap.ID}, []string{snap.ID})
				return
			}
			w.wantKind(method, err, fault.Unavailable, "It is down.")
			w.settle()
			w.wantRows()
			w.wantHead(box, "")
			w.wantParts(nil, nil)
			w.take(box, snapshot.Ask{})
		})
	}
}

func TestDelete_OneThatIsMadeIsForgotten(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		changes := w.Subscribe()
		defer changes.Close()
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		snap, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		synctest.Wait()
		waited := make(chan error, 1)
		go func() {
			_, err := w.Wait(w.t.Context(), snap.ID)
			waited <- err
		}()
		synctest.Wait()
		w.ok(w.Delete(w.t.Context(), snap.ID))
		_, err = w.Snapshot(snap.ID)
		w.wantKind("find", err, fault.NotFound, "")
		w.wantKind("wait", <-waited, fault.Gone, "cancelled")
		w.wantFailed("cancelled")
		w.wantRows()
		w.wantParts(nil, nil)
		if now := w.now(box); now.State != sandbox.Running {
			t.Errorf("the sandbox is %s", now.State)
		}
		if c := <-changes.C; c.Deleted || c.Snapshot.ID != snap.ID {
			t.Errorf("first change %+v", c)
		}
		if c := <-changes.C; !c.Deleted || len(changes.C) != 0 {
			t.Errorf("second change %+v, and %d more", c, len(changes.C))
		}
	})
}

func TestRun_CutsOffWhatIsMade(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		w.engine.Delay(sandboxtest.OpCommit, time.Minute)
		snap, _, err := w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.ok(err)
		synctest.Wait()
		began := time.Now()
		w.end()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end takes %s", took)
		}
		_, err = w.Wait(w.t.Context(), snap.ID)
		w.wantKind("wait", err, fault.Unavailable, "shutting down")
		_, _, err = w.Begin(w.t.Context(), box, snapshot.Ask{})
		w.wantKind("begin", err, fault.Unavailable, "shutting down")
		_, err = w.Clone(w.t.Context(), box, snapshot.CloneAsk{Count: 1})
		w.wantKind("clone", err, fault.Unavailable, "shutting down")
		w.start()
		w.wantRows()
		w.wantParts(nil, nil)
	})
}
