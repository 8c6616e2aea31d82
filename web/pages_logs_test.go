package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/catalog"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

// logStage is a stage whose sandboxes write.
type logStage struct {
	*stage
	logs *logs.Keeper
}

// newLogStage has two people with a sandbox each, and lines in both.
func newLogStage(t *testing.T) *logStage {
	s := &logStage{newStage(t), keepLogs(t, slog.New(slog.DiscardHandler))}
	s.server.cfg.Logs, s.server.cfg.Now = s.logs, time.Now
	s.put("ada", "lab", nil)
	s.put("bob", "den", nil)
	s.say("lab", "web", "GET / 200", "error: no disk <b>", "GET /x 404")
	s.say("lab", "db", `{"level":"warn","msg":"slow query","took":1.5,"sql":"select \"x\""}`)
	s.say("den", "web", "bob's secret GET")
	return s
}

func (s *logStage) say(name, service string, texts ...string) {
	s.t.Helper()
	now := time.Now()
	for i, text := range texts {
		s.logs.Append(logs.Line{Sandbox: s.ref(name).ID(), Service: service, Text: text, Time: now.Add(time.Duration(i-len(texts)+1) * time.Second)})
	}
}

// texts are those of the lines of a page.
func texts(v view) (out []string) {
	for _, n := range v.all("li.log-line") {
		out = append(out, textOf(in(n, "bdi.log-text")))
	}
	return out
}

// line gives the id of the line on a user's page with a text.
func (s *logStage) line(user, text string) string {
	s.t.Helper()
	for _, n := range s.get(user, "/logs").all("li.log-line") {
		if strings.Contains(textOf(n), text) {
			return attr(n, "data-id")
		}
	}
	s.t.Fatalf("%s has no line %q", user, text)
	return ""
}

func TestLogsPage_AMemberSeesOnlyTheirOwn(t *testing.T) {
	s := newLogStage(t)
	for user, want := range map[string]int{"ada": 4, "bob": 1, "root": 5} {
		v := s.get(user, "/logs").is(http.StatusOK)
		if got := texts(v); len(got) != want {
			t.Errorf("%s sees %q", user, got)
		}
		if offered := v.find("#log-owner") != nil; offered != (user == "root") {
			t.Errorf("%s may choose an owner: %t", user, offered)
		}
		if textOf(v.need("nav.nav")) == "" || !strings.Contains(textOf(v.need("nav.nav")), "Logs") {
			t.Errorf("no way to it for %s", user)
		}
	}
	if v := s.get("ada", "/logs"); strings.Contains(v.Body.String(), `value="den"`) {
		t.Error("the form names the sandbox of another")
	}
	secret := s.line("bob", "secret")
	for _, path := range []string{"/logs/lines/" + secret, "/logs/lines/" + secret + "/text"} {
		if v := s.get("ada", path).is(http.StatusNotFound); strings.Contains(v.Body.String(), "secret") {
			t.Errorf("%s shows it", path)
		}
		s.get("root", path).is(http.StatusOK)
	}
	for _, path := range []string{"/logs?sandbox=den", "/logs?owner=bob", "/logs?q=secret"} {
		if got := texts(s.get("ada", path).is(http.StatusOK)); len(got) != 0 {
			t.Errorf("%s finds %q", path, got)
		}
	}
	if got := s.get("ada", "/logs/download?format=text").is(http.StatusOK).Body.String(); strings.Contains(got, "secret") || strings.Count(got, "\n") != 4 {
		t.Errorf("downloads %s", got)
	}
	s.get("ada", "/logs/download?format=text&sandbox=den").is(http.StatusNotFound)
	s.get("", "/logs").is(http.StatusSeeOther)
}

