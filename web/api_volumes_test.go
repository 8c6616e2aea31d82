package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
)

// volumeNames are those that a user's list has.
func (w *world) volumeNames(user string, headers ...string) (names string) {
	w.t.Helper()
	var list volumesShape
	w.call(user, "GET", "/api/v1/volumes", "", headers...).is(http.StatusOK).into(&list)
	for _, v := range list.Volumes {
		names += v.Name + " "
	}
	return names
}

func TestVolumes_AreMadeByAdminsAndSeenByThoseWhoHaveThem(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "den")
	const volumes = "/api/v1/volumes"
	for _, c := range []struct{ method, path string }{{"POST", ""}, {"PATCH", "/shared"}, {"DELETE", "/shared"}, {"GET", "/shared/files"}, {"PUT", "/shared/files?path=x"}} {
		w.call("ada", c.method, volumes+c.path, `{}`).is(http.StatusForbidden)
	}
	for body, field := range map[string]string{
		`{"name":"Models"}`: "name", `{"name":"new"}`: "name", `{"name":"a/../b"}`: "name", `{"name":"` + strings.Repeat("a", 33) + `"}`: "name",
		`{"name":"models","mode":"rwx"}`: "mode", `{"name":"models","note":"a\nb"}`: "note",
		`{"name":"models","given_to":{"templates":["/etc"]}}`: "templates", `{"name":"models","given_to":{"sandboxes":["nope"]}}`: "sandboxes",
		`{"name":"models","given_to":{"all":true,"sandboxes":["lab"]}}`: "sandboxes", `{"name":"models","given_to":{"all":true,"templates":["base"]}}`: "sandboxes",
	} {
		w.call("root", "POST", volumes, body).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("root", "POST", volumes, `{"name":"shared"}`).problem(http.StatusConflict, "conflict", "name")
	w.call("root", "POST", volumes, `{"name":"models","host_path":"/etc"}`).is(http.StatusBadRequest)
	var v volumeShape
	w.call("root", "POST", volumes, `{"name":"models","note":"Weights","mode":"rw","given_to":{"sandboxes":["lab"]}}`).is(http.StatusCreated).into(&v)
	if v.Path != "/volumes/models" || v.GivenTo.Sandboxes[0] != "lab" || !strings.HasPrefix(v.HostPath, "/var/lib/engine/") {
		t.Errorf("made: %+v", v)
	}
	limited := w.token("root", auth.NewToken{Name: "one", Sandbox: "den"})
	for user, want := range map[string]string{"root": "shared models ", "ada": "shared models ", "bob": "shared "} {
		if got := w.volumeNames(user); got != want {
			t.Errorf("%s sees %q, want %q", user, got, want)
		}
	}
	if got := w.volumeNames("", "Authorization", "Bearer "+limited); got != "shared " {
		t.Errorf("a token of one sandbox sees %q", got)
	}
	w.call("", "GET", volumes+"/shared/files", "", "Authorization", "Bearer "+limited).is(http.StatusForbidden)
	if text := w.call("ada", "GET", volumes+"/models", "").is(http.StatusOK).Body.String(); strings.Contains(text, "/var/lib") || strings.Contains(text, "given_to") {
		t.Errorf("a member is told %s", text)
	}
	w.call("bob", "GET", volumes+"/models", "").is(http.StatusNotFound)
	w.call("root", "PATCH", volumes+"/shared", `{"mode":"rw"}`).is(http.StatusConflict)
	w.call("root", "PATCH", volumes+"/shared", `{"note":"For all"}`).is(http.StatusOK)
	w.call("root", "PATCH", volumes+"/models", `{"name":"weights","mode":"ro","given_to":{"all":true}}`).is(http.StatusOK)
	w.call("root", "DELETE", volumes+"/shared", "").is(http.StatusConflict)
	w.call("root", "DELETE", volumes+"/models", "").is(http.StatusNotFound)
	w.call("root", "DELETE", volumes+"/weights", "").is(http.StatusNoContent)
	w.call("root", "DELETE", volumes+"/weights", "").is(http.StatusNotFound)
	w.call("root", "GET", volumes+"/weights/files", "").is(http.StatusNotFound)
}

func TestVolumes_ASandboxSaysWhatARestartChanges(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	states := func() (text string) {
		var box sandboxShape
		w.call("ada", "GET", "/api/v1/sandboxes/lab", "").is(http.StatusOK).into(&box)
		for _, v := range box.Volumes {
			text += v.Name + " " + v.Mode + " " + v.State + ", "
		}
		return text
	}
	is := func(want string) {
		t.Helper()
		if got := states(); got != want {
			t.Errorf("it has %q, want %q", got, want)
		}
	}
	is("shared ro mounted, ")
	w.call("root", "POST", "/api/v1/volumes", `{"name":"models","mode":"rw","given_to":{"sandboxes":["lab"]}}`).is(http.StatusCreated)
	is("shared ro mounted, models rw after_restart, ")
	restart := func() { w.call("ada", "POST", "/api/v1/sandboxes/lab/restart?wait=ready", `{}`).is(http.StatusOK) }
	restart()
	is("shared ro mounted, models rw mounted, ")
	w.call("root", "PATCH", "/api/v1/volumes/models", `{"mode":"ro"}`).is(http.StatusOK)
	is("shared ro mounted, models ro after_restart, ")
	w.call("root", "DELETE", "/api/v1/volumes/models", "").is(http.StatusNoContent)
	is("shared ro mounted, models rw until_restart, ")
	restart()
	is("shared ro mounted, ")
}

func TestVolumePages_ANewOneIsForNoneAndItsFilesShowTheirPath(t *testing.T) {
	s := newStage(t)
	for page, want := range map[string]string{
		"/volumes/new":    `<option value="chosen" selected`,
		"/volumes/shared": `data-home="/shared" data-whole`,
		"/volumes":        `class="button primary" href="/volumes/new"`,
	} {
		if text := s.get("root", page).is(http.StatusOK).Body.String(); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
