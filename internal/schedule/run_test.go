package schedule_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/schedule"
	"sandboxd/internal/schedule/scheduletest"
)

const day = 24 * time.Hour

func TestRun_BacksUpWhenItIsDueAndKeepsTheLast(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		if s.Zone != "UTC" || !s.Next.Equal(time.Date(2026, 11, 22, 3, 30, 0, 0, time.UTC)) {
			t.Fatalf("made %+v", s)
		}
		w.pass(15 * time.Hour)
		w.wantRuns("too early", s.ID)
		w.pass(time.Hour)
		w.wantRuns("the first", s.ID, "done backup 22 03:30 lab: ok")
		w.pass(4 * day)
		if w.wantTroubles("all is well"); w.count() != 3 {
			t.Errorf("%d backups are kept", w.count())
		}
		paused, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Enabled = false })
		if err != nil || !paused.Next.IsZero() {
			t.Fatalf("paused %+v, %v", paused, err)
		}
		w.pass(5 * day)
		if runs, _ := w.Runs(w.t.Context(), s.ID, 100); len(runs) != 5 {
			t.Errorf("%d runs", len(runs))
		}
		if w.wantTroubles("paused"); w.count() != 3 {
			t.Errorf("%d backups are kept by one that is paused", w.count())
		}
	})
}

func TestRun_CoversWhatThereIsThen(t *testing.T) {
	within(t, func(w *world) {
		w.box("den", scheduletest.Owner)
		w.box("cave", boss)
		mine := w.create(nightly(func(s *schedule.Schedule) { s.Target = schedule.Target{Kind: schedule.Mine} }))
		all := w.create(nightly(func(s *schedule.Schedule) {
			s.Owner, s.Target, s.Cron = boss, schedule.Target{Kind: schedule.OfTemplate, Template: "base"}, "30 4 * * *"
		}))
		w.box("new", scheduletest.Owner)
		w.pass(day)
		w.wantRuns("mine", mine.ID, "done backup 22 03:30 den: ok lab: ok new: ok")
		w.wantRuns("all", all.ID, "done backup 22 04:30 cave: ok den: ok lab: ok new: ok")
	})
}

func TestRun_TriesOnceMoreAndDoesTheRest(t *testing.T) {
	within(t, func(w *world) {
		w.box("den", scheduletest.Owner)
		s := w.create(nightly(func(s *schedule.Schedule) { s.Target = schedule.Target{Kind: schedule.Mine} }))
		w.set(func() { w.fails["den"] = "The disk is full." })
		w.pass(15*time.Hour + 31*time.Minute)
		w.wantRuns("before the second try", s.ID, "running backup 22 03:30 den: The disk is full. (1) lab: ok")
		w.pass(10 * time.Minute)
		w.wantRuns("after it", s.ID, "done backup 22 03:30 den: The disk is full. (2) lab: ok")
		w.wantTroubles("it failed", "failing den-id The disk is full.")
		w.set(func() { w.once = true })
		w.pass(day)
		w.wantTroubles("the next one was good at the second try")
	})
}

func TestRun_MakesUpForWhatWasMissedWhileItWasDown(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.pass(day)
		w.end()
		<-time.After(3 * day)
		w.start()
		w.wantRuns("one for all", s.ID, "done backup 25 03:30 +3 lab: ok", "done backup 22 03:30 lab: ok")
		w.wantTroubles("it is told", "overdue lab-id 3 due times were missed, and made up for by one run")
		w.pass(2 * time.Hour)
		w.wantTroubles("it is well again")
		w.pass(day)
		w.wantRuns("then as before", s.ID, "done backup 26 03:30 lab: ok", "done backup 25 03:30 +3 lab: ok", "done backup 22 03:30 lab: ok")
	})
}

func TestRun_ADueTimeWhileOneIsUnderWayIsMissed(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(func(s *schedule.Schedule) { s.Cron = "@hourly" }))
		w.set(func() { w.takes = 90 * time.Minute })
		w.pass(2*time.Hour + time.Minute)
		w.wantRuns("under way", s.ID, "missed backup 21 14:00 +1", "running backup 21 13:00")
		w.wantTroubles("told", "overdue lab-id a due time was missed: the run before was still under way")
		w.pass(45 * time.Minute)
		w.wantRuns("done", s.ID, "missed backup 21 14:00 +1", "done backup 21 13:00 lab: ok")
	})
}

