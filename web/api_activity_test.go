package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
)

// activityWorld has three people, a sandbox each of two of them, and what they did, the oldest first.
func activityWorld(t *testing.T) (*world, *activitytest.Memory) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "den")
	store := &activitytest.Memory{}
	w.server.cfg.Activity = activity.New(activity.Config{Store: store})
	now := time.Now().Add(-10 * time.Second)
	for i, e := range []activity.Entry{
		{User: "ada", Via: activity.Page, From: "10.0.0.3", Action: "sandbox.create", Sandbox: "lab"},
		{User: "bob", Via: activity.API, From: "10.0.0.4", Action: "sandbox.create", Sandbox: "den", Token: "tok"},
		{User: "ada", Via: activity.SSH, Action: "command.run", Sandbox: "lab", Object: "make test"},
		{User: "root", Via: activity.Page, Action: "sandbox.stop", Sandbox: "lab", Outcome: activity.Failed, Problem: "The engine does not answer.", Request: "req7"},
		{User: "bob", Via: activity.Page, Action: "sandbox.delete", Object: "lab", Outcome: activity.Refused, Problem: "There is no sandbox lab."},
		{Via: activity.Itself, Action: "sandbox.freeze", Sandbox: "den", Count: 3},
		{User: "root", Via: activity.Page, Action: "user.add", Object: "eve"},
	} {
		e.UserID, e.Time = w.ids[e.User], now.Add(time.Duration(i)*time.Second)
		if e.Sandbox != "" {
			box, err := w.manager.Sandbox(t.Context(), e.Sandbox)
			if err != nil {
				t.Fatal(err)
			}
			e.SandboxID, e.Owner = box.ID, box.Owner
		}
		if e.Outcome == "" {
			e.Outcome = activity.Done
		}
		w.server.cfg.Activity.Add(e)
	}
	return w, store
}

// acts gives what a user finds, as words.
func (w *world) acts(user, query string) string {
	w.t.Helper()
	var found entriesShape
	w.call(user, "GET", "/api/v1/activity"+query, "").is(http.StatusOK).into(&found)
	var out []string
	for _, e := range found.Entries {
		out = append(out, e.Text)
	}
	return strings.Join(out, "|")
}

const adasActs = "root tried to stop lab (failed)|ada ran a command in lab: make test|ada created lab"

func TestActivity_AMemberSeesTheirOwnAndWhatIsDoneToTheirSandboxes(t *testing.T) {
	w, _ := activityWorld(t)
	bobs := "sandboxd froze den|bob tried to delete the sandbox: lab (refused)|bob created den"
	for user, want := range map[string]string{
		"ada": adasActs, "bob": bobs,
		"root": "root added a user: eve|sandboxd froze den|bob tried to delete the sandbox: lab (refused)|root tried to stop lab (failed)|ada ran a command in lab: make test|bob created den|ada created lab",
	} {
		if got := w.acts(user, ""); got != want {
			t.Errorf("%s sees %q", user, got)
		}
	}
	for _, query := range []string{"?sandbox=den", "?user=bob", "?q=den", "?sandbox=" + w.ref("den").ID()} {
		if got := w.acts("ada", query); got != "" {
			t.Errorf("ada finds %q by %s", got, query)
		}
	}
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "one", Sandbox: "lab"})
	w.tokens["limited root"] = w.token("root", auth.NewToken{Name: "one", Sandbox: "den"})
	if got := w.acts("limited", ""); got != adasActs {
		t.Errorf("a token for lab sees %q", got)
	}
	if got := w.acts("limited root", ""); got != "sandboxd froze den|bob created den" {
		t.Errorf("a token for den sees %q", got)
	}
	if got := w.acts("limited root", "?sandbox=lab"); got != "" {
		t.Errorf("a token for den finds %q", got)
	}
	w.call("", "GET", "/api/v1/activity", "").problem(http.StatusUnauthorized, "unauthenticated", "")
}

func TestActivity_FiltersAndNamesWhatIsWrong(t *testing.T) {
	w, store := activityWorld(t)
	for query, want := range map[string]string{
		"?sandbox=lab&user=ada": "ada ran a command in lab: make test|ada created lab", "?via=ssh": "ada ran a command in lab: make test",
		"?action=sandbox.freeze": "sandboxd froze den", "?action=user.": "root added a user: eve", "?outcome=refused": "bob tried to delete the sandbox: lab (refused)",
		"?q=ENGINE": "root tried to stop lab (failed)", "?since=5500ms": "root added a user: eve|sandboxd froze den", "?until=8500ms": "bob created den|ada created lab",
		"?user=nobody": "",
	} {
		if got := w.acts("root", query); got != want {
			t.Errorf("%s finds %q", query, got)
		}
	}
	for query, field := range map[string]string{
		"since=x": "since", "until=x": "until", "since=1h&until=2h": "until", "limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "before=0": "before", "before=x": "before",
		"via=air": "via", "outcome=maybe": "outcome", "action=sandbox.explode": "action", "action=sandbox": "action", "q=" + strings.Repeat("x", 2000): "q",
	} {
		w.call("ada", "GET", "/api/v1/activity?"+query, "").problem(http.StatusBadRequest, "invalid", field)
		w.call("ada", "GET", "/api/v1/activity?"+query, "", "Accept", lineType).problem(http.StatusBadRequest, "invalid", field)
	}
	store.Fail(fault.New(fault.Unavailable, "The activity log cannot be read now."))
	w.call("ada", "GET", "/api/v1/activity", "").problem(http.StatusServiceUnavailable, "unavailable", "")
	w.call("ada", "GET", "/api/v1/activity", "", "Accept", lineType).problem(http.StatusServiceUnavailable, "unavailable", "")
}

