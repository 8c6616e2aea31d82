package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/sandbox"
)

func TestIDEPage_SaysWhatItDoesAndSwitchesIt(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	page := s.get("ada", "/sandboxes/mine").is(http.StatusOK)
	if !strings.HasPrefix(attr(in(page.need("#ws-links"), "a.ide"), "href"), "/sandboxes/mine/vscode") || !strings.Contains(textOf(page.need("#ws-ports")), "Turn on VS Code…") {
		t.Errorf("menu %s", textOf(page.need("#ws-ports")))
	}
	if menu := textOf(page.need("#ws-acts")); !strings.Contains(menu, "VS Code…") {
		t.Errorf("menu %s", menu)
	}
	if list := s.get("ada", "/").is(http.StatusOK); strings.Contains(textOf(list.need("main")), "VS Code…") {
		t.Error("the list of sandboxes has it too")
	}
	sheet := s.get("ada", "/sandboxes/mine/vscode").is(http.StatusOK)
	for _, words := range []string{"code-server", ideSize, "Turn on VS Code", "memory"} {
		if !strings.Contains(textOf(sheet.need("main")), words) {
			t.Errorf("does not say %q", words)
		}
	}
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	on := s.post("ada", "/sandboxes/mine/vscode", fields("on", "yes"), "HX-Request", "true").is(http.StatusOK)
	stand := on.need("#ide-stand")
	if attr(stand, "hx-get") != "/sandboxes/mine/vscode/stand" || !strings.Contains(textOf(stand), "Building") {
		t.Errorf("stands %s", textOf(stand))
	}
	s.boxes.report(box, sandbox.Progress{}) // as the Manager tells of the switch
	if e := f.until("code-mine.localhost"); !strings.Contains(e, `class="button bare low ide"`) {
		t.Errorf("brings %s", e)
	}
	s.get("ada", "/sandboxes/mine/vscode/stand", "HX-Request", "true").is(http.StatusOK).need("#ide-stand")
	s.post("ada", "/sandboxes/mine/vscode", fields("on", "no")).leads("/sandboxes/mine/vscode")
	if st, err := s.server.cfg.IDE.Status(t.Context(), s.handle("mine")); err != nil || st.Enabled {
		t.Errorf("it is still on: %+v, %v", st, err)
	}
	for _, path := range []string{"/vscode", "/vscode/stand"} {
		s.get("bob", "/sandboxes/mine"+path).is(http.StatusNotFound)
	}
	s.post("bob", "/sandboxes/mine/vscode", fields("on", "yes")).is(http.StatusNotFound)
}

func TestIDEPage_WakesNothing(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	s.get("ada", "/sandboxes/mine/vscode").is(http.StatusOK)
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.State != sandbox.Asleep || len(s.rooms.asked()) != 0 {
		t.Errorf("%s, did %v", box.State, s.rooms.asked())
	}
}
