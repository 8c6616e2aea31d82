package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/catalog"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
)

// matching gives the elements that fit the last of some words and are below one that fits the word before. A word may end with the name of an
// attribute that the element has, in brackets.
func matching(v view, what string) []*html.Node {
	v.t.Helper()
	words := strings.Fields(what)
	suits := func(n *html.Node, word string) bool {
		word, name, _ := strings.Cut(strings.TrimSuffix(word, "]"), "[")
		return fits(n, word) && (name == "" || hasAttr(n, name))
	}
	var found []*html.Node
	for n := range v.doc.Descendants() {
		if !suits(n, words[len(words)-1]) {
			continue
		}
		left := words[:len(words)-1]
		for at := n.Parent; at != nil && len(left) > 0; at = at.Parent {
			if suits(at, left[len(left)-1]) {
				left = left[:len(left)-1]
			}
		}
		if len(left) == 0 {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		v.t.Logf("no %s in %s", what, v.Body)
		return []*html.Node{{}}
	}
	return found
}

// chosenTemplate is the template whose card is chosen in the form.
func chosenTemplate(t *testing.T, page view) string {
	t.Helper()
	chosen := "nothing"
	for _, c := range matching(page, ".template-choice input") {
		if hasAttr(c, "checked") {
			chosen = attr(c, "value")
		}
	}
	return chosen
}

func TestNew_BeginsWithNameAndTemplateAndHasOneButton(t *testing.T) {
	s := newStage(t)
	page := s.get("ada", "/new").is(http.StatusOK)
	if !hasAttr(page.need("#new-name"), "autofocus") || len(matching(page, "[autofocus]")) != 1 {
		t.Error("the name is not the first field")
	}
	if buttons := matching(page, "form.form button"); len(buttons) != 1 || textOf(buttons[0]) != "Create sandbox" {
		t.Errorf("%d buttons create", len(buttons))
	}
	if len(page.all(".template-choice")) != 5 || chosenTemplate(t, page) != "base" {
		t.Errorf("%d choices, chosen is %q", len(page.all(".template-choice")), chosenTemplate(t, page))
	}
	if got := attr(page.need("#new-memory"), "placeholder"); got != "2 GiB" {
		t.Errorf("without an entry it gets %q", got)
	}
	if got := attr(matching(page, "[data-address]")[0], "data-address"); got != "http://{name}.localhost:8080/" {
		t.Errorf("its address is %q", got)
	}
	s.put("ada", "older", func(b *sandbox.Sandbox) { b.Spec.Template = "python-ml" })
	page = s.get("ada", "/new")
	if got := chosenTemplate(t, page); got != "python-ml" || attr(page.need("#new-memory"), "placeholder") != "4 GiB" {
		t.Errorf("chosen is %q, not what she took the last time", got)
	}
	if got := chosenTemplate(t, s.get("ada", "/new?template=node-api")); got != "node-api" {
		t.Errorf("chosen is %q", got)
	}
}

func TestNew_CardsSayWhetherTheImageIsThereAndHowLongItTakes(t *testing.T) {
	measured := pace.Length{Time: 205 * time.Second, Measured: 200 * time.Second}
	s := newStage(t)
	for _, c := range []struct {
		status catalog.ImageStatus
		says   string
	}{
		{catalog.ImageStatus{State: catalog.ImageBuilt}, "Image ready"},
		{catalog.ImageStatus{State: catalog.ImageMissing, Expected: measured}, "Builds its image first: about 3 min, as last time"},
		{catalog.ImageStatus{State: catalog.ImageStale, Expected: pace.Length{Time: 47 * time.Second}}, "Builds its image first: about 45 s (estimate)"},
		{catalog.ImageStatus{State: catalog.ImageFailed, Problem: "No.", Expected: measured}, "Its last build failed. Tries again: about 3 min, as last time"},
		{catalog.ImageStatus{State: catalog.ImageFailed, Problem: "Cancelled.", Cancelled: true, Expected: measured}, "Builds its image first: about 3 min, as last time"},
		{catalog.ImageStatus{State: catalog.ImageMissing, Problem: "It does not answer."}, "The container engine does not answer"},
		{catalog.ImageStatus{State: catalog.ImageBuilding, Pace: pace.Pace{Total: measured, Done: 100 * time.Second, Step: time.Minute, Since: stageTime}}, "Building its image: about 2 min left"},
	} {
		s.images.mu.Lock()
		s.images.status = c.status
		s.images.mu.Unlock()
		for _, path := range []string{"/", "/new"} {
			if got := textOf(s.get("ada", path).need(".pick-image")); got != c.says {
				t.Errorf("%s: a card says %q, want %q", path, got, c.says)
			}
		}
	}
}

func TestTemplates_SayHowLongAnImageTakesThatIsNotThere(t *testing.T) {
	s := newStage(t)
	s.images.mu.Lock()
	s.images.status = catalog.ImageStatus{State: catalog.ImageMissing, Expected: pace.Length{Time: 200 * time.Second}}
	s.images.mu.Unlock()
	if got := textOf(s.get("ada", "/templates").need(".image-why")); got != "takes about 3 min (estimate)" {
		t.Errorf("a card says %q", got)
	}
}

func TestSandboxes_TheMenuBesideTheButtonCreatesWithOneClick(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	page := s.get("ada", "/").is(http.StatusOK)
	items := matching(page, ".new-button button.menu-item")
	if len(items) != 4 || attr(items[0], "name") != "template" || attr(items[0], "value") != "base" || attr(matching(page, ".new-button form")[0], "action") != "/sandboxes" {
		t.Fatalf("the menu has %d items", len(items))
	}
	if matching(s.get("ada", "/templates"), ".new-button .menu-item")[0].Data != "" || matching(s.get("bob", "/"), ".new-button .menu-item")[0].Data != "" {
		t.Error("other pages have the menu, too, or an empty list, whose cards do the same")
	}
}

func TestNew_WhoCancelsIsBackWithWhatWasTyped(t *testing.T) {
	s := newStage(t)
	typed := fields("template", "python-ml", "name", "ml", "label", "Mine", "cpus", "0,5", "env", "KEY=s3cret", "stop_after", "custom", "stop_after_custom", "3d")
	s.post("ada", "/sandboxes", typed).leads("/sandboxes/ml")
	box, err := s.boxes.Sandbox(t.Context(), "ml")
	if err != nil {
		t.Fatal(err)
	}
	work := s.get("ada", "/sandboxes/ml").is(http.StatusOK)
	if got := attr(matching(work, "#work form")[0], "action"); got != "/sandboxes/ml/cancel?sandbox_id="+box.ID {
		t.Errorf("cancel posts to %q", got)
	}
	back := "/new?" + url.Values{"again": {box.ID}, "cancelled": {"ml"}, "template": {"python-ml"}}.Encode()
	s.post("bob", "/sandboxes/ml/cancel", fields()).is(http.StatusNotFound)
	s.post("ada", "/sandboxes/ml/cancel?sandbox_id="+box.ID, fields()).leads(back)
	if strings.Contains(back, "s3cret") {
		t.Error("a secret is in the address")
	}
	s.images.mu.Lock()
	if len(s.images.abandoned) != 1 || s.images.abandoned[0] != "python-ml by ada" {
		t.Errorf("abandoned are %v", s.images.abandoned)
	}
	s.images.mu.Unlock()
	page := s.get("ada", back).is(http.StatusOK)
	if got := textOf(matching(page, ".sheet .notice")[0]); !strings.Contains(got, "Cancelled: ml was not created") {
		t.Errorf("it says %q", got)
	}
	if strings.Contains(s.get("ada", "/new?cancelled=%3Cb%3E").is(http.StatusOK).Body.String(), "was not created") {
		t.Error("it says that of what has no name")
	}
	for id, want := range map[string]string{"name": "ml", "label": "Mine", "cpus": "0,5"} {
		if got := attr(page.need("#new-"+id), "value"); got != want {
			t.Errorf("%s is %q", id, got)
		}
	}
	if chosenTemplate(t, page) != "python-ml" || textOf(page.need("#new-env")) != "KEY=s3cret" || attr(page.need("#stop_after-custom"), "value") != "3d" {
		t.Error("the rest is lost")
	}
	if len(page.all(".fault")) > 0 {
		t.Error("something is wrong with it")
	}
	other := s.get("bob", back).is(http.StatusOK)
	if strings.Contains(other.Body.String(), "s3cret") || attr(other.need("#new-name"), "value") != "" {
		t.Error("another person sees what was typed")
	}
}

func TestNew_WhatIsReadyCannotBeCancelled(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Running })
	s.post("ada", "/sandboxes/mine/cancel", fields()).is(http.StatusConflict)
}

