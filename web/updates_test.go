package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/update"
)

// updated waits for the end of the last update of all of the template.
func (s *stage) updated(template string) update.Run {
	s.t.Helper()
	last, err := s.server.cfg.Updates.Last(template)
	if err == nil {
		last, err = s.server.cfg.Updates.Wait(s.t.Context(), last.ID)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return last
}

func TestUpdatePages_MarkWhatIsOlderAndUpdateIt(t *testing.T) {
	s := newStage(t)
	s.put("ada", "lab", nil)
	s.put("ada", "new", nil)
	s.updates.age("lab")
	if text := textOf(s.get("ada", "/").is(http.StatusOK).need("#rows")); strings.Count(text, "newer image") != 1 || strings.Count(text, "Update…") != 1 {
		t.Errorf("the list says %q", text)
	}
	if text := textOf(s.get("ada", "/sandboxes/lab").is(http.StatusOK).need("#ws-name")); !strings.Contains(text, "newer image") {
		t.Errorf("the workspace says %q", text)
	}
	text := textOf(s.get("ada", "/sandboxes/lab/update").is(http.StatusOK).need(".update-sheet"))
	for _, want := range []string{"Update lab?", "What will happen:", "sandboxd/base:older", stageNewest, "The files in its home stay", "put back as it was"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if text := textOf(s.get("ada", "/sandboxes/new/update").need(".update-sheet")); !strings.Contains(text, "new is up to date") {
		t.Errorf("of a new one: %q", text)
	}
	s.get("bob", "/sandboxes/lab/update").is(http.StatusNotFound)
	s.post("bob", "/sandboxes/lab/update", fields()).is(http.StatusNotFound)

	s.used("lab", idle.Outlook{Because: []idle.Reason{{Kind: idle.Exec, Detail: "make test"}}})
	if text := textOf(s.get("ada", "/sandboxes/lab/update").need(".update-sheet")); !strings.Contains(text, "It is in use") || !strings.Contains(text, "make test") {
		t.Errorf("in use: %q", text)
	}
	if text := textOf(s.post("ada", "/sandboxes/lab/update", fields()).is(http.StatusConflict).need(".update-sheet")); !strings.Contains(text, "lab is in use: command make test") {
		t.Errorf("refused: %q", text)
	}
	s.updates.fails["lab"] = fault.Wrap(sandbox.ErrTakenBack, fault.Unavailable, "The service web does not work.")
	s.post("ada", "/sandboxes/lab/update", fields("force", "on")).leads("/sandboxes/lab")
	s.ended("lab")
	text = textOf(s.get("ada", "/sandboxes/lab/update").need(".update-sheet"))
	if !strings.Contains(text, "The last update failed") || !strings.Contains(text, "The service web does not work. It was put back as it was.") {
		t.Errorf("failed: %q", text)
	}
	if text := textOf(s.get("ada", "/").need("#rows")); !strings.Contains(text, "update failed") {
		t.Errorf("the list says %q", text)
	}
	delete(s.updates.fails, "lab")
	s.post("ada", "/sandboxes/lab/update", fields("force", "on", "next", "/")).leads("/")
	s.ended("lab")
	if text := textOf(s.get("ada", "/").need("#rows")); strings.Contains(text, "newer image") || strings.Contains(text, "update failed") {
		t.Errorf("updated, the list says %q", text)
	}
}

// ended waits for the end of the last update of a sandbox.
func (s *stage) ended(name string) {
	s.t.Helper()
	last, _, ok := s.server.cfg.Updates.LastOf(s.ref(name).ID())
	if !ok {
		s.t.Fatal("there was no update")
	}
	if _, err := s.server.cfg.Updates.Wait(s.t.Context(), last.ID); err != nil {
		s.t.Fatal(err)
	}
}

func TestRollingUpdatePage_RunsShowsAndCancels(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"a", "b", "c"} {
		s.put("ada", name, nil)
	}
	s.put("root", "mine", nil)
	s.updates.age("a", "b", "c")
	const page = "/templates/base/update"
	s.get("ada", page).is(http.StatusForbidden)
	if text := textOf(s.get("ada", "/templates/base").is(http.StatusOK).need("#template-older")); !strings.Contains(text, "3 of 3 sandboxes are on an older image") || strings.Contains(text, "Update…") {
		t.Errorf("a member sees %q", text)
	}
	if text := textOf(s.get("root", "/templates/base").need("#template-older")); !strings.Contains(text, "3 of 4 sandboxes") || !strings.Contains(text, "Update…") {
		t.Errorf("an admin sees %q", text)
	}
	if text := s.get("root", page).Body.String(); !strings.Contains(text, "Programs that were installed outside of the homes") {
		t.Error("nobody is told what is lost")
	}
	text := textOf(s.get("root", page).is(http.StatusOK).need("#rolling-update"))
	for _, want := range []string{"3 of 4 sandboxes are on an older image.", stageNewest[:8], "Update 3 sandboxes", "ada"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if text := textOf(s.post("root", page, fields("max_failures", "none")).is(http.StatusBadRequest).need("#rolling-update")); !strings.Contains(text, "1 to 1000") {
		t.Errorf("a wrong number: %q", text)
	}
	s.updates.fails["b"] = fault.Wrap(sandbox.ErrTakenBack, fault.Unavailable, "It did not start.")
	s.updates.wait()
	live, _ := s.follow("root", page)
	s.post("root", page, fields("max_failures", "1")).leads(page)
	live.until("1 updating")
	text = textOf(s.get("root", page).need("#rolling-update"))
	for _, want := range []string{"Update under way", "Running", "1 updating", "2 waiting", "Cancel", "by root"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	close(s.updates.hold)
	s.updated("base")
	text = textOf(s.get("root", page).need("#rolling-update"))
	for _, want := range []string{"Last update", "Stopped after a failure", "1 updated", "1 failed", "1 skipped", "Failed, put back as it was", "It did not start.", "2 of 4 sandboxes", "Update 2 sandboxes"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	s.updates.wait()
	s.post("root", page, fields("max_failures", "2", "force", "on")).leads(page)
	live.until("1 updating")
	last, err := s.server.cfg.Updates.Last("base")
	if err != nil {
		t.Fatal(err)
	}
	s.post("ada", page+"/cancel", fields("run", last.ID)).is(http.StatusForbidden)
	s.post("root", page+"/cancel", fields("run", last.ID)).leads(page)
	close(s.updates.hold)
	if last := s.updated("base"); last.State != update.Cancelled || last.Count(update.Skipped) != 1 {
		t.Errorf("cancelled: %+v", last)
	}
}

func TestRollingUpdatePage_IsLive(t *testing.T) {
	s := newStage(t)
	s.put("root", "a", nil)
	s.updates.age("a")
	s.updates.hold = make(chan struct{})
	f, _ := s.follow("root", "/templates/base/update")
	s.post("root", "/templates/base/update", fields("max_failures", "1")).is(http.StatusSeeOther)
	f.until("Update under way")
	close(s.updates.hold)
	f.until("Last update")
}

func TestUpdateAPI(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "GET", "/api/v1/sandboxes/lab/update", "").is(http.StatusNotFound)
	w.call("ada", "POST", "/api/v1/sandboxes/lab/update", `{"force": true, "more": 1}`).is(http.StatusBadRequest)
	w.call("bob", "POST", "/api/v1/sandboxes/lab/update", `{}`).is(http.StatusNotFound)
	w.call("ada", "POST", "/api/v1/templates/base/update", `{}`).is(http.StatusForbidden)
	w.call("root", "POST", "/api/v1/templates/none/update", `{}`).is(http.StatusNotFound)
	w.call("root", "POST", "/api/v1/templates/base/update", `{"max_failures": -1}`).is(http.StatusBadRequest)
	w.call("root", "POST", "/api/v1/templates/base/update", `{"max_failures": 0}`).problem(http.StatusBadRequest, "invalid", "max_failures")
	w.call("root", "POST", "/api/v1/templates/base/update", `{}`).is(http.StatusConflict)
	w.call("root", "GET", "/api/v1/templates/base/update", "").is(http.StatusNotFound)
}
