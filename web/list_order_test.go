package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
)

// shownAs gives the names of the rows, with the headings between them.
func shownAs(page view) string {
	var list []string
	if page.find("ul.rows") == nil {
		return ""
	}
	for _, li := range within(page.find("ul.rows"), "li") {
		if name := attr(li, "data-name"); name != "" {
			list = append(list, name)
		} else {
			list = append(list, "["+textOf(li)+"]")
		}
	}
	return strings.Join(list, " ")
}

func TestSandboxes_AreSortedAndGroupedAsTheAddressSays(t *testing.T) {
	s := newStage(t)
	put := func(user, name, template string, state sandbox.State, used time.Duration, cpu float64) {
		box := s.put(user, name, func(b *sandbox.Sandbox) { b.State, b.Spec.Template = state, template })
		s.uses.set(box.ID, stageTime.Add(-used))
		if state == sandbox.Running {
			s.metrics.recent[box.ID] = []metrics.Point{{CPU: cpu, Memory: int64(1000 - 100*cpu), Measured: 1}}
		}
	}
	put("bob", "c-first", "base", sandbox.Running, 3*time.Hour, 0.5)
	put("ada", "a-second", "node-api", sandbox.Stopped, time.Hour, 0)
	put("ada", "b-third", "base", sandbox.Running, 2*time.Hour, 1.5)
	put("bob", "d-fourth", "base", sandbox.Failed, 4*time.Hour, 0)
	for query, want := range map[string]string{
		"":                             "d-fourth b-third a-second c-first",
		"sort=name":                    "a-second b-third c-first d-fourth",
		"sort=used":                    "a-second b-third c-first d-fourth",
		"sort=state":                   "d-fourth b-third c-first a-second",
		"sort=cpu":                     "b-third c-first d-fourth a-second",
		"sort=memory":                  "c-first b-third d-fourth a-second",
		"sort=nonsense":                "d-fourth b-third a-second c-first",
		"group=owner":                  "[ada 2] b-third a-second [bob 2] d-fourth c-first",
		"group=template&sort=name":     "[Base 3] b-third c-first d-fourth [Node API 1] a-second",
		"owner=bob&sort=name":          "c-first d-fourth",
		"owner=bob&state=failed":       "d-fourth",
		"owner=nobody-of-this-name":    "",
		"group=template&state=running": "[Base 2] b-third c-first",
	} {
		if got := shownAs(s.get("root", "/?"+query).is(http.StatusOK)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := shownAs(s.get("ada", "/?group=owner&owner=bob&sort=name").is(http.StatusOK)); got != "a-second b-third" {
		t.Errorf("a member is shown %s", got)
	}
}

func TestSandboxes_KeepOrderAndOwnerInEveryAddress(t *testing.T) {
	s := newStage(t)
	for i := range 60 {
		s.put("ada", fmt.Sprintf("box-%02d", i), nil)
	}
	page := s.get("root", "/?sort=name&group=template&owner=ada&q=box&page=2").is(http.StatusOK)
	if got := shownAs(page); !strings.HasPrefix(got, "[Base 60] box-50") || !strings.HasSuffix(got, "box-59") {
		t.Errorf("second page: %s", got)
	}
	for _, chip := range within(page.need("#chips"), "a.chip") {
		u, err := url.Parse(attr(chip, "href"))
		if err != nil || u.Query().Get("sort") != "name" || u.Query().Get("group") != "template" || u.Query().Get("q") != "box" || u.Query().Has("page") {
			t.Errorf("chip %s leads to %s", textOf(chip), attr(chip, "href"))
		}
	}
	if got := attr(page.need("#live"), "data-topic"); got != "/sandboxes?group=template&owner=ada&page=2&q=box&sort=name" {
		t.Errorf("follows %s", got)
	}
	if got := attr(in(page.need(".paging"), "a"), "href"); got != "/?group=template&owner=ada&q=box&sort=name" {
		t.Errorf("leads back to %s", got)
	}
}

func TestSandboxes_GiveThePageTheAddressOfWhatItShows(t *testing.T) {
	s := newStage(t)
	s.put("ada", "one", nil)
	typed := s.get("ada", "/?q=o&sort=&group=", "HX-Request", "true", "HX-Trigger", "filter").Header()
	if typed.Get("HX-Replace-Url") != "/?q=o" || typed.Get("HX-Push-Url") != "" {
		t.Errorf("typing: %v", typed)
	}
	chosen := s.get("ada", "/?q=&sort=name&group=", "HX-Request", "true", "HX-Trigger", "list-sort").Header()
	if chosen.Get("HX-Push-Url") != "/?sort=name" || chosen.Get("HX-Replace-Url") != "" {
		t.Errorf("choosing: %v", chosen)
	}
}

func TestSandboxes_ShowWhatMattersOfEach(t *testing.T) {
	s := newStage(t)
	on := true
	box := s.put("ada", "api", func(b *sandbox.Sandbox) { b.Spec.Template, b.Overrides.IDE = "node-api", &on })
	s.fresh("never", nil)
	if err := s.ports.Set(t.Context(), box, 8080, sandbox.Public); err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{3000, 3000, 4000} {
		if _, _, err := s.ports.Share(t.Context(), box, visibility.NewShare{Port: port, By: box.Owner, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	page := s.get("ada", "/").is(http.StatusOK)
	var badges []string
	for _, b := range within(page.need("#badges-"+box.ID), "a") {
		badges = append(badges, textOf(b)+" "+attr(b, "href"))
	}
	want := []string{
		"Public 8080 /sandboxes/api/ports/8080?sandbox_id=" + box.ID, "3 links /sandboxes/api/services",
		"VS Code (opens a new tab) http://code-api.localhost:8080/", "API 3000 (opens a new tab) http://3000-api.localhost:8080/",
	}
	if strings.Join(badges, "|") != strings.Join(want, "|") {
		t.Errorf("badges %q, want %q", badges, want)
	}
	if got := textOf(page.need("#used-" + s.ref("never").ID())); !strings.HasPrefix(got, "nothing done yet") {
		t.Errorf("the new one: %q", got)
	}
}

// savesAt is the link that saves the filter that shows, or nil.
func savesAt(page view) *html.Node {
	for _, a := range within(page.need("#saved"), "a") {
		if hasAttr(a, "data-sheet") {
			return a
		}
	}
	return nil
}

func TestFilters_AreSavedForEachPerson(t *testing.T) {
	s := newStage(t)
	s.put("ada", "one", nil)
	const query = "/?sort=cpu&state=running"
	save := attr(savesAt(s.get("ada", query)), "href")
	if save != "/filters/new?sort=cpu&state=running" {
		t.Fatalf("saves at %s", save)
	}
	form := s.get("ada", save).is(http.StatusOK)
	if got := textOf(form.need("section.sheet")); !strings.Contains(got, "Running · Sort: CPU") {
		t.Errorf("asks %q", got)
	}
	fields := url.Values{"name": {"Busy <b>"}, "query": {attr(form.field("query"), "value")}, "next": {query}}
	s.post("ada", "/filters", fields).leads(query)
	page := s.get("ada", "/")
	item := in(page.need("#saved"), "a.menu-item")
	if textOf(item) != "Busy <b>" || attr(item, "href") != query {
		t.Errorf("%q leads to %s", textOf(item), attr(item, "href"))
	}
	if savesAt(s.get("ada", query)) != nil {
		t.Error("what is saved can be saved again")
	}
	if in(s.get("bob", "/").need("#saved"), "a.menu-item") != nil {
		t.Error("bob has ada's filter")
	}
	for name, want := range map[string]string{"": "Give it a name", strings.Repeat("ä", 41): "Give it a name"} {
		again := s.post("ada", "/filters", url.Values{"name": {name}, "query": {"sort=cpu"}}).is(http.StatusBadRequest)
		if got := textOf(again.need(".fault")); !strings.Contains(got, want) {
			t.Errorf("%q: %q", name, got)
		}
	}
	removed := s.post("ada", "/filters/delete", url.Values{"name": {"Busy <b>"}}, "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/").is(http.StatusOK)
	if !strings.Contains(removed.Body.String(), "No saved filters yet") || in(s.get("ada", "/").need("#saved"), "a.menu-item") != nil {
		t.Errorf("still there: %s", removed.Body)
	}
}

func TestSandboxes_HaveNoInvisibleStopForTheTabKey(t *testing.T) {
	s := newStage(t)
	s.put("ada", "one", nil)
	for _, b := range within(s.get("ada", "/").need("#tools"), "button.visually-hidden") {
		t.Errorf("nobody sees the button %q", textOf(b))
	}
}
