package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/alert"
	"sandboxd/internal/sandbox"
)

// alertStage is a stage with ada's sandbox lab and bob's den, each with alerts that fire and one that is over.
func newAlertStage(t *testing.T) *stage {
	s := newStage(t)
	s.server.cfg.Now = time.Now
	lab, den := s.put("ada", "lab", nil), s.put("bob", "den", nil)
	all := alert.Rule{ID: "all", Name: "Memory nearly full", Kind: alert.Memory, Threshold: 90, For: 5 * time.Minute, Remind: 12 * time.Hour}
	host := alert.Rule{ID: "host", Name: "Host: disk nearly full", Kind: alert.HostDisk, Threshold: 90}
	adas := alert.Rule{ID: "adas", Name: "Ada's <b>rule</b>", Kind: alert.LogLine, Threshold: 2, Pattern: `"no <i>disk"`, Owner: s.users["ada"].ID}
	bobs := alert.Rule{ID: "bobs", Name: "Bob's", Kind: alert.Memory, Threshold: 90, Owner: s.users["bob"].ID}
	s.alerts.put("", []alert.Rule{all, host}, firing("lab-all", all, lab, "uses 96 % of its 512 MiB"), firing("of-host", host, sandbox.Sandbox{}, "91 % are used"))
	s.alerts.put(s.users["ada"].ID, []alert.Rule{adas}, firing("lab-adas", adas, lab, "2 times: \x1b[2J<script>x</script>\u202e"), over(firing("lab-over", adas, lab, "was so"), time.Hour))
	s.alerts.put(s.users["bob"].ID, []alert.Rule{bobs}, firing("den-bobs", bobs, den, "secret"), over(firing("den-over", bobs, den, "secret"), time.Hour))
	if _, err := s.alerts.SetRules(t.Context(), "", []alert.Rule{all, host}); err != nil { // so that it reads what is kept
		t.Fatal(err)
	}
	return s
}

// alertIDs are those of the alerts on a page.
func alertIDs(v view) string {
	var ids []string
	for _, n := range v.all("li.alert") {
		ids = append(ids, attr(n, "data-alert"))
	}
	return strings.Join(ids, " ")
}

// alertOn finds an alert on a page.
func alertOn(v view, id string) *html.Node {
	v.t.Helper()
	for _, n := range v.all("li.alert") {
		if attr(n, "data-alert") == id {
			return n
		}
	}
	v.t.Fatalf("no alert %s among %s", id, alertIDs(v))
	return nil
}

func TestAlertsPage_AMemberSeesAndMutesOnlyTheirOwn(t *testing.T) {
	s := newAlertStage(t)
	for user, want := range map[string]struct{ ids, count string }{
		"ada": {"lab-adas lab-all lab-over", "2 firing"}, "bob": {"den-bobs den-over", "1 firing"},
		"root": {"den-bobs lab-adas lab-all of-host den-over lab-over", "4 firing"},
	} {
		v := s.get(user, "/alerts").is(http.StatusOK)
		got := strings.Fields(alertIDs(v))
		if len(got) != len(strings.Fields(want.ids)) {
			t.Errorf("%s sees %s", user, got)
		}
		for _, id := range strings.Fields(want.ids) {
			alertOn(v, id)
		}
		if got := textOf(v.need("#alert-count")); got != want.count {
			t.Errorf("%s: the badge says %q, want %q", user, got, want.count)
		}
	}
	s.post("ada", "/alerts/den-bobs/mute", fields("for", "1h")).is(http.StatusNotFound)
	s.post("ada", "/alerts/of-host/mute", fields("for", "1h")).is(http.StatusNotFound)
	s.post("ada", "/alerts/lab-all/mute", fields("for", "1h")).is(http.StatusForbidden)
	if n := in(alertOn(s.get("ada", "/alerts"), "lab-all"), "form"); n != nil {
		t.Error("it offers to mute an alert of the installation")
	}
	v := s.post("ada", "/alerts/lab-adas/mute", fields("for", "8h", "next", "/alerts?sandbox=lab")).is(http.StatusSeeOther)
	if to := v.Header().Get("Location"); to != "/alerts?sandbox=lab" {
		t.Errorf("leads to %s", to)
	}
	v = s.get("ada", "/alerts")
	if got := textOf(alertOn(v, "lab-adas")); !strings.Contains(got, "muted for 8 h more") || !strings.Contains(got, "Unmute") {
		t.Errorf("says %q", got)
	}
	if got := textOf(v.need("#alert-count")); got != "1 firing" {
		t.Errorf("the badge counts %q", got)
	}
	s.post("ada", "/alerts/lab-adas/mute", fields("for", "0")).is(http.StatusSeeOther)
	s.post("ada", "/alerts/lab-adas/mute", fields("for", "long")).is(http.StatusBadRequest)
	s.get("", "/alerts").is(http.StatusSeeOther)
}