func TestTemplates_ACancelledBuildIsNoFailure(t *testing.T) {
	s := newStage(t)
	s.images.mu.Lock()
	s.images.status = catalog.ImageStatus{State: catalog.ImageFailed, Problem: "The build was cancelled by ada.", Cancelled: true}
	s.images.mu.Unlock()
	for user, how := range map[string]string{"root": "Use Build, or create a sandbox", "ada": "Creating a sandbox makes it."} {
		for path, place := range map[string]string{"/templates": "#book-base", "/templates/base": "#template-image"} {
			n := s.get(user, path).is(http.StatusOK).need(place)
			got := textOf(n)
			if !strings.Contains(got, "Cancelled") || !strings.Contains(got, "The build was cancelled by ada. "+how) || strings.Contains(got, "Failed") || strings.Contains(got, "Rebuild") {
				t.Errorf("%s tells %s %q", path, user, got)
			}
			if in(n, ".tone-bad") != nil {
				t.Errorf("%s looks as if it has failed", path)
			}
		}
	}
}

func TestWork_ShowsOneBarWithTheTimeThatIsLeft(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State, b.Created = sandbox.Creating, stageTime.Add(-100*time.Second) })
	s.images.builds(pace.Pace{Total: pace.Length{Time: 200 * time.Second, Measured: 200 * time.Second}, Done: 90 * time.Second, Step: 50 * time.Second, Since: stageTime.Add(-10 * time.Second)})
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage})
	page := s.get("ada", "/sandboxes/mine")
	if bars := matching(page, "#work-steps progress"); len(bars) != 1 || attr(bars[0], "value") != "0.493" {
		t.Errorf("%d bars, the first at %s", len(bars), attr(bars[0], "value"))
	}
	if got := textOf(matching(page, "#work-steps .pace-text")[0]); got != "2 min · about 2 min left" {
		t.Errorf("it says %q", got)
	}
	s.images.builds(pace.Pace{})
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseStart, Since: stageTime})
	page = s.get("ada", "/sandboxes/mine")
	if got := attr(matching(page, "#work-steps progress")[0], "value"); got != "0.980" { // two of 102 seconds are left
		t.Errorf("after the image it is at %s", got)
	}
}

