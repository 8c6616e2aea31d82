package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// chosen is the value of the option that a select has chosen, with its text.
func chosen(v view, id string) (value, words string) {
	v.t.Helper()
	for n := range v.need(id).Descendants() {
		if n.Type == html.ElementNode && n.Data == "option" && hasAttr(n, "selected") {
			return attr(n, "value"), textOf(n)
		}
	}
	return "none", ""
}

func TestRestSheet_ShowsTheTimesThatCountAndWhoSaysSo(t *testing.T) {
	s := newStage(t)
	s.put("ada", "plain", nil)
	s.put("ada", "own", func(b *sandbox.Sandbox) {
		b.Rest = catalog.Rest{FreezeAfter: catalog.After(time.Hour), StopAfter: catalog.After(20 * time.Minute)}
	})
	page := s.get("ada", "/sandboxes/plain/rest").is(http.StatusOK)
	if value, words := chosen(page, "#freeze_after"); value != "" || words != "Default (server: 15 min)" {
		t.Errorf("freeze %q %q", value, words)
	}
	page = s.get("ada", "/sandboxes/own/rest", "HX-Request", "true").is(http.StatusOK)
	if value, _ := chosen(page, "#freeze_after"); value != "1h" {
		t.Errorf("freeze %q", value)
	}
	if value, _ := chosen(page, "#stop_after"); value != "custom" || attr(page.need("#stop_after-custom"), "value") != "20m" {
		t.Errorf("stop %q %q", value, attr(page.need("#stop_after-custom"), "value"))
	}
	if got := textOf(page.need("#rest-order")); got != "It sleeps before it would freeze." {
		t.Errorf("of the order it says %q", got)
	}
	if s.get("ada", "/sandboxes/plain/rest").find("#rest-order") != nil {
		t.Error("the usual order is worth no word")
	}
	if strings.Contains(page.Body.String(), "<html") || page.find(".sheet") == nil {
		t.Error("a script gets more than the sheet")
	}
}

func TestRestSheet_SetsTheTimes(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.post("ada", "/sandboxes/mine/rest", fields("freeze_after", "custom", "freeze_after_custom", " 90s ", "stop_after", "never", "next", "/")).leads("/")
	box, _ := s.boxes.Sandbox(t.Context(), "mine")
	if box.Rest != (catalog.Rest{FreezeAfter: catalog.After(90 * time.Second), StopAfter: catalog.Never}) {
		t.Errorf("rest %v", box.Rest)
	}
	s.post("ada", "/sandboxes/mine/rest", fields("freeze_after", "", "freeze_after_custom", "left over", "stop_after", "1d")).leads("/sandboxes/mine")
	box, _ = s.boxes.Sandbox(t.Context(), "mine")
	if box.Rest != (catalog.Rest{StopAfter: catalog.After(24 * time.Hour)}) {
		t.Errorf("rest %v", box.Rest)
	}
}

func TestRestSheet_ShowsWhatIsWrongBesideIt(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	for entered, want := range map[string]string{"soon": "is no idle time", "": "Say which time"} {
		again := s.post("ada", "/sandboxes/mine/rest", fields("freeze_after", "1h", "stop_after", "custom", "stop_after_custom", entered))
		again.is(http.StatusBadRequest)
		if got := textOf(again.need("#stop_after-fault")); !strings.Contains(got, want) {
			t.Errorf("%q: says %q", entered, got)
		}
		if value, _ := chosen(again, "#stop_after"); value != "custom" || attr(again.need("#stop_after-custom"), "value") != entered {
			t.Errorf("%q is lost: %q", entered, value)
		}
		if value, _ := chosen(again, "#freeze_after"); value != "1h" || again.find("#freeze_after-fault") != nil {
			t.Errorf("freeze %q", value)
		}
	}
	s.boxes.refuse(fault.New(fault.Conflict, "It is being deleted."))
	again := s.post("ada", "/sandboxes/mine/rest", fields("freeze_after", "1h")).is(http.StatusConflict)
	if got := textOf(again.need("main")); !strings.Contains(got, "It is being deleted.") {
		t.Errorf("says %q", got)
	}
}

