package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// newSnapshotStage is a stage whose clock is that of the snapshots.
func newSnapshotStage(t *testing.T) *stage { return newBackupStage(t) }

// taken takes a snapshot of a sandbox on the stage, with this text in its file "notes", and gives it.
func (s *stage) taken(name string, a snapshot.Ask, notes string) snapshot.Snapshot {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.homes.put(box.ID, map[string]string{"notes": notes})
	n, _, err := s.server.cfg.Snapshots.Begin(s.t.Context(), box, a)
	if err == nil {
		n, err = s.server.cfg.Snapshots.Wait(s.t.Context(), n.ID)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// snapshotOn finds a snapshot on a page; nil when it is not there.
func snapshotOn(v view, n snapshot.Snapshot) *html.Node { return v.find("#snapshot-" + n.ID) }

// snapshotPath is where something is done with a snapshot of lab.
func snapshotPath(n snapshot.Snapshot, act string) string {
	return "/sandboxes/lab/snapshots/" + n.ID + act
}

// allSnapshots gives those of lab.
func (s *stage) allSnapshots() []snapshot.Snapshot { return s.server.snapshots.of(s.ref("lab").ID()) }

func TestSnapshotsPage_ListsThem(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	s.put("ada", "den", func(b *sandbox.Sandbox) { b.ClonedFrom = "lab" })
	if text := textOf(s.get("ada", "/sandboxes/lab/snapshots").is(http.StatusOK).need("#snapshots")); !strings.Contains(text, "No snapshots yet") {
		t.Errorf("says %q", text)
	}
	old := s.taken("lab", snapshot.Ask{Name: "<b>first</b>", Note: "one\ntwo <i>"}, "1")
	s.homes.loses = []archive.Loss{{Path: "run/<b>socket\x1b[2J", Reason: "is a socket"}}
	last := s.taken("lab", snapshot.Ask{Kind: snapshot.Automatic}, "12")
	other := s.taken("den", snapshot.Ask{}, "x")
	v := s.get("ada", "/sandboxes/lab/snapshots").is(http.StatusOK)
	if items := v.all("li.snapshot"); len(items) != 2 || attr(items[0], "data-snapshot") != last.ID || attr(items[1], "data-snapshot") != old.ID {
		t.Fatalf("lists %s", textOf(v.need("#snapshots")))
	}
	text := textOf(snapshotOn(v, last))
	for _, want := range []string{"Taken", "current", "automatic", "2 B", "1 file", "paused for 1.4 s", "1 entry could not be kept", "run/<b>socket", "Restore…", "Clone…", "Name and note…", "Delete…"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	text = textOf(snapshotOn(v, old))
	if !strings.Contains(text, "<b>first</b>") || !strings.Contains(text, "two <i>") || strings.Contains(text, "current") || strings.Contains(text, "automatic") {
		t.Errorf("says %q", text)
	}
	if foot := textOf(v.need("#snapshots-foot")); !strings.Contains(foot, "2 snapshots. Automatic") || !strings.Contains(foot, "deleted after 7 d") {
		t.Errorf("says %q", foot)
	}
	if snapshotOn(v, other) != nil || strings.Contains(v.Body.String(), "\x1b") {
		t.Error("lists the snapshot of another sandbox, or a control character")
	}
	if text := textOf(s.get("ada", "/sandboxes/den/snapshots").need(".page-head")); !strings.Contains(text, "Cloned from lab") {
		t.Errorf("the clone says %q", text)
	}
}

func TestSnapshotsPage_AnotherUsersAreNotThere(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	s.put("bob", "cave", nil)
	n := s.taken("lab", snapshot.Ask{}, "secret")
	theirs := strings.Replace(snapshotPath(n, ""), "/lab/", "/cave/", 1) // a snapshot of another sandbox than the path names
	for _, one := range []string{snapshotPath(n, ""), theirs} {
		for _, act := range []string{"/edit", "/restore", "/delete"} {
			s.get("bob", one+act).is(http.StatusNotFound)
			s.get("", one+act).is(http.StatusSeeOther)
		}
		for _, act := range []string{"/edit", "/restore", "/undo", "/delete"} {
			s.post("bob", one+act, fields("name", "mine")).is(http.StatusNotFound)
		}
	}
	for _, path := range []string{"/sandboxes/lab/snapshots", "/sandboxes/lab/snapshots/new", "/sandboxes/lab/clone", "/sandboxes/cave/clone?snapshot=" + n.ID} {
		s.get("bob", path).is(http.StatusNotFound)
	}
	s.post("bob", "/sandboxes/lab/snapshots", fields()).is(http.StatusNotFound)
	s.post("bob", "/sandboxes/lab/clone", fields()).is(http.StatusNotFound)
	s.post("bob", "/sandboxes/cave/clone?snapshot="+n.ID, fields("name", "mine"), "HX-Request", "true").is(http.StatusNotFound)
	if got := s.allSnapshots(); len(got) != 1 || got[0].Name != "" {
		t.Errorf("there are %+v", got)
	}
	if text := textOf(s.get("root", "/sandboxes/lab/snapshots").is(http.StatusOK).need("#snapshots")); !strings.Contains(text, "Taken") {
		t.Errorf("an admin sees %q", text)
	}
}

func TestSnapshotsPage_OneIsTakenNamedAndDeleted(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	s.homes.put(box.ID, map[string]string{"notes": "text"})
	ask := s.get("ada", "/sandboxes/lab/snapshots/new", "HX-Request", "true").is(http.StatusOK)
	if text := textOf(ask.need(".sheet")); !strings.Contains(text, "paused for as long as the copy takes") {
		t.Errorf("asks %q", text)
	}
	again := s.post("ada", "/sandboxes/lab/snapshots", fields("name", strings.Repeat("x", 65), "note", "kept"), "HX-Request", "true").is(http.StatusBadRequest)
	if text := textOf(again.need("#snapshot-name-fault")); !strings.Contains(text, "64 characters") || textOf(again.need("#snapshot-note")) != "kept" {
		t.Errorf("says %s", again.Body)
	}
	release := s.homes.hold()
	s.post("ada", "/sandboxes/lab/snapshots", fields("name", "before", "note", "why")).leads("/sandboxes/lab/snapshots")
	until(t, "it is being taken", func() bool {
		v := s.get("ada", "/sandboxes/lab/snapshots")
		return strings.Contains(textOf(v.need("#snapshots")), "Being taken") && hasAttr(in(v.need("#snapshots-take"), "button"), "disabled") &&
			strings.Contains(textOf(v.need("#snapshots-state")), "Being copied")
	})
	page := s.get("ada", "/sandboxes/lab")
	if text, kind := textOf(page.need("#work")), attr(page.need("#pane-terminal"), "data-kind"); !strings.Contains(text, "Being copied") || !strings.Contains(text, "Snapshots") || kind != "copied" {
		t.Errorf("the workspace says %q in a pane of the kind %q", text, kind)
	}
	again = s.post("ada", "/sandboxes/lab/snapshots", fields("name", "another"), "HX-Request", "true").is(http.StatusConflict)
	if !strings.Contains(textOf(again.need(".sheet")), "Another snapshot of lab is being made") {
		t.Errorf("says %s", again.Body)
	}
	release()
	until(t, "it is ready", func() bool {
		return strings.Contains(textOf(s.get("ada", "/sandboxes/lab/snapshots").need("#snapshots")), "1 file")
	})
	n := s.allSnapshots()[0]
	form := s.get("ada", snapshotPath(n, "/edit"), "HX-Request", "true").is(http.StatusOK)
	if attr(form.need("#snapshot-name"), "value") != "before" || textOf(form.need("#snapshot-note")) != "why" {
		t.Errorf("the form has %s", form.Body)
	}
	s.post("ada", snapshotPath(n, "/edit"), fields("name", "a\x01b"), "HX-Request", "true").is(http.StatusBadRequest).need("#snapshot-name-fault")
	s.post("ada", snapshotPath(n, "/edit"), fields("name", "after")).leads("/sandboxes/lab/snapshots")
	if got := s.allSnapshots()[0]; got.Name != "after" || got.Note != "" {
		t.Errorf("it is %+v", got)
	}
	if text := textOf(s.get("ada", snapshotPath(n, "/delete"), "HX-Request", "true").need(".sheet")); !strings.Contains(text, "after · Taken") || !strings.Contains(text, "cannot be undone") {
		t.Errorf("asks %q", text)
	}
	s.post("ada", snapshotPath(n, "/delete"), fields()).leads("/sandboxes/lab/snapshots")
	s.post("ada", snapshotPath(n, "/delete"), fields()).is(http.StatusNotFound)
}

func TestSnapshotsPage_ARestoreIsUndoneWithOneClick(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "good"}, "before")
	s.homes.put(box.ID, map[string]string{"notes": "after"})
	ask := textOf(s.get("ada", snapshotPath(n, "/restore"), "HX-Request", "true").is(http.StatusOK).need(".sheet"))
	if !strings.Contains(ask, "Restore lab to this snapshot?") || !strings.Contains(ask, "running programs and its terminals end") || !strings.Contains(ask, "is taken first") {
		t.Errorf("asks %q", ask)
	}
	s.post("ada", snapshotPath(n, "/restore"), fields()).leads("/sandboxes/lab/snapshots")
	until(t, "it is restored", func() bool {
		return s.homes.home(box.ID)["notes"] == "before" && !s.server.cfg.Snapshots.Restoring(box.ID)
	})
	v := s.get("ada", "/sandboxes/lab/snapshots")
	if text := textOf(v.need("#snapshots-restored")); !strings.Contains(text, "Restored to “good”") {
		t.Fatalf("says %q", text)
	}
	if text := textOf(snapshotOn(v, n)); !strings.Contains(text, "current") {
		t.Errorf("it is not the current one: %q", text)
	}
	if text := textOf(v.need("#snapshots")); !strings.Contains(text, "before a restore") {
		t.Errorf("lists %q", text)
	}
	undo := attr(in(v.need("#snapshots-restored"), "form"), "action")
	s.post("ada", undo, fields("next", "/sandboxes/lab/snapshots")).leads("/sandboxes/lab/snapshots")
	until(t, "it is undone", func() bool {
		return s.homes.home(box.ID)["notes"] == "after" && !s.server.cfg.Snapshots.Restoring(box.ID)
	})
	s.taken("lab", snapshot.Ask{Name: "new"}, "more")
	if text := textOf(s.get("ada", "/sandboxes/lab/snapshots").need("#snapshots-restored")); text != "" {
		t.Errorf("still says %q", text)
	}
}

func TestSnapshotsPage_ALongRestoreDoesNotHoldThePage(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "good"}, "before")
	release := s.homes.hold()
	s.post("ada", snapshotPath(n, "/restore"), fields()).leads("/sandboxes/lab/snapshots")
	v := s.get("ada", "/sandboxes/lab/snapshots").is(http.StatusOK)
	if button := in(snapshotOn(v, n), "button"); !hasAttr(button, "disabled") || !strings.Contains(textOf(v.need("#snapshots")), "before a restore") {
		t.Errorf("shows %s", textOf(v.need("#snapshots")))
	}
	again := s.post("ada", snapshotPath(n, "/restore"), fields(), "HX-Request", "true").is(http.StatusConflict)
	if !strings.Contains(textOf(again.need(".sheet")), "being restored to lab already") {
		t.Errorf("says %s", again.Body)
	}
	release()
	until(t, "it is restored", func() bool { return !s.server.cfg.Snapshots.Restoring(n.SandboxID) })
}

