package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const (
	lookEvery  = 30 * time.Second // at most: the machine may be suspended, and its clock be set
	late       = 2 * time.Minute  // after a due time, from when on it counts as missed
	sweepEvery = time.Hour
	storeLimit = 30 * time.Second // one look at the rows
)

// Run makes what is due until ctx ends. Then it cuts off what is under way, and returns when that has ended: the next Run makes up for it.
func (s *Service) Run(ctx context.Context) error {
	var following sync.WaitGroup
	following.Go(func() { follow(ctx, s) })
	defer following.Wait()
	var swept time.Time
	begun, failing := false, false
	for ctx.Err() == nil {
		wait, err := lookEvery, error(nil)
		if !begun {
			err = s.resume(ctx)
			begun = err == nil
		}
		if err == nil {
			wait, err = s.look(ctx)
		}
		if now := time.Now(); err == nil && (swept.IsZero() || now.Sub(swept) >= sweepEvery || now.Before(swept)) {
			swept, err = now, s.sweep(ctx)
		}
		if err != nil && !failing && ctx.Err() == nil {
			s.c.Log.Warn("schedules of backups cannot be looked at; trying again", "error", err)
		}
		failing = err != nil
		select {
		case <-time.After(min(wait, lookEvery)):
		case <-s.changed:
			swept = time.Time{}
		case <-ctx.Done():
		}
	}
	s.mu.Lock() // nothing is started from here on
	s.end()
	s.mu.Unlock()
	s.works.Wait()
	return nil
}

// follow has Run look for schedules of deleted sandboxes when one is deleted, until ctx ends.
func follow(ctx context.Context, s *Service) {
	sub := s.c.Sandboxes.Subscribe()
	defer func() { sub.Close() }()
	for {
		select {
		case e, ok := <-sub.C:
			if !ok {
				sub = s.c.Sandboxes.Subscribe()
			}
			if !ok || e.Deleted {
				s.nudge()
			}
		case <-ctx.Done():
			return
		}
	}
}

// resume notes which runs a crash has cut off, has their due times come again, and removes the sandboxes of tests.
func (s *Service) resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	release, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	all, err := s.c.Store.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		runs, err := s.c.Store.Runs(ctx, one.ID, KeptRuns)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if under, busy := s.Busy(one.ID); r.State != Running || busy && under.ID == r.ID {
				continue
			}
			if err := s.cutOff(ctx, &one, r); err != nil {
				return err
			}
		}
		s.restand(ctx, one)
	}
	return s.removeTemporary(ctx)
}

// cutOff notes that a run was cut off. Its due time comes again, unless it made up for others already: a run that ends sandboxd must
// not do so at each start.
func (s *Service) cutOff(ctx context.Context, one *Schedule, r Run) error {
	if !r.Due.IsZero() && r.Missed == 0 && one.Enabled {
		if r.Work == Tests {
			one.NextTest = r.Due
		} else {
			one.Next = r.Due
		}
		if err := s.c.Store.Put(ctx, *one); err != nil {
			return err
		}
	}
	r.State, r.Ended = CutOff, time.Now().UTC().Round(0)
	return s.c.Store.PutRun(ctx, r)
}

