package update_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/update"
)

func TestAll_UpdatesTheLeastUsedFirstAndKeepsTheHomes(t *testing.T) {
	within(t, func(w *world) {
		a, b, c := w.create("a", 2), w.create("b", 1), w.create("c", 3)
		_, err := w.m.Stop(w.t.Context(), c.Ref())
		w.ok(err)
		if older, all, err := w.Older(w.t.Context(), "base"); err != nil || len(older) != 0 || all != 3 {
			w.t.Errorf("before: %v of %d, %v", older, all, err)
		}
		if _, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1}); !fault.Is(err, fault.Conflict) {
			w.t.Errorf("nothing to do: %v", err)
		}
		w.template.change(func() { w.template.tag = "2" })
		r := w.all(update.Ask{})
		if how(r) != "done: b updated, a updated, c updated" || r.Image != "image:2" || r.By != "root" {
			w.t.Errorf("%s, %+v", how(r), r)
		}
		for _, box := range []sandbox.Sandbox{a, b, c} {
			files, _ := w.engine.HomeFiles(box.ID)
			if w.image(box) != "image:2" || files["file"] != box.Name {
				w.t.Errorf("%s: image %s, home %v", box.Name, w.image(box), files)
			}
			if undo, ok := w.shots.Undo(box.ID); !ok || undo.ID == "" {
				w.t.Errorf("%s: nothing undoes it", box.Name)
			}
		}
		if w.now(a).State != sandbox.Running || w.now(c).State != sandbox.Stopped {
			w.t.Errorf("a is %s, c is %s", w.now(a).State, w.now(c).State)
		}
		undo, _ := w.shots.Undo(a.ID)
		_, err = w.shots.Restore(w.t.Context(), w.now(a), undo.ID)
		w.ok(err)
		if st := w.m.Standing(w.now(a)); !st.Older || st.Image != "image:1" {
			w.t.Errorf("undone: %+v", st)
		}
		w.restart()
		if last, err := w.Last("base"); err != nil || last.ID != r.ID || how(last) != how(r) {
			w.t.Errorf("after a restart: %+v, %v", last, err)
		}
	})
}

func TestAll_TheRunThatItGivesDoesNotChange(t *testing.T) {
	within(t, func(w *world) {
		w.create("a", 1)
		w.template.change(func() { w.template.tag = "2" })
		begun, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
		w.ok(err)
		ended, err := w.Wait(w.t.Context(), begun.ID)
		w.ok(err)
		if how(begun) != "running: a waiting" || how(ended) != "done: a updated" {
			w.t.Errorf("begun: %s, ended: %s", how(begun), how(ended))
		}
	})
}

func TestAll_StopsAfterTheFirstFailureAndPutsItBack(t *testing.T) {
	within(t, func(w *world) {
		w.create("a", 1)
		b, c := w.create("b", 2), w.create("c", 3)
		w.template.change(func() { w.template.tag, w.template.sick["b"] = "2", true })
		r := w.all(update.Ask{})
		i := r.Items[1]
		if how(r) != "stopped: a updated, b failed, c skipped" || !i.TakenBack || !strings.Contains(i.Problem, "The service web does not work on the new image: It answers 500.") ||
			len(i.Log) != 1 || i.Log[0] != "the last line of web" || i.Safety == "" {
			w.t.Errorf("%s, %+v", how(r), r)
		}
		if w.now(b).State != sandbox.Running || !w.m.Standing(w.now(b)).Older || w.image(c) != "image:1" {
			w.t.Errorf("b is %+v, c has %s", w.now(b), w.image(c))
		}
		if r, i, ok := w.LastOf(b.ID); !ok || i.State != update.Broken || r.ID == "" {
			w.t.Errorf("last of b: %+v", i)
		}
		if r := w.all(update.Ask{MaxFailures: 2}); how(r) != "done: b failed, c updated" {
			w.t.Errorf("with two failures allowed: %s", how(r))
		}
	})
}

