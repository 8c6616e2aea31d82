package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandboxd/internal/catalog"
)

// An admin's page of a sandbox that was deleted must not act on the next owner's sandbox of that name.
func TestStalePage_DoesNothingToTheNextSandboxOfItsName(t *testing.T) {
	s := newStage(t)
	declare := func() { s.declare("lab", catalog.Service{Name: "web", Command: []string{"true"}}) }
	old := s.put("ada", "lab", nil)
	declare()
	workspace := s.get("root", "/sandboxes/lab").is(http.StatusOK)
	about := s.get("root", "/sandboxes/lab/services").is(http.StatusOK)
	topics := []string{s.topicOf("root", "/sandboxes/lab/services")}
	files := attr(workspace.need("sandbox-files"), "data-base") + "?path=notes.txt&sandbox_id=" + attr(workspace.need("sandbox-files"), "data-box")
	terminals := attr(workspace.need("sandbox-terminals"), "data-path") + "main/%s?sandbox_id=" + attr(workspace.need("sandbox-terminals"), "data-box")
	form := attr(s.get("root", "/sandboxes/lab/services/new").need("form.form"), "action") // of a page without an id in its address
	posts, sheets := []string{form}, []string(nil)
	posts = append(append(posts, formsOf(workspace)...), formsOf(about)...)
	for _, a := range append(append(workspace.all("a"), about.all("a")...), s.get("root", "/sandboxes/lab/ports/3000").all("form")...) {
		to := attr(a, "href") + attr(a, "action")
		named := strings.Contains(to, "?sandbox_id=")
		if strings.HasPrefix(to, "/sandboxes/lab/") && !named && !strings.HasSuffix(to, "/services") {
			t.Errorf("a link to anything that has its name: %s", to)
		}
		if named && !strings.Contains(to, "/share?") {
			sheets = append(sheets, to)
			posts = append(posts, formsOf(s.get("root", to, "HX-Request", "true").is(http.StatusOK))...)
		}
	}
	if s.boxes.drop(old); len(posts) < 12 || len(sheets) < 8 {
		t.Fatalf("forms %q, sheets %q", posts, sheets)
	}
	next := s.put("bob", "lab", nil)
	declare()
	for _, to := range posts {
		if got := s.post("root", to, fields("confirm", "lab", "next", "/")); got.Code != http.StatusGone {
			t.Errorf("%s: status %d", to, got.Code)
		}
	}
	for _, to := range append(sheets, files, strings.ReplaceAll(terminals, "%s", "text")) {
		s.get("root", to).is(http.StatusGone)
	}
	s.post("root", strings.ReplaceAll(terminals, "%s", "close"), nil).is(http.StatusGone)
	server := httptest.NewServer(s.server)
	defer server.Close()
	if _, res, err := s.viewer(server, "root", strings.ReplaceAll(terminals, "%s", "ws"), server.URL); err == nil || res.StatusCode != http.StatusGone {
		t.Errorf("a terminal: %v, %v", res, err)
	}
	for _, topic := range append(topics[1:], files) {
		if p := s.refused("root", topic); p.Status != http.StatusGone {
			t.Errorf("%s: told %+v", topic, p)
		}
	}
	if _, told := s.follow("root", topics[0]); !strings.Contains(told, "This sandbox was deleted") || strings.Contains(told, next.ID) {
		t.Errorf("the services are told %s", told)
	}
	if box, err := s.boxes.Sandbox(t.Context(), "lab"); err != nil || box.ID != next.ID || box.State != next.State || len(s.rooms.asked()) != 0 {
		t.Errorf("done: %+v, %v, %v", box, s.rooms.asked(), err)
	}
	s.post("root", "/sandboxes/lab/stop?sandbox_id="+next.ID, nil).is(http.StatusSeeOther)
}

// formsOf gives where the forms of a page go that change something of the sandbox lab.
func formsOf(page view) (actions []string) {
	for _, f := range page.all("form") {
		if to := attr(f, "action"); strings.Contains(to, "/lab/") && attr(f, "method") != "get" {
			actions = append(actions, to)
		}
	}
	return actions
}
