package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/schedule"
)

// planned makes a schedule of a sandbox on the stage by the form, and gives it.
func (s *stage) planned(user, box string) schedule.Schedule {
	s.t.Helper()
	s.post(user, "/schedules", scheduleEntries("sandbox "+s.ref(box).ID())).leads("/schedules")
	list, err := s.server.cfg.Schedules.List(s.t.Context(), func(one schedule.Schedule) bool { return one.Owner == s.users[user].ID })
	if err != nil || len(list) == 0 {
		s.t.Fatalf("made %v, %v", list, err)
	}
	return list[len(list)-1]
}

// scheduleEntries fill the form of a schedule.
func scheduleEntries(target string, more ...string) url.Values {
	v := fields("name", "nightly", "target", target, "every", "day", "at", "03:30", "weekday", "0", "cron", "", "zone", "Europe/Berlin",
		"last", "2", "daily", "7", "weekly", "0", "monthly", "", "test", "0 5 * * 0")
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

func TestSchedulesPage_IsEmptyAtFirst(t *testing.T) {
	s := newBackupStage(t)
	v := s.get("ada", "/schedules").is(http.StatusOK)
	if text := textOf(v.need("#schedules")); !strings.Contains(text, "No schedules yet") {
		t.Errorf("says %q", text)
	}
	s.get("", "/schedules").is(http.StatusSeeOther)
}

func TestSchedulesPage_ShowsWhatIsPlannedAndHowItWent(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	s.homes.put(box.ID, map[string]string{"notes": "text"})
	one := s.planned("ada", "lab")
	if one.Cron != "30 3 * * *" || one.Keep != (schedule.Keep{Last: 2, Daily: 7}) || one.TestCron != "0 5 * * 0" || one.Target.SandboxID != box.ID {
		t.Fatalf("made %+v", one)
	}
	text := textOf(s.get("ada", "/schedules").is(http.StatusOK).need("#schedules"))
	for _, want := range []string{"nightly", "lab", "Every day at 03:30", "Keeps the last 2 and one a day for 7 days", "Restore test every week on Sunday at 05:00", "Not run yet", "Next in", "Run now", "Pause"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	page := "/schedules/" + one.ID
	s.post("ada", page+"/run", fields("next", page)).leads(page)
	ran(t, s.server.cfg.Schedules, one.ID)
	s.post("ada", page+"/run", fields("next", page, "work", "test")).leads(page)
	ran(t, s.server.cfg.Schedules, one.ID)
	text = textOf(s.get("ada", page).is(http.StatusOK).need("#schedule"))
	for _, want := range []string{"Restore test", "Backups", "Done", "Backup, ", "started by hand", "1 sandbox", "Backed up", "Restored"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if text := textOf(s.get("ada", "/sandboxes/lab/backups").is(http.StatusOK).need("#backups")); !strings.Contains(text, "by nightly") || !strings.Contains(text, "restore tested") || strings.Contains(text, "kept for 7 d more") {
		t.Errorf("the backup: %q", text)
	}
	s.post("ada", page+"/switch", fields("on", "")).leads("/schedules")
	if text := textOf(s.get("ada", "/schedules").need("#schedules")); !strings.Contains(text, "paused") || !strings.Contains(text, "Resume") {
		t.Errorf("paused: %q", text)
	}
	if text := s.get("ada", page+"/delete").is(http.StatusOK).Body.String(); !strings.Contains(text, "Its backup is kept for 7 d more.") {
		t.Errorf("asks %s", text)
	}
	s.post("ada", page+"/delete", fields()).leads("/schedules")
	s.get("ada", page).is(http.StatusNotFound)
}

func TestSchedulesPage_AnotherUsersAreNotThere(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	one := s.planned("ada", "lab")
	for _, path := range []string{"", "/edit", "/delete"} {
		s.get("bob", "/schedules/"+one.ID+path).is(http.StatusNotFound)
	}
	for _, path := range []string{"/edit", "/run", "/switch", "/delete"} {
		s.post("bob", "/schedules/"+one.ID+path, scheduleEntries("mine")).is(http.StatusNotFound)
	}
	if v := s.get("bob", "/schedules").is(http.StatusOK); strings.Contains(textOf(v.need("#schedules")), "nightly") {
		t.Error("bob sees ada's")
	}
	if v := s.get("root", "/schedules").is(http.StatusOK); !strings.Contains(textOf(v.need("#schedules")), "ada") {
		t.Error("root does not see whose it is")
	}
	s.post("bob", "/schedules", scheduleEntries("sandbox "+s.ref("lab").ID())).is(http.StatusBadRequest)
}

func TestScheduleForm_SaysWhatIsWrongBesideIt(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	for _, c := range []struct{ field, value, beside, want string }{
		{"name", "", "#schedule-name-fault", "The name has"},
		{"at", "soon", "#schedule-at-fault", "Enter a time"},
		{"zone", "Moon", "#schedule-zone-fault", "There is no time zone"},
		{"target", "all", "#schedule-target-fault", "Only admins"},
		{"last", "many", "#schedule-keep-fault", "not a whole number"},
		{"test", "never", "#schedule-test-fault", "is no schedule"},
	} {
		v := s.post("ada", "/schedules", scheduleEntries("mine", c.field, c.value)).is(http.StatusBadRequest)
		if text := textOf(v.need(c.beside)); !strings.Contains(text, c.want) {
			t.Errorf("%s: says %q", c.field, text)
		}
		if text := v.Body.String(); !strings.Contains(text, "Europe/Berlin") && c.field != "zone" {
			t.Errorf("%s: forgets what was entered", c.field)
		}
	}
	v := s.post("ada", "/schedules", scheduleEntries("mine", "every", "cron", "cron", "* * * * *")).is(http.StatusBadRequest)
	if text := textOf(v.need("#schedule-cron-fault")); !strings.Contains(text, "more often than every 15 minutes") {
		t.Errorf("says %q", text)
	}
}

func TestScheduleForm_BeginsWithTheSandboxAndPreviews(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	v := s.get("ada", "/schedules/new?sandbox=lab").is(http.StatusOK)
	if attr(v.need("#schedule-name"), "value") != "lab" || !strings.Contains(textOf(v.need("#schedule-preview")), "Keeps the last 3, one a day for 7 days and one a week for 4 weeks of each sandbox.") {
		t.Errorf("begins with %s", v.Body)
	}
	part := s.get("ada", "/schedules/preview?"+scheduleEntries("mine", "every", "week", "weekday", "1").Encode()).is(http.StatusOK)
	if text := textOf(part.need("#schedule-preview")); strings.Count(text, "Mon ") != 5 || !strings.Contains(text, "03:30 CE") {
		t.Errorf("previews %q", text)
	}
	part = s.get("ada", "/schedules/preview?"+scheduleEntries("mine", "last", "-3").Encode()).is(http.StatusOK)
	if text := textOf(part.need("#schedule-preview")); !strings.Contains(text, "Each number of backups to keep is 0 to 999.") {
		t.Errorf("previews %q", text)
	}
	part = s.get("ada", "/schedules/preview?"+scheduleEntries("mine", "every", "cron", "cron", "nonsense").Encode()).is(http.StatusOK)
	if text := textOf(part.need("#schedule-preview")); !strings.Contains(text, "is no schedule") {
		t.Errorf("previews %q", text)
	}
	one := s.planned("ada", "lab")
	v = s.get("ada", "/schedules/"+one.ID+"/edit").is(http.StatusOK)
	if attr(v.need("#schedule-at"), "value") != "03:30" || attr(v.need("#schedule-zone"), "value") != "Europe/Berlin" {
		t.Errorf("edits %s", v.Body)
	}
	s.post("ada", "/schedules/"+one.ID+"/edit", scheduleEntries("mine", "every", "hour", "root", "on", "next", "/schedules")).leads("/schedules")
	if now, err := s.server.cfg.Schedules.Schedule(t.Context(), one.ID); err != nil || now.Cron != "0 * * * *" || now.Target.Kind != schedule.Mine || !now.Root {
		t.Errorf("changed %+v, %v", now, err)
	}
}

func TestLiveSchedules_FollowARun(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	s.homes.put(box.ID, map[string]string{"notes": "text"})
	one := s.planned("ada", "lab")
	list, _ := s.follow("ada", s.topicOf("ada", "/schedules"))
	detail, _ := s.follow("ada", s.topicOf("ada", "/schedules/"+one.ID))
	release := s.homes.hold()
	if _, err := s.server.cfg.Schedules.RunNow(t.Context(), one.ID, schedule.Backups); err != nil {
		t.Fatal(err)
	}
	list.until("Running")
	detail.until("Not done yet")
	release()
	list.until("Done")
	detail.until("Backed up")
	if _, err := s.server.cfg.Schedules.Update(t.Context(), one.ID, func(c *schedule.Schedule) { c.Name = "weekly" }); err != nil {
		t.Fatal(err)
	}
	if news := detail.until("<title>weekly"); !strings.Contains(news, `<span class="clip">weekly</span>`) {
		t.Errorf("renamed: %s", news)
	}
	if err := s.server.cfg.Schedules.Delete(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	list.until("No schedules yet")
	detail.until("This schedule was deleted")
}

func TestRunState_SaysWhenItTriesAgain(t *testing.T) {
	at := time.Date(2026, 11, 22, 13, 5, 0, 0, time.UTC)
	r := schedule.Run{State: schedule.Running, Retry: at, Items: []schedule.Item{{Sandbox: "lab", Problem: "No.", Ended: at}, {Sandbox: "den", Ended: at}}}
	if v := runState(r, "Europe/Berlin"); v.Text != "Trying again at 14:05" || v.Why != "1 of 2 sandboxes failed so far" {
		t.Errorf("it waits: %+v", v)
	}
	r.Retry, r.Items[0] = time.Time{}, schedule.Item{Sandbox: "lab"}
	if v := runState(r, "UTC"); v.Text != "Running" || v.Why != "1 of 2 done" {
		t.Errorf("it tries again: %+v", v)
	}
}

func TestAlerts_AboutBackupsLeadToTheirSchedule(t *testing.T) {
	s := newBackupStage(t)
	lab := s.put("ada", "lab", nil)
	one := s.planned("ada", "lab")
	rule := alert.Rule{ID: "failed", Name: "Backup failed", Kind: alert.BackupFailed, Remind: 12 * time.Hour}
	of, whole := firing("of-lab", rule, lab, "the last backup failed"), firing("of-all", rule, sandbox.Sandbox{Owner: lab.Owner}, "no run was good")
	of.Target.Part, whole.Target.Part = "nightly", "another"
	s.alerts.put("", []alert.Rule{rule}, of, whole)
	if _, err := s.alerts.SetRules(t.Context(), "", []alert.Rule{rule}); err != nil { // so that it reads what is kept
		t.Fatal(err)
	}
	v := s.get("root", "/alerts").is(http.StatusOK)
	for id, want := range map[string]string{"of-lab": "/schedules/" + one.ID, "of-all": "/schedules"} {
		var links []string
		for n := range alertOn(v, id).Descendants() {
			links = append(links, attr(n, "href"))
		}
		if !slices.Contains(links, want) || strings.Contains(strings.Join(links, " "), "/metrics") {
			t.Errorf("%s leads to %v", id, links)
		}
	}
}

func TestPlan_IsReadBackAsItWasEntered(t *testing.T) {
	for _, p := range []plan{
		{every: everyHour}, {every: everyDay, at: "00:05"}, {every: everyWeek, at: "23:59", weekday: "6"}, {every: everyMonth, at: "12:00"}, {every: byCron, cron: "0 3 1,15 * *"},
	} {
		got := planOf(p.expression())
		if got.every != p.every || p.at != "" && got.at != p.at || p.weekday != "" && got.weekday != p.weekday || p.cron != "" && got.cron != p.cron {
			t.Errorf("%+v comes back as %+v", p, got)
		}
	}
	for cron, want := range map[string]string{"@hourly": "Every hour", "@daily": "Every day at 00:00", "@weekly": "Every week on Sunday at 00:00", "@monthly": "Every month on the 1st at 00:00",
		"0 3 * 1 *": "Cron 0 3 * 1 *", "15 * * * *": "Cron 15 * * * *", "0 3 * * mon": "Cron 0 3 * * mon"} {
		if got := planOf(cron).words(); got != want {
			t.Errorf("%s: %q, want %q", cron, got, want)
		}
	}
}
