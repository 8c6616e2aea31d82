package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestCreate_AcceptsAndGoesOn(t *testing.T) {
	w := newWorld(t)
	release := w.images.keep(nil)
	got := w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","name":"lab","label":"ML Experiments","memory":"512MiB","cpus":1.5}`).is(202)
	if l := got.Header().Get("Location"); l != "/api/v1/sandboxes/lab" {
		t.Errorf("location %q", l)
	}
	s := got.sandbox()
	if s.State != "creating" || s.Owner != "ada" || s.Limits.Memory != 512<<20 || s.Limits.CPUs != 1.5 {
		t.Errorf("got %+v", s)
	}
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","name":"lab","label":"ML Experiments","memory":536870912,"cpus":1.5}`).is(202)
	release()
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab","memory":"512m","cpus":1.5}`).is(200)
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","name":"lab","memory":"512m","cpus":1.5}`).is(200)
}

func TestCreate_WaitsUntilItIsReady(t *testing.T) {
	w := newWorld(t)
	got := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"image":"debian:trixie-slim"}`).is(201)
	s := got.sandbox()
	if s.State != "running" || s.Name == "" || got.Header().Get("Location") != "/api/v1/sandboxes/"+s.Name {
		t.Errorf("got %+v at %q", s, got.Header().Get("Location"))
	}
}

func TestCreate_TellsTheCauseWhenItFails(t *testing.T) {
	w := newWorld(t)
	w.images.keep(fault.New(fault.Invalid, "Step 4 of the build failed: no space left on device."))()
	got := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab"}`)
	p := got.problem(409, "sandbox_failed", "")
	if !strings.Contains(p.Detail, "no space left on device") || got.Header().Get("Location") != "/api/v1/sandboxes/lab" {
		t.Errorf("got %+v at %q", p, got.Header().Get("Location"))
	}
	if s := w.call("ada", "GET", "/api/v1/sandboxes/lab", "").is(200).sandbox(); s.State != "failed" || s.Problem == "" {
		t.Errorf("got %+v", s)
	}
}

