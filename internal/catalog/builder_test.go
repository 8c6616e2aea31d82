package catalog

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
)

func TestEnsure_ManyWaitersShareOneBuild(t *testing.T) {
	bubble(t, func(r *rig) {
		var all sync.WaitGroup
		refs := make([]string, 20)
		for n := range refs {
			all.Go(func() {
				ref, err := r.ensure("base")
				if err != nil {
					r.t.Error(err)
				}
				refs[n] = ref
			})
		}
		all.Wait()
		if got := r.engine.builds(); len(got) != 1 {
			r.t.Errorf("builds are %v, want one", got)
		}
		if refs = slices.Compact(refs); len(refs) != 1 || !strings.HasPrefix(refs[0], "sandboxd/base:") || len(refs[0]) != len("sandboxd/base:")+hashDigits {
			r.t.Errorf("references are %v", refs)
		}
	})
}

func TestHandNewest_WhoFallsBehindMissesTheOldest(t *testing.T) {
	c := make(chan BuildEvent, 2)
	for _, line := range []string{"one", "two", "three"} {
		handNewest(c, BuildEvent{Line: line})
	}
	if first, last := <-c, <-c; first.Line != "two" || last.Line != "three" {
		t.Errorf("got %q and %q", first.Line, last.Line)
	}
}

func TestEnsure_PresentImageCostsOneQuestion(t *testing.T) {
	bubble(t, func(r *rig) {
		first, err := r.ensure("top")
		if err != nil {
			r.t.Fatal(err)
		}
		before, start := r.engine.asked, time.Now()
		second, err := r.ensure("top")
		if err != nil || first != second || r.engine.asked != before+1 || time.Since(start) != 0 {
			r.t.Errorf("%s then %s, %d questions, %v, error %v", first, second, r.engine.asked-before, time.Since(start), err)
		}
	})
}

func TestEnsure_RemovedImageIsBuiltAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		ref, _ := r.ensure("base")
		r.engine.set(func() { delete(r.engine.images, ref) })
		if again, err := r.ensure("base"); err != nil || again != ref || len(r.engine.builds()) != 2 {
			r.t.Errorf("reference %s, error %v, builds %v", again, err, r.engine.builds())
		}
	})
}

func TestEnsure_WhatAppearsWhileItWaitsInLineIsNotBuilt(t *testing.T) {
	bubble(t, func(r *rig) {
		go r.ensure("base")
		synctest.Wait()
		ready := make(chan string)
		go func() {
			ref, err := r.ensure("side")
			if err != nil {
				r.t.Error(err)
			}
			ready <- ref
		}()
		synctest.Wait()
		ref := r.state("side", ImageBuilding).Ref
		r.engine.set(func() { r.engine.images[ref] = true })
		if got := <-ready; got != ref || len(r.engine.builds()) != 1 {
			r.t.Errorf("reference %s, builds %v, want base alone", got, r.engine.builds())
		}
	})
}

func TestEnsure_MakesWhatIsBelowFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.set(func() { delete(r.engine.images, "debian:trixie-slim") })
		var steps []BuildEvent
		ref, err := r.Ensure(r.t.Context(), r.template("top"), func(e BuildEvent) { steps = append(steps, e) })
		if err != nil {
			r.t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"base", "top"}, r.engine.builds()); diff != "" || len(r.engine.pulled) != 1 {
			r.t.Errorf("pulled %v, builds:\n%s", r.engine.pulled, diff)
		}
		if got := r.engine.built[1].Args[baseArg]; got != r.engine.built[0].Tag || r.engine.built[1].Tag != ref {
			r.t.Errorf("top was built on %s", got)
		}
		want := []BuildEvent{
			{Step: 1, Steps: 8, Done: 1, Total: 2, Line: "pulling"},
			{Step: 2, Steps: 8, Line: "Step of sandboxd/base"}, {Step: 3, Steps: 8, Line: "Step of sandboxd/base"},
			{Step: 5, Steps: 8, Line: "Step of sandboxd/top"}, {Step: 6, Steps: 8, Line: "Step of sandboxd/top"},
		}
		if diff := cmp.Diff(want, steps); diff != "" {
			r.t.Errorf("progress differs (-want +got):\n%s", diff)
		}
		if log := r.Log("top"); len(log) != 5 {
			r.t.Errorf("the log of top has not all of what went before: %q", log)
		}
	})
}

func TestEnsure_TwoOnOneBaseBuildItOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		var all sync.WaitGroup
		for _, name := range []string{"top", "side", "base"} {
			all.Go(func() {
				if _, err := r.ensure(name); err != nil {
					r.t.Error(err)
				}
			})
		}
		all.Wait()
		got := r.engine.builds()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"base", "side", "top"}, got); diff != "" {
			r.t.Errorf("builds differ:\n%s", diff)
		}
	})
}

func TestEnsure_WaitingForABaseThatIsBuiltForAnotherHearsOfIt(t *testing.T) {
	bubble(t, func(r *rig) {
		go r.ensure("base")
		synctest.Wait()
		go r.ensure("top")
		time.Sleep(buildTime * 3 / 4)
		synctest.Wait()
		if s := r.state("top", ImageBuilding); s.Step != 2 || s.Steps != 7 || s.Progress < 0.43 || s.Progress > 0.45 { // of 5 s that are guessed, 2.4 s are for the base
			r.t.Errorf("status is %+v", s)
		}
		time.Sleep(2 * buildTime)
		r.state("top", ImageBuilt)
	})
}