func TestSnapshotsPage_SaysWhatFailed(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "good"}, "before")
	s.homes.fails = fault.New(fault.Unavailable, "The disk is full.")
	s.post("ada", "/sandboxes/lab/snapshots", fields("name", "bad")).leads("/sandboxes/lab/snapshots")
	until(t, "it has failed", func() bool {
		text := textOf(s.get("ada", "/sandboxes/lab/snapshots").need("#snapshots"))
		return strings.Contains(text, "Failed") && strings.Contains(text, "The disk is full.") && strings.Contains(text, "Remove")
	})
	s.post("ada", snapshotPath(n, "/restore"), fields(), "HX-Request", "true").is(http.StatusServiceUnavailable)
	v := s.get("ada", "/sandboxes/lab/snapshots")
	if text := textOf(v.need("#snapshots-failed")); !strings.Contains(text, "Nothing was restored") || !strings.Contains(text, "The disk is full.") {
		t.Errorf("says %q", text)
	}
	s.post("ada", "/sandboxes/lab/snapshots/"+attr(v.all("li.snapshot")[0], "data-snapshot")+"/delete", fields()).leads("/sandboxes/lab/snapshots")
	if got := s.allSnapshots(); len(got) != 1 {
		t.Errorf("there are %+v", got)
	}
}

