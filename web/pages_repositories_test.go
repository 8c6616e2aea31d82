package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
	"sandboxd/internal/schedule"
)

func TestRepositoriesPage_IsForAdminsAndShowsNoSecret(t *testing.T) {
	s := newStage(t)
	for _, path := range []string{"", "/new", "/new?kind=s3", "/nas", "/nas/remove"} {
		s.get("ada", repositoriesPath+path).is(http.StatusForbidden)
	}
	if strings.Contains(s.get("ada", "/settings").Body.String(), repositoriesPath) {
		t.Error("a member is led there")
	}
	v := s.post("root", repositoriesPath, fields("kind", "s3", "name", "cloud", "endpoint", "s3.lan", "bucket", "backups", "access_key", "box", "secret_key", "hush-hush"))
	shown := v.need("#secret")
	password := attr(shown, "value")
	if len(password) < 20 {
		t.Fatalf("the password shown is %q", password)
	}
	for _, path := range []string{"", "/cloud", "/cloud/remove"} {
		text := s.get("root", repositoriesPath+path).is(http.StatusOK).Body.String()
		if strings.Contains(text, password) || strings.Contains(text, "hush-hush") {
			t.Errorf("%s has a secret", path)
		}
	}
	if got := textOf(s.get("root", repositoriesPath).need("#repository-cloud")); !strings.Contains(got, "s3.lan/backups") || !strings.Contains(got, "Can be used") {
		t.Errorf("the list has %q", got)
	}
	s.post("root", repositoryURL("cloud"), fields("kind", "s3", "endpoint", "s3.lan", "bucket", "backups", "access_key", "other")) // the secrets stay
	if k, err := s.server.cfg.Repositories.Repository("cloud"); err != nil || k.Place.AccessKey != "other" {
		t.Errorf("changed: %+v, %v", k, err)
	}
	s.post("root", repositoryURL("cloud")+"/remove", nil)
	if list := s.server.cfg.Repositories.List(); len(list) > 0 {
		t.Errorf("after it was removed: %+v", list)
	}
}

func TestRepositoriesPage_SaysWhatIsWrongBesideTheField(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct{ id, kind, field, value string }{
		{"name", "folder", "name", "No Name"}, {"path", "folder", "path", "relative"}, {"bucket", "s3", "bucket", "B"}, {"port", "sftp", "port", "x"},
	} {
		f := fields("kind", c.kind, "name", "nas", "path", "/mnt", "endpoint", "s3.lan", "bucket", "box", "host", "nas", "user", "ann", "password", "tell-nobody")
		f.Set(c.field, c.value)
		v := s.post("root", repositoriesPath, f)
		if v.find("#repository-"+c.id+"-fault") == nil || attr(v.need("#repository-"+c.id), "value") != c.value || strings.Contains(v.Body.String(), "tell-nobody") {
			t.Errorf("%s is not told of as it should be", c.id)
		}
	}
	engine := s.server.cfg.Repositories.Engine.(*repositorytest.Engine)
	engine.Fail(&fault.Error{Kind: fault.Conflict, Field: "take_over", Message: "Another sandboxd uses this repository."})
	v := s.post("root", repositoriesPath, fields("kind", "folder", "name", "nas", "path", "/mnt/nas", "password", "correct horse"))
	if text := v.Body.String(); !strings.Contains(text, `name="take_over"`) || !strings.Contains(text, "Another sandboxd uses this repository.") {
		t.Error("nothing offers to take over that of another")
	}
}

func TestRepositoriesPage_ShowsACheckAndWhatItFound(t *testing.T) {
	s := newStage(t)
	places := s.server.cfg.Repositories
	if _, _, err := places.Put(t.Context(), repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: "/mnt/nas"}}, false); err != nil {
		t.Fatal(err)
	}
	changes := places.Subscribe()
	defer changes.Close()
	s.post("root", repositoryURL("nas")+"/check", fields("contents", "on"))
	for {
		k, err := places.Repository("nas")
		if err != nil {
			t.Fatal(err)
		}
		if k.Result != nil && k.Doing == "" {
			break
		}
		<-changes.C
	}
	if got := textOf(s.get("root", repositoriesPath).need("#repository-nas")); !strings.Contains(got, "0 backups read in full") {
		t.Errorf("the list has %q", got)
	}
}

func TestRepositoriesPage_AreOfferedToSchedules(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	if s.get("ada", "/schedules/new").find("#schedule-repository") != nil {
		t.Error("one is asked where to when there is only the folder")
	}
	if _, _, err := s.server.cfg.Repositories.Put(t.Context(), repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: "/mnt/secret-place"}}, false); err != nil {
		t.Fatal(err)
	}
	if v := s.get("ada", "/schedules/new"); !strings.Contains(textOf(v.need("#schedule-repository")), "Repository nas") || strings.Contains(v.Body.String(), "secret-place") {
		t.Errorf("offers %s", v.Body)
	}
	v := s.post("ada", "/schedules", scheduleEntries("mine", "repository", "other")).is(http.StatusBadRequest)
	if text := textOf(v.need("#schedule-repository-fault")); !strings.Contains(text, "There is no backup repository") {
		t.Errorf("says %q", text)
	}
	s.post("ada", "/schedules", scheduleEntries("mine", "repository", "nas")).leads("/schedules")
	if text := textOf(s.get("ada", "/schedules").need("#schedules")); !strings.Contains(text, "nas") {
		t.Errorf("the list has %q", text)
	}
	if text := textOf(s.get("root", repositoriesPath+"/nas/remove").need("main")); !strings.Contains(text, "will fail until you change them: nightly.") {
		t.Errorf("asks %q", text)
	}
	s.post("root", repositoriesPath+"/nas/remove", nil)
	list, err := s.server.cfg.Schedules.List(t.Context(), func(schedule.Schedule) bool { return true })
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if v := s.get("ada", "/schedules/"+list[0].ID+"/edit"); !strings.Contains(textOf(v.need("#schedule-repository")), "nas (removed)") {
		t.Errorf("edits %s", v.Body)
	}
	s.post("ada", "/schedules/"+list[0].ID+"/edit", scheduleEntries("mine", "repository", "nas", "name", "other", "next", "/schedules")).leads("/schedules")
}