func TestRestSheet_ListsHoldsAndRevokesThem(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/sandboxes/brave-otter/rest").is(http.StatusOK)
	items := page.all("li.item")
	if len(items) != 2 {
		t.Fatalf("%d holds", len(items))
	}
	if got := textOf(items[0]); got != "nightly training run by ada placed 20 min ago ends in 2 h End" {
		t.Errorf("reads %q", got)
	}
	if got := textOf(items[1]); strings.Contains(got, "by ") {
		t.Errorf("by nobody known: %q", got)
	}
	revoke := attr(in(items[0], "form"), "action")
	s.post("bob", revoke, nil).is(http.StatusNotFound)
	s.post("root", revoke, nil).leads("/sandboxes/brave-otter/rest")
	s.post("root", revoke, nil).is(http.StatusNotFound)
	sheet := s.post("root", attr(in(items[1], "form"), "action"), fields("next", "/"), "HX-Request", "true").is(http.StatusOK)
	if got := textOf(sheet.need(".sheet")); !strings.Contains(got, "It no longer keeps the sandbox awake") || sheet.find("li.item") != nil {
		t.Errorf("says %q", got)
	}
	if got := attr(sheet.need("form.form"), "action"); !strings.HasPrefix(got, "/sandboxes/brave-otter/rest?sandbox_id=") {
		t.Errorf("form leads to %q", got)
	}
}