func TestTemplatePage_TheLogDoesNotContradictTheImage(t *testing.T) {
	s := newStage(t)
	log := func() string { return textOf(s.get("ada", "/templates/base").is(http.StatusOK).need("#build-log")) }
	if got := log(); strings.Contains(got, "No builds") || !strings.Contains(got, "not built by this server") {
		t.Errorf("of an image that is there: %q", got)
	}
	own := s.server.cfg.OwnTemplates
	r := catalog.Record{Template: "base", Ref: "sandboxd/base:1", Began: stageTime}
	id := own.Begun(r)
	r.Ended, r.Log = stageTime, []string{"Step 1/2 : FROM x", "Successfully built"}
	own.Ended(id, r)
	if got := log(); !strings.HasPrefix(got, "Step 1/2") {
		t.Errorf("of one that was built before a restart: %q", got)
	}
	s.images.mu.Lock()
	s.images.log = []string{"newer"}
	s.images.mu.Unlock()
	if got := log(); got != "newer" {
		t.Errorf("of one that was built since: %q", got)
	}
	s = newStage(t)
	s.images.mu.Lock()
	s.images.status = catalog.ImageStatus{State: catalog.ImageMissing}
	s.images.mu.Unlock()
	if got := log(); got != "No builds yet." {
		t.Errorf("of one that was never built: %q", got)
	}
}