func TestAll_LeavesAloneWhatIsInUseAndTriesItOnceMore(t *testing.T) {
	within(t, func(w *world) {
		a, b := w.create("a", 1), w.create("b", 2)
		w.template.change(func() { w.template.tag = "2" })
		held := w.tracker.Begin(a.ID, idle.Use{Kind: idle.Exec, Detail: "make test"})
		w.tracker.Begin(b.ID, idle.Use{Kind: idle.Terminal, Detail: "main"})
		c := w.create("c", 0)
		w.engine.PutHome(c.ID, nil)
		r := w.all(update.Ask{MaxFailures: 3})
		if how(r) != "done: a in-use, b in-use" || r.Items[0].Problem != "command make test" {
			w.t.Errorf("%s, %+v", how(r), r.Items)
		}
		_, err := w.One(w.t.Context(), a, "ann", false)
		if !errors.Is(err, sandbox.ErrInUse) || !strings.Contains(fault.Message(err), "command make test") {
			w.t.Error(err)
		}
		r, err = w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
		w.ok(err)
		held.End()
		if r, err = w.Wait(w.t.Context(), r.ID); err != nil || r.Items[1].State != update.InUse || r.Items[0].State == update.InUse {
			w.t.Errorf("%s, %v", how(r), err)
		}
		if r := w.all(update.Ask{Force: true}); how(r) != "done: b updated" {
			w.t.Errorf("told to: %s", how(r))
		}
	})
}

func TestAll_CancelEndsItAfterTheOneUnderWay(t *testing.T) {
	within(t, func(w *world) {
		w.create("a", 1)
		w.create("b", 2)
		w.template.change(func() { w.template.tag = "2" })
		w.engine.Delay(sandboxtest.OpRecreate, time.Minute)
		r, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
		w.ok(err)
		<-time.After(10 * time.Second)
		w.ok(w.Cancel(r.ID))
		if r, err = w.Wait(w.t.Context(), r.ID); err != nil || how(r) != "cancelled: a updated, b skipped" {
			w.t.Errorf("%s, %v", how(r), err)
		}
		if err := w.Cancel(r.ID); !fault.Is(err, fault.Conflict) {
			w.t.Errorf("again: %v", err)
		}
		w.template.change(func() { w.template.tag, w.template.takes = "3", time.Hour })
		r, err = w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
		w.ok(err)
		synctest.Wait()
		w.ok(w.Cancel(r.ID))
		if r, err = w.Wait(w.t.Context(), r.ID); err != nil || how(r) != "cancelled: a skipped, b skipped" {
			w.t.Errorf("while the image is built: %s, %v", how(r), err)
		}
	})
}

// TestAll_HoldsToItsImage has the template be changed, to one that cannot be built, while the first of two is updated.
func TestAll_HoldsToItsImage(t *testing.T) {
	within(t, func(w *world) {
		a, b := w.create("a", 1), w.create("b", 2)
		w.template.change(func() { w.template.tag = "2" })
		w.engine.Delay(sandboxtest.OpStop, time.Minute)
		r, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
		w.ok(err)
		<-time.After(10 * time.Second)
		w.template.change(func() { w.template.tag, w.template.built = "3", fault.New(fault.Invalid, "Step 4 failed.") })
		r, err = w.Wait(w.t.Context(), r.ID)
		if err != nil || how(r) != "done: a updated, b updated" || w.image(a) != "image:2" || w.image(b) != "image:2" {
			w.t.Errorf("%s with %s and %s, %v", how(r), w.image(a), w.image(b), err)
		}
	})
}

func TestAll_SaysThatOneIsNotPutBackYet(t *testing.T) {
	within(t, func(w *world) {
		a := w.create("a", 1)
		w.template.change(func() { w.template.tag, w.template.sick["a"] = "2", true })
		w.engine.Fail(sandboxtest.OpCopyIn, fault.New(fault.Unavailable, "The disk is full."))
		i := w.all(update.Ask{}).Items[0]
		for _, want := range []string{"The service web does not work", "It is not put back yet: The disk is full. That is tried again."} {
			if i.TakenBack || i.State != update.Broken || !strings.Contains(i.Problem, want) {
				w.t.Errorf("%+v, want %q", i, want)
			}
		}
		<-time.After(5 * time.Minute)
		if w.now(a).State != sandbox.Running || w.image(a) == "image:2" {
			w.t.Errorf("later: %+v with %s", w.now(a), w.image(a))
		}
	})
}

func TestAll_AnImageThatCannotBeMadeLeavesAllAsItIs(t *testing.T) {
	within(t, func(w *world) {
		a := w.create("a", 1)
		w.template.change(func() { w.template.tag, w.template.built = "2", fault.New(fault.Invalid, "Step 4 failed.") })
		r := w.all(update.Ask{})
		if how(r) != "failed: a skipped" || r.Problem != "Step 4 failed." || w.image(a) != "image:1" || w.now(a).State != sandbox.Running {
			w.t.Errorf("%s, %+v", how(r), r)
		}
		if list := w.shots.List(func(snapshot.Snapshot) bool { return true }); len(list) != 0 {
			w.t.Errorf("snapshots: %+v", list)
		}
	})
}