func TestCreate_TroubleOfTheEngineIsNoConflict(t *testing.T) {
	for kind, status := range map[fault.Kind]int{fault.Unavailable: 503, fault.Timeout: 504, fault.Invalid: 409} {
		w := newWorld(t)
		w.engine.fail(fault.New(kind, "The container engine is in trouble."))
		got := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"image":"debian:trixie-slim","name":"lab"}`)
		if p := got.problem(status, "sandbox_failed", ""); !strings.Contains(p.Detail, "in trouble") || (got.Header().Get("Retry-After") != "") != (status == 503) {
			t.Errorf("got %+v, retry after %q", p, got.Header().Get("Retry-After"))
		}
		w.engine.fail(nil)
		w.call("ada", "POST", "/api/v1/sandboxes/lab/start?wait=ready", "").is(200)
	}
}

func TestCreate_StopsWaitingAfterTheTimeout(t *testing.T) {
	w := newWorld(t)
	defer w.images.keep(nil)()
	got := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready&timeout=0.05", `{"template":"base","name":"lab"}`)
	got.problem(504, "timeout", "")
	if got.Header().Get("Location") != "/api/v1/sandboxes/lab" {
		t.Errorf("location %q", got.Header().Get("Location"))
	}
	w.call("ada", "GET", "/api/v1/sandboxes/lab", "").is(200)
}

func TestCreate_BadInputNamesTheField(t *testing.T) {
	w := newWorld(t)
	w.box("bob", "taken")
	cases := []struct {
		name, body  string
		status      int
		code, field string
	}{
		{"empty body", ``, 400, "invalid", "template"},
		{"empty object", `{}`, 400, "invalid", "template"},
		{"template and image", `{"template":"base","image":"x"}`, 400, "invalid", "template"},
		{"unknown template", `{"template":"nope"}`, 404, "not_found", ""},
		{"broken template", `{"template":"torn"}`, 400, "invalid", ""},
		{"unknown field", `{"template":"base","colour":"red"}`, 400, "invalid", "colour"},
		{"field in capitals", `{"template":"base","NAME":"lab"}`, 400, "invalid", "NAME"},
		{"not JSON", `template=base`, 400, "invalid", ""},
		{"cut off", `{"template":"ba`, 400, "invalid", ""},
		{"a list", `[]`, 400, "invalid", ""},
		{"a text", `"base"`, 400, "invalid", ""},
		{"trailing garbage", `{"template":"base"} x`, 400, "invalid", ""},
		{"two objects", `{"template":"base"}{}`, 400, "invalid", ""},
		{"wrong type", `{"template":7}`, 400, "invalid", "template"},
		{"name of 64", `{"template":"base","name":"` + strings.Repeat("a", 64) + `"}`, 400, "invalid", "name"},
		{"unicode name", `{"template":"base","name":"größe"}`, 400, "invalid", "name"},
		{"dots", `{"template":"base","name":".."}`, 400, "invalid", "name"},
		{"upper case", `{"template":"base","name":"Lab"}`, 400, "invalid", "name"},
		{"reserved", `{"template":"base","name":"www"}`, 400, "invalid", "name"},
		{"digit first", `{"template":"base","name":"3000-x"}`, 400, "invalid", "name"},
		{"taken", `{"template":"base","name":"taken"}`, 409, "conflict", "name"},
		{"label of 64", `{"template":"base","label":"` + strings.Repeat("a", 64) + `"}`, 400, "invalid", "label"},
		{"label with a line break", `{"template":"base","label":"a\nb"}`, 400, "invalid", "label"},
		{"no processors", `{"template":"base","cpus":-1}`, 400, "invalid", "cpus"},
		{"too many processors", `{"template":"base","cpus":1e9}`, 400, "invalid", "cpus"},
		{"impossible number", `{"template":"base","cpus":1e999}`, 400, "invalid", "cpus"},
		{"little memory", `{"template":"base","memory":1}`, 400, "invalid", "memory"},
		{"much memory", `{"template":"base","memory":"9000TiB"}`, 400, "invalid", "memory"},
		{"memory of words", `{"template":"base","memory":"lots"}`, 400, "invalid", "memory"},
		{"memory of lists", `{"template":"base","memory":[1]}`, 400, "invalid", "memory"},
		{"negative memory", `{"template":"base","memory":"-5"}`, 400, "invalid", "memory"},
		{"pids", `{"template":"base","pids":1}`, 400, "invalid", "pids"},
		{"env name", `{"template":"base","env":{"A=B":"c"}}`, 400, "invalid", "env"},
		{"env value", `{"template":"base","env":{"A":7}}`, 400, "invalid", "env"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.t = t
			w.call("ada", "POST", "/api/v1/sandboxes", c.body).problem(c.status, c.code, c.field)
		})
	}
	_, total, err := w.manager.List(t.Context(), sandbox.Filter{})
	if err != nil || total != 1 {
		t.Errorf("%d sandboxes, %v: something was made", total, err)
	}
}

func TestBody_OfTenMiBIsRefused(t *testing.T) {
	w := newWorld(t)
	big := `{"template":"base","label":"` + strings.Repeat("x", 10<<20) + `"}`
	w.call("ada", "POST", "/api/v1/sandboxes", big).problem(413, "too_large", "")
	r := unsized(w, "ada", big)
	w.send(r, big).problem(413, "too_large", "")
}

func TestBody_MustSayThatItIsJSON(t *testing.T) {
	w := newWorld(t)
	body := `{"template":"base"}`
	w.call("ada", "POST", "/api/v1/sandboxes", body, "Content-Type", "text/plain").problem(415, "unsupported_media_type", "")
	w.call("ada", "POST", "/api/v1/sandboxes", body, "Content-Type", "application/x-www-form-urlencoded").problem(415, "unsupported_media_type", "")
	w.call("ada", "POST", "/api/v1/sandboxes", body, "Content-Type", "application/json; charset=utf-8").is(202)
}

