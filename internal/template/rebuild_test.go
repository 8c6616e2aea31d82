package template_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/template"
)

func TestRebuild_OfOneFromGitFetchesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fetchedWorld(t)
		w.run()
		for _, wrong := range []error{nil, fault.New(fault.Unavailable, "The server is away.")} {
			w.git.mu.Lock()
			w.git.at, w.git.err = git.Revision{Commit: "next"}, wrong
			w.git.mu.Unlock()
			if err := w.Rebuild("rust", catalog.Order{Why: catalog.WhyAsked, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if w.builds() != "rust asked" || len(w.failed) != 1 {
			t.Errorf("built %s, failed %v", w.builds(), w.failed)
		}
		list, err := w.Builds(t.Context(), "rust")
		if err != nil || len(list) != 1 || list[0].State != template.Failed || list[0].By != "ann" || list[0].Commit != "next" || list[0].Problem != "The server is away." {
			t.Errorf("builds are %+v, %v", list, err)
		}
	})
}

func TestPlan_RebuildsWhenItIsDueAndOnceForWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, err := w.SetPlan(t.Context(), template.Plan{Template: "base", Cron: "0 4 * * *", NoCache: true})
		if err != nil || p.Zone != "UTC" || p.Next.Hour() != 4 {
			t.Fatalf("plan is %+v, %v", p, err)
		}
		end := w.run()
		time.Sleep(49 * time.Hour)
		synctest.Wait()
		if w.builds() != "base schedule no-cache, base schedule no-cache" {
			t.Errorf("built %s", w.builds())
		}
		end()
		time.Sleep(72 * time.Hour) // sandboxd is not running
		w.open()
		w.wrong = fault.New(fault.Invalid, "The template base is broken.")
		w.run()
		synctest.Wait()
		if n := len(w.built); n != 3 {
			t.Errorf("built %s", w.builds())
		}
		if p, ok := w.Plan("base"); !ok || time.Until(p.Next) <= 0 || time.Until(p.Next) > 24*time.Hour {
			t.Errorf("the next is %s", p.Next)
		}
		list, err := w.Builds(t.Context(), "base")
		if err != nil || len(list) != 1 || list[0].Why != catalog.WhySchedule || len(w.failed) != 1 {
			t.Errorf("builds are %+v, %v; failed %v", list, err, w.failed)
		}
	})
}

// The folder of a template may vanish: its schedule can be removed, and is dropped at its next time, which is told once.
func TestPlan_OfATemplateThatIsGoneIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		plan := template.Plan{Template: "base", Cron: "0 4 * * *"}
		for _, byHand := range []bool{true, false} {
			if _, err := w.SetPlan(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(w.shipped+"/base", w.shipped+"/.base"); err != nil {
				t.Fatal(err)
			}
			if byHand {
				if _, err := w.SetPlan(t.Context(), template.Plan{Template: "base"}); err != nil {
					t.Errorf("to remove it gives %v", err)
				}
			} else {
				w.wrong = fault.New(fault.NotFound, "There is no template base.")
				w.run()
				time.Sleep(72 * time.Hour)
				synctest.Wait()
			}
			if p, ok := w.Plan("base"); ok {
				t.Errorf("by hand %t: left is %+v", byHand, p)
			}
			if _, err := w.SetPlan(t.Context(), template.Plan{Template: "base"}); !fault.Is(err, fault.NotFound) {
				t.Errorf("without one: %v", err)
			}
			if err := os.Rename(w.shipped+"/.base", w.shipped+"/base"); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.failed) != 1 || !strings.Contains(w.failed[0], "is gone. Its schedule was removed.") {
			t.Errorf("failed are %q", w.failed)
		}
	})
}

func TestSetPlan_RefusesWhatMakesNoSense(t *testing.T) {
	w := newWorld(t)
	for field, p := range map[string]template.Plan{
		"cron": {Template: "base", Cron: "* * * * *"}, "zone": {Template: "base", Cron: "@daily", Zone: "Mars"},
	} {
		if _, err := w.SetPlan(t.Context(), p); fault.FieldOf(err) != field {
			t.Errorf("%+v gives %v", p, err)
		}
	}
	if _, err := w.SetPlan(t.Context(), template.Plan{Template: "nope", Cron: "@daily"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("no template: %v", err)
	}
	for _, cron := range []string{"@daily", ""} {
		if _, err := w.SetPlan(t.Context(), template.Plan{Template: "base", Cron: cron}); err != nil {
			t.Fatal(err)
		}
		if _, ok := w.Plan("base"); ok != (cron != "") {
			t.Errorf("after %q there is one: %t", cron, ok)
		}
	}
}

func TestRecords_AreKeptAndCutOffByACrash(t *testing.T) {
	w := newWorld(t)
	r := catalog.Record{Template: "base", Ref: "sandboxd/base:1", Order: catalog.Order{Why: catalog.WhySchedule}, Began: epoch}
	r.Problem, r.Ended, r.Log = "Step 2 failed.", epoch.Add(time.Minute), []string{"one", "two"}
	id := w.Begun(r)
	w.Ended(id, r)
	cancelled := catalog.Record{Template: "base", Began: epoch, Ended: epoch, Problem: "The build was cancelled by ann.", Cancelled: true, Order: r.Order}
	ended := w.Begun(cancelled)
	w.Ended(ended, cancelled)
	left := w.Begun(catalog.Record{Template: "base", Began: epoch})
	w.open()
	b, err := w.Build(t.Context(), "base", id)
	if err != nil || b.State != template.Failed || b.Log != "one\ntwo" || b.Problem != r.Problem || strings.Join(w.failed, "") != "base: Step 2 failed." {
		t.Errorf("build is %+v, %v, failed %v", b, err, w.failed)
	}
	if b, err := w.Build(t.Context(), "base", ended); err != nil || b.State != template.Cancelled || b.Problem != cancelled.Problem {
		t.Errorf("the cancelled one is %+v, %v", b, err)
	}
	if b, err := w.Build(t.Context(), "base", left); err != nil || b.State != template.CutOff || b.Ended.IsZero() {
		t.Errorf("the one that was cut off is %+v, %v", b, err)
	}
}
