package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
)

func TestRepositories_AreConnectedByAdminsAndUsedByAll(t *testing.T) {
	w := newWorld(t)
	const put = `{"kind":"s3","endpoint":"s3.lan","bucket":"backups","access_key":"box","secret_key":"hush-hush"}`
	for _, c := range []struct{ method, path, body string }{{"PUT", "/nas", put}, {"DELETE", "/nas", ""}, {"POST", "/nas/check", `{}`}} {
		w.call("ada", c.method, "/api/v1/repositories"+c.path, c.body).problem(http.StatusForbidden, "forbidden", "")
	}
	w.call("root", "PUT", "/api/v1/repositories/nas", `{"kind":"s3","endpoint":"https://s3.lan"}`).problem(http.StatusBadRequest, "invalid", "endpoint")
	made := w.call("root", "PUT", "/api/v1/repositories/nas", put).is(http.StatusCreated)
	var k repositoryShape
	if made.into(&k); k.Password == "" || k.Place.Bucket != "backups" || strings.Contains(made.Body.String(), "hush") {
		t.Errorf("made: %s", made.Body)
	}
	for _, user := range []string{"root", "ada"} {
		got := w.call(user, "GET", "/api/v1/repositories", "").is(http.StatusOK).Body.String()
		if strings.Contains(got, k.Password) || strings.Contains(got, "hush") || strings.Contains(got, "s3.lan") != (user == "root") {
			t.Errorf("%s sees %s", user, got)
		}
	}
	golden(t, "repositories", w.call("root", "GET", "/api/v1/repositories", "").Body.Bytes())

	w.ready("old")
	var b backupShape
	w.call("ada", "POST", "/api/v1/sandboxes/lab/backups?wait=ready", `{"repository":"nas"}`).is(http.StatusCreated).into(&b)
	if b.Repository != "nas" || b.Size == 0 || b.Files != 1 {
		t.Fatalf("got %+v", b)
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/backups", `{"repository":"other"}`).problem(http.StatusBadRequest, "invalid", "repository")
	var list backupsShape
	if w.call("ada", "GET", "/api/v1/backups?repository=nas", "").into(&list); len(list.Backups) != 1 || list.Backups[0].ID != b.ID {
		t.Errorf("listed are %+v", list)
	}
	all := w.call("ada", "GET", "/api/v1/backups/"+b.ID+"/archive", "").is(http.StatusOK)
	for query, body := range map[string]string{"?backup=" + b.ID: "", "": all.Body.String()} {
		w.homes.text = "new"
		if w.call("ada", "PUT", "/api/v1/sandboxes/lab/restore"+query, body, anyBytes...).is(http.StatusOK); w.homes.text != "old" {
			t.Errorf("restored with %q: the home has %q", query, w.homes.text)
		}
	}
	w.call("root", "POST", "/api/v1/repositories/nas/check", `{"contents":true}`).is(http.StatusOK)
	w.call("ada", "DELETE", "/api/v1/backups/"+b.ID, "").is(http.StatusNoContent)
	if w.call("ada", "GET", "/api/v1/backups?repository=nas", "").into(&list); len(list.Backups) != 0 {
		t.Errorf("listed after it was deleted: %+v", list)
	}
	limited := w.token("root", auth.NewToken{Name: "one", Sandbox: "lab"})
	if v := w.call("", "GET", "/api/v1/repositories/nas", "", "Authorization", "Bearer "+limited).is(http.StatusOK); strings.Contains(v.Body.String(), "place") {
		t.Errorf("a token of one sandbox is told the place: %s", v.Body)
	}
	w.call("root", "DELETE", "/api/v1/repositories/nas", "").is(http.StatusNoContent)
	w.call("root", "DELETE", "/api/v1/repositories/nas", "").is(http.StatusNotFound)
	w.call("", "PUT", "/api/v1/repositories/nas", put, "Authorization", "Bearer "+limited).is(http.StatusForbidden)
}

func TestRepositories_ThatCannotBeReachedSayWhyToAdmins(t *testing.T) {
	w := newWorld(t)
	w.call("root", "PUT", "/api/v1/repositories/nas", `{"kind":"folder","path":"/mnt/secret-place"}`).is(http.StatusCreated)
	w.ready("old")
	w.call("ada", "POST", "/api/v1/sandboxes/lab/backups?wait=ready", `{"repository":"nas"}`).is(http.StatusCreated)
	engine := w.server.cfg.Repositories.Engine.(*repositorytest.Engine)
	engine.Fail(errNoFolder)
	w.call("root", "POST", "/api/v1/repositories/nas/check", `{}`).is(http.StatusServiceUnavailable)
	changes := w.server.cfg.Backups.Subscribe()
	defer changes.Close()
	for user, want := range map[string]string{"root": "The folder /mnt/secret-place is not there.", "ada": "an admin is told why."} {
		for {
			var list backupsShape
			w.call(user, "GET", "/api/v1/backups?repository=nas", "").into(&list)
			if len(list.Backups) != 1 {
				t.Fatalf("%s sees %+v", user, list)
			}
			if got := list.Backups[0].Unreachable; got != "" {
				if got != want {
					t.Errorf("%s is told %q", user, got)
				}
				break
			}
			<-changes.C
		}
	}
}

var errNoFolder = fault.New(fault.Unavailable, "The folder /mnt/secret-place is not there.")

func TestRepositories_AreUsedBySchedules(t *testing.T) {
	w := newWorld(t)
	w.call("root", "PUT", "/api/v1/repositories/nas", `{"kind":"folder","path":"/mnt/secret-place"}`).is(http.StatusCreated)
	w.homes.text = "text"
	w.box("ada", "lab")
	var s scheduleShape
	w.call("ada", "POST", "/api/v1/schedules", `{"name":"nightly","cron":"@daily","target":{"kind":"mine"},"repository":"nas"}`).is(http.StatusCreated).into(&s)
	one := "/api/v1/schedules/" + s.ID
	run := func(work string) scheduleRunShape {
		var runs scheduleRunsShape
		w.call("ada", "POST", one+"/run", `{"work":"`+work+`"}`).is(http.StatusAccepted)
		ran(t, w.server.cfg.Schedules, s.ID)
		w.call("ada", "GET", one+"/runs", "").into(&runs)
		return runs.Runs[0]
	}
	made := run("backup")
	var b backupShape
	w.call("ada", "GET", "/api/v1/backups/"+made.Items[0].Backup, "").is(http.StatusOK).into(&b)
	if s.Repository != "nas" || made.Failed != 0 || b.Repository != "nas" || b.Schedule != s.ID || b.ExpiresAt != nil {
		t.Errorf("%+v made %+v: %+v", s, made, b)
	}
	if tested := run("test"); tested.Failed != 0 || len(tested.Items) != 1 || tested.Items[0].Backup != b.ID {
		t.Errorf("tested %+v", tested)
	}
	w.server.cfg.Repositories.Engine.(*repositorytest.Engine).Fail(fault.Wrap(repository.PlaceError{Public: "The repository cannot be reached.", Err: errNoFolder}, fault.Unavailable, "No /mnt/secret-place."))
	if got := w.call("ada", "POST", "/api/v1/sandboxes/lab/backups?wait=ready", `{"repository":"nas"}`).problem(http.StatusServiceUnavailable, "unavailable", ""); got.Detail != "The repository cannot be reached." {
		t.Errorf("says %+v", got)
	}
	if k, err := w.server.cfg.Repositories.Repository("nas"); err != nil || k.Problem != "No /mnt/secret-place." {
		t.Errorf("admins are told %q, %v", k.Problem, err)
	}
	w.call("ada", "PATCH", one, `{"repository":""}`).is(http.StatusOK).into(&s)
	if s.Repository != "" {
		t.Errorf("changed %+v", s)
	}
}
