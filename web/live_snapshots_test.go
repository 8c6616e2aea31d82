package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/snapshot"
)

func TestLiveSnapshots_FollowOneThroughItsLife(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	old := s.taken("lab", snapshot.Ask{Name: "one"}, "one")
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/lab/snapshots"))
	if has(first, "snapshots outerHTML") {
		t.Errorf("the list is brought again: %v", targets(first))
	}
	release := s.homes.hold()
	n, _, err := s.server.cfg.Snapshots.Begin(t.Context(), box, snapshot.Ask{Name: "two"})
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for !strings.Contains(all, "Being taken") || !strings.Contains(all, "Being copied") || !has(all, "snapshots-take outerHTML") {
		all += f.next()
	}
	if !has(all, "snapshot-items afterbegin") || !has(all, "snapshot-"+old.ID+" outerHTML") || has(all, "snapshots outerHTML") {
		t.Errorf("a new one: %v", targets(all))
	}
	release()
	if all = f.until("current"); !has(all, "snapshot-"+n.ID+" outerHTML") || has(all, "snapshots outerHTML") {
		t.Errorf("it is ready: %v", targets(all))
	}
	if _, err := s.server.cfg.Snapshots.Edit(t.Context(), n.ID, "renamed", ""); err != nil {
		t.Fatal(err)
	}
	f.until("renamed")
	if err := s.server.cfg.Snapshots.Delete(t.Context(), old.ID); err != nil {
		t.Fatal(err)
	}
	if all = f.until("1 snapshot. "); !has(all, "snapshot-"+old.ID+" delete") || has(all, "snapshots outerHTML") {
		t.Errorf("one is deleted: %v", targets(all))
	}
	if err := s.server.cfg.Snapshots.Delete(t.Context(), n.ID); err != nil {
		t.Fatal(err)
	}
	f.until("No snapshots yet")
	s.boxes.drop(box)
	if all = f.until("This sandbox was deleted"); !has(all, "snapshots-take delete") || !has(all, "snapshots-restored delete") {
		t.Errorf("the sandbox is deleted: %v", targets(all))
	}
}

func TestLiveSnapshots_ARestoreIsTold(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	n := s.taken("lab", snapshot.Ask{Name: "good"}, "before")
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/lab/snapshots"))
	release := s.homes.hold()
	s.post("ada", snapshotPath(n, "/restore"), fields()).leads("/sandboxes/lab/snapshots")
	f.until("before a restore")
	release()
	f.until("Restored to “good”")
	undo, ok := s.server.cfg.Snapshots.Undo(n.SandboxID)
	if !ok {
		t.Fatal("it cannot be undone")
	}
	s.post("ada", snapshotPath(undo, "/undo"), fields()).leads("/sandboxes/lab/snapshots")
	f.until("Restored to the snapshot taken")
}

func TestLiveSnapshots_AreDrawnAnewWhenTheyDifferByTheTimeThatTheyAreFollowed(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	topic := s.topicOf("ada", "/sandboxes/lab/snapshots")
	s.taken("lab", snapshot.Ask{Name: "one"}, "text")
	if _, first := s.follow("ada", topic); !has(first, "snapshots outerHTML") || !strings.Contains(first, "1 file") {
		t.Errorf("begins with %v", targets(first))
	}
}

func TestLiveSnapshots_AreForThoseWhoMayUseTheSandbox(t *testing.T) {
	s := newSnapshotStage(t)
	box := s.put("ada", "lab", nil)
	topic := s.topicOf("ada", "/sandboxes/lab/snapshots")
	if p := s.refused("bob", topic); p.Status != http.StatusNotFound {
		t.Errorf("bob is told %+v", p)
	}
	s.boxes.drop(box)
	s.put("ada", "lab", nil)
	if _, first := s.follow("ada", topic); !strings.Contains(first, "This sandbox was deleted") {
		t.Errorf("begins with %s", first)
	}
}
