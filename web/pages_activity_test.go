package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
)

// activityStage is a stage where people do things.
type activityStage struct {
	*stage
	store *activitytest.Memory
	log   *slog.Logger // sandboxd's own
}

func newActivityStage(t *testing.T) *activityStage {
	s := &activityStage{stage: newStage(t), store: &activitytest.Memory{}}
	s.server.cfg.Activity, s.server.cfg.OwnLog = activity.New(activity.Config{Store: s.store}), logs.NewRecent()
	s.log = slog.New(s.server.cfg.OwnLog.Handler(slog.LevelDebug))
	s.put("ada", "lab", nil)
	s.put("bob", "den", nil)
	return s
}

// did records what a user did to a sandbox.
func (s *activityStage) did(user, box string, e activity.Entry) {
	s.t.Helper()
	e.User, e.UserID = user, s.users[user].ID
	if box != "" {
		row, err := s.boxes.Sandbox(s.t.Context(), box)
		if err != nil {
			s.t.Fatal(err)
		}
		e.Sandbox, e.SandboxID, e.Owner = row.Name, row.ID, row.Owner
	}
	if e.Outcome == "" {
		e.Outcome = activity.Done
	}
	if e.Time.IsZero() {
		e.Time = stageTime.Add(-time.Minute)
	}
	s.server.cfg.Activity.Add(e)
}

// entryTexts are the entries of a page, as a person reads them.
func entryTexts(v view) (out []string) {
	for _, n := range v.all("li.activity-row") {
		out = append(out, textOf(n))
	}
	return out
}

