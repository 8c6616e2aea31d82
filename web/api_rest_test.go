package web

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

const lab = "/api/v1/sandboxes/lab"

// goneDate is when a sandbox was deleted, as a problem says it.
var goneDate = regexp.MustCompile(`on \d+ \w+ \d{4} at \d\d:\d\d UTC`)

func TestRest_TimesAreSetAndTakenBackOneByOne(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ body, freeze, freezeFrom, stop, stopFrom string }{
		{`{}`, "15m", "server", "4h", "server"},
		{`{"freeze_after":"90m"}`, "1h30m", "sandbox", "4h", "server"},
		{`{"stop_after":"never","label":"ML"}`, "1h30m", "sandbox", "never", "sandbox"},
		{`{"freeze_after":"default"}`, "15m", "server", "never", "sandbox"},
		{`{"freeze_after":"3d","stop_after":""}`, "72h", "sandbox", "4h", "server"},
		{`{"stop_after":"900s"}`, "72h", "sandbox", "15m", "sandbox"},
	} {
		s := w.call("ada", "PATCH", lab, c.body).is(http.StatusOK).sandbox()
		if s.FreezeAfter != c.freeze || s.FreezeAfterFrom != c.freezeFrom || s.StopAfter != c.stop || s.StopAfterFrom != c.stopFrom {
			t.Errorf("%s: %+v", c.body, s.restShape)
		}
	}
	if s := w.call("ada", "GET", lab, "").sandbox(); s.Label != "ML" || s.StopAfter != "15m" {
		t.Errorf("kept %+v", s)
	}
}

// overtaken lets another user's change come between the look at a sandbox and the change of its times.
type overtaken struct {
	Sandboxes
	first func()
}

func (o overtaken) SetRest(ctx context.Context, ref sandbox.Ref, c sandbox.RestChange) (sandbox.Sandbox, error) {
	o.first()
	return o.Sandboxes.SetRest(ctx, ref, c)
}

func TestRest_ChangesOfOneTimeEachDoNotUndoEachOther(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.cfg.Sandboxes = overtaken{w.manager, func() {
		stop := catalog.Never
		if _, err := w.manager.SetRest(t.Context(), w.ref("lab"), sandbox.RestChange{StopAfter: &stop}); err != nil {
			t.Error(err)
		}
	}}
	if s := w.call("ada", "PATCH", lab, `{"freeze_after":"1h"}`).is(http.StatusOK).sandbox(); s.FreezeAfter != "1h" || s.StopAfter != "never" {
		t.Errorf("kept %+v", s.restShape)
	}
}

func TestRest_BadTimesNameTheFieldAndChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ body, field string }{
		{`{"label":"new","freeze_after":"soon"}`, "freeze_after"}, {`{"label":"new","stop_after":"500ms"}`, "stop_after"},
		{`{"label":"new","freeze_after":"1h","stop_after":"400d"}`, "stop_after"}, {`{"freeze_after":15}`, "freeze_after"},
		{`{"label":"` + strings.Repeat("x", 99) + `","freeze_after":"1h"}`, "label"},
	} {
		w.call("ada", "PATCH", lab, c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
	if s := w.call("ada", "GET", lab, "").sandbox(); s.Label != "" || s.FreezeAfterFrom != "server" {
		t.Errorf("changed %+v", s)
	}
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","freeze_after":"soon"}`).problem(http.StatusBadRequest, "invalid", "freeze_after")
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","stop_after":7}`).problem(http.StatusBadRequest, "invalid", "stop_after")
}

func TestRest_CanBeSaidWithTheCreate(t *testing.T) {
	w := newWorld(t)
	body := `{"template":"base","name":"lab","freeze_after":"never","stop_after":"2h"}`
	s := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", body).is(http.StatusCreated).sandbox()
	if s.FreezeAfter != "never" || s.StopAfter != "2h" || s.StopAfterFrom != "sandbox" {
		t.Errorf("got %+v", s.restShape)
	}
}

func TestRest_SaysWhatKeepsItAwakeAndWhenItRests(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	since := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	w.idle.put("lab", idle.Outlook{Because: []idle.Reason{
		{Kind: idle.Terminal, Detail: "main", Since: since}, {Kind: idle.Exec, Detail: "npm test", Since: since.Add(time.Minute)},
	}})
	golden(t, "sandbox_awake", w.call("ada", "GET", lab, "").is(http.StatusOK).Body.Bytes())
	w.idle.put("lab", idle.Outlook{FreezesAt: since.Add(time.Hour), StopsAt: since.Add(5 * time.Hour)})
	s := w.call("ada", "GET", lab, "").is(http.StatusOK).sandbox()
	if len(s.AwakeBecause) != 0 || s.FreezesAt == nil || !s.FreezesAt.Equal(since.Add(time.Hour)) || s.StopsAt == nil {
		t.Errorf("got %+v", s.restShape)
	}
	w.call("ada", "POST", lab+"/stop?wait=stopped", "").is(http.StatusOK)
	if s := w.call("ada", "GET", lab, "").sandbox(); s.FreezesAt != nil || s.StopsAt != nil {
		t.Errorf("a stopped one: %+v", s.restShape)
	}
}

func TestSleep_PutsToRestAndStartWakes(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	step := func(path, body string, status int, state string) {
		t.Helper()
		if s := w.call("ada", "POST", lab+path, body).is(status).sandbox(); state != "" && s.State != state {
			t.Errorf("%s %s: %s, want %s", path, body, s.State, state)
		}
	}
	step("/sleep?wait=frozen", `{"frozen":true}`, 200, "frozen")
	step("/sleep?wait=frozen", `{"frozen":true}`, 200, "frozen")
	step("/start?wait=ready", "", 200, "running")
	step("/sleep", `{"frozen":true}`, 202, "frozen")
	step("/sleep?wait=asleep", "", 200, "asleep")
	step("/sleep?wait=true", `{}`, 200, "asleep")
	step("/start?wait=ready", "", 200, "running")
	step("/sleep", "", 202, "")
	step("/start?wait=ready", "", 200, "running")
	w.call("ada", "POST", lab+"/sleep?wait=frozen", "").problem(400, "invalid", "wait")
	w.call("ada", "POST", lab+"/sleep?wait=asleep", `{"frozen":true}`).problem(400, "invalid", "wait")
	w.call("ada", "POST", lab+"/sleep", `{"deep":true}`).problem(400, "invalid", "deep")
	w.call("ada", "POST", lab+"/stop?wait=stopped", "").is(200)
	p := w.call("ada", "POST", lab+"/sleep", "").problem(409, "conflict", "")
	if !strings.Contains(p.Detail, "stopped") {
		t.Errorf("says %q", p.Detail)
	}
}

func TestSleep_OneThatIsAsleepCannotBeFrozen(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "POST", lab+"/sleep?wait=asleep", "").is(http.StatusOK)
	w.call("ada", "POST", lab+"/sleep", `{"frozen":true}`).is(http.StatusAccepted) // it rests deeper already
	p := w.call("ada", "POST", lab+"/sleep?wait=frozen", `{"frozen":true}`).problem(http.StatusConflict, "conflict", "")
	if want := "lab is asleep, and only a sandbox that is awake can be frozen. Wake it first."; p.Detail != want {
		t.Errorf("it says %q", p.Detail)
	}
	if got := w.call("ada", "GET", lab, "").is(http.StatusOK).sandbox(); got.State != string(sandbox.Asleep) {
		t.Errorf("it is %s", got.State)
	}
}

func TestSleep_ByHandDismissesWhateverPageIsOpen(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "POST", lab+"/sleep", `{"deep":true}`).problem(400, "invalid", "deep")
	w.call("bob", "POST", lab+"/sleep", "").problem(404, "not_found", "")
	if got, _ := w.idle.dismissed(); len(got) != 0 {
		t.Errorf("refused, and dismissed %v", got)
	}
	w.call("ada", "POST", lab+"/sleep?wait=frozen", `{"frozen":true}`).is(200)
	w.call("ada", "POST", lab+"/sleep?wait=asleep", "").is(200)
	s := newStage(t)
	s.put("ada", "lab", nil)
	s.post("ada", "/sandboxes/lab/sleep", nil).is(http.StatusSeeOther)
	got, again := w.idle.dismissed()
	if id := w.ref("lab").ID(); !slices.Equal(got, []string{id, id}) || !slices.Equal(again, []string{id, id, id, id}) { // in its turn, and once it rests
		t.Errorf("dismissed %v by the API, and again %v", got, again)
	}
	if got, _ := s.idle.dismissed(); !slices.Equal(got, []string{s.ref("lab").ID()}) {
		t.Errorf("dismissed %v by the page", got)
	}
}