func TestSnapshotsPage_ASandboxIsCloned(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "good"}, "before")
	s.homes.put(box.ID, map[string]string{"notes": "now"})
	ask := s.get("ada", "/sandboxes/lab/clone", "HX-Request", "true").is(http.StatusOK)
	if text := textOf(ask.need(".sheet")); attr(ask.need("#clone-name"), "value") != "lab-2" || !strings.Contains(text, "While it is copied, lab is paused") {
		t.Errorf("asks %s", ask.Body)
	}
	for _, c := range [][3]string{{"Not A Name", "1", "name"}, {"lab", "1", "name"}, {"x", "21", "count"}, {"x", "0", "count"}, {"x", "many", "count"}} {
		again := s.post("ada", "/sandboxes/lab/clone", fields("name", c[0], "count", c[1]), "HX-Request", "true")
		if again.Code < 400 || textOf(again.need("#clone-"+c[2]+"-fault")) == "" || attr(again.need("#clone-name"), "value") != c[0] {
			t.Errorf("%v: %d %s", c, again.Code, again.Body)
		}
	}
	s.post("ada", "/sandboxes/lab/clone", fields("name", "lab-2", "count", "1")).leads("/sandboxes/lab-2")
	until(t, "it runs", func() bool { return s.state("lab-2") == sandbox.Running })
	if got := s.homes.home(s.ref("lab-2").ID())["notes"]; got != "now" {
		t.Errorf("its home has %q", got)
	}
	if text := textOf(s.get("root", "/sandboxes/lab/clone?snapshot="+n.ID, "HX-Request", "true").need(".sheet")); !strings.Contains(text, "good · Taken") || strings.Contains(text, "is paused") {
		t.Errorf("asks %q", text)
	}
	s.post("root", "/sandboxes/lab/clone?snapshot="+n.ID, fields("name", "many", "count", "3")).leads("/")
	for _, name := range []string{"many-1", "many-2", "many-3"} {
		until(t, name+" runs", func() bool { return s.state(name) == sandbox.Running })
		made, err := s.boxes.Sandbox(t.Context(), name)
		if err != nil || made.Owner != s.users["root"].ID || made.ClonedFrom != "lab" || s.homes.home(made.ID)["notes"] != "before" {
			t.Errorf("%+v: %v", made, err)
		}
	}
}

