package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

// cellsOf gives the texts of the cells of a table's rows, those of tick boxes left out.
func (v view) cellsOf(class string) [][]string {
	v.t.Helper()
	var rows [][]string
	for n := range v.need("table." + class).Descendants() {
		if n.Data != "tr" || n.Parent.Data != "tbody" {
			continue
		}
		var cells []string
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode && attr(c, "class") != "use-pick" {
				cells = append(cells, textOf(c))
			}
		}
		rows = append(rows, cells)
	}
	return rows
}

// firsts are the first cells of rows.
func firsts(rows [][]string) string {
	var list []string
	for _, r := range rows {
		list = append(list, r[0])
	}
	return strings.Join(list, " ")
}

// ticking gives the fields of a form in which boxes are ticked.
func ticking(boxes ...sandbox.Sandbox) url.Values {
	v := url.Values{}
	for _, b := range boxes {
		v.Add("box", b.Name+"@"+b.ID)
	}
	return v
}

// hostStage has sandboxes of ada's and bob's with known use: big, small and frozen, and old, which is asleep.
func hostStage(t *testing.T) (s *stage, big, small, frozen, old sandbox.Sandbox) {
	s = newStage(t)
	image := func(b *sandbox.Sandbox) { b.Spec = sandbox.Spec{Image: "alpine"} }
	big = s.put("ada", "big", nil)
	small = s.put("bob", "small", image)
	frozen = s.put("ada", "frozen", func(b *sandbox.Sandbox) { b.State = sandbox.Frozen })
	old = s.put("bob", "old", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	s.metrics.uses(big.ID, steadily(0.25), steadily(3<<29))
	s.metrics.uses(small.ID, steadily(1.5), steadily(1<<28))
	for _, b := range []sandbox.Sandbox{frozen, old} { // from before
		s.metrics.uses(b.ID, steadily(1), steadily(1<<30))
	}
	s.metrics.sizes = map[string]metrics.Sized{ // big was not measured yet
		small.ID: {Size: metrics.Size{Home: 3 << 20, Layer: 1 << 20}}, frozen.ID: {Size: metrics.Size{Home: 5 << 20}}, old.ID: {Size: metrics.Size{Layer: 7 << 30}},
	}
	return s, big, small, frozen, old
}

func TestHost_IsForAdmins(t *testing.T) {
	s, big, _, _, _ := hostStage(t)
	for _, path := range []string{"/host", "/host/saving", "/host/series"} {
		if body := s.get("ada", path).is(http.StatusForbidden).Body.String(); strings.Contains(body, "small") {
			t.Errorf("%s tells of bob's sandbox", path)
		}
		s.get("root", path).is(http.StatusOK)
	}
	s.post("ada", "/host/sleep", ticking(big)).is(http.StatusForbidden)
	if box, _ := s.boxes.Sandbox(t.Context(), "big"); box.State != sandbox.Running {
		t.Errorf("it is %s", box.State)
	}
	s.get("", "/host").is(http.StatusSeeOther)
	if p := s.refused("ada", "/host"); p.Status != http.StatusForbidden {
		t.Errorf("the topic: %+v", p)
	}
	for user, want := range map[string]bool{"root": true, "ada": false} {
		if nav := textOf(s.get(user, "/").need("nav.nav")); strings.Contains(nav, "Host") != want {
			t.Errorf("%s sees %q", user, nav)
		}
	}
}

func TestHost_ListsAndAddsUpWhatSandboxesUse(t *testing.T) {
	s, _, _, _, _ := hostStage(t)
	page := s.get("root", "/host").is(http.StatusOK)
	want := [][]string{
		{"big", "0.25", "1.5 GiB", "–", "Running", "ada", "Base"},
		{"small", "1.5", "256 MiB", "4 MiB", "Running", "bob", "alpine"},
		{"frozen", "–", "–", "5 MiB", "Frozen", "ada", "Base"},
		{"old", "–", "–", "7 GiB", "Asleep", "bob", "Base"},
	}
	if got := page.cellsOf("uses"); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the table: %q", got)
	}
	var sums []string
	for _, id := range []string{"by-owner", "by-template"} {
		for n := range page.need("#" + id).Parent.Parent.Descendants() {
			if n.Data == "tr" && n.Parent.Data == "tbody" {
				sums = append(sums, textOf(n))
			}
		}
	}
	wantSums := []string{"ada 1 of 2 0.25 1.5 GiB", "bob 1 of 2 1.5 256 MiB", "Base 1 of 3 0.25 1.5 GiB", "alpine 1 of 1 1.5 256 MiB"}
	if !slices.Equal(sums, wantSums) {
		t.Errorf("sums: %q", sums)
	}
	if n := len(page.all("td.use-pick")); n != 4 {
		t.Errorf("%d places for tick boxes", n)
	}
	if body := page.Body.String(); strings.Contains(body, `value="old@`) || !strings.Contains(body, `value="frozen@`) {
		t.Error("what rests can be ticked, or what is frozen cannot")
	}
}

