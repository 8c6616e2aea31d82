package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/sandbox"
)

// pick gives the fields of a form that does something with those of the stage's sandboxes.
func (s *stage) pick(do string, names ...string) url.Values {
	fields := url.Values{"do": {do}, "next": {"/"}}
	for _, name := range names {
		fields.Add("box", choice{name, s.ref(name).ID()}.value())
	}
	return fields
}

func in3(s *stage) {
	s.put("ada", "one", nil)
	s.put("ada", "two", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	s.put("ada", "three", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
}

func TestMany_SleepTellsOfEachThatIsRefusedAndCanBeUndone(t *testing.T) {
	s := newStage(t)
	in3(s)
	fields := s.pick("sleep", "one", "two", "three")
	fields.Add("box", "gone@0123456789abcdef")
	page := s.post("ada", "/many", fields).is(http.StatusOK)
	got := textOf(page.need(".many-done"))
	for _, want := range []string{"one is going to sleep. 1 was already asleep. 2 could not be put to sleep:", "three does not run", "gone"} {
		if !strings.Contains(got, want) {
			t.Errorf("says %q, not %q", got, want)
		}
	}
	if s.state("one") != sandbox.Sleeping && s.state("one") != sandbox.Asleep || s.state("three") != sandbox.Stopped {
		t.Errorf("one is %s, three is %s", s.state("one"), s.state("three"))
	}
	var again []string
	for _, n := range within(page.need(".many-done"), "input") {
		if attr(n, "name") == "box" {
			again = append(again, attr(n, "value"))
		}
	}
	if len(again) != 1 || !strings.HasPrefix(again[0], "one@") {
		t.Fatalf("offers to start %v again", again)
	}
	page = s.post("ada", "/many", url.Values{"do": {"start"}, "box": again}).is(http.StatusOK)
	if got := textOf(page.need(".many-done")); !strings.Contains(got, "one is starting.") || s.state("one") != sandbox.Starting {
		t.Errorf("says %q, and it is %s", got, s.state("one"))
	}
}

func TestMany_StopsAndRecordsEach(t *testing.T) {
	s := newStage(t)
	in3(s)
	s.put("bob", "his", nil)
	fields := s.pick("stop", "one", "two")
	fields.Add("box", choice{"his", s.ref("his").ID()}.value())
	view := s.post("ada", "/many", fields, "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/?sort=name").is(http.StatusOK)
	if got := view.Body.String(); !strings.Contains(got, "2 sandboxes are stopping. 1 could not be stopped:") || strings.Contains(got, "<html") {
		t.Errorf("answer %s", got)
	}
	if s.state("his") != sandbox.Running {
		t.Error("another user's was stopped")
	}
	if got := view.Header().Get("HX-Trigger"); got != "sheet-done, many-done" {
		t.Errorf("triggers %q", got)
	}
	found, _, err := s.server.cfg.Activity.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range found {
		told = append(told, string(e.Action)+" "+e.Sandbox+" "+string(e.Outcome))
	}
	for _, want := range []string{"sandbox.stop one done", "sandbox.stop two done", "sandbox.stop his refused"} {
		if !strings.Contains(strings.Join(told, "|"), want) {
			t.Errorf("recorded %v, not %q", told, want)
		}
	}
}

func TestMany_AsksWhatIsKnown(t *testing.T) {
	s := newStage(t)
	in3(s)
	for _, fields := range []url.Values{{"do": {"sleep"}}, s.pick("burn", "one")} {
		s.post("ada", "/many", fields).is(http.StatusBadRequest)
	}
	many := s.pick("sleep", "one")
	for i := range maxChosen + 1 {
		many.Add("box", choice{"x", sandbox.NewID()}.value()+strings.Repeat("0", i%2))
	}
	s.post("ada", "/many", many).is(http.StatusBadRequest)
}

func TestManyDelete_AsksForTheNumberOfThoseWithWork(t *testing.T) {
	s := withLogs(newStage(t))
	in3(s)
	fields := s.pick("delete", "one", "three")
	page := s.post("ada", "/many/delete", fields).is(http.StatusOK)
	if got := textOf(page.need("section.sheet")); !strings.Contains(got, "Delete 2 sandboxes?") || !strings.Contains(got, "Type delete 2 to confirm") || !strings.Contains(got, "cannot be undone") {
		t.Errorf("asks %q", got)
	}
	if s.state("one") != sandbox.Running {
		t.Fatal("asking has changed something")
	}
	if got := textOf(s.post("ada", "/many", fields).is(http.StatusBadRequest).need(".fault")); got != "Type delete 2 to delete them." {
		t.Errorf("says %q", got)
	}
	fields.Set("confirm", "delete 2")
	page = s.post("ada", "/many", fields).is(http.StatusOK)
	if got := textOf(page.need(".many-done")); !strings.Contains(got, "2 sandboxes are being deleted.") || s.state("one") != sandbox.Deleting || s.state("two") != sandbox.Asleep {
		t.Errorf("says %q; one is %s, two is %s", got, s.state("one"), s.state("two"))
	}
	done := page.need(".many-done")
	if got := attr(done, "data-ended"); got != "2 sandboxes were deleted." || len(strings.Fields(attr(done, "data-waits"))) != 2 {
		t.Errorf("when they are gone it says %q; it waits for %q", got, attr(done, "data-waits"))
	}
}

func TestManyDelete_SpeaksOfOneAsOfOne(t *testing.T) {
	s := withLogs(newStage(t))
	in3(s)
	if got := textOf(s.post("ada", "/many", s.pick("delete", "one")).is(http.StatusBadRequest).need(".fault")); got != "Type one to delete it." {
		t.Errorf("says %q", got)
	}
	if got := s.post("ada", "/many", s.pick("sleep", "one")).is(http.StatusOK).need(".many-done"); attr(got, "data-waits") != "" {
		t.Error("a sleep waits for rows to go")
	}
}

// withLogs gives the stage a place for logs, which deletes ask.
func withLogs(s *stage) *stage {
	s.server.cfg.Logs = keepLogs(s.t, s.server.log)
	return s
}

// fresh puts a sandbox on the stage that nobody has used.
func (s *stage) fresh(name string, change func(*sandbox.Sandbox)) {
	box := s.put("ada", name, func(b *sandbox.Sandbox) {
		b.Created = stageTime.Add(-time.Minute)
		if change != nil {
			change(b)
		}
	})
	s.uses.set(box.ID, time.Time{})
}

func TestDelete_OfWhatNobodyHasUsedAsksLess(t *testing.T) {
	s := withLogs(newStage(t))
	s.fresh("new", nil)
	page := s.get("ada", "/sandboxes/new/delete").is(http.StatusOK)
	if page.field("confirm") != nil || !strings.Contains(textOf(page.need("section.sheet")), "Nobody has used it since it was created") {
		t.Errorf("asks %q", textOf(page.need("section.sheet")))
	}
	s.post("ada", "/sandboxes/new/delete", url.Values{}).is(http.StatusSeeOther)
	if s.state("new") != sandbox.Deleting {
		t.Errorf("it is %s", s.state("new"))
	}
	for name, change := range map[string]func(*sandbox.Sandbox){
		"old":      func(b *sandbox.Sandbox) { b.Created = stageTime.Add(-newFor) },
		"clone":    func(b *sandbox.Sandbox) { b.ClonedFrom = "other" },
		"restored": func(b *sandbox.Sandbox) { b.Root = "image:1" },
		"served":   func(b *sandbox.Sandbox) { b.Overrides.HasServices = true },
	} {
		s.fresh(name, change)
		if s.get("ada", "/sandboxes/"+name+"/delete").is(http.StatusOK).field("confirm") == nil {
			t.Errorf("%s: its name is not asked for", name)
		}
		s.post("ada", "/sandboxes/"+name+"/delete", url.Values{}).is(http.StatusBadRequest)
	}
	s.fresh("touched", nil)
	s.get("ada", "/sandboxes/touched/delete")
	s.uses.Note(s.ref("touched").ID()) // while the question is open
	if got := textOf(s.post("ada", "/sandboxes/touched/delete", url.Values{}).is(http.StatusBadRequest).need(".fault")); !strings.Contains(got, "Type touched to delete it") {
		t.Errorf("says %q", got)
	}
}

func TestManyDelete_OfWhatNobodyHasUsedTakesOneClick(t *testing.T) {
	s := withLogs(newStage(t))
	s.fresh("new", nil)
	s.fresh("newer", nil)
	fields := s.pick("delete", "new", "newer")
	page := s.post("ada", "/many/delete", fields, "HX-Request", "true").is(http.StatusOK)
	if got := textOf(page.need("section.sheet")); page.field("confirm") != nil || strings.Count(got, "nothing done yet") != 2 {
		t.Errorf("asks %q", got)
	}
	s.uses.Note(s.ref("newer").ID()) // now there is something to lose
	if got := textOf(s.post("ada", "/many", fields).is(http.StatusBadRequest).need(".fault")); got != "Type delete 2 to delete them." {
		t.Errorf("says %q", got)
	}
	fields = s.pick("delete", "new")
	s.post("ada", "/many", fields).is(http.StatusOK)
	if s.state("new") != sandbox.Deleting {
		t.Errorf("it is %s", s.state("new"))
	}
}