func TestActivityPage_SaysInWordsWhoDidWhat(t *testing.T) {
	s := newActivityStage(t)
	_, token, err := s.accounts.CreateToken(t.Context(), s.users["ada"].ID, auth.NewToken{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	s.did("ada", "lab", activity.Entry{Action: "sandbox.create", Via: activity.API, Token: token.ID, From: "10.0.0.3", Time: stageTime.AddDate(0, 0, -9)})
	s.did("ada", "lab", activity.Entry{Action: "command.run", Via: activity.SSH, Object: "make test", Count: 12, Time: stageTime.AddDate(0, 0, -1)})
	s.did("root", "lab", activity.Entry{Action: "sandbox.stop", Via: activity.Page, From: "10.0.0.1", Outcome: activity.Failed, Problem: "The engine does not answer.", Request: "req7"})
	s.did("", "lab", activity.Entry{Action: "sandbox.freeze", Via: activity.Itself})
	s.did("", "", activity.Entry{Action: "account.login", Via: activity.Page, From: "10.6.6.6", Outcome: activity.Refused, Problem: "Name or password is wrong."})
	v := s.get("ada", "/activity").is(http.StatusOK)
	want := []string{
		"11:59 Done sandboxd froze lab",
		"11:59 Failed root tried to stop lab on the dashboard from 10.0.0.1 The engine does not answer.",
		"12:00 Done ada ran a command in lab make test 12 times by SSH",
		"12:00 Done ada created lab by API token “ci” from 10.0.0.3",
	}
	if got := entryTexts(v); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the page says\n%s", strings.Join(got, "\n"))
	}
	var days []string
	for _, n := range v.all("li.activity-day") {
		days = append(days, textOf(n))
	}
	if strings.Join(days, "|") != "Today|Yesterday|Thursday 12 November 2026" {
		t.Errorf("the days are %q", days)
	}
	if got := attr(v.need("a.activity-box"), "href"); got != "/sandboxes/lab" {
		t.Errorf("the sandbox is at %s", got)
	}
	if strings.Contains(v.Body.String(), ownLogPath) {
		t.Error("a member is led to the server's log")
	}
	v = s.get("root", "/activity").is(http.StatusOK)
	if got := entryTexts(v); len(got) != 5 || got[0] != "11:59 Refused Unknown user tried to sign in on the dashboard from 10.6.6.6 Name or password is wrong." {
		t.Errorf("an admin reads %q", got)
	}
	if in(v.need("p.activity-problem"), "a") != nil {
		t.Error("what was refused leads to the server's log")
	}
	if !strings.Contains(v.Body.String(), `href="/activity/log?q=req7"`) {
		t.Error("what failed does not lead to the server's log")
	}
	s.boxes.drop(s.boxOf("lab"))
	if v = s.get("ada", "/activity"); v.find("a.activity-box") != nil || !strings.Contains(entryTexts(v)[3], "ada created lab") {
		t.Errorf("once it is deleted: %q", entryTexts(v))
	}
}

func (s *activityStage) boxOf(name string) sandbox.Sandbox {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return box
}

func TestActivityPage_ShowsOnlyWhatOneMaySee(t *testing.T) {
	s := newActivityStage(t)
	s.did("ada", "lab", activity.Entry{Action: "sandbox.start", Via: activity.Page})
	s.did("bob", "den", activity.Entry{Action: "command.run", Via: activity.Page, Object: "bob's secret"})
	s.did("bob", "", activity.Entry{Action: "user.role", Via: activity.Page, Object: "bob's other"})
	for user, want := range map[string]int{"ada": 1, "bob": 2, "root": 3} {
		v := s.get(user, "/activity").is(http.StatusOK)
		if got := entryTexts(v); len(got) != want {
			t.Errorf("%s sees %q", user, got)
		}
		if user == "ada" && (strings.Contains(v.Body.String(), "bob") || strings.Contains(v.Body.String(), "/den") || strings.Contains(v.Body.String(), `"den"`)) {
			t.Error("the page names what is another's")
		}
		if got := entryTexts(s.get("root", "/sandboxes/lab/activity").is(http.StatusOK)); len(got) != 1 {
			t.Errorf("on lab there is %q", got)
		}
	}
	for _, query := range []string{"?sandbox=den", "?user=bob", "?q=secret", "?sandbox=" + s.ref("den").ID()} {
		if got := entryTexts(s.get("ada", "/activity"+query).is(http.StatusOK)); len(got) != 0 {
			t.Errorf("%s finds %q", query, got)
		}
		if got := s.get("ada", "/activity/download"+query).is(http.StatusOK).Body.String(); got != "" {
			t.Errorf("%s downloads %q", query, got)
		}
	}
	for user, want := range map[string]bool{"ada": false, "root": true} {
		kinds := textOf(s.get(user, "/activity").need("#log-action"))
		for _, kind := range []string{"Users", "Host", "Sandboxes without a record", "Templates"} {
			if strings.Contains(kinds, kind) != want {
				t.Errorf("%s can choose %q", user, kinds)
			}
		}
		if !strings.Contains(kinds, "Alert rules") {
			t.Errorf("%s can choose %q", user, kinds)
		}
	}
	s.get("ada", "/sandboxes/den/activity").is(http.StatusNotFound)
	s.get("", "/activity").is(http.StatusSeeOther)
	if got := s.get("bob", "/activity/download?q=secret"); strings.Count(got.Body.String(), "\n") != 1 || !strings.HasPrefix(got.Header().Get("Content-Disposition"), `attachment; filename="activity-`) {
		t.Errorf("bob downloads %v %s", got.Header(), got.Body)
	}
	s.get("bob", "/activity/download", "Sec-Fetch-Site", "same-site").is(http.StatusForbidden)
	if !strings.Contains(s.get("ada", "/").Body.String(), `href="/sandboxes/lab/activity?sandbox_id=`) {
		t.Error("the sandbox's menu has no link")
	}
}

func TestActivityPage_FiltersAndSaysWhatIsWrong(t *testing.T) {
	s := newActivityStage(t)
	s.did("ada", "lab", activity.Entry{Action: "sandbox.start", Via: activity.Page, Time: stageTime.AddDate(0, 0, -2)})
	s.did("ada", "lab", activity.Entry{Action: "command.run", Via: activity.API, Object: "make test"})
	for query, want := range map[string]int{
		"action=sandbox.&via=page": 1, "range=1h": 1, "range=custom&until=2026-11-20T00:00": 1, "q=MAKE": 1, "sandbox=lab&user=ada": 2, "outcome=failed": 0,
		"q=&sandbox=&user=&via=&action=&outcome=&range=&since=&until=": 2,
	} {
		v := s.get("ada", "/activity?"+query).is(http.StatusOK)
		if got := entryTexts(v); len(got) != want || (want == 0) != strings.Contains(textOf(v.find("div.empty")), "Nothing found") {
			t.Errorf("%s finds %q", query, got)
		}
	}
	for query, id := range map[string]string{
		"via=air": "log-via-fault", "action=loud": "log-action-fault", "outcome=x": "log-outcome-fault", "range=2y": "log-range-fault", "since=x": "log-since-fault",
		"since=2026-01-02T00:00&until=2026-01-01T00:00": "log-until-fault", "q=" + strings.Repeat("x", 1000): "log-q-fault",
	} {
		for _, path := range []string{"/activity", "/sandboxes/lab/activity"} {
			v := s.get("ada", path+"?"+query).is(http.StatusOK)
			if textOf(v.find("#"+id)) == "" || v.find("sandbox-logs") != nil {
				t.Errorf("%s?%s: no fault, or entries with it", path, query)
			}
		}
	}
	s.get("ada", "/activity?before=x").is(http.StatusBadRequest)
	v := s.get("bob", "/activity").is(http.StatusOK)
	if !strings.Contains(textOf(v.need("div.empty")), "No entries yet") {
		t.Error("no word about nothing")
	}
	s.store.Fail(fault.New(fault.Unavailable, "It cannot be read now."))
	if v := s.get("ada", "/activity?q=make").is(http.StatusOK); !strings.Contains(textOf(v.find("div.notice")), "cannot be read now") || attr(v.need("#filter"), "value") != "make" {
		t.Error("without a store it does not say so")
	}
}

func TestActivityPage_LoadsOlder(t *testing.T) {
	s := newActivityStage(t)
	for i := range 230 {
		s.did("ada", "lab", activity.Entry{Action: activity.Action(activity.Actions[i%12].Action), Via: activity.Page, Object: fmt.Sprintf("number %d", i)})
	}
	seen, path := 0, "/sandboxes/lab/activity?q=number"
	for range 4 {
		v := s.get("ada", path).is(http.StatusOK)
		seen += len(entryTexts(v))
		first := path == "/sandboxes/lab/activity?q=number"
		if !first && (attr(v.need("sandbox-logs"), "data-topic") != "" || !strings.Contains(v.Body.String(), "Newest entries")) {
			t.Error("an older page is live, or has no way back")
		}
		older := v.find("div.log-end")
		if older == nil {
			break
		}
		path = attr(in(older, "a"), "href")
	}
	if seen != 230 {
		t.Errorf("%d entries", seen)
	}
}

func TestActivityPage_IsInTheOrderOfTheTimesThatItShows(t *testing.T) {
	s := newActivityStage(t)
	for _, e := range []activity.Entry{{Object: "one"}, {Object: "three"}, {Object: "two", Count: 5}} { // a sum comes late
		minutes := map[string]time.Duration{"one": 9, "two": 7, "three": 1}
		e.Action, e.Via, e.Time = "sandbox.start", activity.Page, stageTime.Add(-minutes[e.Object]*time.Minute)
		s.did("ada", "lab", e)
	}
	v := s.get("ada", "/activity").is(http.StatusOK)
	var order []string
	for _, n := range v.all(".activity-object") {
		order = append(order, textOf(n))
	}
	if got := strings.Join(order, " "); got != "three two one" {
		t.Errorf("it begins with %s", got)
	}
	if got := attr(v.need("sandbox-logs"), "data-seen"); got != "after=3" {
		t.Errorf("it is followed from %s on", got)
	}
}

func TestActivityPage_HostileTextsDoNothing(t *testing.T) {
	s := newActivityStage(t)
	for _, text := range []string{
		"<script>alert(1)</script><img src=x onerror=alert(1)>", "\x1b]0;title\x07\x1b[2J\x1b[31mred\x00", "abc\u202egpj.exe\u2066\u200bz", `" onload="x" style="color:red`, "two\nlines\rhere",
	} {
		s.did("ada", "lab", activity.Entry{Action: "terminal.name", Via: activity.Page, Object: text, Outcome: activity.Refused, Problem: text})
	}
	for _, n := range append(s.get("ada", "/activity").is(http.StatusOK).all("ol.activity"), s.get("root", "/sandboxes/lab/activity").is(http.StatusOK).all("ol.activity")...) {
		if got := len(strings.Split(textOf(n), "Refused")); got != 6 {
			t.Errorf("%d entries", got-1)
		}
		for n := range n.Descendants() {
			if n.Type == html.ElementNode && strings.Contains(" script img b i style ", " "+n.Data+" ") || hasAttr(n, "style") || hasAttr(n, "onload") || hasAttr(n, "onerror") {
				t.Errorf("an entry makes an element %s %v", n.Data, n.Attr)
			}
			if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\x00\x07\x1b\r\u202e\u2066\u200b") {
				t.Errorf("%q is in the page", n.Data)
			}
		}
	}
	if got := s.get("ada", "/activity/download").Body.String(); strings.ContainsAny(got, "\x00\x07\x1b\r\u202e") || strings.Count(got, "\n") != 5 {
		t.Errorf("the file has controls: %q", got)
	}
}