func TestRun_WhatACrashCutsOffIsMadeUpForOnce(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.set(func() { w.takes = time.Hour })
		w.pass(16 * time.Hour)
		w.end()
		w.wantRuns("cut off", s.ID, "running backup 22 03:30")
		w.set(func() { w.backups = map[string]backup.Backup{} })
		w.start()
		w.wantRuns("made up for", s.ID, "running backup 22 03:30 +1", "cut-off backup 22 03:30")
		w.end()
		w.start()
		w.pass(2 * time.Hour)
		w.wantRuns("not again", s.ID, "cut-off backup 22 03:30 +1", "cut-off backup 22 03:30")
		w.set(func() { w.takes, w.backups = 0, map[string]backup.Backup{} })
		w.pass(day)
		runs, err := w.Runs(w.t.Context(), s.ID, 1)
		if err != nil || !runs[0].Good() || runs[0].Missed != 0 {
			t.Errorf("then %+v, %v", runs, err)
		}
	})
}

func TestRun_ByHand(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(func(s *schedule.Schedule) { s.Enabled = false }))
		w.set(func() { w.takes = time.Minute })
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Backups); err != nil {
			t.Fatal(err)
		}
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Backups); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second one: %v", err)
		}
		if r, busy := w.Busy(s.ID); !busy || r.State != schedule.Running {
			t.Errorf("busy %t with %+v", busy, r)
		}
		w.pass(2 * time.Minute)
		w.wantRuns("done", s.ID, "done backup lab: ok")
		if _, err := w.RunNow(w.t.Context(), "none", schedule.Backups); !fault.Is(err, fault.NotFound) {
			t.Errorf("none: %v", err)
		}
	})
}

func TestRun_TheNextCanBeginOnceTheLastIsSaidToBeDone(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(func(s *schedule.Schedule) { s.Enabled = false }))
		began, asked := make(chan error, 1), false
		w.kept = func(r schedule.Run) {
			if r.State == schedule.Done && !asked {
				asked = true
				go func() {
					_, err := w.RunNow(w.t.Context(), s.ID, schedule.Backups)
					began <- err
				}()
				synctest.Wait() // it has looked, and waits
			}
		}
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Backups); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if err := <-began; err != nil {
			t.Errorf("the second began with %v", err)
		}
		w.wantRuns("both", s.ID, "done backup lab: ok", "done backup lab: ok")
		if _, busy := w.Busy(s.ID); busy {
			t.Error("one is still under way")
		}
	})
}

func TestRun_WaitsForABackupThatAPersonMakes(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.set(func() {
			w.takes = time.Minute
			w.backups["by hand"] = backup.Backup{ID: "by hand", SandboxID: "lab-id", Sandbox: "lab", State: backup.Making}
		})
		w.pass(16 * time.Hour)
		runs, err := w.Runs(w.t.Context(), s.ID, 1)
		if err != nil || len(runs) != 1 || !runs[0].Good() || w.backups[runs[0].Items[0].Backup].Schedule != s.ID {
			t.Errorf("runs %+v, %v", runs, err)
		}
	})
}

func TestRun_ManySchedulesOfOneSandboxHaveTheirTurns(t *testing.T) {
	within(t, func(w *world) {
		w.set(func() { w.takes = 3 * time.Minute })
		var ids []string
		for range 60 {
			ids = append(ids, w.create(nightly(nil)).ID)
		}
		ids = append(ids, w.create(nightly(func(s *schedule.Schedule) { s.Owner, s.Target = boss, schedule.Target{Kind: schedule.All} })).ID)
		w.pass(day)
		for i, id := range ids {
			w.wantRuns(fmt.Sprint("schedule ", i), id, "done backup 22 03:30 lab: ok")
		}
		w.wantTroubles("all had their turn")
	})
}

func TestRun_SaysWhatItWaitedForTooLong(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.set(func() {
			w.takes = 30 * time.Hour
			w.backups["by hand"] = backup.Backup{ID: "by hand", SandboxID: "lab-id", Sandbox: "lab", State: backup.Making}
		})
		w.pass(day)
		w.wantRuns("it waits for its second try", s.ID, "running backup 22 03:30")
		w.pass(4 * time.Hour)
		w.wantRuns("it gave up", s.ID, "done backup 22 03:30 lab: It waited 6 hours for other backups of the same sandbox, which did not end. (2)")
	})
}

