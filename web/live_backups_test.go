package web

import (
	"strings"
	"testing"

	"sandboxd/internal/archive"
	"sandboxd/internal/backup"
	"sandboxd/internal/sandbox"
)

func TestLiveBackups_FollowOneThroughItsLife(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/lab/backups"))
	if has(first, "backups outerHTML") {
		t.Errorf("the list is brought again: %v", targets(first))
	}
	old := s.backed("lab", "one")
	f.until("Ready")
	release := s.homes.hold()
	b, _, err := s.server.cfg.Backups.Begin(box, backup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := f.until("3 B in 1 file read")
	if !strings.Contains(all, "Being backed up") {
		all += f.until("Being backed up")
	}
	if !has(all, "backup-items afterbegin") || has(all, "backup-"+old.ID+" outerHTML") || has(all, "backups outerHTML") || !has(all, "backups-up outerHTML") {
		t.Errorf("a new one: %v", targets(all))
	}
	release()
	if all = f.until("2 ready"); !has(all, "backup-"+b.ID+" outerHTML") || has(all, "backups outerHTML") {
		t.Errorf("it is ready: %v", targets(all))
	}
	if err := s.server.cfg.Backups.Delete(old.ID); err != nil {
		t.Fatal(err)
	}
	if all = f.until("1 ready"); !has(all, "backup-"+old.ID+" delete") || has(all, "backups outerHTML") {
		t.Errorf("one is deleted: %v", targets(all))
	}
	if err := s.server.cfg.Backups.Delete(b.ID); err != nil {
		t.Fatal(err)
	}
	f.until("No backups of this sandbox yet")
	s.boxes.drop(box)
	if all = f.until("This sandbox was deleted"); !has(all, "backups-up delete") || !has(all, "archive-upload delete") {
		t.Errorf("the sandbox is deleted: %v", targets(all))
	}
}

func TestLiveBackups_OfAllShowOnlyWhatOneMaySee(t *testing.T) {
	s := newBackupStage(t)
	lab := s.put("ada", "lab", nil)
	s.put("bob", "cave", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/backups"))
	theirs := s.backed("cave", "secret")
	mine := s.backed("lab", "text")
	all := f.until("Ready")
	if strings.Contains(all, theirs.ID) || strings.Contains(all, "cave") || !strings.Contains(all, mine.ID) {
		t.Errorf("told %s", all)
	}
	s.boxes.drop(lab)
	if all = f.until("sandbox deleted"); !has(all, "backup-"+mine.ID+" outerHTML") {
		t.Errorf("told %v", targets(all))
	}
}

func TestLiveBackups_ARestoreThatFailsIsTold(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	b := s.backed("lab", "text")
	list, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/lab/backups"))
	work, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/lab"))
	release := s.homes.hold()
	s.post("ada", "/backups/"+b.ID+"/restore", fields()).leads("/sandboxes/lab")
	if all := work.until("Cancel restore"); !strings.Contains(all, "Being restored") {
		t.Errorf("told %v", targets(all))
	}
	list.until("Being restored")
	if err := s.server.cfg.Backups.CancelRestore(box.Ref()); err != nil {
		t.Fatal(err)
	}
	list.until("The restore was cancelled")
	work.until("Not restored")
	release()
	s.server.cfg.Backups.ForgetProblem(box.ID)
	if all := work.until(`<span id="ws-restore"></span>`); strings.Contains(all, "Not restored") {
		t.Errorf("told %s", all)
	}
}

func TestLiveBackups_AreDrawnAnewWhenTheyDifferByTheTimeThatTheyAreFollowed(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	topic := s.topicOf("ada", "/sandboxes/lab/backups")
	s.backed("lab", "text")
	if _, first := s.follow("ada", topic); !has(first, "backups outerHTML") || !strings.Contains(first, "Ready") {
		t.Errorf("begins with %v", targets(first))
	}
}

func TestLiveBackups_ADeletedSandboxIsTold(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	topic := s.topicOf("ada", "/sandboxes/lab/backups")
	s.boxes.drop(box)
	s.put("ada", "lab", nil)
	if _, first := s.follow("ada", topic); !strings.Contains(first, "This sandbox was deleted") {
		t.Errorf("begins with %s", first)
	}
}

func TestBackupState_SaysHowFarItIs(t *testing.T) {
	for want, b := range map[string]backup.Backup{
		"Being made: Waiting to begin":            {State: backup.Making},
		"Being made: 1.2 GiB in 3,400 files read": {State: backup.Making, Stats: archive.Stats{Files: 3400, Bytes: 1288490188}},
		"Checking: Reading back what was written": {State: backup.Making, Checking: true},
		"Ready: ":  {State: backup.Ready},
		"Failed: ": {State: backup.Failed, Problem: "why"},
		"Being made: 2 GiB in 1,234,567 files read": {State: backup.Making, Stats: archive.Stats{Files: 1234567, Bytes: 2 << 30}},
		"Being made: 12 B in 1 file read":           {State: backup.Making, Stats: archive.Stats{Files: 1, Bytes: 12}},
		"Being made: 999 B in 999 files read":       {State: backup.Making, Stats: archive.Stats{Files: 999, Bytes: 999}},
		"Being made: 0 B in 100,000 files read":     {State: backup.Making, Stats: archive.Stats{Files: 100000}},
	} {
		if got := backupState(b); got.Text+": "+got.Why != want {
			t.Errorf("%+v: %q, want %q", b, got.Text+": "+got.Why, want)
		}
	}
}

func TestBackUp_IsOffWhileSomethingElseIsDone(t *testing.T) {
	s := newBackupStage(t)
	for state, want := range map[sandbox.State]string{
		sandbox.Running: "", sandbox.Asleep: "", sandbox.Stopped: "", sandbox.Failed: "", sandbox.Starting: "The sandbox is starting.", sandbox.Restoring: "The sandbox is being restored.",
	} {
		if got := s.server.backups.backUp(sandbox.Sandbox{ID: "1", Name: "lab", State: state}).Off; got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