func TestActivityTail_GivesWhatThePageAsksFor(t *testing.T) {
	s := newActivityStage(t)
	s.did("ada", "lab", activity.Entry{Action: "sandbox.start", Via: activity.Page})
	n := s.get("ada", "/sandboxes/lab/activity?via=page").need("sandbox-logs")
	if !hasAttr(n, "data-on") {
		t.Error("it does not begin by itself")
	}
	topic := attr(n, "data-topic") + "&" + attr(n, "data-seen")
	s.did("ada", "lab", activity.Entry{Action: "sandbox.stop", Via: activity.Page, Object: "missed"})
	f := s.page("ada").opens(1, topic)
	if got := f.entries(); !strings.Contains(got, "ada stopped lab missed") || strings.Contains(got, "started") {
		t.Errorf("first comes %s", got)
	}
	s.did("bob", "den", activity.Entry{Action: "sandbox.stop", Via: activity.Page})
	s.did("ada", "lab", activity.Entry{Action: "sandbox.start", Via: activity.SSH})
	s.did("root", "lab", activity.Entry{Action: "sandbox.delete", Via: activity.Page, Object: "<b>one</b>"})
	if got := f.entries(); !strings.HasSuffix(got, "root deleted lab <b>one</b> on the dashboard") || strings.Contains(got, "SSH") || strings.Contains(got, "den") {
		t.Errorf("then comes %s", got)
	}
	for topic, status := range map[string]int{"/activity?via=air": 400, "/activity?after=x": 400, ownLogPath: 403} {
		if p := s.refused("ada", topic); p.Status != status {
			t.Errorf("%s: %+v", topic, p)
		}
	}
}