func TestRun_KeepsWhatTheScheduleSaysThen(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(func(s *schedule.Schedule) { s.Keep = schedule.Keep{Last: 1} }))
		w.pass(day)
		w.set(func() { w.takes = time.Hour })
		w.pass(15*time.Hour + 45*time.Minute)
		if _, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Keep = schedule.Keep{Last: 10} }); err != nil {
			t.Fatal(err)
		}
		if w.pass(time.Hour); w.count() != 2 {
			t.Errorf("%d backups are kept of two", w.count())
		}
		w.pass(23 * time.Hour) // the next one is under way
		if _, busy := w.Busy(s.ID); !busy {
			t.Fatal("it is not under way")
		}
		if err := w.store.Delete(w.t.Context(), s.ID); err != nil { // as with its owner, who is deleted beside the server
			t.Fatal(err)
		}
		w.pass(2 * time.Hour)
		if w.count() != 2 {
			t.Errorf("%d backups are kept of a schedule that is deleted", w.count())
		}
	})
}

func TestRun_TheSecondTryTakesThePlaceOfTheFirst(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.set(func() {
			w.fails["lab"] = "The disk is full."
			w.backups["other"] = backup.Backup{ID: "other", SandboxID: "lab-id", Sandbox: "lab", State: backup.Failed}
		})
		failed := func() (n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, b := range w.backups {
				if b.State == backup.Failed {
					n++
				}
			}
			return n
		}
		w.pass(15*time.Hour + 31*time.Minute)
		under, _ := w.Busy(s.ID)
		if runs, err := w.Runs(w.t.Context(), s.ID, 1); err != nil || !runs[0].Retry.Equal(time.Date(2026, 11, 22, 3, 35, 0, 0, time.UTC)) || !under.Retry.Equal(runs[0].Retry) {
			t.Errorf("while it waits: %+v, %v", runs, err)
		}
		if failed() != 2 {
			t.Errorf("%d have failed before the second try", failed())
		}
		if w.pass(10 * time.Minute); failed() != 2 {
			t.Errorf("%d have failed after it", failed())
		}
		w.set(func() { w.once = true })
		if w.pass(day); failed() != 2 || w.count() != 1 {
			t.Errorf("%d have failed and %d are ready when the second try was good", failed(), w.count())
		}
	})
}

func TestRun_InARepositoryLeavesWhatCannotBeReached(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(func(s *schedule.Schedule) { s.Repository, s.Root = "nas", true }))
		w.pass(3*day + time.Hour)
		reach := func(problem string) {
			for id, b := range w.backups {
				if b.Repository != "nas" || !b.Root {
					t.Errorf("made %+v", b)
				}
				b.Unreachable = problem
				w.backups[id] = b
			}
		}
		w.set(func() { reach("The disk is gone."); w.fails["lab"] = "The disk is gone." })
		w.pass(day)
		if w.wantTroubles("gone", "failing lab-id The disk is gone."); w.count() != 3 {
			t.Errorf("%d backups are kept while they cannot be reached", w.count())
		}
		w.set(func() { clear(w.fails) })
		w.pass(day)
		if w.wantTroubles("one more"); w.count() != 4 {
			t.Errorf("%d backups are kept while the old ones cannot be reached", w.count())
		}
		w.set(func() { reach("") })
		if w.pass(day); w.count() != 3 {
			t.Errorf("%d backups are kept when all can be reached again", w.count())
		}
		s.Repository = "removed" // since
		if err := w.store.Put(w.t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if now, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Enabled = false }); err != nil || now.Enabled {
			t.Errorf("paused %+v, %v", now, err)
		}
		_, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Repository = "other" })
		if fault.FieldOf(err) != "repository" {
			t.Error(err)
		}
	})
}

func TestRun_ClockThatIsPutBackIsFollowed(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		s.Next = s.Next.AddDate(3, 0, 0) // as a clock that was wrong has left it
		if err := w.store.Put(w.t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w.pass(day)
		w.wantRuns("on time", s.ID, "done backup 22 03:30 lab: ok")
	})
}