func TestWait_UnknownWordsAndImpossibleTimesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ path, field string }{
		{"/start?wait=gone", "wait"}, {"/stop?wait=ready", "wait"}, {"/start?wait=ready&timeout=0", "timeout"},
		{"/start?wait=ready&timeout=-1", "timeout"}, {"/start?wait=ready&timeout=99h", "timeout"}, {"/start?wait=ready&timeout=soon", "timeout"},
		{"/start?wait=ready&timeout=NaN", "timeout"}, {"/start?wait=ready&timeout=1e300", "timeout"},
	} {
		w.call("ada", "POST", "/api/v1/sandboxes/lab"+c.path, "").problem(400, "invalid", c.field)
	}
}

func TestPower_StopsStartsAndRestarts(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	step := func(path string, status int, state string) {
		t.Helper()
		if s := w.call("ada", "POST", "/api/v1/sandboxes/lab/"+path, "").is(status).sandbox(); state != "" && s.State != state {
			t.Errorf("%s: %s, want %s", path, s.State, state)
		}
	}
	step("stop?wait=stopped", 200, "stopped")
	step("stop?wait=true", 200, "stopped")
	step("start?wait=ready", 200, "running")
	step("restart?wait=ready", 200, "running")
	step("stop", 202, "")
	step("start?wait=ready", 200, "running")
}

func TestPower_TellsWhenTheEngineIsAway(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.engine.fail(fault.New(fault.Unavailable, "The container engine does not answer."))
	got := w.call("ada", "POST", "/api/v1/sandboxes/lab/stop?wait=stopped", "")
	if p := got.problem(503, "unavailable", ""); !strings.Contains(p.Detail, "does not answer") || got.Header().Get("Retry-After") == "" {
		t.Errorf("got %+v, retry after %q", p, got.Header().Get("Retry-After"))
	}
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab?wait=gone", "").problem(503, "unavailable", "")
}

func TestDelete_AcceptsOrWaitsUntilItIsGone(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab?wait=gone", "").is(204)
	w.call("ada", "GET", "/api/v1/sandboxes/lab", "").problem(410, "gone", "")
	w.box("ada", "lab")
	lab := w.ref("lab")
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab", "").is(202)
	if _, err := w.manager.Wait(t.Context(), lab); !fault.Is(err, fault.Gone) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestChange_SetsTheLabelOnly(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	if s := w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{"label":"Größe"}`).is(200).sandbox(); s.Label != "Größe" {
		t.Errorf("got %+v", s)
	}
	if s := w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{}`).is(200).sandbox(); s.Label != "Größe" {
		t.Errorf("an empty change changed %+v", s)
	}
	w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{"name":"other"}`).problem(400, "invalid", "name")
	w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{"label":"`+strings.Repeat("é", 61)+`"}`).problem(400, "invalid", "label")
}

// names lists the sandboxes of a list's page.
func (a answer) names() (names []string, total int) {
	a.t.Helper()
	var l listShape
	a.into(&l)
	for _, s := range l.Sandboxes {
		names = append(names, s.Name)
	}
	return names, l.Total
}

