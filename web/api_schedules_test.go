package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/schedule"
)

// ran waits until no run of a schedule is under way.
func ran(t *testing.T, s *schedule.Service, id string) {
	t.Helper()
	changes := s.Subscribe()
	defer changes.Close()
	for {
		if _, busy := s.Busy(id); !busy {
			return
		}
		select {
		case <-changes.C:
		case <-t.Context().Done():
			t.Fatal("the run does not end")
		}
	}
}

const nightly = `{"name": "nightly", "cron": "30 3 * * *", "zone": "Europe/Berlin", "target": {"kind": "sandbox", "sandbox": "lab"}}`

func TestSchedules_AreMadeRunChangedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.homes.text = "text"
	w.box("ada", "lab")
	var s scheduleShape
	got := w.call("ada", "POST", "/api/v1/schedules", nightly).is(http.StatusCreated)
	got.into(&s)
	if path := "/api/v1/schedules/" + s.ID; got.Header().Get("Location") != path || s.Owner != "ada" || len(s.Next) != 5 || s.Keep != keepShape(defaultKeep) || !s.Enabled || s.LastRun != nil {
		t.Fatalf("made %+v", s)
	}
	one := "/api/v1/schedules/" + s.ID
	w.call("ada", "POST", one+"/run", "").is(http.StatusAccepted)
	ran(t, w.server.cfg.Schedules, s.ID)
	var runs scheduleRunsShape
	w.call("ada", "GET", one+"/runs", "").is(http.StatusOK).into(&runs)
	if len(runs.Runs) != 1 || runs.Runs[0].State != "done" || len(runs.Runs[0].Items) != 1 || runs.Runs[0].Items[0].Problem != "" {
		t.Fatalf("runs %+v", runs)
	}
	item := runs.Runs[0].Items[0]
	fixed := strings.NewReplacer(item.Backup, "backup", item.SandboxID, "sandbox")
	golden(t, "schedule_runs", []byte(fixed.Replace(w.call("ada", "GET", one+"/runs", "").Body.String())))
	var b backupShape
	if w.call("ada", "GET", "/api/v1/backups/"+runs.Runs[0].Items[0].Backup, "").is(http.StatusOK).into(&b); b.Schedule != s.ID || b.ExpiresAt != nil {
		t.Errorf("the backup is %+v", b)
	}
	w.call("ada", "PATCH", one, `{"enabled": false, "root": true, "keep": {"last": 1}, "test_cron": "@weekly"}`).is(http.StatusOK).into(&s)
	if s.Enabled || !s.Root || len(s.Next) != 0 || s.Keep != (keepShape{Last: 1}) || s.TestCron != "@weekly" || s.Cron != "30 3 * * *" {
		t.Errorf("changed %+v", s)
	}
	golden(t, "schedule", []byte(fixed.Replace(w.call("ada", "GET", one, "").Body.String())))
	w.call("ada", "DELETE", one, "").is(http.StatusNoContent)
	w.call("ada", "GET", one, "").is(http.StatusNotFound)
	w.call("ada", "POST", one+"/run", "").is(http.StatusNotFound)
	checkRecorded(t, w.server, "ada api schedule.create  nightly done", "ada api schedule.run  nightly done", "ada api schedule.change  nightly done",
		"ada api schedule.delete  nightly done", "ada api schedule.run  "+s.ID+" refused")
}

func TestSchedules_OfADeletedSandboxArePaused(t *testing.T) {
	w := newWorld(t)
	w.homes.text = "text"
	w.box("ada", "lab")
	var s scheduleShape
	w.call("ada", "POST", "/api/v1/schedules", nightly).is(http.StatusCreated).into(&s)
	one := "/api/v1/schedules/" + s.ID
	w.call("ada", "POST", one+"/run", "").is(http.StatusAccepted)
	ran(t, w.server.cfg.Schedules, s.ID)
	changes := w.server.cfg.Schedules.Subscribe()
	defer changes.Close()
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab", "").is(http.StatusAccepted)
	for s.Enabled {
		select {
		case <-changes.C:
			w.call("ada", "GET", one, "").is(http.StatusOK).into(&s)
		case <-t.Context().Done():
			t.Fatal("it is not paused")
		}
	}
	if s.Target != (targetShape{Kind: "sandbox", Sandbox: "lab", Deleted: true}) || len(s.Next) != 0 {
		t.Errorf("it is %+v", s)
	}
	w.call("ada", "POST", one+"/run", "").is(http.StatusConflict)
	w.call("ada", "PATCH", one, `{"enabled": true}`).is(http.StatusConflict)
	w.call("ada", "PATCH", one, `{"name": "old"}`).is(http.StatusOK)
}

