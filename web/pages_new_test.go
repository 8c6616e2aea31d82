package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestNew_OneClickCreatesAndOpensTheWorkspace(t *testing.T) {
	s := newStage(t)
	s.post("ada", "/sandboxes", fields("template", "base")).leads("/sandboxes/quiet-otter")
	if got := s.boxes.asked(); got.Template != "base" || got.Owner != s.users["ada"].ID || got.Name != "" {
		t.Errorf("asked for %+v", got)
	}
	page := s.get("ada", "/sandboxes/quiet-otter").is(http.StatusOK)
	if got := attr(page.need("#pane-terminal"), "data-kind"); got != "work" {
		t.Errorf("pane %q", got)
	}
}

func TestNew_TakesEveryOption(t *testing.T) {
	s := newStage(t)
	s.post("ada", "/sandboxes", fields("template", "base", "label", " ML Experiments ", "name", "ml", "cpus", "0,5",
		"memory", "512 MiB", "pids", "256", "image", "ignored", "env", "A=1\r\n\r\n B =x=y \n")).leads("/sandboxes/ml")
	want := sandbox.Request{
		Name: "ml", Label: "ML Experiments", Owner: s.users["ada"].ID, Template: "base",
		Limits: sandbox.Limits{CPUs: 0.5, Memory: 512 << 20, Pids: 256}, Env: map[string]string{"A": "1", "B": "x=y "},
	}
	if diff := cmp.Diff(want, s.boxes.asked()); diff != "" {
		t.Error(diff)
	}
}

func TestNew_TakesAPlainImage(t *testing.T) {
	s := newStage(t)
	s.post("ada", "/sandboxes", fields("template", "", "image", "debian:trixie-slim")).leads("/sandboxes/quiet-otter")
	if got := s.boxes.asked(); got.Image != "debian:trixie-slim" || got.Template != "" {
		t.Errorf("asked for %+v", got)
	}
}

func TestNew_ShowsWhatIsWrongBesideItsFieldAndKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ field, value, says string }{
		{"cpus", "many", "must be a number"},
		{"cpus", "NaN", "must be a number"},
		{"memory", "lots", "must be a size"},
		{"memory", "1", `Memory "1" has no unit: write 1 GiB or 512 MiB.`},
		{"memory", "512", `Memory "512" has no unit: write 512 MiB or 4 GiB.`},
		{"pids", "1.5", "whole number"},
		{"env", "A=1\nB", "Line 2 has no"},
		{"env", "A=1\nA=2", "second time"},
	} {
		s := newStage(t)
		page := s.post("ada", "/sandboxes", fields("template", "base", "label", "Kept", c.field, c.value)).is(http.StatusBadRequest)
		if got := textOf(page.need("#new-" + c.field + "-fault")); !strings.Contains(got, c.says) {
			t.Errorf("%s=%q: %q", c.field, c.value, got)
		}
		input := page.need("#new-" + c.field)
		if got := attr(input, "value") + textOf(input); got != strings.ReplaceAll(c.value, "\n", " ") {
			t.Errorf("%s=%q: kept %q", c.field, c.value, got)
		}
		if attr(input, "aria-invalid") != "true" || attr(page.need("#new-label"), "value") != "Kept" {
			t.Errorf("%s=%q: not marked, or the label is lost", c.field, c.value)
		}
		if page.need("details.fold"); !hasAttr(page.need("details.fold"), "open") {
			t.Errorf("%s=%q: the options are folded", c.field, c.value)
		}
	}
}

func TestNew_ShowsWhatTheDomainRefuses(t *testing.T) {
	s := newStage(t)
	s.boxes.refuse(fault.Field("name", "The name %q is taken.", "ml"))
	page := s.post("ada", "/sandboxes", fields("template", "base", "name", "ml")).is(http.StatusBadRequest)
	if got := textOf(page.need("#new-name-fault")); !strings.Contains(got, "is taken") {
		t.Errorf("says %q", got)
	}
	s.boxes.refuse(fault.New(fault.Conflict, "There is another one."))
	page = s.post("ada", "/sandboxes", fields("template", "base")).is(http.StatusConflict)
	if got := textOf(page.need(".notice")); got != "There is another one." {
		t.Errorf("says %q", got)
	}
	s.boxes.refuse(nil)
	page = s.post("ada", "/sandboxes", fields("template", "")).is(http.StatusBadRequest)
	if got := textOf(page.need("#new-image-fault")); !strings.Contains(got, "Enter an image") {
		t.Errorf("says %q", got)
	}
	page = s.post("ada", "/sandboxes", fields("template", "base", "name", "A b", "memory", "much", "env", "x")).is(http.StatusBadRequest)
	for _, field := range []string{"name", "memory", "env"} {
		page.need("#new-" + field + "-fault")
	}
}

func TestNew_ANameThatIsTakenKeepsTheForm(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.put("bob", "his", nil)
	ask := func(name string) view {
		return s.post("ada", "/sandboxes", fields("template", "base", "name", name, "label", "Kept")).is(http.StatusConflict)
	}
	page := ask("mine")
	if got := textOf(page.need("#new-name-fault")); got != "There is already a sandbox with this name: open it, or choose another name." {
		t.Errorf("says %q", got)
	}
	if attr(page.need("#new-taken"), "href") != "/sandboxes/mine" || attr(page.need("#new-label"), "value") != "Kept" || attr(page.need("#new-name"), "value") != "mine" {
		t.Error("what was typed is lost")
	}
	page = ask("his") // of which she may know no more than that
	if got := textOf(page.need("#new-name-fault")); got == "" || strings.Contains(got, "open it") || page.find("#new-taken") != nil {
		t.Errorf("says %q", got)
	}
}

func TestNew_TheSameFormSentTwiceLeadsToTheOneThatItHasMade(t *testing.T) {
	s := newStage(t)
	for range 2 {
		s.post("ada", "/sandboxes", fields("template", "base", "name", "ml")).leads("/sandboxes/ml")
	}
	s.put("ada", "older", nil)
	s.post("ada", "/sandboxes", fields("template", "base", "name", "older")).is(http.StatusConflict)
	s.put("ada", "ending", func(b *sandbox.Sandbox) { b.State = sandbox.Deleting }) // a new one follows it
	s.post("ada", "/sandboxes", fields("template", "base", "name", "ending")).leads("/sandboxes/ending")
}

func TestNew_IsASheetForAScript(t *testing.T) {
	s := newStage(t)
	sheet := s.get("ada", "/new", "HX-Request", "true").is(http.StatusOK).Body.String()
	if strings.Contains(sheet, "<html") || !strings.HasPrefix(sheet, "<section class=\"sheet new-sheet\"") {
		t.Errorf("sheet %.100s", sheet)
	}
	done := s.post("ada", "/sandboxes", fields("template", "base"), "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/")
	if done.is(http.StatusNoContent).Header().Get("HX-Redirect") != "/sandboxes/quiet-otter" {
		t.Errorf("headers %v", done.Header())
	}
	again := s.post("ada", "/sandboxes", fields("template", "base", "cpus", "x"), "HX-Request", "true").is(http.StatusBadRequest)
	if !strings.HasPrefix(again.Body.String(), "<section") {
		t.Errorf("answer %.100s", again.Body)
	}
}

func FuzzReadEnv(f *testing.F) {
	f.Add("A=1\nB=2")
	f.Add("=\r\n= =\n")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := readEnv(text)
		if err == nil && len(env) > strings.Count(text, "\n")+1 {
			t.Errorf("%d variables from %q", len(env), text)
		}
		if err != nil && fault.FieldOf(err) != "env" {
			t.Error(err)
		}
	})
}