func TestAlertsPage_SaysWhoseRuleItIsUnlessTheInstallations(t *testing.T) {
	s := newAlertStage(t)
	for _, c := range []struct{ user, id, want string }{
		{"ada", "lab-adas", "your rule"}, {"ada", "lab-over", "your rule"}, {"ada", "lab-all", ""},
		{"root", "lab-adas", "ada’s rule"}, {"root", "lab-all", ""}, {"root", "of-host", ""},
	} {
		if got := textOf(in(alertOn(s.get(c.user, "/alerts"), c.id), "span.tag")); got != c.want {
			t.Errorf("%s reads %q at %s, want %q", c.user, got, c.id, c.want)
		}
	}
}

func TestAlertsPage_SaysThatARuleIsMuted(t *testing.T) {
	s := newAlertStage(t)
	s.post("ada", "/settings/alerts/rules/adas/mute", fields("for", "24h")).is(http.StatusSeeOther)
	v := s.get("ada", "/alerts")
	if got := textOf(alertOn(v, "lab-adas")); !strings.Contains(got, "rule muted for 1 d more") {
		t.Errorf("says %q", got)
	}
	if got := textOf(v.need("#alert-count")); got != "1 firing" {
		t.Errorf("the badge counts %q", got)
	}
}

func TestAlertsPage_FiltersAndLeadsToWhatHappened(t *testing.T) {
	s := newAlertStage(t)
	for query, want := range map[string]string{
		"sandbox=den": "den-bobs den-over", "state=resolved&sandbox=lab": "lab-over", "sandbox=none": "", "state=firing&sandbox=den": "den-bobs",
	} {
		if got := alertIDs(s.get("root", "/alerts?"+query).is(http.StatusOK)); got != want {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	s.get("root", "/alerts?state=loud").is(http.StatusBadRequest)
	v := s.get("ada", "/alerts")
	links := map[string]string{}
	for n := range alertOn(v, "lab-over").Descendants() {
		if n.Data == "a" {
			links[textOf(n)] = attr(n, "href")
		}
	}
	for _, name := range []string{"Metrics", "Log"} {
		if u, err := url.Parse(links[name]); err != nil || u.Query().Get("since") == "" || u.Query().Get("until") == "" {
			t.Errorf("%s leads to %q", name, links[name])
		} else {
			s.get("ada", links["Metrics"]).is(http.StatusOK)
		}
	}
	if q := links["Log"]; !strings.Contains(q, "&q="+url.QueryEscape(`"no <i>disk"`)) {
		t.Errorf("the lines that match are not looked for: %q", q)
	}
	if got := textOf(alertOn(v, "lab-over")); !strings.Contains(got, "lasted 12 min") || !strings.Contains(got, "1 h ago") {
		t.Errorf("what is over says %q", got)
	}
	if n := v.find("sandbox-live"); attr(n, "data-topic") != "/alerts" {
		t.Error("the page is not live")
	}
	box, _ := s.boxes.Sandbox(t.Context(), "lab")
	down := over(firing("lab-down", alert.Rule{ID: "down", Kind: alert.ServiceDown}, box, "web is down"), time.Hour)
	down.Target.Part = "we&b"
	s.alerts.put("", []alert.Rule{{ID: "down", Kind: alert.ServiceDown}}, down)
	for n := range alertOn(s.get("ada", "/alerts"), "lab-down").Descendants() {
		if n.Data == "a" && textOf(n) == "Log" && !strings.HasSuffix(attr(n, "href"), "&service=we%26b") {
			t.Errorf("the log of a service leads to %q", attr(n, "href"))
		}
	}
}

func TestAlertsPage_LoadsOlder(t *testing.T) {
	s := newAlertStage(t)
	var more []alert.Alert
	rule := alert.Rule{ID: "all", Name: "Memory nearly full", Kind: alert.Memory}
	for i := range 120 {
		more = append(more, over(firing(fmt.Sprintf("old-%03d", i), rule, sandbox.Sandbox{ID: "x", Name: "lab", Owner: s.users["ada"].ID}, "x"), time.Duration(i+2)*time.Hour))
	}
	if err := s.alerts.store.PutAlerts(t.Context(), more, nil); err != nil {
		t.Fatal(err)
	}
	v := s.get("ada", "/alerts")
	seen := len(v.all("li.alert"))
	for range 5 {
		older := v.find("#alerts-older")
		if older == nil {
			break
		}
		link := in(older, "a")
		if attr(link, "href") != attr(link, "hx-get") {
			t.Error("without scripts it leads elsewhere")
		}
		plain := s.get("ada", attr(link, "href")).is(http.StatusOK)
		v = s.get("ada", attr(link, "hx-get"), "HX-Request", "true").is(http.StatusOK)
		if v.find("nav.nav") != nil || len(plain.all("li.alert")) != len(v.all("li.alert")) || plain.find("#alerts-firing") != nil {
			t.Error("a part is a page, or the page has something else")
		}
		seen += len(v.all("li.alert"))
	}
	if seen != 123 {
		t.Errorf("%d alerts", seen)
	}
}

func TestAlertsPage_SaysHonestlyThatThereAreNone(t *testing.T) {
	s := newStage(t)
	v := s.get("ada", "/alerts").is(http.StatusOK)
	if got := textOf(v.need("#alerts-firing")); !strings.Contains(got, "No rules are on") {
		t.Errorf("without rules it says %q", got)
	}
	if got := textOf(v.need("#alerts-none")); !strings.Contains(got, "No past alerts yet") {
		t.Errorf("without a history it says %q", got)
	}
	s.alerts.put("", []alert.Rule{{ID: "all", Name: "x", Kind: alert.Memory, Threshold: 90}})
	if got := textOf(s.get("ada", "/alerts").need("#alerts-firing")); !strings.Contains(got, "No alerts") {
		t.Errorf("with one it says %q", got)
	}
	if textOf(s.get("ada", "/").need("#alert-count")) != "" {
		t.Error("a badge without alerts")
	}
}

func TestAlertsPage_NamesAndTextsAreHarmless(t *testing.T) {
	s := newAlertStage(t)
	for _, path := range []string{"/alerts", "/settings/alerts", "/settings/alerts/rules/adas"} {
		v := s.get("ada", path).is(http.StatusOK)
		for n := range v.need("main").Descendants() {
			if n.Type == html.ElementNode && strings.Contains(" script b i img ", " "+n.Data+" ") {
				t.Errorf("%s: a text makes an element %s", path, n.Data)
			}
			if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\x1b\u202e") {
				t.Errorf("%s: %q is in the page", path, n.Data)
			}
		}
		if !strings.Contains(v.Body.String(), "Ada&#39;s &lt;b&gt;rule&lt;/b&gt;") {
			t.Errorf("%s does not show the name", path)
		}
	}
}

func TestLiveAlerts_TellTheFrameAndThePage(t *testing.T) {
	s := newAlertStage(t)
	page, _ := s.follow("ada", s.topicOf("ada", "/alerts"))
	frame, _ := s.follow("ada", s.topicOf("ada", "/settings"))
	others, _ := s.follow("bob", s.topicOf("bob", "/alerts"))
	space, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/lab"))
	if got := textOf(s.get("ada", "/sandboxes/lab").need("#ws-alerts")); got != "2 alerts" {
		t.Errorf("the workspace says %q", got)
	}
	s.post("ada", "/alerts/lab-adas/mute", fields("for", "1h")).is(http.StatusSeeOther)
	got := frame.until("count-badge")
	if !has(got, "alert-count outerHTML") || has(got, "alert-news beforeend") {
		t.Errorf("the frame gets %s", got)
	}
	if got := space.until(`1 <span class="word">alert</span>`); !has(got, "ws-alerts outerHTML") {
		t.Errorf("the workspace gets %s", got)
	}
	if got := page.until("muted"); !has(got, "alerts-firing outerHTML") {
		t.Errorf("the page gets %s", got)
	}
	if _, err := s.alerts.SetRules(t.Context(), s.users["ada"].ID, nil); err != nil { // which resolves it
		t.Fatal(err)
	}
	for got = page.next(); !has(got, "alerts-history afterbegin"); got = page.next() {
	}
	if !strings.Contains(got, `data-alert="lab-adas"`) || !has(got, "alerts-none delete") {
		t.Errorf("the page gets %s", got)
	}
	s.put("bob", "torn", func(b *sandbox.Sandbox) { b.State, b.Problem = sandbox.Failed, "it <b>broke</b>" })
	if _, err := s.alerts.SetRules(t.Context(), s.users["bob"].ID, []alert.Rule{{Name: "Broken", Kind: alert.Broken}}); err != nil {
		t.Fatal(err)
	}
	s.alerts.run()
	for got = others.next(); !has(got, "alert-news beforeend"); got = others.next() {
	}
	if !strings.Contains(got, "Broken – torn: it &lt;b&gt;broke&lt;/b&gt;") {
		t.Errorf("bob's page gets %s", got)
	}
}

func TestAlertsPage_LinksLeadToNoDeletedSandbox(t *testing.T) {
	s := newAlertStage(t)
	links := func() (out []string) {
		for n := range alertOn(s.get("ada", "/alerts").is(http.StatusOK), "lab-over").Descendants() {
			if href := attr(n, "href"); n.Data == "a" && strings.Contains(href, "lab") {
				out = append(out, href)
			}
		}
		return out
	}
	if got := links(); len(got) != 3 {
		t.Errorf("links %q", got)
	}
	box, err := s.boxes.Sandbox(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	s.boxes.drop(box)
	s.put("ada", "lab", nil) // another one
	if got := links(); len(got) != 0 {
		t.Errorf("deleted, and it links to %q", got)
	}
}