func TestEnsure_BuildGoesOnWhenItsCallerLeaves(t *testing.T) {
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.t.Context(), buildTime/3)
		defer cancel()
		if _, err := r.Ensure(ctx, r.template("base"), nil); !errors.Is(err, context.DeadlineExceeded) {
			r.t.Errorf("error is %v, want the caller's deadline", err)
		}
		r.state("base", ImageBuilding)
		time.Sleep(buildTime)
		synctest.Wait()
		r.state("base", ImageBuilt)
	})
}

func TestEnsure_FailedBuildIsToldAndTriedAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.set(func() {
			r.engine.fail["sandboxd/base"] = fault.New(fault.Invalid, "Step 2 of 2 has failed (RUN true): code 100\nE: no such package")
			r.engine.output = []string{"E: \x1b[1mno such package\x1b[0m"}
		})
		_, err := r.ensure("base")
		want := "The template base could not be built (" + filepath.Join(r.dir, "base/Dockerfile") +
			":2): Step 2 of 2 has failed (RUN true): code 100"
		if got := fault.Message(err); !fault.Is(err, fault.Invalid) || got != want+"\nE: no such package" {
			r.t.Errorf("message is\n%s, want\n%s", got, want)
		}
		if s := r.state("base", ImageFailed); s.Problem != fault.Message(err) {
			r.t.Errorf("problem is %s", s.Problem)
		}
		log := r.Log("base")
		if diff := cmp.Diff([]string{"E: no such package", want}, log[len(log)-2:]); diff != "" {
			r.t.Errorf("log ends with:\n%s", diff)
		}
		r.engine.set(func() { r.engine.fail = nil })
		if _, err := r.ensure("base"); err != nil {
			r.t.Errorf("the second try failed: %v", err)
		}
		r.state("base", ImageBuilt)
	})
}

func TestEnsure_FailedBaseFailsAllThatWait(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.set(func() { r.engine.fail["sandboxd/base"] = fault.New(fault.Invalid, "No.") })
		go r.ensure("base")
		synctest.Wait()
		var all sync.WaitGroup
		for _, name := range []string{"top", "side"} {
			all.Go(func() {
				if _, err := r.ensure(name); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "base could not be built (") || !strings.Contains(fault.Message(err), "Dockerfile:2)") {
					r.t.Errorf("%s: error is %v", name, err)
				}
			})
		}
		all.Wait()
		if got := r.engine.builds(); len(got) != 1 {
			r.t.Errorf("builds are %v, want base once", got)
		}
		r.state("top", ImageFailed)
	})
}

func TestEnsure_PlainImages(t *testing.T) {
	bubble(t, func(r *rig) {
		if ref, err := r.Ensure(r.t.Context(), PlainImage("debian:trixie-slim"), nil); err != nil || ref != "debian:trixie-slim" || len(r.engine.pulled) > 0 {
			r.t.Errorf("present: %s, %v, pulled %v", ref, err, r.engine.pulled)
		}
		if ref, err := r.Ensure(r.t.Context(), PlainImage("alpine"), nil); err != nil || ref != "alpine:latest" {
			r.t.Errorf("absent: %s, %v", ref, err)
		}
		r.engine.set(func() { r.engine.fail["none:1"] = fault.New(fault.NotFound, "There is no image none:1.") })
		if _, err := r.Ensure(r.t.Context(), PlainImage("none:1"), nil); !fault.Is(err, fault.NotFound) {
			r.t.Errorf("unknown: %v", err)
		}
		if _, err := r.Ensure(r.t.Context(), PlainImage("../x"), nil); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "image" {
			r.t.Errorf("malformed: %v", err)
		}
	})
}

func TestEnsure_APullDoesNotWaitForBuilds(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, name := range []string{"base", "top", "side"} {
			go r.ensure(name)
		}
		synctest.Wait()
		start := time.Now()
		if _, err := r.Ensure(r.t.Context(), PlainImage("alpine"), nil); err != nil || time.Since(start) != buildTime {
			r.t.Errorf("pull took %v, error %v", time.Since(start), err)
		}
	})
}

func TestEnsure_EngineThatIsDownIsUnavailable(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.set(func() { r.engine.down = fault.New(fault.Unavailable, "The engine does not answer.") })
		if _, err := r.ensure("base"); !fault.Is(err, fault.Unavailable) {
			r.t.Errorf("error is %v", err)
		}
		if s := r.state("base", ImageMissing); s.Problem != "The engine does not answer." {
			r.t.Errorf("problem is %q", s.Problem)
		}
	})
}

func TestRun_EndReleasesEverybodyWhoWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		var all sync.WaitGroup
		for _, name := range []string{"base", "top", "side"} {
			all.Go(func() {
				if _, err := r.ensure(name); !fault.Is(err, fault.Unavailable) {
					r.t.Errorf("%s: error is %v, want Unavailable", name, err)
				}
			})
		}
		synctest.Wait()
		r.stop()
		all.Wait()
		if _, err := r.ensure("base"); !fault.Is(err, fault.Unavailable) {
			r.t.Errorf("after the end: %v", err)
		}
		if len(r.jobs) > 0 {
			r.t.Errorf("%d jobs are left", len(r.jobs))
		}
	})
}