func TestTroubles_NoGoodRunAtTwoDueTimesIsTold(t *testing.T) {
	within(t, func(w *world) { // 21 November 2026 is a Saturday
		s := w.create(nightly(func(s *schedule.Schedule) { s.Cron = "30 3 * * 1-5" }))
		w.pass(40 * time.Hour) // Monday, after the run
		w.wantTroubles("the weekend has none")
		w.set(func() { w.takes = 5 * time.Hour })
		w.set(func() { w.fails["lab"] = "No." })
		w.pass(2 * day) // Wednesday, 4:00
		w.wantTroubles("not yet", "failing lab-id No.")
		w.pass(time.Hour)
		w.wantTroubles("two were not good", "failing lab-id No.", "overdue lab-id no run was good since 23 November 2026 at 03:30 UTC")
		if err := w.store.Delete(w.t.Context(), s.ID); err != nil { // as with its owner
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantTroubles("it is gone")
	})
}

func TestTest_RestoresTheNewestBackup(t *testing.T) {
	within(t, func(w *world) {
		w.box("den", scheduletest.Owner)
		s := w.create(nightly(func(s *schedule.Schedule) {
			s.Target, s.TestCron = schedule.Target{Kind: schedule.Mine}, "0 5 * * *"
		}))
		w.pass(day)
		w.wantRuns("both", s.ID, "done test 22 05:00 den: ok lab: ok", "done backup 22 03:30 den: ok lab: ok")
		runs, _ := w.Runs(w.t.Context(), s.ID, 1)
		if state, ok := w.Tested(runs[0].Items[0].Backup); !ok || state.Problem != "" || len(w.tests) != 2 || !strings.HasPrefix(w.tests[0], "restore-test-") {
			t.Errorf("tested %+v, %t in %v", state, ok, w.tests)
		}
		w.set(func() { w.broken = "It differs." })
		w.pass(day)
		w.wantTroubles("broken", "unrestored den-id It differs.", "unrestored lab-id It differs.")
	})
}

func TestTest_LeavesNoSandboxAfterACrash(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.pass(day)
		w.set(func() { w.hang = true })
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Tests); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.end()
		if w.set(func() { w.hang = false }); len(w.boxes) != 2 {
			t.Fatalf("sandboxes %v", w.boxes)
		}
		w.start()
		if !slices.Equal(w.deleted, w.tests) || len(w.boxes) != 1 {
			t.Errorf("deleted %v, made %v", w.deleted, w.tests)
		}
		w.wantRuns("cut off", s.ID, "cut-off test", "done backup 22 03:30 lab: ok")
	})
}

func TestTest_LeavesNoSandboxWhenItsScheduleIsGone(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.pass(day)
		w.set(func() { w.hang = true })
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Tests); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.end()
		if err := w.store.Delete(w.t.Context(), s.ID); err != nil { // as with its owner
			t.Fatal(err)
		}
		w.box("restore-test-12345678", scheduletest.Owner) // a person's
		copied := w.boxes[w.tests[0]]
		copied.Name = "copy"
		w.set(func() { w.boxes["copy"] = copied })
		w.start()
		if left := slices.Sorted(maps.Keys(w.boxes)); !slices.Equal(left, []string{"copy", "lab", "restore-test-12345678"}) || !slices.Equal(w.deleted, w.tests) {
			t.Errorf("left %v, deleted %v", left, w.deleted)
		}
	})
}

func TestSweep_BackupsThatNoScheduleCoversExpire(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.pass(2 * day)
		for id, b := range w.backups {
			if !b.Expires.IsZero() {
				t.Errorf("%s expires", id)
			}
		}
		if err := w.Delete(w.t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		gone := time.Now()
		w.end()
		<-time.After(day)
		w.start()
		for id, b := range w.backups {
			if left := b.Expires.Sub(gone); left > 7*day || left < 7*day-2*time.Minute {
				t.Errorf("%s expires %s later", id, left)
			}
		}
		w.set(func() { clear(w.backups) })
		w.pass(2 * time.Hour)
		if left, err := w.store.Unkept(w.t.Context()); err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestSweep_AScheduleEndsWithItsSandbox(t *testing.T) {
	within(t, func(w *world) {
		s := w.create(nightly(nil))
		w.pass(day)
		lab := w.boxes["lab"]
		if _, err := (boxes{w}).Delete(w.t.Context(), lab.Ref()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if now, err := w.Schedule(w.t.Context(), s.ID); err != nil || now.Enabled || !now.Next.IsZero() {
			t.Errorf("it is %+v, %v", now, err)
		}
		_, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Enabled = true })
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("resumed: %v", err)
		}
		if _, err := w.RunNow(w.t.Context(), s.ID, schedule.Backups); !fault.Is(err, fault.Conflict) {
			t.Errorf("run: %v", err)
		}
		if now, err := w.Update(w.t.Context(), s.ID, func(c *schedule.Schedule) { c.Name = "old" }); err != nil || now.Name != "old" {
			t.Errorf("renamed %+v, %v", now, err)
		}
		synctest.Wait()
		for _, b := range w.backups {
			if b.Expires.IsZero() {
				t.Error("its backup never expires")
			}
		}
	})
}
