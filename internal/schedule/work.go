package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	retryAfter  = 5 * time.Minute // before what has failed is tried once more
	backupLimit = 6 * time.Hour   // for one backup
	testLimit   = 2 * time.Hour   // for one test
	joinTries   = 3               // backups that others are making are waited for
	testPrefix  = "restore-test-"
)

// work does what a run is for, and keeps how it ended. What ctx cuts off is left as it is: the next start finds it.
func (s *Service) work(ctx context.Context, one Schedule, r *Run) {
	do := s.backUp
	if r.Work == Tests {
		do = s.test
	}
	boxes, err := s.match(ctx, one)
	if err != nil {
		r.Problem = fault.Message(err)
	}
	s.retain(one, boxes)
	for _, b := range boxes {
		r.Items = append(r.Items, Item{SandboxID: b.ID, Sandbox: b.Name})
	}
	s.keep(ctx, r)
	for try := range 2 {
		if try > 0 && (r.Failed() == 0 || !sleep(ctx, retryAfter)) {
			break
		}
		for i := range r.Items {
			if try > 0 && r.Items[i].Problem == "" {
				continue
			}
			do(ctx, one, boxes[i], r, i)
			if ctx.Err() != nil {
				s.leave(r, one)
				return
			}
			s.keep(ctx, r)
		}
	}
	if ctx.Err() != nil {
		s.leave(r, one)
		return
	}
	s.retain(one, boxes)
	r.Items = slices.DeleteFunc(r.Items, func(i Item) bool { return i.Backup == "" && i.Problem == "" }) // it was deleted meanwhile, or has no backup
	r.State, r.Ended = Done, time.Now().UTC().Round(0)
	s.keep(ctx, r)
	if failed := r.Failed(); failed > 0 || r.Problem != "" {
		s.c.Log.Warn("run of a schedule of backups failed", "schedule", one.Name, "work", r.Work, "failed", failed, "of", len(r.Items), "problem", r.Problem)
	}
}

// leave tells of a run that was cut off.
func (s *Service) leave(r *Run, one Schedule) {
	s.c.Log.Info("run of a schedule of backups was cut off", "schedule", one.Name, "work", r.Work)
}

// sleep waits, and says whether ctx is still there.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// keep keeps how far a run is. What cannot be kept is logged: the run continues.
func (s *Service) keep(ctx context.Context, r *Run) {
	s.mu.Lock()
	if w := s.busy[r.Schedule]; w != nil {
		w.run = *r
		w.run.Items = slices.Clone(r.Items)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	if err := s.c.Store.PutRun(ctx, *r); err != nil {
		s.c.Log.Warn("run of a schedule cannot be kept", "schedule", r.Schedule, "error", err)
	}
	s.bus.Publish(Change{r.Schedule})
}

// backUp makes a backup of a sandbox.
func (s *Service) backUp(ctx context.Context, one Schedule, box sandbox.Sandbox, r *Run, at int) {
	i := &r.Items[at]
	i.Tries, i.Problem = i.Tries+1, ""
	limited, cancel := context.WithTimeout(ctx, backupLimit)
	defer cancel()
	b, err := s.make(limited, one, box)
	i.Ended = time.Now().UTC().Round(0)
	switch {
	case fault.Is(err, fault.Gone), fault.Is(err, fault.NotFound): // the sandbox was deleted meanwhile, or the backup was cancelled
		if s.there(ctx, box) {
			i.Problem = fault.Message(err)
		}
	case err != nil:
		i.Problem = fault.Message(err)
	default:
		i.Backup = b.ID
	}
}

func (s *Service) there(ctx context.Context, box sandbox.Sandbox) bool {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{Owner: box.Owner})
	return err != nil || slices.ContainsFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == box.ID })
}

// make makes a backup for a schedule. One that is being made for another is waited for first.
func (s *Service) make(ctx context.Context, one Schedule, box sandbox.Sandbox) (backup.Backup, error) {
	for range joinTries {
		b, begun, err := s.c.Backups.Begin(box, backup.Options{Schedule: one.ID, Repository: one.Repository})
		if err != nil {
			return b, err
		}
		ready, err := s.c.Backups.Wait(ctx, b.ID)
		if begun && ctx.Err() != nil { // nobody waits for it any more
			return b, errors.Join(err, s.c.Backups.Delete(b.ID))
		}
		if begun || ctx.Err() != nil {
			return ready, err
		}
	}
	return backup.Backup{}, fault.New(fault.Conflict, "Other backups of it were being made all the time.")
}

// test restores the newest backup of a sandbox. One that has none is left out.
func (s *Service) test(ctx context.Context, one Schedule, box sandbox.Sandbox, r *Run, at int) {
	i := &r.Items[at]
	list := s.made(one.ID, box.ID)
	if len(list) == 0 {
		return
	}
	i.Tries, i.Problem, i.Backup = i.Tries+1, "", list[0].ID
	i.Temporary, i.Ended = testPrefix+sandbox.NewID()[:8], time.Time{}
	s.keep(ctx, r) // so that it is found after a crash
	limited, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	if err := s.c.Tester.TestRestore(limited, i.Backup, i.Temporary); err != nil {
		i.Problem = fault.Message(err)
	}
	i.Ended = time.Now().UTC().Round(0)
}

// made gives the ready backups of a schedule of one sandbox, the newest first.
func (s *Service) made(schedule, box string) []backup.Backup {
	return s.c.Backups.List(func(b backup.Backup) bool {
		return b.Schedule == schedule && b.SandboxID == box && b.State == backup.Ready
	})
}

// retain deletes the backups of a schedule that need not be kept, wherever they are. Those that cannot be reached are there all the same,
// and are left for the next run.
func (s *Service) retain(one Schedule, boxes []sandbox.Sandbox) {
	zone, err := cron.Zone(one.Zone)
	if err != nil {
		zone = time.UTC
	}
	for _, box := range boxes {
		list := s.made(one.ID, box.ID)
		times := make([]time.Time, len(list))
		for i, b := range list {
			times[i] = b.Created
		}
		for i, kept := range Retain(times, one.Keep, zone) {
			if kept || list[i].Unreachable != "" {
				continue
			}
			if err := s.c.Backups.Delete(list[i].ID); err != nil && !fault.Is(err, fault.NotFound) {
				s.c.Log.Warn("backup of a schedule cannot be deleted", "backup", list[i].ID, "sandbox", box.Name, "error", err)
			}
		}
	}
}