func TestSnapshotsPage_ANewCloneIsBeingCreated(t *testing.T) {
	s := newSnapshotStage(t)
	for name, box := range map[string]sandbox.Sandbox{
		"filled":     {ClonedFrom: "lab", CutOff: sandbox.Deleting},
		"continued":  {ClonedFrom: "lab", CutOff: sandbox.Running, Revert: sandbox.Revert{Snapshot: "5a", Memory: true}},
		"taken-back": {ClonedFrom: "lab", CutOff: sandbox.Running, Revert: sandbox.Revert{Snapshot: "5a"}},
	} {
		s.put("ada", name, func(b *sandbox.Sandbox) {
			b.State, b.ClonedFrom, b.CutOff, b.Revert = sandbox.Restoring, box.ClonedFrom, box.CutOff, box.Revert
		})
		want := "Creating " + name
		if name == "taken-back" {
			want = "Being restored"
		}
		page := s.get("ada", "/sandboxes/"+name).is(http.StatusOK)
		if text := textOf(page.need("#work")); !strings.Contains(text, want) || strings.Contains(textOf(page.need("body")), "Being restored") != (name == "taken-back") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestSnapshotsPage_ALongCloneDoesNotHoldThePage(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{}, "before")
	release := s.homes.hold()
	s.post("ada", "/sandboxes/lab/clone?snapshot="+n.ID, fields("name", "two")).leads("/sandboxes/two")
	if text := textOf(s.get("ada", "/sandboxes/two").is(http.StatusOK).need("#work")); !strings.Contains(text, "The files of lab are copied to it") {
		t.Errorf("says %q", text)
	}
	release()
	until(t, "it runs", func() bool { return s.state("two") == sandbox.Running })
}

func TestSnapshotsPage_IsReachedFromEverywhere(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	s.taken("lab", snapshot.Ask{}, "text")
	if text := textOf(s.get("ada", "/sandboxes/lab/delete").is(http.StatusOK).need(".sheet")); !strings.Contains(text, "Its snapshot.") {
		t.Errorf("the question about deleting says %q", text)
	}
	s.taken("lab", snapshot.Ask{}, "again")
	if text := textOf(s.get("ada", "/sandboxes/lab/delete").need(".sheet")); !strings.Contains(text, "Its 2 snapshots.") {
		t.Errorf("the question about deleting says %q", text)
	}
	for _, state := range []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped, sandbox.Failed, sandbox.Capturing, sandbox.Restoring} {
		if _, err := s.boxes.change(t.Context(), box.Ref(), func(b *sandbox.Sandbox) { b.State = state }); err != nil {
			t.Fatal(err)
		}
		menu := textOf(s.get("ada", "/sandboxes/lab").need("#ws-acts"))
		if !strings.Contains(menu, "Snapshots") || strings.Contains(menu, "Clone…") != state.Settled() {
			t.Errorf("%s: its menu is %q", state, menu)
		}
	}
}