func TestHost_SortsByAColumn(t *testing.T) {
	s, _, _, _, _ := hostStage(t)
	for sort, want := range map[string]string{
		"": "big small frozen old", "cpu": "small big frozen old", "disk": "old frozen small big", "name": "big frozen old small", "state": "big small frozen old",
		"owner": "big frozen small old", "template": "small big frozen old", "nonsense": "big small frozen old",
	} {
		page := s.get("root", "/host?sort="+sort).is(http.StatusOK)
		if got := firsts(page.cellsOf("uses")); got != want {
			t.Errorf("by %q: %s, want %s", sort, got, want)
		}
		sorted := 0
		for _, n := range page.all("th") {
			if attr(n, "aria-sort") != "" {
				sorted++
			}
		}
		if sorted != 1 {
			t.Errorf("by %q: %d columns say that they are sorted", sort, sorted)
		}
	}
}

func TestHost_HasPages(t *testing.T) {
	s := newStage(t)
	for i := range pageRows + 3 {
		s.put("ada", fmt.Sprintf("box-%03d", i), nil)
	}
	page := s.get("root", "/host?sort=name&page=2").is(http.StatusOK)
	if got := firsts(page.cellsOf("uses")); got != "box-050 box-051 box-052" {
		t.Errorf("the second page: %s", got)
	}
	if !strings.Contains(page.Body.String(), "51–53 of 53") || !strings.Contains(page.Body.String(), `href="/host?sort=name"`) {
		t.Error("no way back")
	}
	if n := len(s.get("root", "/host?page=99999").is(http.StatusOK).cellsOf("uses")); n != 3 {
		t.Errorf("a page that is not there has %d rows", n)
	}
}

func TestHost_SaysWhatSleepingSaves(t *testing.T) {
	s, big, small, frozen, old := hostStage(t)
	for _, c := range []struct {
		boxes []sandbox.Sandbox
		want  string
	}{
		{nil, "None chosen"},
		{[]sandbox.Sandbox{big}, "Sleeping this one frees 1.5 GiB of memory"},
		{[]sandbox.Sandbox{big, small, big}, "Sleeping these 2 frees 1.75 GiB of memory"},
		{[]sandbox.Sandbox{big, frozen, old}, "Sleeping these 3 frees 1.5 GiB of memory And what the frozen ones still hold (1), which is not measured. 1 of them have no figures now."},
	} {
		query := "?" + ticking(c.boxes...).Encode()
		if got := textOf(s.get("root", "/host/saving"+query, "HX-Request", "true").is(http.StatusOK).need("#saving")); got != c.want {
			t.Errorf("it says %q, want %q", got, c.want)
		}
		whole := s.get("root", "/host"+query).is(http.StatusOK) // as without scripts
		if got := textOf(whole.need("#saving")); got != c.want {
			t.Errorf("the page says %q, want %q", got, c.want)
		}
	}
	ticked := 0
	for _, n := range s.get("root", "/host?"+ticking(small).Encode()).all("input") {
		if hasAttr(n, "checked") {
			ticked++
		}
	}
	if ticked != 1 {
		t.Errorf("%d boxes are ticked", ticked)
	}
	for _, n := range s.get("root", "/host").all("button") {
		if textOf(n) == "Put to sleep" && (attr(n, "data-needs") != "[name=box]:checked" || hasAttr(n, "disabled")) {
			t.Error("a script does not disable the button while nothing is ticked, or it is of no use without scripts")
		}
	}
}

