package web

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestWorkspace_ShowsWhatItsStateCallsFor(t *testing.T) {
	s := newStage(t)
	s.furnish()
	for name, want := range map[string][]string{ // the kind of pane, and words of it or of what lies over it
		"brave-otter":  {"terminals"},
		"silver-heron": {"stopped", "This sandbox is stopped", "Start"},
		"old-forest":   {"asleep", "This sandbox is asleep", "Wake"},
		"still-lake":   {"frozen", "This sandbox is frozen", "Resume"},
		"late-owl":     {"sleeping", "going to sleep", "Wake"},
		"tall-birch":   {"failed", "Building the image of template data-analysis failed", "Retry", "Delete…"},
		"new-meadow":   {"work", "Creating new-meadow", "Image", "Volume", "Start", "Ready", "Unpacking python3-pandas"},
		"warm-comet":   {"work", "Stopping"},
	} {
		page := s.get("root", "/sandboxes/"+name).is(http.StatusOK)
		pane, over := page.need("#pane-terminal"), page.need("#ws-still")
		if got := attr(pane, "data-kind"); got != want[0] {
			t.Errorf("%s: pane %q, want %q", name, got, want[0])
		}
		text := textOf(pane)
		if want[0] != "terminals" && want[0] != "work" {
			if text != "" || in(over, "div.buttons") == nil {
				t.Errorf("%s: the pane says %q", name, text)
			}
			text = textOf(over)
		} else if textOf(over) != "" {
			t.Errorf("%s: %q lies over it", name, textOf(over))
		}
		for _, words := range want[1:] {
			if !strings.Contains(text, words) {
				t.Errorf("%s: no %q in %q", name, words, text)
			}
		}
		if resumes := hasAttr(over, "data-resume"); resumes != (want[0] == "frozen") {
			t.Errorf("%s: resumes by itself: %v", name, resumes)
		}
	}
}

func TestWorkspace_OpeningItAsksNothingOfASandboxThatDoesNotRun(t *testing.T) {
	s := newStage(t)
	s.furnish()
	for _, name := range []string{"old-forest", "still-lake", "late-owl", "silver-heron", "tall-birch", "new-meadow", "warm-comet"} {
		s.get("root", "/sandboxes/"+name).is(http.StatusOK)
		s.get("root", "/sandboxes/"+name+"/terminals").is(http.StatusConflict)
	}
	for _, name := range []string{"silver-heron", "tall-birch", "new-meadow", "warm-comet"} {
		s.post("root", "/sandboxes/"+name+"/terminals/main/close", nil).is(http.StatusConflict)
	}
	if s.terminals.asked != 0 || len(s.terminals.closed) != 0 {
		t.Errorf("asked %d times, closed %v", s.terminals.asked, s.terminals.closed)
	}
}

func TestWorkspace_KnowsTheTerminalsThatAreOpen(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.terminals.tabs = []wire.Terminal{{Name: "2", Viewers: 2, Title: "vim"}, {Name: "main"}}
	names := attr(s.get("ada", "/sandboxes/mine").need("sandbox-terminals"), "data-names")
	if names != "main 2" {
		t.Errorf("terminals %q", names)
	}
	var got struct{ Terminals []tabShape }
	answer{s.get("ada", "/sandboxes/mine/terminals").is(http.StatusOK).ResponseRecorder, t}.into(&got)
	if len(got.Terminals) != 2 || got.Terminals[0] != (tabShape{Name: "2", Title: "vim", Viewers: 2}) {
		t.Errorf("terminals %+v", got.Terminals)
	}
	s.post("ada", "/sandboxes/mine/terminals/2/close", nil).leads("/sandboxes/mine")
	if len(s.terminals.closed) != 1 || s.terminals.closed[0] != "2" {
		t.Errorf("closed %v", s.terminals.closed)
	}
}

func TestWorkspace_LeadsToPorts(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Spec.Template = "node-api" })
	page := s.get("ada", "/sandboxes/mine?port=5000")
	if got := attr(page.need(".open-port"), "data-port-pattern"); got != "http://{port}-mine.localhost:8080/" {
		t.Errorf("pattern %q", got)
	}
	var urls []string
	for _, a := range page.all("a.menu-item") {
		if href := attr(a, "href"); strings.HasPrefix(href, "http") {
			urls = append(urls, href)
			if attr(a, "rel") != "noopener noreferrer" {
				t.Errorf("%s: rel %q", href, attr(a, "rel"))
			}
		}
	}
	if got := strings.Join(urls, " "); got != "http://mine.localhost:8080/ http://3000-mine.localhost:8080/ http://5000-mine.localhost:8080/" {
		t.Errorf("links %s", got)
	}
	for _, odd := range []string{"0", "65536", "x", "-1"} {
		if page := s.get("ada", "/sandboxes/mine?port="+odd).is(http.StatusOK); hasAttr(page.all("details.menu")[1], "open") {
			t.Errorf("port %s leads somewhere", odd)
		}
	}
}