func TestSnapshotsPage_ManyAndLongNames(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	for range 50 {
		s.taken("lab", snapshot.Ask{Name: strings.Repeat("W", 64), Note: strings.Repeat("n", 1000)}, "text")
	}
	v := s.get("ada", "/sandboxes/lab/snapshots").is(http.StatusOK)
	if n, size := len(v.all("li.snapshot")), v.Body.Len(); n != 50 || size > 512<<10 {
		t.Errorf("%d snapshots in %d bytes", n, size)
	}
	again := s.post("ada", "/sandboxes/lab/snapshots", fields(), "HX-Request", "true").is(http.StatusConflict)
	if !strings.Contains(textOf(again.need(".sheet")), "which is the most there can be") {
		t.Errorf("says %s", again.Body)
	}
}

func TestPauseText_IsShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		35*time.Millisecond + 400*time.Microsecond: "35 ms", 1432 * time.Millisecond: "1.4 s", 59 * time.Second: "59.0 s", 150 * time.Second: "3 min",
	} {
		if got := pauseText(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestSnapshotDiffPage_ShowsWhatHasChanged(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "<b>first</b>"}, "one\ntwo\n")
	path := snapshotPath(n, "/diff")
	if text := textOf(s.get("ada", path).is(http.StatusOK).need("main")); !strings.Contains(text, "Nothing has changed") || !strings.Contains(text, "since “<b>first</b>”") {
		t.Errorf("says %q", text)
	}
	s.homes.put(s.ref("lab").ID(), map[string]string{"notes": "one\n<i>2\x1b[2J\n", "new <b>": "\x00"})
	v := s.get("ada", path).is(http.StatusOK)
	if list := textOf(v.need(".changes")); !strings.Contains(list, "added new <b>") || !strings.Contains(list, "changed notes") || !strings.Contains(list, "2 changes") {
		t.Errorf("lists %q", list)
	}
	v = s.get("ada", path+"?path=notes").is(http.StatusOK)
	if added := v.all(".added"); len(added) != 1 || !strings.Contains(textOf(added[0]), "+<i>2") || strings.Contains(v.Body.String(), "\x1b") || len(v.all(".deleted")) != 1 {
		t.Errorf("shows %q", textOf(v.need("#file")))
	}
	if text := textOf(s.get("ada", path+"?path=new+%3Cb%3E").is(http.StatusOK).need("#file")); !strings.Contains(text, "not text") {
		t.Errorf("of a file that is no text: %q", text)
	}
	if text := textOf(s.get("ada", path+"?path=none").is(http.StatusOK).need("#file")); !strings.Contains(text, "Neither the snapshot nor the home") {
		t.Errorf("of a file that is not there: %q", text)
	}
	s.get("bob", path).is(http.StatusNotFound)
}

