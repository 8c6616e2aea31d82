package web

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

func TestLiveList_BringsBadgesAndLastUsesThatDiffer(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.put("ada", "other", nil)
	f, first := s.follow("ada", s.topicOf("ada", "/"))
	if has(first, "badges-"+box.ID+" outerHTML") || has(first, "used-"+box.ID+" outerHTML") {
		t.Errorf("begins with %v", targets(first))
	}
	if err := s.ports.Set(t.Context(), box, 8080, sandbox.Public); err != nil {
		t.Fatal(err)
	}
	s.uses.set(box.ID, stageTime.Add(-time.Minute))
	s.used("mine", by(idle.Web, "GET /"))
	e := f.until("Public")
	if !has(e, "badges-"+box.ID+" outerHTML") || !has(e, "used-"+box.ID+" outerHTML") || !strings.Contains(e, "1 min ago") {
		t.Errorf("says %s", e)
	}
}

func TestLiveList_OfAnotherOrderIsDrawnAnewWhereRowsMove(t *testing.T) {
	s := newStage(t)
	s.put("ada", "one", nil)
	s.put("ada", "two", nil)
	byState, _ := s.follow("ada", s.topicOf("ada", "/?sort=state"))
	grouped, _ := s.follow("ada", s.topicOf("ada", "/?group=template"))
	if _, err := s.boxes.Stop(t.Context(), s.ref("two")); err != nil {
		t.Fatal(err)
	}
	e := byState.next()
	if !has(e, "list-body outerHTML") || strings.Index(e, `data-name="two"`) > strings.Index(e, `data-name="one"`) {
		t.Errorf("by state: %v", targets(e))
	}
	if e := grouped.next(); has(e, "list-body outerHTML") || !has(e, "sandbox-"+s.ref("two").ID()+" outerHTML") {
		t.Errorf("grouped: %v", targets(e))
	}
	s.boxes.drop(s.boxOf("two"))
	if e := grouped.until(`data-name="one"`); !strings.Contains(e, `<span class="count">1</span>`) {
		t.Errorf("grouped, one gone: %s", e)
	}
	if _, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "three", Owner: s.users["ada"].ID, Template: "node-api"}); err != nil {
		t.Fatal(err)
	}
	if e := grouped.until(`data-name="three"`); !strings.Contains(e, "Node API") || !has(e, "list-body outerHTML") {
		t.Errorf("grouped, a new one: %v", targets(e))
	}
}

// boxOf gives a sandbox that is on the stage.
func (s *stage) boxOf(name string) sandbox.Sandbox {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return box
}