func TestWorkspace_IsNotThereForOthers(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	for _, path := range []string{"", "/rename", "/delete", "/terminals"} {
		s.get("bob", "/sandboxes/mine"+path).is(http.StatusNotFound)
		s.get("root", "/sandboxes/mine"+path).is(http.StatusOK)
	}
	for _, path := range []string{"/start", "/stop", "/restart", "/rename", "/delete", "/terminals/main/close"} {
		s.post("bob", "/sandboxes/mine"+path, fields("confirm", "mine", "label", "x")).is(http.StatusNotFound)
	}
	for _, topic := range []string{"", "/services", "/files?path=src"} {
		if p := s.refused("bob", "/sandboxes/mine"+topic); p.Status != http.StatusNotFound {
			t.Errorf("%s: told %+v", topic, p)
		}
	}
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.State != sandbox.Running || box.Label != "" {
		t.Errorf("changed: %+v", box)
	}
}

func TestPower_GoesBackToWhereTheButtonWas(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.post("ada", "/sandboxes/mine/stop", fields("next", "/?state=running")).leads("/?state=running")
	s.post("ada", "/sandboxes/mine/start", fields("next", "//evil.example")).leads("/sandboxes/mine")
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.State != sandbox.Starting {
		t.Errorf("state %s", box.State)
	}
	there := s.post("ada", "/sandboxes/mine/restart", fields("next", "/"), "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/")
	there.is(http.StatusNoContent)
	if there.Header().Get("HX-Trigger") != "sheet-done" || there.Header().Get("HX-Redirect") != "" {
		t.Errorf("headers %v", there.Header())
	}
	s.boxes.refuse(fault.New(fault.Conflict, "It is being deleted."))
	page := s.post("ada", "/sandboxes/mine/start", nil).is(http.StatusConflict)
	if got := attr(page.need(".error-page"), "data-problem"); got != "It is being deleted." {
		t.Errorf("says %q", got)
	}
}

func TestRename_ChangesTheLabelOnly(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Label = "Old" })
	page := s.get("ada", "/sandboxes/mine/rename", "Referer", "http://localhost:8080/?q=mi").is(http.StatusOK)
	if got := attr(page.need("#rename-label"), "value"); got != "Old" {
		t.Errorf("label %q", got)
	}
	if got := attr(in(page.need("form.form"), "input"), "value"); got != "/?q=mi" {
		t.Errorf("comes back to %q", got)
	}
	s.post("ada", "/sandboxes/mine/rename", fields("label", " New ", "next", "/?q=mi")).leads("/?q=mi")
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.Label != "New" {
		t.Errorf("label %q", box.Label)
	}
	s.boxes.refuse(fault.Field("label", "The label is too long."))
	again := s.post("ada", "/sandboxes/mine/rename", fields("label", "Long")).is(http.StatusBadRequest)
	if textOf(again.need("#rename-label-fault")) != "The label is too long." || attr(again.need("#rename-label"), "value") != "Long" {
		t.Errorf("says %q", textOf(again.need("main")))
	}
}

func TestDelete_SaysWhatIsLostAndAsksForTheName(t *testing.T) {
	s := newStage(t)
	s.server.cfg.Logs = keepLogs(t, slog.New(slog.DiscardHandler))
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Label = "Mine" })
	sheet := s.get("ada", "/sandboxes/mine/delete", "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/sandboxes/mine").is(http.StatusOK)
	for _, words := range []string{"Delete Mine (mine)?", "/home/agent", "terminals", "http://mine.localhost:8080/", "Tokens limited to it, and links"} {
		if !strings.Contains(textOf(sheet.doc), words) {
			t.Errorf("no %q in %q", words, textOf(sheet.doc))
		}
	}
	if sheet.byAttr("a", "href", "/logs/download?format=text&sandbox=mine").Data == "" {
		t.Error("its log cannot be kept")
	}
	again := s.post("ada", "/sandboxes/mine/delete", fields("confirm", "Mine")).is(http.StatusBadRequest)
	if got := textOf(again.need("#delete-name-fault")); !strings.Contains(got, "Type mine") {
		t.Errorf("says %q", got)
	}
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.State != sandbox.Running {
		t.Fatal("deleted without its name")
	}
	s.post("ada", "/sandboxes/mine/delete", fields("confirm", "mine")).leads("/")
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.State != sandbox.Deleting {
		t.Errorf("state %s", box.State)
	}
}