func TestSnapshotsPage_OffersToKeepTheMemoryOfWhatRuns(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	const form = "/sandboxes/lab/snapshots/new"
	s.get("ada", form).is(http.StatusOK).need(`#snapshot-memory`)
	s.post("ada", "/sandboxes/lab/snapshots", fields("memory", "on")).is(http.StatusSeeOther)
	n := s.allSnapshots()[0]
	if n, err := s.server.cfg.Snapshots.Wait(t.Context(), n.ID); err != nil || n.Memory != 24<<20 {
		t.Fatalf("taken is %+v, %v", n, err)
	}
	if text := textOf(snapshotOn(s.get("ada", "/sandboxes/lab/snapshots"), n)); !strings.Contains(text, "with memory (24 MiB)") {
		t.Errorf("the list says %q", text)
	}
	if text := textOf(s.get("ada", snapshotPath(n, "/restore")).need("main")); !strings.Contains(text, "continue from where they were") {
		t.Errorf("before a restore it says %q", text)
	}
	if text := textOf(s.get("ada", "/sandboxes/lab/clone?snapshot="+n.ID).need("main")); !strings.Contains(text, "continue in it") {
		t.Errorf("before a clone it says %q", text)
	}
	s.post("ada", snapshotPath(n, "/restore"), fields()).leads("/sandboxes/lab/snapshots")
	until(t, "it is restored", func() bool {
		return len(s.allSnapshots()) == 2 && !s.server.cfg.Snapshots.Restoring(box.ID)
	})
	const why = "its memory could not be brought back"
	if text := textOf(s.get("ada", "/sandboxes/lab/snapshots").need("#snapshots-restored")); strings.Contains(text, why) {
		t.Errorf("after a restore it says %q", text)
	}
	box, err := s.boxes.store.ByName(t.Context(), "lab")
	if box.Problem = why; err != nil || s.boxes.store.Update(t.Context(), box) != nil {
		t.Fatal(err)
	}
	if text := textOf(s.get("ada", "/sandboxes/lab/snapshots").need("#snapshots-restored")); !strings.Contains(text, why) {
		t.Errorf("after one without its memory it says %q", text)
	}
	s.put("ada", "den", func(b *sandbox.Sandbox) { b.State = sandbox.Stopped })
	if s.get("ada", "/sandboxes/den/snapshots/new").is(http.StatusOK).find(`#snapshot-memory`) != nil {
		t.Error("it is offered of one that is stopped")
	}
	s.post("ada", "/sandboxes/den/snapshots", fields("memory", "on")).is(http.StatusConflict).need("#snapshot-memory-fault")
}
