package web

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"sandboxd/internal/activity"
	"sandboxd/internal/auth"
)

// recorded gives all entries of a server, oldest first.
func recorded(t *testing.T, s *Server) []activity.Entry {
	t.Helper()
	all, _, err := s.cfg.Activity.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}, Limit: activity.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// entryLine is what tests compare of an entry.
func entryLine(e activity.Entry) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", e.User, e.Via, e.Action, e.Sandbox, e.Object, e.Outcome))
}

func checkRecorded(t *testing.T, s *Server, want ...string) {
	t.Helper()
	var got []string
	for _, e := range recorded(t, s) {
		got = append(got, entryLine(e))
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRecordings_AreOfEveryRoute wants a line for each route that changes something, for each that opens a session in a sandbox, and for
// each that hands out a backup.
func TestRecordings_AreOfEveryRoute(t *testing.T) {
	named := []string{"exec", "ssh", "tunnel", "ws", "backup", "archive"} // what the paths of such GETs end with
	used := map[string]bool{}
	for _, r := range newWorld(t).server.routes() {
		rec, ok := recordingOf(r.method, r.path)
		if ok {
			used[rec.method+rec.path] = true
		}
		if wanted := r.method != http.MethodGet || slices.Contains(named, path.Base(r.path)); wanted != ok {
			t.Errorf("%s %s: there is a line about it in recordings: %v, want %v", r.method, r.path, ok, wanted)
		}
	}
	for _, rec := range recordings {
		if !used[rec.method+rec.path] {
			t.Errorf("%s %s: there is no such route", rec.method, rec.path)
		}
		if rec.action == "" && rec.not == "" || rec.action != "" && !rec.action.Known() {
			t.Errorf("%s %s: neither an action nor a reason: %q", rec.method, rec.path, rec.action)
		}
		delete(used, rec.method+rec.path) // a second line is never found
	}
}

func TestRecord_TellsWhoDidWhatAndHow(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"name": "lab", "template": "base"}`).is(http.StatusCreated)
	w.call("bob", "DELETE", "/api/v1/sandboxes/lab", "")
	w.call("root", "PATCH", "/api/v1/sandboxes/lab", `{"label": "Lab"}`)
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command": "TOKEN=hush make --password=hush"}`)
	w.call("ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command": ["/usr/bin/python3", "-c", "hush"], "stdin": "hush", "env": {"A": "hush"}}`)
	w.call("ada", "POST", "/api/v1/tokens", `{"name": "ci"}`)
	w.call("ada", "POST", "/api/v1/orphans/x/adopt", `{}`) // for admins only
	w.call("ada", "PUT", "/api/v1/sandboxes/lab/ports/3000", `{"visibility": "public"}`)
	w.call("ada", "PUT", "/api/v1/sandboxes/lab/files?path=/home/agent/a.txt", "hush")
	w.call("ada", "POST", `/api/v1/sandboxes/lab/files:move`, `{"from": ["a"], "to": "b"}`)
	w.call("ada", "GET", "/api/v1/sandboxes/lab", "")
	w.call("ada", "GET", "/api/v1/sandboxes/lab/exec", "") // no websocket
	w.call("", "DELETE", "/api/v1/sandboxes/lab", "")      // of nobody who is known
	all := recorded(t, w.server)
	checkRecorded(t, w.server,
		"ada api sandbox.create lab base done", "bob api sandbox.delete lab  refused", "root api sandbox.change lab  done",
		"ada api command.run lab make done", "ada api command.run lab /usr/bin/python3 done", "ada api token.create  ci done",
		"ada api orphan.adopt  x refused", "ada api port.visibility lab 3000: public done",
		"ada api file.write lab /home/agent/a.txt done", "ada api file.move lab a to b done")
	for _, e := range all {
		if strings.Contains(fmt.Sprintf("%+v", e), "hush") {
			t.Errorf("a secret is recorded: %+v", e)
		}
		if e.From != "192.0.2.1" || e.Request == "" || e.Token == "" || e.UserID == "" {
			t.Errorf("something is missing: %+v", e)
		}
		if owned := e.Sandbox == "lab" && e.User != "bob"; owned && (e.Owner != w.ids["ada"] || e.SandboxID == "") || !owned && e.Owner != "" {
			t.Errorf("the owner is wrong: %+v", e)
		}
	}
	if !strings.Contains(all[1].Problem, "There is no sandbox called") {
		t.Errorf("bob was told %q", all[1].Problem)
	}
}

func TestRecord_SignsOfForms(t *testing.T) {
	s := newStage(t)
	s.post("", "/login", fields("name", "ada\n"+strings.Repeat("x", 500), "password", "hush wrong")).is(http.StatusUnauthorized)
	s.post("", "/login", fields("name", "ada", "password", testPassword)).leads("/")
	s.post("ada", "/settings/password", fields("old", "hush wrong", "new", "hush hush hush hush")).is(http.StatusBadRequest)
	s.post("ada", "/theme", fields("theme", "dark"))
	s.post("root", "/settings/users", fields("name", "eve", "role", "member", "password", "hush hush hush hush"))
	s.post("ada", "/logout", nil)
	s.post("", "/logout", nil)
	all := recorded(t, s.server)
	if got := all[0]; got.User != "" || got.Outcome != activity.Refused || !strings.HasPrefix(got.Object, "ada xxx") || len(got.Object) > 64 {
		t.Errorf("a wrong login: %+v", got)
	}
	for i, want := range []string{"ada page account.login  ada done", "ada page account.password   refused", "root page user.add  eve done", "ada page account.logout   done"} {
		if got := entryLine(all[i+1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(all) != 5 {
		t.Errorf("%d entries", len(all))
	}
	for _, e := range all {
		if strings.Contains(fmt.Sprintf("%+v", e), "hush") || e.From == "" || e.Token != "" {
			t.Errorf("got %+v", e)
		}
	}
}

func TestRecord_SaysThatAWebsocketHasBegun(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	server := w.serve()
	conn, _, err := w.dial(server, "ada", "/api/v1/sandboxes/lab/exec")
	if err != nil {
		t.Fatal(err)
	}
	write(t, conn, websocket.TextMessage, `{"type":"start","command":["/bin/cat","hush"],"tty":true}`)
	w.until("it is recorded while it is open", func() bool { return len(recorded(t, w.server)) == 1 })
	if _, _, err := w.dial(server, "bob", "/api/v1/sandboxes/lab/ssh"); err == nil {
		t.Fatal("bob is let in")
	}
	w.until("a refused one is recorded, too", func() bool { return len(recorded(t, w.server)) == 2 })
	checkRecorded(t, w.server, "ada api command.run lab /bin/cat done", "bob ssh ssh.open lab  refused")
}

// TestRecord_ACallerIsKnownBelow looks at what a request sets off with its context.
func TestRecord_ACallerIsKnownBelow(t *testing.T) {
	who := auth.Principal{User: auth.User{ID: "u", Name: "ada"}, Token: "t"}
	for _, c := range []struct {
		r    request
		want activity.Caller
	}{
		{request{who: who, access: token, from: "192.0.2.1", id: "r", note: note{action: "command.run"}},
			activity.Caller{UserID: "u", User: "ada", Token: "t", Via: activity.API, From: "192.0.2.1", Request: "r", Action: "command.run"}},
		{request{who: who, access: token, note: note{action: "ssh.open"}}, activity.Caller{UserID: "u", User: "ada", Token: "t", Via: activity.SSH, Action: "ssh.open"}},
		{request{who: auth.Principal{User: who.User}, access: signedIn}, activity.Caller{UserID: "u", User: "ada", Via: activity.Page}},
	} {
		if got := callerOf(&c.r); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

func TestProgram_TellsNoSecrets(t *testing.T) {
	for line, want := range map[string]string{
		`"make test"`: "make", `"A=1 B=2 make"`: "make", `"$(cat secret)"`: "", `""`: "", `["a b"]`: "", `["/bin/ls", "x"]`: "/bin/ls", `["A=1"]`: "",
		`"\"my program\" x"`: "", `"PASSWORD='my hunter2 pass' true"`: "", `"A=\"tok sekrit z\" ls"`: "", `"A=\\ b ls"`: "", `"A=$(cat secret) ls"`: "",
	} {
		var c commandLine
		if err := c.UnmarshalJSON([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if got := program(c); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestRecord_TellsWhatIsDoneToAlertsAndWhose(t *testing.T) {
	s := newAlertStage(t)
	mail := s.channel("ada", "", "email", "me", "down@example.com")
	rules, channels := "/settings/alerts/rules/", "/settings/alerts/channels"
	for _, c := range []struct{ user, path, name, value string }{
		{"ada", "/alerts/lab-adas/mute", "for", "1h"}, {"ada", "/alerts/lab-adas/mute", "for", "0"},
		{"ada", rules + "adas/mute", "for", "1h"}, {"ada", rules + "adas/mute", "for", "0"},
		{"root", rules + "all/switch?owner=installation", "on", "false"}, {"root", rules + "all/switch?owner=installation", "on", "true"},
		{"root", rules + "nowhere/mute?owner=installation", "for", "1h"}, {"ada", rules + "all/delete?owner=installation", "", ""},
		{"root", "/settings/alerts/reset?owner=installation", "", ""},
		{"ada", channels + "/" + mail.ID + "/test", "", ""}, {"bob", channels + "/" + mail.ID + "/test", "", ""},
	} {
		s.post(c.user, c.path, fields(c.name, c.value))
	}
	s.channel("root", "?owner=installation", "webhook", "ops", "https://example.com")
	checkRecorded(t, s.server,
		"ada page channel.add  me done",
		"ada page alert.mute lab Ada's <b>rule</b> done", "ada page alert.unmute lab Ada's <b>rule</b> done",
		"ada page rule.mute  Ada's <b>rule</b> done", "ada page rule.unmute  Ada's <b>rule</b> done",
		"root page rule.disable  Memory nearly full (installation) done", "root page rule.enable  Memory nearly full (installation) done",
		"root page rule.mute  nowhere (installation) refused", "ada page rule.delete  all (installation) refused",
		"root page rule.reset  (installation) done",
		"ada page channel.test  me failed", "bob page channel.test  "+mail.ID+" refused",
		"root page channel.add  ops (installation) done")
}

func TestRecord_ATestThatIsNotTakenHasFailedWhateverIsAnswered(t *testing.T) {
	s := newAlertStage(t)
	mail := s.channel("ada", "", "email", "me", "refused@example.com")
	path := "/settings/alerts/channels/" + mail.ID + "/test"
	for range 31 {
		s.post("ada", path, nil)
	}
	all := recorded(t, s.server)
	failed, refused := 0, 0
	for _, e := range all {
		switch {
		case e.Outcome == activity.Failed && e.Problem == "The receiver refuses it.":
			failed++
		case e.Outcome == activity.Refused && strings.Contains(e.Problem, "within the last hour"):
			refused++
		}
	}
	if failed != 30 || refused != 1 {
		t.Errorf("%d failed, and %d were refused as too many: %+v", failed, refused, all[len(all)-1])
	}
}