// entries is the text of the next rows of a tail.
func (f *feed) entries() string {
	f.t.Helper()
	e := f.event()
	doc, err := html.Parse(strings.NewReader(e.Data))
	if err != nil || e.Kind != "lines" {
		f.t.Fatalf("got %+v, %v", e, err)
	}
	return textOf(doc)
}

func TestOwnLogPage_IsForAdminsAndLive(t *testing.T) {
	s := newActivityStage(t)
	s.log.Info("listening", "addr", "localhost:8080")
	s.log.Error("request failed", "request_id", "req7", "err", "<b>no</b> \x1b[2Jengine")
	s.get("ada", ownLogPath).is(http.StatusForbidden)
	s.get("", ownLogPath).is(http.StatusSeeOther)
	v := s.get("root", ownLogPath+"?q=req7").is(http.StatusOK)
	if lines := v.all("li.log-line"); len(lines) != 1 || !strings.Contains(textOf(lines[0]), "request failed request_id = req7 err = <b>no</b> ‹ESC›[2J engine") {
		t.Errorf("it shows %q", textOf(v.need("ol.log-lines")))
	}
	if v := s.get("root", ownLogPath+"?level=error"); len(v.all("li.log-line")) != 1 {
		t.Error("the level is not looked at")
	}
	if v := s.get("root", ownLogPath+"?level=loud"); textOf(v.find("#log-level-fault")) == "" {
		t.Error("nothing beside the level")
	}
	if v := s.get("root", ownLogPath+"?q=nothing"); !strings.Contains(textOf(v.need("div.empty")), "Nothing found") {
		t.Error("no word about nothing found")
	}
	n := s.get("root", ownLogPath+"?level=warn").need("sandbox-logs")
	f := s.page("root").opens(1, attr(n, "data-topic")+"&"+attr(n, "data-seen"))
	s.log.Info("not this one")
	s.log.Warn("that one", "a", 1)
	if got := f.entries(); !strings.Contains(got, "that one a = 1") || strings.Contains(got, "not this one") || strings.Contains(got, "req7") {
		t.Errorf("live comes %s", got)
	}
}

func TestInfinitive_OfEachAction(t *testing.T) {
	for _, k := range activity.Actions {
		got := infinitive(k.Words)
		for verb := range strings.SplitSeq(got, " or ") {
			verb, _, _ = strings.Cut(verb, " ")
			if !slices.Contains(tellsFailure, k.Action) && (strings.HasSuffix(verb, "ed") || slices.Contains([]string{"ran", "wrote", "foun", "mad", "kep"}, verb)) {
				t.Errorf("%s: %q", k.Action, got)
			}
		}
	}
	if got := infinitive("disabled or enabled a user"); got != "disable or enable a user" {
		t.Errorf("got %q", got)
	}
}