func TestKeepAwake_PlacesAHoldAndSetsItAnew(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	menu := s.get("ada", "/sandboxes/mine").is(http.StatusOK).need("form.keep-awake")
	post := attr(menu, "action")
	if got := textOf(menu); got != "Keep awake 1 h 4 h Until tomorrow Custom…" {
		t.Errorf("the menu reads %q", got)
	}
	for _, ttl := range []string{"24 hours", "1h"} {
		s.post("ada", post, fields("ttl", ttl)).leads("/sandboxes/mine")
	}
	holds, err := s.holds.List(t.Context(), box)
	if err != nil || len(holds) != 1 || holds[0].Reason != "Keep awake" || holds[0].Expires.Sub(stageTime) != time.Hour {
		t.Errorf("holds %+v, %v", holds, err)
	}
	again := s.post("ada", post, fields("ttl", "long")).is(http.StatusBadRequest)
	if got := textOf(again.need("#keep-for-fault")); got != "Enter a time such as 90 min, 12 hours or 3 days." || attr(again.need("#keep-for"), "value") != "long" {
		t.Errorf("says %q", got)
	}
	s.post("bob", post, fields("ttl", "1h")).is(http.StatusNotFound)
	s.put("ada", "off", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
	page := s.get("ada", "/sandboxes/off/rest").is(http.StatusOK)
	if page.find("#keep-for") != nil || !strings.Contains(textOf(page.need(".sheet")), "off is stopped") {
		t.Errorf("a stopped one can be kept awake: %s", textOf(page.need(".sheet")))
	}
}

func TestKeepAwake_UntilTomorrowIsInThePersonsZone(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	for zone, name := range map[string]string{"Asia/Tokyo": "Asia/Tokyo", "": "UTC", "nowhere": "UTC"} {
		s.post("ada", sameURL(box, "/holds"), fields("ttl", "tomorrow", "zone", zone)).leads("/sandboxes/mine")
		holds, _ := s.holds.List(t.Context(), box)
		here := holds[0].Expires.In(zoneOr(name))
		if days := here.YearDay() - stageTime.In(zoneOr(name)).YearDay(); len(holds) != 1 || here.Format("15:04:05") != "09:00:00" || days != 1 {
			t.Errorf("in %q until %v, pressed at %v", zone, here, stageTime)
		}
	}
}

func TestKeepAwake_IsEndedByItsButtonAndBySleepNow(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	end := sameURL(box, "/holds/end")
	s.used("mine", idle.Outlook{Because: []idle.Reason{{Kind: idle.Held, Detail: "Keep awake", Since: stageTime, Until: stageTime.Add(time.Hour)}}})
	if got := attr(s.get("ada", "/sandboxes/mine").is(http.StatusOK).need("form.rest-kept"), "action"); got != end {
		t.Errorf("the button posts to %q", got)
	}
	for how, press := range map[string]func(){
		"End":       func() { s.post("ada", end, nil).leads("/sandboxes/mine") },
		"Sleep now": func() { s.post("ada", sameURL(box, "/sleep"), nil).leads("/sandboxes/mine") },
	} {
		s.holds.list = []sandbox.Hold{
			{ID: "1", SandboxID: box.ID, Owner: s.users["ada"].ID, Reason: "Keep awake"}, {ID: "2", SandboxID: box.ID, Reason: "nightly job"},
			{ID: "3", SandboxID: box.ID, Owner: s.users["root"].ID, Reason: "Keep awake"}, {ID: "4", SandboxID: "other", Reason: "Keep awake"},
		}
		s.post("bob", end, nil).is(http.StatusNotFound)
		press()
		if len(s.holds.list) != 2 || s.holds.list[0].ID != "2" || s.holds.list[1].ID != "4" {
			t.Errorf("after %s there is %+v", how, s.holds.list)
		}
	}
}

func TestRestSheet_OpenedByCustomBeginsWithItsField(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	custom := ""
	for _, a := range s.get("ada", "/sandboxes/mine").is(http.StatusOK).all("a.button") {
		if textOf(a) == "Custom…" {
			custom = attr(a, "href")
		}
	}
	if !hasAttr(s.get("ada", custom, "HX-Request", "true").is(http.StatusOK).need("#keep-for"), "autofocus") {
		t.Errorf("%s does not begin with the field", custom)
	}
	if hasAttr(s.get("ada", "/sandboxes/mine/rest").is(http.StatusOK).need("#keep-for"), "autofocus") {
		t.Error("so do the sleep settings")
	}
}

func TestNew_TakesTheTimesOfRest(t *testing.T) {
	s := newStage(t)
	if value, words := chosen(s.get("ada", "/new").is(http.StatusOK), "#freeze_after"); value != "" || words != "Template default" {
		t.Errorf("freeze %q %q", value, words)
	}
	s.post("ada", "/sandboxes", fields("template", "base", "freeze_after", "5m", "stop_after", "custom", "stop_after_custom", "3d"))
	if got := s.boxes.asked().Rest; got != (catalog.Rest{FreezeAfter: catalog.After(5 * time.Minute), StopAfter: catalog.After(72 * time.Hour)}) {
		t.Errorf("asked for %v", got)
	}
}

func TestNew_ShowsAWrongTimeBesideIt(t *testing.T) {
	s := newStage(t)
	again := s.post("ada", "/sandboxes", fields("template", "base", "name", "mine", "freeze_after", "custom", "freeze_after_custom", "soon")).is(http.StatusBadRequest)
	if got := textOf(again.need("#freeze_after-fault")); !strings.Contains(got, "is no idle time") || again.find("form .notice") != nil {
		t.Errorf("says %q", got)
	}
	if attr(again.need("#new-name"), "value") != "mine" || attr(again.need("#freeze_after-custom"), "value") != "soon" {
		t.Error("what was entered is lost")
	}
	bad := s.post("ada", "/sandboxes", fields("template", "base", "cpus", "x")).is(http.StatusBadRequest)
	if textOf(bad.need("#new-cpus-fault")) == "" || bad.find("#freeze_after-fault") != nil {
		t.Errorf("says %q", textOf(bad.need("main")))
	}
}

func TestWorkspace_NamesEveryReason(t *testing.T) {
	s := newStage(t)
	s.furnish()
	state := s.get("root", "/sandboxes/brave-otter").is(http.StatusOK).need("#ws-state")
	for _, words := range []string{
		"Running · kept awake by terminal +3", "Kept awake by", "a terminal in use began 40 min ago",
		"hold: nightly training run began 20 min ago · ends in 2 h", "command: python train.py", "work: 1.9 cores",
		"Unused, it freezes after 15 min and sleeps after 4 h",
	} {
		if !strings.Contains(textOf(state), words) {
			t.Errorf("no %q in %q", words, textOf(state))
		}
	}
	for name, want := range map[string]string{
		"checkout-api": "Nothing uses it now Freezes in 12 min · sleeps in 4 h", "quick-lynx": "It never rests by itself",
		"still-lake": "Frozen · sleeps in 3 h", "old-forest": "Asleep · 2 h · wakes on use",
	} {
		if got := textOf(s.get("root", "/sandboxes/"+name).need("#ws-state")); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in %q", name, want, got)
		}
	}
	if got := textOf(s.get("root", "/sandboxes/silver-heron").need("#ws-state")); got != "Stopped" {
		t.Errorf("a stopped one: %q", got)
	}
}

