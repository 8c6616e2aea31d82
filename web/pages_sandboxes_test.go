package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestSandboxes_ShowEachRowWithItsStateAndWhy(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/").is(http.StatusOK)
	if rows := page.all("li.row"); len(rows) != 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for name, want := range map[string]string{
		"Nightly import":                      "Failed Building the image of template data-analysis failed at step 4 of 11",
		"Quarterly numbers":                   "Creating Preparing the image 20 s · about 2 min left",
		"ML Experiments":                      "Running kept awake by terminal +3",
		"Checkout API, branch retry-payments": "Running freezes in 12 min",
		"quick-lynx":                          "Running never rests · started 12 min ago",
		"Docs preview":                        "Frozen sleeps in 3 h",
		"old-forest":                          "Asleep 2 h · wakes on use",
		"late-owl":                            "Going to sleep",
		"Edge experiments":                    "Stopped 3 d ago",
	} {
		found := false
		for _, row := range page.all("li.row") {
			if textOf(in(row, "a.row-title")) == name {
				found = true
				if got := textOf(in(row, "div.row-state")); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		}
		if !found {
			t.Errorf("no row %s", name)
		}
	}
}

func TestSandboxes_ShowOwnersToAdminsOnly(t *testing.T) {
	s := newStage(t)
	s.put("ada", "hers", nil)
	s.put("bob", "his", nil)
	if page := s.get("root", "/"); len(page.all("li.row")) != 2 || len(page.all("span.row-owner")) != 2 {
		t.Errorf("an admin sees %s", textOf(page.need("#list")))
	}
	page := s.get("ada", "/")
	if rows := page.all("li.row"); len(rows) != 1 || page.find("span.row-owner") != nil || attr(rows[0], "data-name") != "hers" {
		t.Errorf("a member sees %s", textOf(page.need("#list")))
	}
}

func TestSandboxes_OfferOneActionForEachState(t *testing.T) {
	s := newStage(t)
	for state, want := range map[sandbox.State]string{
		sandbox.Running: "Open", sandbox.Asleep: "Open", sandbox.Frozen: "Open", sandbox.Sleeping: "Open", sandbox.Stopped: "Start", sandbox.Failed: "Retry",
		sandbox.Creating: "View", sandbox.Starting: "View", sandbox.Stopping: "View",
	} {
		s.put("ada", string(state), func(b *sandbox.Sandbox) { b.State, b.Spec.Template = state, "node-api" })
		row := s.get("ada", "/?q="+string(state)).need("li.row")
		if got := textOf(in(in(row, "div.row-acts"), ".button")); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
		if opens := in(row, "a.quick-link") != nil; opens != (want == "Open") {
			t.Errorf("%s: offers to open it: %v", state, opens)
		}
	}
}

func TestSandboxes_FilterByTextAndState(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/?q=node-api&state=running")
	if rows := page.all("li.row"); len(rows) != 1 || attr(rows[0], "data-name") != "checkout-api" {
		t.Errorf("shows %s", textOf(page.need("#list")))
	}
	for _, chip := range page.all("a.chip") {
		if current := attr(chip, "aria-current") != ""; current != strings.HasPrefix(textOf(chip), "Running") {
			t.Errorf("chip %s: current %v", textOf(chip), current)
		}
	}
	if got := textOf(s.get("root", "/?q=zzz").need("#list")); !strings.Contains(got, "Nothing matches") {
		t.Errorf("says %q", got)
	}
	if got := len(s.get("root", "/?state=nonsense&page=-3").is(http.StatusOK).all("li.row")); got != 10 {
		t.Errorf("%d rows", got)
	}
}

func TestSandboxes_CountEveryStateWithinTheText(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/?state=stopped")
	var chips []string
	for _, chip := range page.all("a.chip") {
		chips = append(chips, textOf(chip))
	}
	if got := strings.Join(chips, ", "); got != "All 10, Running 3, Frozen 1, Asleep 1, Stopped 1, Failed 1" {
		t.Errorf("chips %s", got)
	}
}

func TestSandboxes_ComeFiftyToAPage(t *testing.T) {
	s := newStage(t)
	for i := range 120 {
		s.put("ada", fmt.Sprintf("box-%03d", i), nil)
	}
	first := s.get("ada", "/")
	if got := len(first.all("li.row")); got != 50 {
		t.Fatalf("%d rows", got)
	}
	last := s.get("ada", "/?page=3")
	if rows := last.all("li.row"); len(rows) != 20 || attr(rows[19], "data-name") != "box-000" {
		t.Errorf("last page: %d rows", len(rows))
	}
	if got := textOf(last.need(".paging")); !strings.HasPrefix(got, "101–120 of 120") {
		t.Errorf("paging %q", got)
	}
	if got := attr(in(last.need(".paging"), "a"), "href"); got != "/?page=2" {
		t.Errorf("leads back to %q", got)
	}
}

func TestSandboxes_AreTheTemplateGalleryWhenThereAreNone(t *testing.T) {
	s := newStage(t)
	page := s.get("ada", "/").is(http.StatusOK)
	if picks := page.all("button.pick"); len(picks) != 4 || attr(picks[0], "value") != "base" {
		t.Errorf("%d templates to pick, the broken one is not among them", len(picks))
	}
	if got := textOf(page.need("div.welcome")); !strings.Contains(got, "Create your first sandbox") {
		t.Errorf("it says %q", got)
	}
	for _, user := range []string{"ada", "bob"} {
		s.server.cfg.Activity.Add(activity.Entry{UserID: s.users[user].ID, User: user, Via: activity.Page, Action: "sandbox.create", Outcome: activity.Done})
		if got := textOf(s.get("ada", "/").need("div.welcome")); !strings.Contains(got, "Create a sandbox") {
			t.Errorf("to a person who had one it says %q", got)
		}
	}
}

func TestSandboxes_WhatARowMayCutIsInItsTitle(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/").is(http.StatusOK)
	for name, want := range map[string]string{
		"quick-lynx": "never rests · started " + stageTime.Add(-12*time.Minute).Format("Monday 2 January 2006, 15:04:05 MST"),
		"old-forest": "since " + stageTime.Add(-2*time.Hour).Format("Monday 2 January 2006, 15:04:05 MST") + " · wakes on use",
	} {
		why := in(page.need("#state-"+s.ref(name).ID()), "span.row-why")
		if got := attr(why, "title"); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, owner := range page.all("span.row-owner") {
		if attr(owner, "title") != "Owner: "+textOf(owner) {
			t.Errorf("an owner has the title %q", attr(owner, "title"))
		}
	}
}

func TestWorkspace_SaysOnlyOfUsedOnesThatFilesAreKept(t *testing.T) {
	s := newStage(t)
	fails := func(b *sandbox.Sandbox) { b.State, b.Problem = sandbox.Failed, "Its image could not be built." }
	s.fresh("new", fails)
	s.put("ada", "old", fails)
	for name, want := range map[string]string{"new": "failed Retry creates its container again.", "old": "failed Its files are kept. Retry creates its container again."} {
		if got := textOf(s.get("ada", "/sandboxes/"+name).is(http.StatusOK).need("#ws-still")); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSandboxes_GiveAScriptTheListAlone(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/?q=api", "HX-Request", "true").is(http.StatusOK)
	body := page.Body.String()
	if strings.Contains(body, "<html") || !strings.Contains(body, `<hx-partial hx-target="#chips" hx-swap="outerHTML">`) {
		t.Errorf("answer %.300s", body)
	}
	if got := attr(page.need("#live"), "data-topic"); got != "/sandboxes?q=api" {
		t.Errorf("follows %q", got)
	}
}

func TestRemote_LeadPastTheTerminalsOwnPassword(t *testing.T) {
	s := newStage(t)
	for name, env := range map[string]map[string]string{
		"plain": nil, "named": {"TTYD_USER": "dev"}, "locked": {"TTYD_USER": "dev", "TTYD_PASS": "letmein"},
	} {
		s.put("ada", name, func(b *sandbox.Sandbox) { b.Spec.Env = env })
		link := in(s.get("ada", "/sandboxes/"+name).is(http.StatusOK).need("#ws-ports"), "a.menu-item")
		want := "http://" + name + ".localhost:8080/"
		if attr(link, "title") != want {
			t.Errorf("%s: tells %q", name, attr(link, "title"))
		}
		if name == "locked" {
			want += ".sandboxd/sign-in"
		}
		if got := attr(link, "href"); got != want {
			t.Errorf("%s: leads to %q, want %q", name, got, want)
		}
	}
}

func TestSandboxes_EscapeWhatPeopleWrite(t *testing.T) {
	s := newStage(t)
	s.put("ada", "x", func(b *sandbox.Sandbox) {
		b.Label, b.State, b.Problem = `<img src=x onerror=alert(1)>`, sandbox.Failed, `</li><script>alert(2)</script>`
	})
	if odd := s.get("ada", "/?q="+url.QueryEscape(`"><script>alert(3)`)); strings.Contains(odd.Body.String(), "<script>alert") {
		t.Error("markup of the filter gets through")
	}
	page := s.get("ada", "/")
	if page.find("img") != nil || strings.Contains(page.Body.String(), "<script>alert") {
		t.Error("markup gets through")
	}
	if got := textOf(page.need("a.row-title")); got != `<img src=x onerror=alert(1)>` {
		t.Errorf("label %q", got)
	}
}

func TestSandboxes_SayWhenTheStoreIsAway(t *testing.T) {
	s := newStage(t)
	s.boxes.unlisted = fault.New(fault.Unavailable, "The store is locked.")
	page := s.get("ada", "/").is(http.StatusServiceUnavailable)
	if got := textOf(page.need(".error-page")); !strings.Contains(got, "The store is locked.") || !strings.Contains(got, page.Header().Get("X-Request-Id")) {
		t.Errorf("says %q", got)
	}
}

func TestAlarm_IsShownOnPagesOnceItIsKnown(t *testing.T) {
	s := newStage(t)
	s.engine.fail(errUnseen)
	s.server.checkAlarm(context.Background())
	if got := textOf(s.get("ada", "/").need("#alarm")); !strings.Contains(got, "engine does not answer") {
		t.Errorf("says %q", got)
	}
}
