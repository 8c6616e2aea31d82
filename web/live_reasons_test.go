package web

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// looked waits until what keeps sandboxes awake has been asked for n times more.
func (s *stage) looked(n int) {
	s.t.Helper()
	until, deadline := s.idle.count()+n, time.Now().Add(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); s.idle.count() < until; <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatal("nobody looks")
		}
	}
}

func by(kind idle.Kind, detail string) idle.Outlook {
	return idle.Outlook{Because: []idle.Reason{{Kind: kind, Detail: detail, Since: stageTime.Add(-time.Minute)}}}
}

func TestLiveReasons_TheListFollowsThem(t *testing.T) {
	s := newStage(t)
	box, other := s.put("ada", "mine", nil), s.put("ada", "other", nil)
	f, first := s.follow("ada", s.topicOf("ada", "/"))
	if got := strings.Join(targets(first), ", "); got != "alarm outerHTML, alert-count outerHTML" {
		t.Fatalf("begins with %s", got)
	}
	s.used("mine", by(idle.Terminal, "main"))
	if e := f.next(); strings.Join(targets(e), ", ") != "state-"+box.ID+" outerHTML" || !strings.Contains(e, "kept awake by terminal") {
		t.Errorf("used: %s", e)
	}
	s.used("other", idle.Outlook{FreezesAt: stageTime.Add(12 * time.Minute)})
	if e := f.next(); strings.Join(targets(e), ", ") != "state-"+other.ID+" outerHTML" || !strings.Contains(e, `data-form="ahead">in 12 min`) {
		t.Errorf("unused: %s", e)
	}
}

func TestLiveReasons_WhatIsUnchangedIsNotSent(t *testing.T) {
	s := newStage(t)
	s.server.reasons = 20 * time.Millisecond
	s.put("ada", "mine", nil)
	s.idle.put("mine", by(idle.Exec, "make"))
	list, _ := s.follow("ada", s.topicOf("ada", "/"))
	page, first := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	if has(first, "ws-state outerHTML") {
		t.Errorf("begins with %v", targets(first))
	}
	s.used("mine", by(idle.Exec, "make"))
	s.idle.change("nobodys", "nobodys", by(idle.Exec, "make"))
	s.looked(4) // both streams, once more each
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil {
		t.Fatal(err)
	}
	if e := list.next(); !strings.Contains(e, "Mine") {
		t.Errorf("the list says before that: %s", e)
	}
	if e := page.next(); !has(e, "ws-name outerHTML") {
		t.Errorf("the page says before that: %s", e)
	}
}

func TestLiveReasons_AreToldAtMostOnceASecond(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	began := time.Now()
	s.used("mine", by(idle.Exec, "first"))
	if e := f.next(); !strings.Contains(e, "command: first<") {
		t.Fatalf("says %s", e)
	}
	for i := range 50 {
		s.used("mine", by(idle.Exec, strings.Repeat("x", i+1)))
	}
	e := f.next()
	if took := time.Since(began); took < reasonsPace || !strings.Contains(e, "command: "+strings.Repeat("x", 50)+"<") {
		t.Errorf("after %v: %s", took, e)
	}
}

func TestLiveReasons_WhatEndsByTimeAloneIsSeenByLooking(t *testing.T) {
	s := newStage(t)
	s.server.reasons = 20 * time.Millisecond
	s.put("ada", "mine", nil)
	s.idle.put("mine", by(idle.Web, "GET /"))
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	s.idle.put("mine", idle.Outlook{FreezesAt: stageTime.Add(15 * time.Minute)})
	if e := f.next(); !has(e, "ws-state outerHTML") || !strings.Contains(e, "Nothing uses it now") {
		t.Errorf("says %s", e)
	}
}

func TestLiveReasons_WhatChangedBeforeTheStreamBeganIsSent(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	list, page := s.topicOf("ada", "/"), s.topicOf("ada", "/sandboxes/mine")
	s.idle.put("mine", by(idle.Held, "nightly job"))
	if _, first := s.follow("ada", list); !has(first, "state-"+box.ID+" outerHTML") || has(first, "list-body outerHTML") {
		t.Errorf("the list begins with %v", targets(first))
	}
	if _, first := s.follow("ada", page); !has(first, "ws-state outerHTML") || has(first, "pane-terminal outerHTML") {
		t.Errorf("the page begins with %v", targets(first))
	}
}

func TestLiveReasons_OthersSandboxesAreNotLookedAt(t *testing.T) {
	s := newStage(t)
	s.put("bob", "secret", nil)
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	s.used("secret", by(idle.Exec, "psst"))
	s.used("mine", by(idle.Exec, "make"))
	if e := f.next(); strings.Contains(e, "psst") || !strings.Contains(e, "make") {
		t.Errorf("says %s", e)
	}
}

func TestLiveWorkspace_GoingToSleepBringsNoStepsThatNothingShows(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Sleeping })
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseReady, Detail: "on its way"})
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil {
		t.Fatal(err)
	}
	if e := f.until(`"#ws-links"`); strings.Contains(e, "work-steps") {
		t.Errorf("brings %s", e)
	}
}

func TestLiveWorkspace_GoesThroughRestAndBackAtOnce(t *testing.T) {
	s := newStage(t)
	s.server.pace = time.Hour // for a change of state nobody waits
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	asked := s.terminals.asked
	for _, step := range []struct {
		state sandbox.State
		kind  string
		words string
	}{
		{sandbox.Frozen, "frozen", "This sandbox is frozen"}, {sandbox.Sleeping, "sleeping", "Going to sleep"},
		{sandbox.Asleep, "asleep", "This sandbox is asleep"}, {sandbox.Starting, "work", "Starting"}, {sandbox.Running, "terminals", "sandbox-terminals"},
	} {
		if step.state == sandbox.Running && s.terminals.asked != asked {
			t.Error("a sandbox at rest was asked for its terminals")
		}
		if _, err := s.boxes.change(t.Context(), s.ref("mine"), func(b *sandbox.Sandbox) { b.State = step.state }); err != nil {
			t.Fatal(err)
		}
		if e := f.next(); !has(e, "ws-state outerHTML") || !strings.Contains(e, `data-kind="`+step.kind+`"`) || !strings.Contains(e, step.words) {
			t.Errorf("%s: %s", step.state, e)
		}
	}
}
