package schedule

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sandboxd/internal/cron"
)

const (
	missedFor    = time.Hour // for which a missed time that was made up for is told
	overdueAfter = time.Hour // after the second due time without a good run: one may be under way
)

// standing is how the last runs of a schedule went.
type standing struct {
	schedule Schedule
	last     map[Work]Run         // the last one that was done, of each sort
	good     time.Time            // when the last good run for backups ended; zero for none
	missed   Run                  // the newest run for backups, if it was missed or made up for others
	tested   map[string]TestState // by backup
}

// TestState is how the last test of a backup went.
type TestState struct {
	At      time.Time
	Problem string // "" when it could be restored
}

// restand reads how the runs of a schedule went. When that fails, what was known stays.
func (s *Service) restand(ctx context.Context, one Schedule) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	now, err := s.Schedule(ctx, one.ID)
	if err != nil {
		return
	}
	runs, err := s.c.Store.Runs(ctx, one.ID, KeptRuns)
	if err != nil {
		s.c.Log.Warn("runs of a schedule cannot be read", "schedule", one.Name, "error", err)
		return
	}
	at := standingOf(now, runs)
	s.mu.Lock()
	s.standings[one.ID] = at
	s.mu.Unlock()
}

// standingOf judges runs, which are the newest first.
func standingOf(one Schedule, runs []Run) standing {
	at := standing{schedule: one, last: map[Work]Run{}, tested: map[string]TestState{}}
	newest := true
	for _, r := range runs {
		if r.Work == Backups && !r.Due.IsZero() && newest {
			if newest = false; r.Missed > 0 {
				at.missed = r
			}
		}
		if r.State != Done {
			continue
		}
		if _, seen := at.last[r.Work]; !seen {
			at.last[r.Work] = r
		}
		if r.Work == Backups && r.Good() && at.good.IsZero() {
			at.good = r.Ended
		}
		for _, i := range r.Items {
			if _, seen := at.tested[i.Backup]; r.Work == Tests && !seen {
				at.tested[i.Backup] = TestState{i.Ended, i.Problem}
			}
		}
	}
	return at
}

// Tested gives how the last test of a backup went; ok is false when there was none. It is from memory.
func (s *Service) Tested(backup string) (t TestState, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.standings {
		if t, ok = at.tested[backup]; ok {
			return t, true
		}
	}
	return t, false
}

// Trouble is something that is wrong with a schedule, for people to be told.
type Trouble struct {
	Sort      TroubleSort
	Schedule  Schedule
	SandboxID string // that it is about; "" for the schedule as a whole
	Text      string // "the last backup failed: The disk is full."
}

// TroubleSort says what is wrong.
type TroubleSort string

// The sorts.
const (
	Failing    TroubleSort = "failing"    // the last run made no backup of a sandbox
	Overdue    TroubleSort = "overdue"    // a due time passed without a run, or two without a good one
	Unrestored TroubleSort = "unrestored" // the last test of a backup failed
)

// forget drops what is known of schedules that are gone, such as those of a user who is deleted, and cuts off their runs.
func (s *Service) forget(all []Schedule) {
	there := map[string]bool{}
	for _, one := range all {
		there[one.ID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.standings, func(id string, _ standing) bool { return !there[id] })
	for id, w := range s.busy {
		if !there[id] {
			w.cancel(NotFound(id))
		}
	}
}

// Troubles gives what is wrong with the schedules that are enabled, from memory.
func (s *Service) Troubles() (list []Trouble) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.standings {
		if !at.schedule.Enabled {
			continue
		}
		for work, sort := range map[Work]TroubleSort{Backups: Failing, Tests: Unrestored} {
			r := at.last[work]
			if r.Problem != "" {
				list = append(list, Trouble{sort, at.schedule, at.schedule.Target.SandboxID, r.Problem})
			}
			for _, i := range r.Items {
				if i.Problem != "" {
					list = append(list, Trouble{sort, at.schedule, i.SandboxID, i.Problem})
				}
			}
		}
		if text := at.overdue(now); text != "" {
			list = append(list, Trouble{Overdue, at.schedule, at.schedule.Target.SandboxID, text})
		}
	}
	return list
}

// overdue says that backups were missed; "" when they were not.
func (at standing) overdue(now time.Time) string {
	if r := at.missed; r.Missed > 0 && now.Sub(r.Began) < missedFor {
		times := "a due time was missed"
		if r.Missed > 1 {
			times = fmt.Sprintf("%d due times were missed", r.Missed)
		}
		if r.State == Missed {
			return times + ": the run before was still under way"
		}
		return times + ", and made up for by one run"
	}
	times, err := cron.Parse("cron", at.schedule.Cron, at.schedule.Zone)
	if err != nil {
		return ""
	}
	since := at.schedule.Changed
	if at.good.After(since) {
		since = at.good
	}
	if now.Sub(times.Next(times.Next(since))) > overdueAfter {
		return "no run was good since " + since.UTC().Format("2 January 2006 at 15:04 MST")
	}
	return ""
}
