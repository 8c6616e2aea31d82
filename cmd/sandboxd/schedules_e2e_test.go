//go:build e2e

package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// scheduleBody is a schedule as the API tells it.
type scheduleBody struct {
	ID   string
	Next []time.Time
}

// runsBody are runs of a schedule.
type runsBody struct {
	Runs []struct {
		Work, State, Problem string
		Missed, Failed       int
		Items                []struct{ Sandbox, Backup, Problem string }
	}
}

// scheduledBody is a backup of a schedule.
type scheduledBody struct {
	ID, Sandbox, Schedule string
	Consistent            bool
	Expires               *time.Time `json:"expires_at"`
}

// plan makes a schedule.
func (s *server) plan(in map[string]any) scheduleBody {
	s.t.Helper()
	var made scheduleBody
	if status := s.call("POST", "/schedules", in, &made); status != http.StatusCreated {
		s.t.Fatalf("create schedule: %d", status)
	}
	return made
}

// runsOf gives the runs of a schedule, once none is under way.
func (s *server) runsOf(id string) (got runsBody) {
	s.t.Helper()
	s.until("no run is under way", func() bool {
		got = runsBody{}
		s.call("GET", "/schedules/"+id+"/runs", nil, &got)
		return len(got.Runs) > 0 && got.Runs[0].State != "running"
	})
	return got
}

// plannedRun begins a run and waits for its end.
func (s *server) plannedRun(id, work string) runsBody {
	s.t.Helper()
	if status, text := s.raw("POST", "/schedules/"+id+"/run", map[string]string{"work": work}); status != http.StatusAccepted {
		s.t.Fatalf("run: %d %s", status, text)
	}
	return s.runsOf(id)
}

func (s *server) scheduledBackups() (list []scheduledBody) {
	s.t.Helper()
	var got struct{ Backups []scheduledBody }
	s.call("GET", "/backups", nil, &got)
	return got.Backups
}

// TestSchedules_BackUpKeepAndTestRestores has a schedule make backups of a sandbox that runs and of one that is asleep, keep two of each,
// and restore the newest ones into sandboxes that are gone afterwards, also when sandboxd is killed meanwhile.
func TestSchedules_BackUpKeepAndTestRestores(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base", "env": map[string]string{"SECRET": "x"}})
	s.asRoot("lab", oddHome)
	s.create(map[string]any{"name": "den", "template": "base"})
	s.exec("den", map[string]any{"command": "echo text >notes"})
	s.sleeps("den", "asleep")
	one := s.plan(map[string]any{"name": "nightly", "cron": "30 3 * * *", "target": map[string]string{"kind": "mine"}, "keep": map[string]int{"last": 2}})
	if len(one.Next) != 5 {
		t.Fatalf("made %+v", one)
	}
	for range 3 {
		if got := s.plannedRun(one.ID, "backup"); got.Runs[0].Failed != 0 || len(got.Runs[0].Items) != 2 {
			t.Fatalf("run %+v", got.Runs[0])
		}
	}
	s.call("POST", "/sandboxes/lab/backups?wait=ready", nil, nil)
	if list := s.scheduledBackups(); len(list) != 5 {
		t.Errorf("backups %+v", list)
	} else if byHand := slices.IndexFunc(list, func(b scheduledBody) bool { return b.Schedule == "" }); byHand < 0 || list[byHand].Expires == nil || !list[byHand].Consistent {
		t.Errorf("backups %+v", list)
	}
	var den sandboxBody
	if s.call("GET", "/sandboxes/den", nil, &den); den.State != "asleep" {
		t.Errorf("den is %s", den.State)
	}
	if got := s.plannedRun(one.ID, "test"); got.Runs[0].Work != "test" || got.Runs[0].Failed != 0 || len(got.Runs[0].Items) != 2 {
		t.Errorf("test %+v", got.Runs[0])
	}
	s.wantBoxes("after a test", "den", "lab")
	s.killDuringTest(one.ID)
	if status := s.call("DELETE", "/schedules/"+one.ID, nil, nil); status != http.StatusNoContent {
		t.Fatalf("delete: %d", status)
	}
	s.expireSoon()
}

// killDuringTest kills sandboxd while a test has a sandbox, and starts it again.
func (s *server) killDuringTest(id string) {
	s.t.Helper()
	if status, text := s.raw("POST", "/schedules/"+id+"/run", map[string]string{"work": "test"}); status != http.StatusAccepted {
		s.t.Fatalf("run: %d %s", status, text)
	}
	s.until("the test has a sandbox", func() bool {
		return slices.ContainsFunc(s.boxNames(), func(name string) bool { return strings.HasPrefix(name, "restore-test-") })
	})
	s.kill()
	s.start()
	s.wantBoxes("after a kill", "den", "lab")
	if got := s.runsOf(id); got.Runs[0].State != "cut-off" {
		s.t.Errorf("the test is %+v", got.Runs[0])
	}
}

func (s *server) boxNames() (names []string) {
	s.t.Helper()
	var list struct{ Sandboxes []sandboxBody }
	s.call("GET", "/sandboxes", nil, &list)
	for _, b := range list.Sandboxes {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// wantBoxes waits until there are these sandboxes alone.
func (s *server) wantBoxes(what string, want ...string) {
	s.t.Helper()
	s.until(what+" only "+strings.Join(want, " and ")+" are there", func() bool { return slices.Equal(s.boxNames(), want) })
}

// expireSoon waits until all backups expire.
func (s *server) expireSoon() {
	s.t.Helper()
	s.until("all backups expire", func() bool {
		list := s.scheduledBackups()
		return len(list) == 5 && !slices.ContainsFunc(list, func(b scheduledBody) bool { return b.Expires == nil || time.Until(*b.Expires) < 6*24*time.Hour })
	})
}