func TestSchedules_TestThatABackupCanBeRestored(t *testing.T) {
	w := newWorld(t)
	w.homes.text = "text"
	w.box("ada", "lab")
	var s scheduleShape
	w.call("ada", "POST", "/api/v1/schedules", nightly).is(http.StatusCreated).into(&s)
	one := "/api/v1/schedules/" + s.ID
	for _, body := range []string{"", `{"work": "test"}`} {
		w.call("ada", "POST", one+"/run", body).is(http.StatusAccepted)
		ran(t, w.server.cfg.Schedules, s.ID)
	}
	var runs scheduleRunsShape
	w.call("ada", "GET", one+"/runs", "").into(&runs)
	if len(runs.Runs) != 2 || runs.Runs[0].Work != "test" || runs.Runs[0].Failed != 0 || runs.Runs[0].Items[0].Backup != runs.Runs[1].Items[0].Backup {
		t.Errorf("runs %+v", runs)
	}
	if got, ok := w.server.cfg.Schedules.Tested(runs.Runs[1].Items[0].Backup); !ok || got.Problem != "" {
		t.Errorf("tested %+v", got)
	}
	w.call("ada", "POST", one+"/run", `{"work": "dance"}`).problem(http.StatusBadRequest, "invalid", "work")
}

func TestSchedules_AreTheirOwners(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	var s scheduleShape
	w.call("ada", "POST", "/api/v1/schedules", nightly).is(http.StatusCreated).into(&s)
	one := "/api/v1/schedules/" + s.ID
	for _, c := range []struct{ method, path, body string }{{"GET", one, ""}, {"PATCH", one, `{"name":"x"}`}, {"DELETE", one, ""}, {"POST", one + "/run", ""}, {"GET", one + "/runs", ""}} {
		w.call("bob", c.method, c.path, c.body).is(http.StatusNotFound)
	}
	var list schedulesShape
	if w.call("bob", "GET", "/api/v1/schedules", "").is(http.StatusOK).into(&list); len(list.Schedules) != 0 {
		t.Errorf("bob sees %+v", list)
	}
	if w.call("root", "GET", "/api/v1/schedules", "").is(http.StatusOK).into(&list); len(list.Schedules) != 1 || list.Schedules[0].Target.Sandbox != "lab" {
		t.Errorf("root sees %+v", list)
	}
	w.call("bob", "POST", "/api/v1/schedules", nightly).problem(http.StatusBadRequest, "invalid", "sandbox")
	w.call("root", "POST", "/api/v1/schedules", `{"name": "all", "cron": "@daily", "target": {"kind": "all"}}`).is(http.StatusCreated)
}

func TestSchedules_ErrorsNameTheirField(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for body, field := range map[string]string{
		`{"name": "x", "cron": "@daily"}`:                                                                          "target",
		`{"name": "x", "target": {"kind": "mine"}}`:                                                                "cron",
		`{"cron": "@daily", "target": {"kind": "mine"}}`:                                                           "name",
		`{"name": "x", "cron": "* * * * *", "target": {"kind": "mine"}}`:                                           "cron",
		`{"name": "x", "cron": "@daily", "zone": "Moon", "target": {"kind": "mine"}}`:                              "zone",
		`{"name": "x", "cron": "@daily", "target": {"kind": "all"}}`:                                               "target",
		`{"name": "x", "cron": "@daily", "target": {"kind": "mine"}, "keep": {}}`:                                  "keep",
		`{"name": "x", "cron": "@daily", "target": {"kind": "mine"}, "repository": "nas"}`:                         "repository",
		`{"name": "x", "cron": "@daily", "target": {"kind": "mine"}, "test_cron": "often"}`:                        "test_cron",
		`{"name": "x", "cron": "@daily", "target": {"kind": "sandbox", "sandbox": "none"}}`:                        "sandbox",
		`{"name": "x", "cron": "@daily", "target": {"kind": "mine"}, "colour": "red"}`:                             "colour",
		`{"name": "x", "cron": "@daily", "target": {"kind": "sandbox", "sandbox": "lab"}, "keep": {"last": 1000}}`: "keep",
	} {
		w.call("ada", "POST", "/api/v1/schedules", body).problem(http.StatusBadRequest, "invalid", field)
	}
}
