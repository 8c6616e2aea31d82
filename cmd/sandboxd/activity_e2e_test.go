//go:build e2e

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/sqlite"
)

// entries gives all that is recorded on the disk, oldest first.
func (s *server) entries() []activity.Entry {
	s.t.Helper()
	store := sqlite.OpenActivity(s.t.Context(), activityPath(&Config{Data: s.data}), slog.New(slog.DiscardHandler))
	defer store.Close()
	all, err := store.Find(s.t.Context(), activity.Query{Scope: activity.Scope{All: true}, Limit: activity.MaxLimit})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// triesToSignIn sends the sign-in form.
func (s *server) triesToSignIn(name, password string) {
	s.t.Helper()
	resp, err := http.PostForm("http://"+s.addr+"/login", url.Values{"name": {name}, "password": {password}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
}

// recorded says whether there is an entry that matches.
func (s *server) recorded(query string) bool {
	s.t.Helper()
	var found struct{ Entries []struct{ Action string } }
	s.call("GET", "/activity?"+query, nil, &found)
	return len(found.Entries) > 0
}

// TestActivity_TellsWhoDidWhat does something in every way, and finds all of it.
func TestActivity_TellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--settle", "1s", "--templates", echoTemplates(t))
	var me struct{ Name string }
	s.call("GET", "/users/me", nil, &me)
	s.create(map[string]any{"name": "lab", "template": "echo"})
	s.exec("lab", map[string]any{"command": "SECRET=hush true"})
	s.sleeps("lab", "asleep")
	s.raw("POST", "/sandboxes/lab/start?wait=ready", nil) // no wake beside it
	s.sleeps("lab", "asleep")
	s.get("lab", "/", nil) // wakes it
	s.until("it is awake", func() bool { return s.rest("lab").State == "running" })
	s.sleeps("lab", "asleep")
	s.exec("lab", map[string]any{"command": "true"})
	s.sleeps("lab", "asleep")
	l := newLaptop(s)
	l.must(l.run("", "sandboxd", "ssh", "lab", "--", "true"))
	s.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "1s"})
	s.until("it is frozen by itself, and that is over", func() bool { return s.recorded("action=sandbox.freeze&outcome=done") })
	s.triesToSignIn("mallory", "hush hush hush")
	s.raw("DELETE", "/sandboxes/nothing", nil)
	s.raw("DELETE", "/sandboxes/lab?wait=gone", nil)
	s.stop() // what waits is written

	var got []string
	all := s.entries()
	last, create := activity.Entry{}, all[0]
	for _, e := range all {
		if strings.Contains(fmt.Sprintf("%+v", e), "hush") {
			t.Errorf("a secret is recorded: %+v", e)
		}
		asked := slices.Contains([]activity.Via{activity.API, activity.Address, activity.SSH}, e.Via)
		if asked && (e.User != me.Name || e.UserID == "" || e.UserID != create.UserID || e.Token == "" || e.From != "127.0.0.1") {
			t.Errorf("it is not told who asked: %+v", e)
		}
		if e.Sandbox == "lab" && (e.SandboxID == "" || e.SandboxID != create.SandboxID || e.Owner != create.UserID) {
			t.Errorf("it is not told which sandbox: %+v", e)
		}
		if e.Time.Before(last.Time.Add(-time.Second)) && e.Action != "command.run" || time.Since(e.Time) > time.Hour {
			t.Errorf("the time is wrong: %+v", e)
		}
		last = e
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Via, e.Action, cmp.Or(e.Sandbox, e.Object), e.Outcome))
	}
	want := []string{
		"api sandbox.create lab done", "api command.run lab done", "api sandbox.sleep lab done", "api sandbox.start lab done",
		"api sandbox.sleep lab done", "address sandbox.wake lab done", "api sandbox.sleep lab done", "api sandbox.wake lab done",
		"api sandbox.sleep lab done", "ssh ssh.open lab done", "ssh sandbox.wake lab done", "api sandbox.change lab done", "sandboxd sandbox.freeze lab done",
		"page account.login mallory refused", "api sandbox.delete nothing refused", "api sandbox.delete lab done",
		"api command.run lab done", // the second one, of the end
	}
	slices.Sort(got) // a request is recorded once it is answered, and the next one may be quicker
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("recorded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestActivity_AKillLosesASecondAtMost kills sandboxd a second after an action.
func TestActivity_AKillLosesASecondAtMost(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	for i := range 3 {
		s.raw("DELETE", fmt.Sprintf("/sandboxes/kept-%d", i), nil)
	}
	pause := time.NewTimer(time.Second)
	<-pause.C
	s.kill()
	if got := s.entries(); len(got) != 3 || got[2].Sandbox != "kept-2" {
		t.Errorf("of what was done a second before there is %+v", got)
	}
	s.start()
	s.raw("DELETE", "/sandboxes/later", nil)
	s.stop()
	if got := s.entries(); len(got) != 4 || got[3].ID != 4 || got[3].Sandbox != "later" {
		t.Errorf("later there is %+v", got)
	}
}
