package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/snapshot"
)

func TestSnapshotTemplate_IsMadeOverTheAPI(t *testing.T) {
	w := newWorld(t)
	path := labSnapshots + "/" + w.shot("old").ID + "/template"
	w.call("ada", "POST", path, `{"name": "tools"}`).problem(http.StatusForbidden, "forbidden", "")
	w.call("root", "POST", path, `{"name": "Not good"}`).problem(http.StatusBadRequest, "invalid", "name")
	w.call("root", "POST", path, `{"name": "base"}`).problem(http.StatusConflict, "conflict", "name")
	w.call("root", "POST", path, `{"name": "tools", "description": "`+strings.Repeat("x", 301)+`"}`).problem(http.StatusBadRequest, "invalid", "description")
	w.call("root", "POST", labSnapshots+"/0123456789abcdef/template", `{"name": "tools"}`).problem(http.StatusNotFound, "not_found", "")
	if kept := w.images.roots.Kept(); len(kept) > 0 {
		t.Errorf("kept %v", kept)
	}
	made := w.call("root", "POST", path, `{"name": "tools", "description": "Ours", "home": true}`).is(http.StatusCreated)
	var got templateShape
	made.into(&got)
	if at := made.Header().Get("Location"); at != "/api/v1/templates/tools" || got.Name != "tools" || got.Description != "Ours" || w.images.built != 1 {
		t.Errorf("at %q: %+v, %d builds", at, got, w.images.built)
	}
	if kept := w.images.roots.Kept(); len(kept) != 1 || !strings.HasSuffix(kept[0], " with its home") {
		t.Errorf("kept %v", kept)
	}
	w.call("root", "POST", path, `{"name": "tools"}`).problem(http.StatusConflict, "conflict", "name")
}

func TestSnapshotTemplate_IsMadeInThePage(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "<b>ready</b>"}, "1")
	path := snapshotPath(n, "/template")
	if text := textOf(s.get("root", "/sandboxes/lab/snapshots").is(http.StatusOK).need("#snapshots")); !strings.Contains(text, "Make a template…") {
		t.Errorf("an admin sees %q", text)
	}
	if text := textOf(s.get("ada", "/sandboxes/lab/snapshots").is(http.StatusOK).need("#snapshots")); strings.Contains(text, "Make a template…") {
		t.Errorf("the owner sees %q", text)
	}
	s.get("ada", path).is(http.StatusForbidden)
	s.post("ada", path, fields("name", "tools")).is(http.StatusForbidden)
	form := textOf(s.get("root", path, "HX-Request", "true").is(http.StatusOK).need(".sheet"))
	for _, want := range []string{"<b>ready</b>", "With the files in the home", "at most 10 GiB", "environment variables of its template base.", "Everyone who makes a sandbox of it"} {
		if !strings.Contains(form, want) {
			t.Errorf("no %q in %q", want, form)
		}
	}
	again := s.post("root", path, fields("name", "base", "description", "Mine")).is(http.StatusConflict)
	if text := textOf(again.need("#template-name-fault")); !strings.Contains(text, "There is a template base already") || attr(again.need("#template-description"), "value") != "Mine" {
		t.Errorf("says %q", text)
	}
	s.images.roots.Wrong = fault.Field("home", "It is too large.")
	if text := textOf(s.post("root", path, fields("name", "tools", "home", "on")).is(http.StatusBadRequest).need("#snapshot-template-home-fault")); text != "It is too large." {
		t.Errorf("says %q", text)
	}
	s.images.roots.Wrong = nil
	s.post("root", path, fields("name", "tools", "home", "on")).leads("/templates/tools")
	if text := textOf(s.get("root", "/templates/tools").is(http.StatusOK).need("main")); !strings.Contains(text, "Made from the snapshot “<b>ready</b>” of the sandbox lab.") {
		t.Errorf("the template says %q", text)
	}
	if text := textOf(s.get("root", "/templates/tools/delete").is(http.StatusOK).need(".sheet")); !strings.Contains(text, "its images when no other template") {
		t.Errorf("asks %q", text)
	}
}