func TestOne_RefusesWhatMakesNoSense(t *testing.T) {
	within(t, func(w *world) {
		a := w.create("a", 1)
		plain, _, err := w.m.Create(w.t.Context(), sandbox.Request{Name: "plain", Owner: "ann", Image: "debian"})
		w.ok(err)
		gone := a
		gone.Spec.Template = "gone"
		for what, c := range map[string]struct {
			box  sandbox.Sandbox
			kind fault.Kind
		}{
			"the newest image": {a, fault.Conflict}, "a plain image": {plain, fault.Invalid}, "a template that is gone": {gone, fault.NotFound},
		} {
			if _, err := w.One(w.t.Context(), c.box, "ann", true); !fault.Is(err, c.kind) {
				w.t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 0}); fault.FieldOf(err) != "max_failures" {
			w.t.Error(err)
		}
		w.template.change(func() { w.template.tag, w.template.takes = "2", time.Minute })
		r, err := w.One(w.t.Context(), a, "ann", false)
		w.ok(err)
		if _, err := w.One(w.t.Context(), a, "ann", false); !fault.Is(err, fault.Conflict) {
			w.t.Errorf("twice: %v", err)
		}
		if r, err = w.Wait(w.t.Context(), r.ID); err != nil || how(r) != "done: a updated" {
			w.t.Errorf("%s, %v", how(r), err)
		}
		if _, err := w.Last("base"); !fault.Is(err, fault.NotFound) {
			w.t.Errorf("the update of one counts as that of all: %v", err)
		}
	})
}

// TestAll_TheEndOfSandboxdIsOnRecordAndNothingIsHalf ends sandboxd while the first of three sandboxes is updated, at many moments.
func TestAll_TheEndOfSandboxdIsOnRecordAndNothingIsHalf(t *testing.T) {
	seen := map[update.ItemState]int{}
	for _, after := range []time.Duration{0, time.Second, 11 * time.Second, 21 * time.Second, 31 * time.Second, 41 * time.Second, 43 * time.Second, 46 * time.Second} {
		within(t, func(w *world) {
			a, b := w.create("a", 1), w.create("b", 2)
			w.template.change(func() { w.template.tag = "2" })
			for _, op := range []sandboxtest.Op{sandboxtest.OpCommit, sandboxtest.OpStop, sandboxtest.OpRecreate, sandboxtest.OpStart} {
				w.engine.Delay(op, 10*time.Second)
			}
			r, err := w.All(w.t.Context(), update.Ask{Template: "base", MaxFailures: 1})
			w.ok(err)
			<-time.After(after)
			w.restart()
			<-time.After(10 * time.Minute)
			r, err = w.Last("base")
			if err != nil || r.State != update.CutOff || r.Items[1].State != update.Skipped && after < 42*time.Second {
				w.t.Errorf("after %s: %s, %v", after, how(r), err)
			}
			for n, box := range []sandbox.Sandbox{a, b} {
				i := r.Items[n]
				seen[i.State]++
				updated := w.image(box) == "image:2"
				if i.Ended.IsZero() && i.State != update.Skipped || (i.State == update.Updated) != updated || w.now(box).State != sandbox.Running {
					w.t.Errorf("after %s: %s is %+v with image %s and state %s", after, box.Name, i, w.image(box), w.now(box).State)
				}
				if files, whole := w.engine.HomeFiles(box.ID); !whole || files["file"] != box.Name {
					w.t.Errorf("after %s: home of %s is %v", after, box.Name, files)
				}
			}
			if r := w.all(update.Ask{}); r.State != update.Done {
				w.t.Errorf("after %s: again: %s", after, how(r))
			}
		})
	}
	if seen[update.Updated] == 0 || seen[update.Broken] < 4 || seen[update.Skipped] == 0 {
		t.Errorf("seen %v", seen)
	}
}

func TestWait_EndsWithItsCaller(t *testing.T) {
	within(t, func(w *world) {
		a := w.create("a", 1)
		w.template.change(func() { w.template.tag, w.template.takes = "2", time.Hour })
		r, err := w.One(w.t.Context(), a, "ann", false)
		w.ok(err)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if _, err := w.Wait(ctx, r.ID); !fault.Is(err, fault.Timeout) {
			w.t.Error(err)
		}
		if _, err := w.Wait(w.t.Context(), "none"); !fault.Is(err, fault.NotFound) {
			w.t.Error(err)
		}
	})
}