func TestWorkspace_SaysWhyOneThatRunsWasStartedAgain(t *testing.T) {
	s := newStage(t)
	const why = "Its container was killed, and it was started again."
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State, b.Problem = sandbox.Running, why })
	state := s.get("ada", "/sandboxes/mine").is(http.StatusOK).need("#ws-state")
	if got := textOf(in(state, "summary")); got != "Running · "+why || attr(in(state, "summary"), "title") != why {
		t.Errorf("says %q, in full %q", got, attr(in(state, "summary"), "title"))
	}
}

func TestWorkspace_OffersSleepAndWake(t *testing.T) {
	s := newStage(t)
	for state, want := range map[sandbox.State]string{
		sandbox.Running: "Sleep now", sandbox.Frozen: "Wake", sandbox.Asleep: "Wake", sandbox.Sleeping: "Wake", sandbox.Stopped: "Start",
	} {
		s.put("ada", string(state), func(b *sandbox.Sandbox) { b.State = state })
		acts := s.get("ada", "/sandboxes/"+string(state)).is(http.StatusOK).need("#ws-acts")
		if got := textOf(in(acts, ".button")); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
	s.post("ada", "/sandboxes/running/sleep", nil).leads("/sandboxes/running")
	if box, _ := s.boxes.Sandbox(t.Context(), "running"); box.State != sandbox.Sleeping {
		t.Errorf("state %s", box.State)
	}
	s.post("ada", "/sandboxes/frozen/start", fields("next", "/")).leads("/")
	page := s.post("ada", "/sandboxes/stopped/sleep", nil).is(http.StatusConflict)
	if got := textOf(page.need(".error-page")); !strings.Contains(got, "stopped does not run") {
		t.Errorf("says %q", got)
	}
	s.post("bob", "/sandboxes/asleep/sleep", nil).is(http.StatusNotFound)
}

func TestGonePage_IsFriendlyAndMakesNothing(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.boxes.drop(box)
	for _, path := range []string{"", "/rest", "/rename", "/delete", "/terminals/main/ws"} {
		page := s.get("ada", "/sandboxes/mine"+path).is(http.StatusGone)
		if got := textOf(page.need(".error-page")); !strings.Contains(got, "This sandbox was deleted") || !strings.Contains(got, "Go to sandboxes") {
			t.Errorf("%s: says %q", path, got)
		}
	}
	for _, path := range []string{"/start", "/sleep", "/stop", "/rest", "/rename", "/delete"} {
		s.post("ada", "/sandboxes/mine"+path, fields("confirm", "mine")).is(http.StatusGone)
	}
	s.get("root", "/sandboxes/mine").is(http.StatusGone)
	s.get("bob", "/sandboxes/mine").is(http.StatusNotFound)
	if p := s.refused("ada", "/sandboxes/mine"); p.Status != http.StatusGone {
		t.Errorf("told %+v", p)
	}
	if _, total, _ := s.boxes.List(t.Context(), sandbox.Filter{}); total != 0 {
		t.Errorf("%d sandboxes", total)
	}
}

func TestSandboxes_OfferRestInTheMenu(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	row := s.get("ada", "/").need("li.row")
	got := textOf(in(row, "div.menu-list"))
	if got != "Sleep now Ends its programs; files are kept Stop Restart Metrics Logs Activity Snapshots Backups Clone… Volumes… Size… Sleep settings… Label… Delete…" {
		t.Errorf("offers %q", got)
	}
}