func TestLogsPage_OfASandboxSaysThatOnlyServicesAreLogged(t *testing.T) {
	s := newLogStage(t)
	s.put("ada", "bare", nil)
	s.put("ada", "quiet", func(b *sandbox.Sandbox) {
		b.Overrides.Services, b.Overrides.HasServices = []catalog.Service{{Name: "web", Command: []string{"web"}}}, true
	})
	empty := func(path string) string { return textOf(s.get("ada", path).is(http.StatusOK).need("div.empty")) }
	if got := empty("/logs?sandbox=bare"); !strings.Contains(got, "Only the output of services is logged, and bare has none.") || !strings.Contains(got, "Add service") || strings.Contains(got, "search") {
		t.Errorf("without services: %q", got)
	}
	add := attr(in(s.get("ada", "/logs?sandbox=bare").need("div.empty"), "a"), "href")
	s.get("ada", add).is(http.StatusOK)
	if got := empty("/logs?sandbox=quiet"); !strings.Contains(got, "What the services of quiet write appears here.") || strings.Contains(got, "search") {
		t.Errorf("with a service: %q", got)
	}
	for _, path := range []string{"/logs?sandbox=bare&q=x", "/logs?sandbox=bare&level=warn"} {
		if got := empty(path); !strings.Contains(got, "No lines match this search.") {
			t.Errorf("a search: %q", got)
		}
	}
}

