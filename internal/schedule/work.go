package schedule

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	retryAfter  = 5 * time.Minute // before what has failed is tried once more
	backupLimit = 6 * time.Hour   // for one backup, and as long for other backups of the same sandbox before it
	testLimit   = 2 * time.Hour   // for one test
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
	retention{s}.apply(ctx, one.ID, boxes)
	for _, b := range boxes {
		r.Items = append(r.Items, Item{SandboxID: b.ID, Sandbox: b.Name})
	}
	s.keep(ctx, r)
	for try := range 2 {
		if try > 0 && (r.Failed() == 0 || !s.pause(ctx, r)) {
			break
		}
		for i := range r.Items {
			if try > 0 {
				if r.Items[i].Problem == "" {
					continue
				}
				r.Items[i].Problem, r.Items[i].Ended = "", time.Time{}
				s.keep(ctx, r)
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
	retention{s}.apply(ctx, one.ID, boxes)
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

// pause waits before what has failed is tried once more, and says whether ctx is still there.
func (s *Service) pause(ctx context.Context, r *Run) bool {
	r.Retry = time.Now().Add(retryAfter).UTC().Round(0)
	s.keep(ctx, r)
	defer func() { r.Retry = time.Time{} }()
	select {
	case <-time.After(retryAfter):
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

// backUp makes a backup of a sandbox. It takes the place of one that the run has tried to make before.
func (s *Service) backUp(ctx context.Context, one Schedule, box sandbox.Sandbox, r *Run, at int) {
	i := &r.Items[at]
	i.Tries, i.Problem = i.Tries+1, ""
	b, err := backupMaker{s}.make(ctx, one, box)
	if i.failed != "" {
		if err := s.c.Backups.Delete(i.failed); err != nil && !fault.Is(err, fault.NotFound) {
			s.c.Log.Warn("failed backup of a schedule cannot be removed", "backup", i.failed, "sandbox", box.Name, "error", err)
		}
	}
	i.failed = ""
	if err != nil {
		i.failed = b.ID
	}
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
	found, err := s.find(ctx, box.ID)
	return err != nil || found.ID != ""
}

// test restores the newest backup of a sandbox. One that has none is left out.
func (s *Service) test(ctx context.Context, one Schedule, box sandbox.Sandbox, r *Run, at int) {
	i := &r.Items[at]
	list := retention{s}.made(one.ID, box.ID)
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