// removeTemporary removes the sandboxes that tests have left, whether or not there is still a record of the test.
func (s *Service) removeTemporary(ctx context.Context) error {
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return err
	}
	under := s.temporary()
	for _, b := range boxes {
		if !backup.OfTest(b) || under[b.Name] {
			continue
		}
		if _, failed := s.c.Sandboxes.Delete(ctx, b.Ref()); !fault.Is(failed, fault.Gone) && !fault.Is(failed, fault.NotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// underWay is Busy, once a run whose row says that it has ended is put away: who reads that can begin the next.
func (s *Service) underWay(id string) (r Run, ok bool) {
	s.mu.Lock()
	w := s.busy[id]
	ended := w != nil && w.run.State != Running
	s.mu.Unlock()
	if ended {
		<-w.left
	}
	return s.Busy(id)
}

// look begins what is due, and says how long it is until the next due time.
func (s *Service) look(ctx context.Context) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	release, err := s.take(ctx)
	if err != nil {
		return lookEvery, err
	}
	defer release()
	all, err := s.c.Store.Schedules(ctx)
	if err != nil {
		return lookEvery, err
	}
	s.forget(all)
	wait = lookEvery
	for _, one := range all {
		if !one.Enabled {
			continue
		}
		err = errors.Join(err, s.lookAt(ctx, one, Backups), s.lookAt(ctx, one, Tests))
		for _, next := range []time.Time{one.Next, one.NextTest} {
			if left := time.Until(next); !next.IsZero() && left > 0 {
				wait = min(wait, left)
			}
		}
	}
	return wait, err
}

// lookAt begins one sort of work of a schedule when it is due.
func (s *Service) lookAt(ctx context.Context, one Schedule, work Work) error {
	next, text := one.Next, one.Cron
	if work == Tests {
		next, text = one.NextTest, one.TestCron
	}
	if next.IsZero() {
		return nil
	}
	times, err := cron.Parse("cron", text, one.Zone)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Round(0)
	last, n := times.Dues(next, now)
	if n == 0 {
		if sooner := times.Next(times.Next(now)); next.After(sooner) { // the clock was put back
			return s.reset(ctx, one, work, times.Next(now).UTC())
		}
		return nil
	}
	r := Run{ID: sandbox.NewID(), Schedule: one.ID, Work: work, State: Running, Due: last.UTC(), Missed: n - 1, Began: now}
	if now.Sub(last) > late {
		r.Missed = n
	}
	if under, busy := s.underWay(one.ID); busy {
		if work == Tests || under.Work == Tests {
			return nil // it waits for that
		}
		r.State, r.Ended, r.Missed = Missed, now, n
	}
	return s.start(ctx, one, r, times.Next(now).UTC())
}

// reset sets when a sort of work comes next.
func (s *Service) reset(ctx context.Context, one Schedule, work Work, next time.Time) error {
	if work == Tests {
		one.NextTest = next
	} else {
		one.Next = next
	}
	return s.c.Store.Put(ctx, one)
}

// RunNow begins a run of a schedule that is not due, also of one that is not enabled, and gives it. Kinds: NotFound, Conflict while one is
// under way, and when its sandbox is deleted.
func (s *Service) RunNow(ctx context.Context, id string, work Work) (Run, error) {
	release, err := s.take(ctx)
	if err != nil {
		return Run{}, err
	}
	defer release()
	one, err := s.Schedule(ctx, id)
	if err != nil {
		return Run{}, err
	}
	if _, busy := s.underWay(id); busy {
		return Run{}, fault.New(fault.Conflict, "A run of this schedule is under way.")
	}
	if work != Backups && work != Tests {
		return Run{}, fault.Field("work", "The work is %s or %s.", Backups, Tests)
	}
	if err := s.checkThere(ctx, one); err != nil {
		return Run{}, err
	}
	r := Run{ID: sandbox.NewID(), Schedule: id, Work: work, State: Running, Began: time.Now().UTC().Round(0)}
	return r, s.start(ctx, one, r, time.Time{})
}

// start keeps a run, and does its work unless it was missed. It needs the turn.
func (s *Service) start(ctx context.Context, one Schedule, r Run, next time.Time) error {
	if err := s.c.Store.Begin(ctx, r, next); err != nil {
		return err
	}
	defer s.bus.Publish(Change{one.ID})
	if r.State != Running {
		s.c.Log.Warn("backups of a schedule were missed: its last run is still under way", "schedule", one.Name)
		s.restand(ctx, one)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return errClosing // the row says that it runs: the next Run makes up for it
	}
	life, cancel := context.WithCancelCause(s.life)
	w := &working{run: r, cancel: cancel, left: make(chan struct{})}
	s.busy[one.ID] = w
	s.works.Go(func() {
		defer cancel(nil)
		s.work(life, one, &r)
		s.restand(context.WithoutCancel(life), one)
		s.mu.Lock()
		delete(s.busy, one.ID)
		s.mu.Unlock()
		close(w.left)
		s.bus.Publish(Change{one.ID})
		s.nudge()
	})
	return nil
}

// match gives the sandboxes that a schedule covers now, by name.
func (s *Service) match(ctx context.Context, one Schedule) ([]sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	admin, err := s.c.Admin(ctx, one.Owner)
	if err != nil {
		return nil, err
	}
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return nil, err
	}
	boxes = slices.DeleteFunc(boxes, func(b sandbox.Sandbox) bool { return backup.OfTest(b) || !one.covers(b, admin) })
	slices.SortFunc(boxes, func(a, b sandbox.Sandbox) int { return strings.Compare(a.Name, b.Name) })
	return boxes, nil
}

// temporary names the sandboxes of tests under way.
func (s *Service) temporary() map[string]bool {
	names := map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.busy {
		for _, i := range w.run.Items {
			if i.Temporary != "" {
				names[i.Temporary] = true
			}
		}
	}
	return names
}
