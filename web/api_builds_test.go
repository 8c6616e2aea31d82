package web

import (
	"bufio"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
)

func TestBuild_IsForAdmins(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "POST", "/api/v1/templates/base/build", "").problem(403, "forbidden", "")
	got := w.call("root", "POST", "/api/v1/templates/base/build", "").is(202)
	if l := got.Header().Get("Location"); l != "/api/v1/templates/base/build" || w.images.built != 1 {
		t.Errorf("%d builds, location %q", w.images.built, l)
	}
	w.call("root", "POST", "/api/v1/templates/nope/build", "").problem(404, "not_found", "")
	w.call("ada", "GET", "/api/v1/templates/nope", "").problem(404, "not_found", "")
}

func TestBuildLog_IsFollowedToItsEnd(t *testing.T) {
	w := newWorld(t)
	building := catalog.ImageStatus{State: catalog.ImageBuilding, Step: 1, Steps: 2}
	w.images.log, w.images.status = []string{"one"}, building
	got := w.open(t.Context(), "ada", "GET", "/api/v1/templates/base/build", "", "application/x-ndjson")
	scan := bufio.NewScanner(got.Body)
	next := func() (l buildLine) {
		t.Helper()
		if !scan.Scan() {
			t.Fatalf("the stream ended: %v", scan.Err())
		}
		checkSchema(t, "BuildEvent", scan.Bytes())
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	if d := cmp.Diff([]buildLine{{Type: "line", Line: "one"}, {Type: "image", Image: newTemplateImage(building)}}, []buildLine{next(), next()}); d != "" {
		t.Error(d)
	}
	failed := catalog.ImageStatus{State: catalog.ImageFailed, Problem: "Step 2 failed."}
	w.images.bus.Publish(catalog.ImageEvent{Template: "other", Status: failed, Line: "not this"})
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "two"})
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: failed, Line: "three"})
	want := []buildLine{{Type: "line", Line: "two"}, {Type: "line", Line: "three"}, {Type: "image", Image: newTemplateImage(failed)}}
	if d := cmp.Diff(want, []buildLine{next(), next(), next()}); d != "" {
		t.Error(d)
	}
	if scan.Scan() {
		t.Errorf("more came: %s", scan.Text())
	}
}

func TestBuildLog_OfWhatIsBuiltEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.images.log = []string{"one"}
	got := w.call("ada", "GET", "/api/v1/templates/base/build", "", "Accept", "application/x-ndjson").is(200)
	want := `{"type":"line","line":"one"}` + "\n" +
		`{"type":"image","image":{"state":"built","problem":"","step":0,"steps":0,"progress":1,"expected_seconds":0,"expected_measured":false,"remaining_seconds":0}}` + "\n"
	if d := cmp.Diff(want, got.Body.String()); d != "" {
		t.Error(d)
	}
}

func TestBuilds_AreCancelledByAdmins(t *testing.T) {
	w := newWorld(t)
	w.call("root", "DELETE", "/api/v1/templates/base/build", "").problem(409, "conflict", "")
	w.images.status = catalog.ImageStatus{State: catalog.ImageBuilding, Step: 1, Steps: 2}
	w.call("ada", "DELETE", "/api/v1/templates/base/build", "").problem(403, "forbidden", "")
	w.call("root", "DELETE", "/api/v1/templates/nope/build", "").problem(404, "not_found", "")
	w.call("root", "DELETE", "/api/v1/templates/base/build", "").is(204)
	if p := w.images.Status(t.Context(), "base").Problem; p != "The build was cancelled by root." {
		t.Errorf("it says %q", p)
	}
}

func TestTemplatePage_HasACancelButtonWhileItBuilds(t *testing.T) {
	s := newStage(t)
	s.images.status = catalog.ImageStatus{State: catalog.ImageBuilding, Step: 1, Steps: 2}
	for user, want := range map[string]int{"root": 1, "ada": 0} {
		got := 0
		for _, form := range s.get(user, "/templates/base").is(200).all("form") {
			if attr(form, "action") == "/templates/base/build/cancel" {
				got++
			}
		}
		if got != want {
			t.Errorf("%s sees %d buttons", user, got)
		}
	}
	s.post("ada", "/templates/base/build/cancel", nil).is(403)
	s.post("root", "/templates/base/build/cancel", fields("next", "/templates/base")).leads("/templates/base")
	if got := s.images.Status(t.Context(), "base").State; got != catalog.ImageFailed {
		t.Errorf("it is %s", got)
	}
}