func TestHost_PutsTheChosenOnesToSleep(t *testing.T) {
	s, big, _, frozen, _ := hostStage(t)
	fields := ticking(big, frozen)
	fields.Set("sort", "cpu")
	s.post("root", "/host/sleep", fields).leads("/host?slept=2&sort=cpu")
	for name, want := range map[string]sandbox.State{"big": sandbox.Sleeping, "frozen": sandbox.Sleeping, "small": sandbox.Running} {
		if box, _ := s.boxes.Sandbox(t.Context(), name); box.State != want {
			t.Errorf("%s is %s", name, box.State)
		}
	}
	if got := s.get("root", "/host?slept=2").Body.String(); !strings.Contains(got, "2 sandboxes are going to sleep.") {
		t.Error("the page does not say so")
	}
}

func TestHost_SaysWhatCouldNotBePutToSleep(t *testing.T) {
	s, big, small, _, _ := hostStage(t)
	gone := s.put("bob", "gone", nil)
	s.boxes.drop(gone)
	replaced := small
	replaced.ID = "0123456789abcdef"
	stopped := s.put("ada", "stopped", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
	page := s.post("root", "/host/sleep", ticking(big, gone, replaced, stopped)).is(http.StatusOK)
	notice := textOf(page.need("div.tone-bad"))
	for _, want := range []string{"3 sandboxes could not be put to sleep", "gone was deleted", "The sandbox that the page showed was deleted. Another one has the name small now.", "stopped does not run"} {
		if !strings.Contains(notice, want) {
			t.Errorf("it does not say %q: %s", want, notice)
		}
	}
	if !strings.Contains(page.Body.String(), "A sandbox is going to sleep.") {
		t.Error("it does not say what went well")
	}
	if box, _ := s.boxes.Sandbox(t.Context(), "small"); box.State != sandbox.Running {
		t.Errorf("another one of its name is %s", box.State)
	}
}

func TestHost_RefusesAnEmptyAndAnEndlessChoice(t *testing.T) {
	s, _, _, _, _ := hostStage(t)
	for want, fields := range map[string]url.Values{
		"Choose at least one sandbox.":                      {"box": {"nonsense", ""}},
		"At most 50 sandboxes can be put to sleep at once.": many(1000),
	} {
		if got := s.post("root", "/host/sleep", fields).is(http.StatusBadRequest).Body.String(); !strings.Contains(got, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	s.get("root", "/host/saving?box=%00@%ff&box=@&box=a@b&sort=%3Cscript%3E&page=-1").is(http.StatusOK)
}

func many(n int) url.Values {
	v := url.Values{}
	for i := range n {
		v.Add("box", fmt.Sprintf("box-%d@%d", i, i))
	}
	return v
}

func TestHost_ShowsHostileNamesAsText(t *testing.T) {
	s := newStage(t)
	const evil = `"><script>alert(1)</script>`
	s.put("ada", "evil", func(b *sandbox.Sandbox) { b.Label, b.Spec = evil, sandbox.Spec{Image: evil} })
	page := s.get("root", "/host").is(http.StatusOK)
	if got := page.cellsOf("uses"); got[0][0] != evil+" evil" || got[0][6] != evil {
		t.Errorf("the table: %q", got)
	}
	for n := range page.doc.Descendants() {
		if fault := inlined(n); fault != "" {
			t.Error(fault)
		}
	}
}

func TestHost_SaysWhatItHas(t *testing.T) {
	s := newStage(t)
	s.metrics.host = metrics.Host{Cores: 4, CPU: 3.9, Memory: 15 << 30, MemoryTotal: 16 << 30, DiskUsed: 999 << 20, DiskFree: 1 << 20, Load: [3]float64{4.005, 1, 0.5}}
	got := textOf(s.get("root", "/host").need("#host-now"))
	for _, want := range []string{
		"CPU busy 3.9 of 4 cores Load 4.01 · 1.00 · 0.50", "Memory nearly full 15 GiB of 16 GiB 1 GiB available", "Swap none",
		"Disk full 999 MiB of 0.98 GiB 1 MiB free", "Not measured by this kernel.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	s.metrics.host = metrics.Host{Cores: 4, Pressure: &metrics.Pressure{CPU: 0.05, Memory: 1, IO: 0}}
	got = textOf(s.get("root", "/host").need("#host-now"))
	if !strings.Contains(got, "CPU 5 % Memory 100 % Disk 0 %") || !strings.Contains(got, "Memory unknown") {
		t.Errorf("it says %s", got)
	}
	s.metrics.err = fault.New(fault.Unavailable, "The host does not answer.")
	if got := textOf(s.get("root", "/host").is(http.StatusOK).need("#host-now")); !strings.Contains(got, "The host does not answer.") {
		t.Errorf("it says %s", got)
	}
}

func TestLiveHost_RefreshesWhatItUses(t *testing.T) {
	s := newStage(t)
	f, _ := s.follow("root", s.topicOf("root", "/host"))
	s.metrics.mu.Lock()
	s.metrics.host = metrics.Host{Cores: 4, CPU: 3.25}
	s.metrics.mu.Unlock()
	if got := targets(s.ticked(f, "3.25")); !slices.Equal(got, []string{"host-now outerHTML"}) {
		t.Errorf("refreshed %v", got)
	}
}

func TestHost_PlotsItsHistory(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.metrics.host = metrics.Host{Cores: 4}
	s.metrics.series[metrics.HostID] = metrics.Series{Step: recentStep, Points: []metrics.Point{{Time: stageTime, Measured: recentStep, CPU: 1.5, MemoryLimit: 1 << 30}}}
	page := s.get("root", "/host?sort=cpu&range=6h").is(http.StatusOK)
	plots := page.need("sandbox-metrics")
	if got := attr(plots, "data-page"); got != "/host?sort=cpu" {
		t.Errorf("its page is %s", got)
	}
	if body := page.Body.String(); !strings.Contains(body, `href="/host?sort=cpu&amp;range=24h"`) || !strings.Contains(body, `href="/host?range=6h&amp;sort=name"`) {
		t.Error("the links to ranges and columns do not keep each other")
	}
	part := s.get("root", "/host?sort=cpu&range=15m", "HX-Request", "true").is(http.StatusOK)
	if part.find("#metrics-table") == nil || part.find("#host-now") != nil {
		t.Error("a script that shows another range gets the whole page, or not that")
	}
	var out columnsShape
	answer{s.get("root", attr(plots, "data-series")+"&range=6h").is(http.StatusOK).ResponseRecorder, t}.into(&out)
	if out.CPULimit != 4 || !out.Live || !slices.Equal(out.Columns["cpu"], column{1.5}) || !slices.Equal(out.Columns["limit"], column{1 << 30}) {
		t.Errorf("the series is %+v", out)
	}
	s.get("root", "/host?range=never").is(http.StatusBadRequest)
	if p := s.refused("ada", "/host/points"); p.Status != http.StatusForbidden {
		t.Errorf("the topic: %+v", p)
	}
	s.metrics.uses(metrics.HostID, steadily(2), steadily(1<<30))
	if e := s.page("root").opens(1, "/host/points").event(); e.Kind != "tick" || !strings.Contains(e.Data, `"cpu":2`) {
		t.Errorf("it begins with %+v", e)
	}
}
