package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/alert"
	"sandboxd/internal/auth"
	"sandboxd/internal/sandbox"
)

// alertWorld has ada's sandbox lab and bob's den, each with alerts that fire and one that is over, and one about the host.
func alertWorld(t *testing.T) *world {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "den")
	box := func(name string) sandbox.Sandbox {
		b, err := w.manager.Sandbox(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	lab, den := box("lab"), box("den")
	all := alert.Rule{ID: "all", Name: "Memory nearly full", Kind: alert.Memory, Threshold: 90}
	host := alert.Rule{ID: "host", Name: "Host: disk nearly full", Kind: alert.HostDisk, Threshold: 90}
	adas, bobs := all, all
	adas.ID, adas.Name, adas.Owner = "adas", "Ada's", w.ids["ada"]
	bobs.ID, bobs.Name, bobs.Owner = "bobs", "Bob's secret", w.ids["bob"]
	w.alerts.put("", []alert.Rule{all, host}, firing("lab-all", all, lab, "uses 96 % of its 512 MiB"), firing("den-all", all, den, "uses 97 %"),
		firing("of-host", host, sandbox.Sandbox{}, "91 % of the disk are used"))
	w.alerts.put(w.ids["ada"], []alert.Rule{adas}, firing("lab-adas", adas, lab, "uses 96 %"), over(firing("lab-over", adas, lab, "used 95 %"), time.Hour))
	w.alerts.put(w.ids["bob"], []alert.Rule{bobs}, firing("den-bobs", bobs, den, "secret"), over(firing("den-over", bobs, den, "secret"), time.Hour))
	return w
}

// alertsOf gives the ids that a user finds.
func (w *world) alertsOf(user, query string, headers ...string) string {
	w.t.Helper()
	var found alertsShape
	w.call(user, "GET", "/api/v1/alerts"+query, "", headers...).is(http.StatusOK).into(&found)
	var ids []string
	for _, a := range found.Alerts {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func TestAlerts_AMemberSeesOnlyTheirOwn(t *testing.T) {
	w := alertWorld(t)
	limited := w.token("root", auth.NewToken{Name: "one", Sandbox: "lab"})
	for _, c := range []struct{ user, query, want string }{
		{"ada", "", "lab-adas lab-all lab-over"}, {"bob", "", "den-all den-bobs den-over"}, {"ada", "?state=firing", "lab-adas lab-all"},
		{"ada", "?state=resolved", "lab-over"}, {"ada", "?sandbox=den", ""}, {"root", "?sandbox=den", "den-all den-bobs den-over"},
		{"root", "", "den-all den-bobs den-over lab-adas lab-all lab-over of-host"},
	} {
		if got := w.alertsOf(c.user, c.query); got != c.want {
			t.Errorf("%s finds %q with %q, want %q", c.user, got, c.query, c.want)
		}
	}
	bearer := []string{"Authorization", "Bearer " + limited}
	if got := w.alertsOf("", "", bearer...); got != "lab-adas lab-all lab-over" {
		t.Errorf("a token for one sandbox finds %q", got)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/lab-all/mute", `{"for_seconds":60}`}, {"GET", "/rules", ""}, {"PUT", "/rules", `{"rules":[]}`}, {"GET", "/channels", ""},
		{"POST", "/channels", `{"name":"x","kind":"email","address":"a@b"}`}, {"POST", "/channels/x/test", ""}, {"GET", "/channels/x/deliveries", ""},
	} {
		w.call("", c.method, "/api/v1/alerts"+c.path, c.body, bearer...).problem(http.StatusForbidden, "forbidden", "")
	}
	for _, query := range []string{"state=loud", "limit=0", "limit=1001"} {
		field, _, _ := strings.Cut(query, "=")
		w.call("ada", "GET", "/api/v1/alerts?"+query, "").problem(http.StatusBadRequest, "invalid", field)
	}
}

func TestAlerts_PagesToTheOldest(t *testing.T) {
	w := alertWorld(t)
	seen, query := map[string]bool{}, "?limit=2"
	for range 5 {
		var found alertsShape
		w.call("root", "GET", "/api/v1/alerts"+query, "").is(http.StatusOK).into(&found)
		for _, a := range found.Alerts {
			if seen[a.ID] {
				t.Errorf("%s twice", a.ID)
			}
			seen[a.ID] = true
		}
		if found.Next == nil {
			break
		}
		query = "?limit=2&before=" + *found.Next
	}
	if len(seen) != 7 {
		t.Errorf("%d alerts: %v", len(seen), seen)
	}
}

func TestAlerts_OnlyTheOwnerOfARuleAndAdminsMute(t *testing.T) {
	w := alertWorld(t)
	mute := func(user, id, body string) answer {
		t.Helper()
		return w.call(user, "POST", "/api/v1/alerts/"+id+"/mute", body)
	}
	mute("ada", "den-bobs", `{"for_seconds":60}`).problem(http.StatusNotFound, "not_found", "")
	mute("ada", "of-host", `{"for_seconds":60}`).problem(http.StatusNotFound, "not_found", "")
	mute("ada", "lab-all", `{"for_seconds":60}`).problem(http.StatusForbidden, "forbidden", "")
	mute("ada", "lab-adas", `{"for_seconds":60}`).is(http.StatusNoContent)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	mute("root", "lab-all", fmt.Sprintf(`{"until":%q}`, until.Format(time.RFC3339))).is(http.StatusNoContent)
	muted := func(id string) *time.Time {
		t.Helper()
		var found alertsShape
		w.call("ada", "GET", "/api/v1/alerts", "").into(&found)
		for _, a := range found.Alerts {
			if a.ID == id {
				return a.MutedUntil
			}
		}
		t.Fatal("no alert", id)
		return nil
	}
	if at := muted("lab-all"); at == nil || !at.Equal(until) {
		t.Errorf("muted until %v, want %v", at, until)
	}
	mute("ada", "lab-adas", `{"for_seconds":0}`).is(http.StatusNoContent)
	if at := muted("lab-adas"); at != nil {
		t.Errorf("still muted until %v", at)
	}
	for body, field := range map[string]string{
		`{}`: "until", `{"until":"2030-01-01T00:00:00Z","for_seconds":1}`: "until", `{"for_seconds":-1}`: "for_seconds", `{"for_seconds":99999999999}`: "for_seconds",
		`{"until":"2999-01-01T00:00:00Z"}`: "until",
	} {
		mute("root", "lab-all", body).problem(http.StatusBadRequest, "invalid", field)
	}
	var done []string
	for _, e := range recorded(t, w.server) {
		if e.Outcome == activity.Done {
			done = append(done, entryLine(e))
		}
	}
	if want := []string{"ada api alert.mute lab Ada's done", "root api alert.mute lab Memory nearly full done", "ada api alert.unmute lab Ada's done"}; !slices.Equal(done, want) {
		t.Errorf("recorded is %q, want %q", done, want)
	}
}

func TestAlertRules_AreKeptAndChecked(t *testing.T) {
	w := alertWorld(t)
	path := "/api/v1/alerts/rules"
	for _, body := range []string{"", "{}", `{"rules":null}`} {
		w.call("ada", "PUT", path, body).problem(http.StatusBadRequest, "invalid", "rules")
	}
	var mine rulesShape
	w.call("ada", "PUT", path, `{"rules":[{"name":"Full","kind":"memory","sandbox":"lab","threshold":80,"for_seconds":60,"remind_seconds":3600}]}`).is(http.StatusOK).into(&mine)
	got := mine.Rules[0]
	if got.ID == "" || got.Sandbox != "lab" || got.ForSeconds != 60 || got.RemindSeconds != 3600 || got.Channels == nil {
		t.Errorf("kept as %+v", got)
	}
	w.call("ada", "GET", path, "").is(http.StatusOK).into(&mine)
	if len(mine.Rules) != 1 || mine.Rules[0].ID != got.ID {
		t.Errorf("reads %+v", mine)
	}
	ok := `{"name":"x","kind":"memory","threshold":80}`
	for body, field := range map[string]string{
		`{"name":"x","kind":"memory","sandbox":"den","threshold":80}`:      "rules[1].sandbox",
		`{"name":"x","kind":"memory","threshold":8000}`:                    "rules[1].threshold",
		`{"name":"","kind":"memory","threshold":80}`:                       "rules[1].name",
		`{"name":"x","kind":"memory","threshold":80,"for_seconds":100000}`: "rules[1].for_seconds",
		`{"name":"x","kind":"memory","threshold":80,"for_seconds":-1}`:     "rules[1].for_seconds",
		`{"name":"x","kind":"memory","threshold":80,"remind_seconds":1}`:   "rules[1].remind_seconds",
		`{"name":"x","kind":"log-line","threshold":1}`:                     "rules[1].pattern",
		`{"name":"x","kind":"host-disk","threshold":80}`:                   "rules[1].kind",
		`{"name":"x","kind":"memory","threshold":80,"channels":["none"]}`:  "rules[1].channels",
	} {
		w.call("ada", "PUT", path, `{"rules":[`+ok+`,`+body+`]}`).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("ada", "GET", path+"?owner=installation", "").problem(http.StatusForbidden, "forbidden", "")
	w.call("ada", "PUT", path+"?owner=installation", `{"rules":[]}`).problem(http.StatusForbidden, "forbidden", "")
	w.call("ada", "GET", path+"?owner=bob", "").problem(http.StatusBadRequest, "invalid", "owner")
	var all rulesShape
	w.call("root", "GET", path+"?owner=installation", "").is(http.StatusOK).into(&all)
	if len(all.Rules) != 2 {
		t.Errorf("the installation has %+v", all)
	}
	if got := w.alertsOf("ada", "?state=firing"); got != "lab-all" {
		t.Errorf("after her rule went, %q fire", got)
	}
}

func TestAlertChannels_ShowSecretsOnce(t *testing.T) {
	w := newWorld(t)
	path := "/api/v1/alerts/channels"
	var hook channelShape
	w.call("ada", "POST", path, `{"name":"hook","kind":"webhook","address":"https://example.com/x"}`).is(http.StatusCreated).into(&hook)
	if !strings.HasPrefix(hook.Secret, "whsec_") {
		t.Errorf("made %+v", hook)
	}
	one := path + "/" + hook.ID
	if body := w.call("ada", "GET", path, "").is(http.StatusOK).Body.String(); strings.Contains(body, hook.Secret) || !strings.Contains(body, "example.com/x") {
		t.Errorf("lists %s", body)
	}
	if body := w.call("ada", "PUT", one, `{"name":"hook two"}`).is(http.StatusOK).Body.String(); strings.Contains(body, hook.Secret) || !strings.Contains(body, "hook two") {
		t.Errorf("changes to %s", body)
	}
	chat := `{"name":"chat","kind":"shoutrrr","address":"discord://t0ken@id"}`
	w.call("ada", "POST", path, chat).problem(http.StatusBadRequest, "invalid", "kind")
	w.call("root", "POST", path+"?owner=installation", chat).is(http.StatusCreated)
	if body := w.call("root", "GET", path+"?owner=installation", "").is(http.StatusOK).Body.String(); strings.Contains(body, "t0ken") || !strings.Contains(body, `"address":"discord"`) {
		t.Errorf("lists %s", body)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", one, `{"name":"x"}`}, {"DELETE", one, ""}, {"POST", one + "/test", ""}, {"GET", one + "/deliveries", ""},
	} {
		w.call("bob", c.method, c.path, c.body).problem(http.StatusNotFound, "not_found", "")
	}
	w.call("ada", "POST", path, `{"name":"x","kind":"email","address":"none"}`).problem(http.StatusBadRequest, "invalid", "address")
	w.call("ada", "POST", path, `{"name":"x","kind":"pigeon","address":"a@b"}`).problem(http.StatusBadRequest, "invalid", "kind")

	var tested testedShape
	w.call("ada", "POST", one+"/test", "").is(http.StatusOK).into(&tested)
	if !tested.Sent || tested.Problem != "" || len(w.alerts.sent.sent) != 1 {
		t.Errorf("test: %+v", tested)
	}
	w.call("ada", "PUT", one, `{"name":"hook","address":"https://down.example.com"}`).is(http.StatusOK)
	w.call("ada", "POST", one+"/test", "").is(http.StatusOK).into(&tested)
	if tested.Sent || !strings.Contains(tested.Problem, "503") {
		t.Errorf("test: %+v", tested)
	}
	var sent deliveriesShape
	w.call("ada", "GET", one+"/deliveries", "").is(http.StatusOK).into(&sent)
	if len(sent.Deliveries) != 2 || sent.Deliveries[0].SentAt != nil || !sent.Deliveries[0].GivenUp || sent.Deliveries[1].SentAt == nil {
		t.Errorf("deliveries %+v", sent)
	}
	var tests []string // the outcome of each, as recorded
	for _, e := range recorded(t, w.server) {
		if e.Action == "channel.test" && e.User == "ada" {
			tests = append(tests, string(e.Outcome)+": "+e.Problem)
		}
	}
	if len(tests) != 2 || tests[0] != "done: " || !strings.Contains(tests[1], "failed: ") || !strings.Contains(tests[1], "503") {
		t.Errorf("recorded of the tests is %q", tests)
	}
	w.call("ada", "DELETE", one, "").is(http.StatusNoContent)
	w.call("ada", "DELETE", one, "").problem(http.StatusNotFound, "not_found", "")
}