func TestLogsPage_FiltersAndSaysWhatIsWrong(t *testing.T) {
	s := newLogStage(t)
	for query, want := range map[string]string{
		"q=get&service=web":                      "GET /x 404|GET / 200",
		"q=%22no+disk%22":                        "error: no disk <b>",
		"level=warn,error,fatal":                 "slow query|error: no disk <b>",
		"sandbox=lab&service=db&range=15m":       "slow query",
		"range=15m&since=2001-01-01T00:00&q=404": "GET /x 404",
		"until=2001-01-01T00:00":                 "",
		"q=&sandbox=&service=db&level=&range=":   "slow query",
	} {
		if got := strings.Join(texts(s.get("ada", "/logs?"+query).is(http.StatusOK)), "|"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	for query, id := range map[string]string{
		"sandbox=none": "log-sandbox-fault", "level=loud": "log-level-fault", "range=2y": "log-range-fault", "since=x": "log-since-fault",
		"until=x": "log-until-fault", "since=2026-01-02T00:00&until=2026-01-01T00:00": "log-until-fault", "q=" + strings.Repeat("x", 2000): "log-q-fault",
	} {
		v := s.get("ada", "/logs?"+query).is(http.StatusOK)
		if textOf(v.find("#"+id)) == "" || v.find("sandbox-logs") != nil {
			t.Errorf("%s: no fault, or lines with it", query)
		}
		if name, _, _ := strings.Cut(query, "="); strings.Contains("sandbox level range", name) && attr(v.find("#"+id).Parent, "class") != "log-fields" {
			t.Errorf("%s: the fault has no more room than the field", query)
		}
	}
	if v := s.get("root", "/logs?owner=nobody"); textOf(v.find("#log-owner-fault")) == "" {
		t.Error("nothing beside the owner")
	}
	if v := s.get("ada", "/logs?q=nothing"); !strings.Contains(textOf(v.need("div.empty")), "Nothing found") {
		t.Error("no word about nothing found")
	}
	s.get("ada", "/logs?next=%00").is(http.StatusBadRequest)
	v := s.get("ada", "/logs?range=1h&q=get")
	if attr(v.need("#filter"), "value") != "get" || hasAttr(v.need("sandbox-logs"), "data-on") || attr(v.need("sandbox-logs"), "data-topic") == "" {
		t.Error("the form forgets, or the tail begins by itself")
	}
	if v := s.get("ada", "/logs"); !hasAttr(v.need("sandbox-logs"), "data-on") {
		t.Error("the tail does not begin by itself")
	}
}

func TestLogsPage_PagesToTheOldestLine(t *testing.T) {
	s := newLogStage(t)
	for i := range 230 {
		s.say("lab", "web", fmt.Sprintf("number %d", i))
	}
	seen, path := map[string]bool{}, "/logs?q=number"
	for range 4 {
		v := s.get("ada", path).is(http.StatusOK)
		for _, text := range texts(v) {
			if seen[text] {
				t.Fatalf("%s twice", text)
			}
			seen[text] = true
		}
		older := v.find("div.log-end")
		if older == nil {
			break
		}
		if path != "/logs?q=number" && !strings.Contains(v.Body.String(), "Newest lines") {
			t.Error("no way back")
		}
		if path != "/logs?q=number" && attr(v.need("sandbox-logs"), "data-topic") != "" {
			t.Error("an older page follows the log")
		}
		path = attr(in(older, "a"), "href")
	}
	if len(seen) != 230 {
		t.Errorf("%d lines", len(seen))
	}
}

func TestLogsPage_SaysHowFarASearchWentBackAndGoesOn(t *testing.T) {
	s := newLogStage(t)
	store := sqlite.OpenLogs(t.Context(), filepath.Join(t.TempDir(), "logs.db"), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = store.Close() })
	for i := range 5 {
		l := logs.Line{ID: logs.ID(time.Now().UnixMicro()), Time: time.Now(), Sandbox: s.ref("lab").ID(), Text: fmt.Sprintf("old %d", i)}
		if err := store.Add(t.Context(), []logs.Line{l}); err != nil {
			t.Fatal(err)
		}
	}
	s.server.cfg.Logs = logs.New(logs.Config{Store: store, Budget: time.Nanosecond})
	v := s.get("ada", "/logs?q=old").is(http.StatusOK)
	end := v.need("div.log-end")
	if got := textOf(end); !strings.HasPrefix(got, "Searched back to ") || !strings.HasSuffix(got, " Search further back") || v.find("div.empty") != nil {
		t.Errorf("the end says %q", got)
	}
	s.server.cfg.Logs = logs.New(logs.Config{Store: store})
	if got := texts(s.get("ada", attr(in(end, "a"), "href")).is(http.StatusOK)); len(got) != 5 {
		t.Errorf("further back are %q", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	v = s.get("ada", "/logs?q=old").is(http.StatusOK)
	if got := textOf(v.find("div.notice")); !strings.Contains(got, "Try again") || attr(v.need("#filter"), "value") != "old" {
		t.Errorf("without a store the page says %q", got)
	}
}

func TestLogsPage_HostileLinesDoNothing(t *testing.T) {
	s := newLogStage(t)
	for _, text := range []string{
		"<script>alert(1)</script><img src=x onerror=alert(1)>", "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\x00\x07", "abc\u202egpj.exe\u2066\u200bz",
		`{"msg":"<b>\u001b[31mx\u001b[0m","<i>":"\u202e\u0000"}`, "\x9b31m\x7f\u0085", "long " + strings.Repeat("y", 16<<10), strings.Repeat("\x1b[31ma\x1b[32mb", 1500),
		`"}" onload="x" style="color:red" {`,
	} {
		s.say("lab", "evil", text)
	}
	v := s.get("ada", "/logs?service=evil").is(http.StatusOK)
	if got := len(v.all("li.log-line")); got != 8 {
		t.Fatalf("%d lines", got)
	}
	if v.Body.Len() > 200_000 {
		t.Errorf("the page has %d bytes", v.Body.Len())
	}
	lines := v.need("#log-lines")
	for n := range lines.Descendants() {
		if n.Type == html.ElementNode && strings.Contains(" script img b i style ", " "+n.Data+" ") || hasAttr(n, "style") || hasAttr(n, "onload") || hasAttr(n, "onerror") {
			t.Errorf("a line makes an element %s %v", n.Data, n.Attr)
		}
		if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\x00\x07\x1b\x7f\u0085\u009b\u202e\u2066\u200b") {
			t.Errorf("%q is in the page", n.Data)
		}
	}
	body := textOf(lines)
	for _, sign := range []string{"‹ESC›]0;title‹BEL›", "‹ESC›[2J", "‹NUL›", "‹U+202E›", "‹U+2066›", "‹U+200B›", "‹DEL›", "‹U+0085›"} {
		if !strings.Contains(body, strings.Split(sign, ";")[0]) && !strings.Contains(strings.ReplaceAll(body, " ", ""), sign) {
			t.Errorf("no %s", sign)
		}
	}
	if n := in(lines, "span.fg-red"); textOf(n) == "" {
		t.Error("no colour")
	}
	long := s.line("ada", "long y")
	if n := len(textOf(s.get("ada", "/logs/lines/"+long+"/text").is(http.StatusOK).need("bdi.log-text"))); n < 16<<10-100 {
		t.Errorf("all of it has %d bytes", n)
	}
	text := s.get("ada", "/logs/download?format=text&service=evil").is(http.StatusOK)
	if got := text.Body.String(); strings.ContainsAny(got, "\x00\x07\x1b\x7f\u202e") || strings.Count(got, "\n") != 8 {
		t.Errorf("the text has controls: %.300q", got)
	}
}

func TestLogsPage_JSONShowsItsMessageFirst(t *testing.T) {
	s := newLogStage(t)
	row := s.get("ada", "/logs?service=db").need("li.log-line")
	if got := textOf(in(row, "bdi.log-text")); got != "slow query" {
		t.Errorf("shows %q", got)
	}
	if got := textOf(in(row, "details")); got != `3 fields level warn took 1.5 sql select "x"` {
		t.Errorf("behind it is %q", got)
	}
	if got := textOf(in(row, "span.log-level")); got != "warn" {
		t.Errorf("the level is %q", got)
	}
}

func TestLogsPage_ALineHasAnAddressWithItsContext(t *testing.T) {
	s := newLogStage(t)
	for i := range 60 {
		s.say("lab", "web", fmt.Sprintf("number %02d", i))
		s.say("den", "web", "between")
	}
	id := s.line("ada", "number 30")
	v := s.get("root", "/logs/lines/"+id).is(http.StatusOK)
	got := texts(v)
	if len(got) != 41 || got[0] != "number 10" || got[40] != "number 50" {
		t.Errorf("%d lines: %q", len(got), got)
	}
	for _, n := range v.all("li.log-line") {
		if chosen := attr(n, "aria-current") == "true"; chosen != (attr(n, "data-id") == id) {
			t.Errorf("%s is chosen: %t", textOf(n), chosen)
		}
	}
	more := attr(in(v.need("p.log-edge"), "a"), "href")
	if more != "/logs/lines/"+id+"?lines=100#l-"+id {
		t.Errorf("more is at %s", more)
	}
	if got := texts(s.get("ada", "/logs/lines/"+id+"?lines=100")); len(got) != 64 {
		t.Errorf("%d lines", len(got))
	}
	for _, gone := range []string{"abc", "x%20y"} {
		if v := s.get("ada", "/logs/lines/"+gone).is(http.StatusNotFound); !strings.Contains(textOf(v.need("main")), "log line") {
			t.Errorf("%s: %s", gone, textOf(v.need("main")))
		}
	}
}

func TestLogsPage_Download(t *testing.T) {
	s := newLogStage(t)
	var texts []string
	for i := range 2300 {
		texts = append(texts, fmt.Sprintf("number %d\tx\x1b[1m", i))
	}
	s.say("lab", "many", texts...)
	v := s.get("ada", "/logs/download?format=json&service=many").is(http.StatusOK)
	if h := v.Header(); !strings.HasPrefix(h.Get("Content-Disposition"), `attachment; filename="logs-`) || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("head %v", h)
	}
	lines := strings.Split(strings.TrimSpace(v.Body.String()), "\n")
	var last logShape
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 2300 || last.Text != texts[0] || last.Sandbox != "lab" {
		t.Errorf("%d lines, the last %+v, %v", len(lines), last, err)
	}
	if got := s.get("ada", "/logs/download?format=text&q=2299").Body.String(); !strings.HasSuffix(got, " lab many unknown number 2299\tx\n") {
		t.Errorf("text %q", got)
	}
	s.get("ada", "/logs/download").is(http.StatusBadRequest)
	s.get("ada", "/logs/download?format=text", "Sec-Fetch-Site", "same-site").is(http.StatusForbidden)
}

// taken gathers the texts of a tail's rows until one holds words.
func (f *feed) taken(words string) (rows []string) {
	f.t.Helper()
	for {
		e := f.event()
		if e.Kind != "lines" {
			f.t.Fatalf("got %+v", e)
		}
		doc, err := html.Parse(strings.NewReader(e.Data))
		if err != nil {
			f.t.Fatal(err)
		}
		var part []string
		for n := range doc.Descendants() {
			if fits(n, "bdi.log-text") || fits(n, "li.log-gap") {
				part = append(part, textOf(n))
			}
		}
		rows = append(part, rows...)
		if strings.Contains(e.Data, words) {
			return rows
		}
	}
}

func TestLogsTail_GivesWhatTheSearchAsksFor(t *testing.T) {
	s := newLogStage(t)
	v := s.get("ada", "/logs?q=line&service=web")
	n := v.need("sandbox-logs")
	topic := attr(n, "data-topic") + "&" + attr(n, "data-seen")
	s.say("lab", "web", "line missed")
	f := s.page("ada").opens(1, topic)
	if got := f.taken("missed"); len(got) != 1 {
		t.Errorf("first comes %q", got)
	}
	s.say("den", "web", "line of bob's")
	s.say("lab", "db", "line of another")
	s.say("lab", "web", "no match", "line <b>one</b>", "line two")
	if got := strings.Join(f.taken("line two"), "|"); got != "line two|line <b>one</b>" {
		t.Errorf("then comes %q", got)
	}
	for topic, status := range map[string]int{"/logs?sandbox=den": 404, "/logs?owner=bob": 400, "/logs?level=loud": 400, "/logs?after=%20": 400} {
		if p := s.refused("ada", topic); p.Status != status {
			t.Errorf("%s: %+v", topic, p)
		}
	}
}

func TestLogsTail_LeavesOutWhatNobodyCouldRead(t *testing.T) {
	s := newLogStage(t)
	after := s.line("root", "secret")
	var many []string
	for i := range 900 {
		many = append(many, fmt.Sprintf("flood %d", i))
	}
	s.say("lab", "web", many...)
	f := s.page("root").opens(1, "/logs?after="+url.QueryEscape(after))
	rows := f.taken("flood 899")
	if len(rows) != tailMost+1 || !strings.Contains(rows[tailMost], "left out") {
		t.Errorf("%d rows, the last %q", len(rows), rows[len(rows)-1])
	}
	s.say("lab", "web", append(many, "done")...)
	rows = f.taken("done")
	if len(rows) > 901 || len(rows) < tailMost {
		t.Errorf("%d rows", len(rows))
	}
}

func TestLogsTail_SendsNothingToAHiddenPage(t *testing.T) {
	s := newLogStage(t)
	p := s.page("ada")
	f := p.opens(1, "/logs?after="+s.line("ada", "slow query"))
	s.say("lab", "web", "seen")
	f.taken("seen")
	hidden := true
	p.asks(channelAsk{Hidden: &hidden})
	p.opens(2, "/logs?level=loud").event() // the answer comes after what was asked before
	s.say("lab", "web", "unseen")
	root := s.page("root").opens(1, "/logs?q=marker&after="+s.line("root", "unseen"))
	s.say("lab", "web", "marker")
	root.taken("marker") // so it was handed to all
	select {
	case e := <-f.events:
		t.Errorf("got %+v", e)
	case <-time.After(2 * tailPace):
	}
}

func TestLogsPage_TheLogOfADeletedSandboxCanBeKeptAndDeleted(t *testing.T) {
	s := newLogStage(t)
	id := s.ref("lab").ID()
	keep := func(v view) *html.Node {
		for _, n := range v.all("input") {
			if attr(n, "name") == "keep_log" {
				return n
			}
		}
		t.Fatal("no choice")
		return nil
	}
	if hasAttr(keep(s.get("ada", "/sandboxes/lab/delete")), "checked") {
		t.Error("it is kept unless asked otherwise")
	}
	again := s.post("ada", "/sandboxes/lab/delete?sandbox_id="+id, url.Values{"confirm": {"la"}, "keep_log": {"on"}})
	if !hasAttr(keep(again), "checked") {
		t.Error("a wrong name forgets the choice")
	}
	s.post("ada", "/sandboxes/lab/delete?sandbox_id="+id, url.Values{"confirm": {"lab"}, "keep_log": {"on"}}).is(http.StatusSeeOther)
	s.post("ada", "/sandboxes/lab/delete?sandbox_id="+id, url.Values{"confirm": {"lab"}}).is(http.StatusSeeOther) // again: what was asked first stands
	box, err := s.boxes.Sandbox(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	s.boxes.drop(box)
	v := s.get("ada", "/logs?sandbox="+id).is(http.StatusOK)
	if got := texts(v); len(got) != 4 || !strings.Contains(textOf(v.need("div.notice")), "lab was deleted just now") || textOf(v.need(".log-box")) != "lab (deleted)" {
		t.Errorf("%q, %s", got, textOf(v.find("div.notice")))
	}
	if v := s.get("bob", "/logs"); strings.Contains(v.Body.String(), id) {
		t.Error("bob is told of it")
	}
	s.post("bob", "/logs/kept/"+id+"/delete", nil).is(http.StatusNotFound)
	s.post("ada", "/logs/kept/"+id+"/delete", nil).is(http.StatusSeeOther)
	if v := s.get("ada", "/logs").is(http.StatusOK); len(texts(v)) != 0 || strings.Contains(v.Body.String(), id) {
		t.Error("it is still there")
	}
}