func TestCreate_OfOneThatRestsIsAnsweredAndMadeReadyOnlyWhenAsked(t *testing.T) {
	w := newWorld(t)
	body := `{"template":"base","name":"lab"}`
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", body).is(http.StatusCreated)
	w.call("ada", "POST", lab+"/sleep?wait=asleep", "").is(http.StatusOK)
	if s := w.call("ada", "POST", "/api/v1/sandboxes", body).is(http.StatusOK).sandbox(); s.State != "asleep" {
		t.Errorf("woken: %s", s.State)
	}
	if s := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", body).is(http.StatusOK).sandbox(); s.State != "running" {
		t.Errorf("not ready: %s", s.State)
	}
}

func TestGet_NeverWakes(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "POST", lab+"/sleep?wait=asleep", "").is(http.StatusOK)
	for _, path := range []string{lab, lab + "/holds", "/api/v1/sandboxes", "/api/v1/sandboxes?state=asleep", "/api/v1/users/me"} {
		w.call("ada", "GET", path, "").is(http.StatusOK)
	}
	w.call("ada", "PATCH", lab, `{"label":"x","freeze_after":"1h"}`).is(http.StatusOK)
	if box, err := w.manager.Sandbox(t.Context(), "lab"); err != nil || box.State != sandbox.Asleep {
		t.Errorf("%s: %v", box.State, err)
	}
}

func TestStart_SaysWhenTheHostIsFull(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "POST", lab+"/sleep?wait=asleep", "").is(http.StatusOK)
	w.room.fail(fault.New(fault.Unavailable, "The host is short of memory. Stop a sandbox or try again later."))
	got := w.call("ada", "POST", lab+"/start?wait=ready", "")
	if p := got.problem(http.StatusServiceUnavailable, "unavailable", ""); !strings.Contains(p.Detail, "short of memory") || got.Header().Get("Retry-After") != "5" {
		t.Errorf("got %+v, retry after %q", p, got.Header().Get("Retry-After"))
	}
}

func TestGone_IsToldOnlyToThoseWhoCouldSeeIt(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "DELETE", lab+"?wait=gone", "").is(http.StatusNoContent)
	for _, a := range [][3]string{
		{"GET", "", ""}, {"PATCH", "", `{}`}, {"DELETE", "", ""}, {"POST", "/start", ""}, {"POST", "/sleep", ""},
		{"POST", "/exec", `{"command":["echo"]}`}, {"GET", "/holds", ""}, {"POST", "/holds", `{"reason":"x","ttl":"1m"}`},
	} {
		for _, user := range []string{"ada", "root"} {
			w.call(user, a[0], lab+a[1], a[2]).problem(http.StatusGone, "gone", "")
		}
		theirs := w.call("bob", a[0], lab+a[1], a[2]).problem(http.StatusNotFound, "not_found", "")
		none := w.call("bob", a[0], "/api/v1/sandboxes/lob"+a[1], a[2]).problem(http.StatusNotFound, "not_found", "")
		if strings.ReplaceAll(theirs.Detail, "lab", "lob") != none.Detail {
			t.Errorf("%s %s tells %q apart from %q", a[0], a[1], theirs.Detail, none.Detail)
		}
	}
	golden(t, "problem_gone", goneDate.ReplaceAll(w.call("ada", "GET", lab, "").Body.Bytes(), []byte("on DATE")))
	w.box("ada", "lab")
	w.call("ada", "GET", lab, "").is(http.StatusOK)
}

func TestTemplates_SayHowTheirSandboxesRest(t *testing.T) {
	s := newStage(t)
	s.put("ada", "spare", func(b *sandbox.Sandbox) { b.Pooled, b.State, b.Spec.Template = true, sandbox.Frozen, "node-api" })
	s.put("ada", "made", func(b *sandbox.Sandbox) { b.Pooled, b.State, b.Spec.Template = true, sandbox.Creating, "node-api" })
	page := s.get("ada", "/templates/node-api").is(http.StatusOK)
	if got := textOf(page.need("aside.card")); !strings.Contains(got, "While unused freezes after 15 min sleeps after 4 h") || !strings.Contains(got, "Made in advance 1 of 2 ready") {
		t.Errorf("says %q", got)
	}
	if rows := s.get("ada", "/").all("li.row"); len(rows) != 0 {
		t.Errorf("%d rows: those made in advance are nobody's", len(rows))
	}
}