func TestList_ShowsMembersTheirOwnAndAdminsAll(t *testing.T) {
	w := newWorld(t)
	for _, b := range [][2]string{{"ada", "one"}, {"ada", "two"}, {"bob", "three"}} {
		w.box(b[0], b[1])
	}
	limited := w.token("ada", auth.NewToken{Name: "limited", Sandbox: "one"})
	w.tokens["limited"] = limited
	for _, c := range []struct {
		user, query string
		want        []string
		total       int
	}{
		{"ada", "", []string{"two", "one"}, 2},
		{"ada", "?owner=me", []string{"two", "one"}, 2},
		{"bob", "", []string{"three"}, 1},
		{"root", "", []string{"three", "two", "one"}, 3},
		{"root", "?owner=bob", []string{"three"}, 1},
		{"root", "?owner=me", nil, 0},
		{"root", "?limit=1&offset=1", []string{"two"}, 3},
		{"root", "?q=TH", []string{"three"}, 1},
		{"root", "?state=stopped", nil, 0},
		{"limited", "", []string{"one"}, 1},
		{"limited", "?q=two", nil, 0},
		{"limited", "?offset=1", nil, 1},
	} {
		names, total := w.call(c.user, "GET", "/api/v1/sandboxes"+c.query, "").is(200).names()
		if d := cmp.Diff(c.want, names); d != "" || total != c.total {
			t.Errorf("%s%s: total %d, %s", c.user, c.query, total, d)
		}
	}
	w.call("ada", "GET", "/api/v1/sandboxes?owner=bob", "").problem(403, "forbidden", "")
	w.call("root", "GET", "/api/v1/sandboxes?owner=nobody", "").problem(404, "not_found", "")
	w.call("root", "GET", "/api/v1/sandboxes?limit=0", "").problem(400, "invalid", "limit")
	w.call("root", "GET", "/api/v1/sandboxes?limit=1001", "").problem(400, "invalid", "limit")
	w.call("root", "GET", "/api/v1/sandboxes?offset=x", "").problem(400, "invalid", "offset")
	w.call("root", "GET", "/api/v1/sandboxes?state=flying", "").problem(400, "invalid", "state")
}

// TestVisible_OthersSandboxesAreAsIfNotThere tries every route with a name in it.
func TestVisible_OthersSandboxesAreAsIfNotThere(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("ada", "other")
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "other"})
	actions := [][2]string{
		{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/start"}, {"POST", "/stop"}, {"POST", "/restart"}, {"POST", "/exec"},
	}
	for _, user := range []string{"bob", "limited"} {
		for _, a := range actions {
			body := ""
			if a[1] == "/exec" {
				body = `{"command":["echo"]}`
			}
			theirs := w.call(user, a[0], "/api/v1/sandboxes/lab"+a[1], body).problem(404, "not_found", "")
			none := w.call(user, a[0], "/api/v1/sandboxes/lob"+a[1], body).problem(404, "not_found", "")
			if strings.ReplaceAll(theirs.Detail, "lab", "lob") != none.Detail {
				t.Errorf("%s %s tells %q apart from %q", a[0], a[1], theirs.Detail, none.Detail)
			}
		}
	}
	for _, user := range []string{"ada", "root"} {
		w.call(user, "GET", "/api/v1/sandboxes/lab", "").is(200)
	}
	w.call("limited", "GET", "/api/v1/sandboxes/other", "").is(200)
	if s, err := w.manager.Sandbox(context.Background(), "lab"); err != nil || s.State != sandbox.Running {
		t.Errorf("it was touched: %s, %v", s.State, err)
	}
}

func TestLimitedToken_MayNotMakeOrManage(t *testing.T) {
	w := newWorld(t)
	w.box("root", "lab")
	w.tokens["limited"] = w.token("root", auth.NewToken{Name: "limited", Sandbox: "lab", TTL: time.Hour})
	for _, a := range [][3]string{
		{"POST", "/sandboxes", `{"template":"base"}`}, {"GET", "/tokens", ""}, {"POST", "/tokens", `{"name":"x"}`},
		{"DELETE", "/tokens/x", ""}, {"POST", "/templates/base/build", ""},
	} {
		w.call("limited", a[0], "/api/v1"+a[1], a[2]).problem(http.StatusForbidden, "forbidden", "")
	}
}

func TestCreate_FollowsADeleteThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.box("ada", "lab")
		gate := make(chan struct{})
		w.engine.gate = gate
		w.call("ada", "DELETE", "/api/v1/sandboxes/lab", "").is(202)
		if s := w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","name":"lab","cpus":1}`).is(202).sandbox(); s.State != "deleting" {
			t.Errorf("got %+v", s)
		}
		time.AfterFunc(time.Second, func() { close(gate) })
		s := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab","cpus":1}`).is(201).sandbox()
		if s.State != "running" || s.Limits.CPUs != 1 {
			t.Errorf("got %+v", s)
		}
	})
}