func TestActivity_PagesAndStreamsToTheOldest(t *testing.T) {
	w, _ := activityWorld(t)
	for i := range 2500 {
		w.server.cfg.Activity.Add(activity.Entry{UserID: fmt.Sprint("u", i), User: "many", Action: "user.add", Via: activity.API, Outcome: activity.Done, Object: fmt.Sprint("number ", i)})
	}
	seen, query := 0, "?user=many&limit=1000"
	for next := &query; next != nil; {
		var found entriesShape
		w.call("root", "GET", "/api/v1/activity"+*next, "").is(http.StatusOK).into(&found)
		for _, e := range found.Entries {
			if want := fmt.Sprint("number ", 2499-seen); e.Object != want {
				t.Fatalf("%s in place of %s", e.Object, want)
			}
			seen++
		}
		if next = found.Next; next != nil {
			*next = query + "&before=" + *next
		}
	}
	if seen != 2500 {
		t.Errorf("%d entries on all pages", seen)
	}
	got := w.call("root", "GET", "/api/v1/activity?user=many", "", "Accept", lineType).is(http.StatusOK)
	lines := strings.Split(strings.TrimSpace(got.Body.String()), "\n")
	if len(lines) != 2500 || got.Header().Get("Content-Type") != lineType {
		t.Fatalf("%d lines of %s", len(lines), got.Header().Get("Content-Type"))
	}
	checkSchema(t, "ActivityEntry", []byte(lines[2499]))
	if !strings.Contains(lines[0], `"number 2499"`) || !strings.Contains(lines[2499], `"number 0"`) {
		t.Errorf("the first is %s, the last %s", lines[0], lines[2499])
	}
	if got := w.call("root", "GET", "/api/v1/activity?user=many&limit=7", "", "Accept", lineType).Body.String(); strings.Count(got, "\n") != 7 {
		t.Errorf("with a limit it sends %s", got)
	}
	if got := w.call("ada", "GET", "/api/v1/activity", "", "Accept", lineType).Body.String(); strings.Count(got, "\n") != 3 || strings.Contains(got, "den") {
		t.Errorf("a member streams %s", got)
	}
}

func TestActivity_TheShapeIsAsPinned(t *testing.T) {
	w := newWorld(t)
	w.server.cfg.Activity = activity.New(activity.Config{Store: &activitytest.Memory{}})
	w.server.cfg.Activity.Add(activity.Entry{
		Time: stageTime, UserID: "u1", User: "anna", Token: "t1", Via: activity.API, From: "10.0.0.3", Action: "command.run", SandboxID: "s1", Sandbox: "web-1", Owner: "u1",
		Object: "printf '\x1b]0;x\x07<b>'", Outcome: activity.Failed, Problem: "It does not answer.", Request: "r1", Count: 4,
	})
	golden(t, "activity", w.call("root", "GET", "/api/v1/activity", "").is(http.StatusOK).Body.Bytes())
}

func TestOwnLog_IsForAdminsAndFindsRecords(t *testing.T) {
	w := newWorld(t)
	w.server.cfg.OwnLog = logs.NewRecent()
	log := slog.New(w.server.cfg.OwnLog.Handler(slog.LevelDebug))
	log.Info("listening", "addr", "localhost:8080")
	log.Error("request failed", "request_id", "req7", "status", 500, "err", "no \x1b[31mengine")
	var found recordsShape
	w.call("root", "GET", "/api/v1/log", "").is(http.StatusOK).into(&found)
	if len(found.Records) != 2 || found.Next != nil || found.Records[0].Fields["request_id"] != "req7" || found.Records[0].Fields["status"] != "500" {
		t.Errorf("finds %+v", found)
	}
	for query, want := range map[string]string{"?q=REQ7": "request failed", "?level=warn": "request failed", "?q=addr%3Dlocal": "listening", "?limit=1": "request failed", "?level=fatal": ""} {
		found = recordsShape{}
		w.call("root", "GET", "/api/v1/log"+query, "").is(http.StatusOK).into(&found)
		if len(found.Records) != min(len(want), 1) || want != "" && found.Records[0].Message != want {
			t.Errorf("%s finds %+v", query, found)
		}
	}
	w.call("root", "GET", "/api/v1/log?limit=1", "").into(&found)
	w.call("root", "GET", "/api/v1/log?limit=1&next="+url.QueryEscape(*found.Next), "").is(http.StatusOK).into(&found)
	if len(found.Records) != 1 || found.Records[0].Message != "listening" {
		t.Errorf("then comes %+v", found)
	}
	lines := strings.Split(strings.TrimSpace(w.call("root", "GET", "/api/v1/log", "", "Accept", lineType).is(http.StatusOK).Body.String()), "\n")
	if len(lines) != 2 || !json.Valid([]byte(lines[1])) {
		t.Errorf("as lines %q", lines)
	}
	for query, field := range map[string]string{"level=loud": "level", "limit=0": "limit", "next=%00": "next"} {
		w.call("root", "GET", "/api/v1/log?"+query, "").problem(http.StatusBadRequest, "invalid", field)
	}
	w.tokens["limited root"] = w.token("root", auth.NewToken{Name: "one", Sandbox: "none"})
	for _, user := range []string{"ada", "limited root"} {
		w.call(user, "GET", "/api/v1/log", "").problem(http.StatusForbidden, "forbidden", "")
	}
}
