package schedule

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/cron"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/text"
)

const eventBuffer = 64

var errClosing = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")

// Change says that a schedule, or one of its runs, has changed or is gone.
type Change struct{ Schedule string }

// Service keeps schedules and runs them. Safe for concurrent use.
type Service struct {
	c       Config
	bus     *event.Bus[Change]
	changed chan struct{} // wakes Run
	turn    chan struct{} // held by the one that changes the row of a schedule
	life    context.Context
	end     context.CancelFunc
	works   sync.WaitGroup
	turns   semaphore.Keyed // for backups of a sandbox, by its id

	mu        sync.Mutex
	busy      map[string]*working // by schedule
	standings map[string]standing // by schedule
}

// working is a run under way.
type working struct {
	run    Run // a copy for readers
	cancel context.CancelCauseFunc
	left   chan struct{} // closed when it is not under way any more
}

// New makes a Service. It does no I/O.
func New(c Config) *Service {
	s := &Service{c: c, bus: event.NewBus[Change](eventBuffer), changed: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		busy: map[string]*working{}, standings: map[string]standing{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Subscribe gives all changes from now on. The caller must Close it.
func (s *Service) Subscribe() *event.Subscription[Change] { return s.bus.Subscribe() }

func (s *Service) nudge() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// List gives the schedules that are wanted, the oldest first.
func (s *Service) List(ctx context.Context, wanted func(Schedule) bool) ([]Schedule, error) {
	all, err := s.c.Store.Schedules(ctx)
	return slices.DeleteFunc(all, func(one Schedule) bool { return !wanted(one) }), err
}

// Schedule gives one. NotFound if there is none of that id.
func (s *Service) Schedule(ctx context.Context, id string) (Schedule, error) {
	list, err := s.List(ctx, func(one Schedule) bool { return one.ID == id })
	if err == nil && len(list) == 0 {
		err = NotFound(id)
	}
	if err != nil {
		return Schedule{}, err
	}
	return list[0], nil
}

// Create adds a schedule of n.Owner and gives it. ID and times are set by it. Kinds: Invalid with a field ("name", "cron", "zone",
// "target", "sandbox", "template", "repository", "keep", "test_cron"), Conflict when the owner has too many, NotFound when they are gone.
func (s *Service) Create(ctx context.Context, n Schedule) (Schedule, error) {
	release, err := s.take(ctx)
	if err != nil {
		return n, err
	}
	defer release()
	own, err := s.List(ctx, func(one Schedule) bool { return one.Owner == n.Owner })
	if err != nil {
		return n, err
	}
	if len(own) >= MaxSchedules {
		return n, fault.New(fault.Conflict, "There can be at most %d schedules of one owner. Delete one first.", MaxSchedules)
	}
	now := time.Now().UTC().Round(0)
	n.ID, n.Created, n.Changed = sandbox.NewID(), now, now
	if n, err = s.check(ctx, Schedule{}, n, now); err != nil {
		return n, err
	}
	return n, s.put(ctx, n)
}

// Update changes a schedule by change, which must leave ID, Owner and Created alone, and gives it. Kinds as for Create, NotFound, and
// Conflict for one that is enabled while its sandbox is deleted.
func (s *Service) Update(ctx context.Context, id string, change func(*Schedule)) (Schedule, error) {
	release, err := s.take(ctx)
	if err != nil {
		return Schedule{}, err
	}
	defer release()
	old, err := s.Schedule(ctx, id)
	if err != nil {
		return old, err
	}
	now, next := time.Now().UTC().Round(0), old
	change(&next)
	next.ID, next.Owner, next.Created, next.Changed = old.ID, old.Owner, old.Created, now
	if next, err = s.check(ctx, old, next, now); err != nil {
		return next, err
	}
	return next, s.put(ctx, next)
}

// put keeps a schedule, and tells of it.
func (s *Service) put(ctx context.Context, one Schedule) error {
	if err := s.c.Store.Put(ctx, one); err != nil {
		return err
	}
	s.restand(ctx, one)
	s.nudge()
	s.bus.Publish(Change{one.ID})
	return nil
}

// Delete deletes a schedule with the record of its runs, and cuts off one that is under way. Its backups stay for as long as those that no
// schedule covers. NotFound if there is none of that id.
func (s *Service) Delete(ctx context.Context, id string) error {
	release, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := s.Schedule(ctx, id); err != nil {
		return err
	}
	if err := s.c.Store.Delete(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.standings, id)
	if w := s.busy[id]; w != nil {
		w.cancel(fault.New(fault.Gone, "The schedule was deleted."))
	}
	s.mu.Unlock()
	s.nudge()
	s.bus.Publish(Change{id})
	return nil
}

// take takes the turn. The caller must call release.
func (s *Service) take(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Runs gives the newest runs of a schedule, at most KeptRuns, the newest first. It does not say whether there is such a schedule.
func (s *Service) Runs(ctx context.Context, id string, limit int) ([]Run, error) {
	under, _ := s.Busy(id) // before the rows are read: it may end meanwhile
	list, err := s.c.Store.Runs(ctx, id, min(limit, KeptRuns))
	for i, r := range list {
		if r.ID == under.ID && r.State == Running {
			list[i].Retry = under.Retry
		}
	}
	return list, err
}

// Busy gives the run of a schedule that is under way. ok is false when none is.
func (s *Service) Busy(id string) (r Run, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.busy[id]; w != nil {
		r, ok = w.run, true
		r.Items = slices.Clone(r.Items)
	}
	return r, ok
}

// check gives a schedule as it is kept, with its times.
func (s *Service) check(ctx context.Context, old, n Schedule, now time.Time) (Schedule, error) {
	n.Name, n.Cron, n.TestCron = text.Trim(n.Name), text.Trim(n.Cron), text.Trim(n.TestCron)
	if n.Zone == "" {
		n.Zone = "UTC"
	}
	times, err := cron.Check("cron", n.Cron, n.Zone)
	k := n.Keep
	switch {
	case n.Name == "" || len(n.Name) > MaxName || text.Unprintable(n.Name):
		return n, fault.Field("name", "The name has 1 to %d bytes of printable characters.", MaxName)
	case err != nil:
		return n, err
	case min(k.Last, k.Daily, k.Weekly, k.Monthly) < 0 || max(k.Last, k.Daily, k.Weekly, k.Monthly) > MaxKeep:
		return n, fault.Field("keep", "Each number of backups to keep is 0 to %d.", MaxKeep)
	case k == Keep{}:
		return n, fault.Field("keep", "Keep at least one backup.")
	case n.Repository != "" && n.Repository != old.Repository && !s.c.Repository(n.Repository):
		return n, fault.Field("repository", "There is no backup repository called %.50q.", n.Repository)
	}
	switch {
	case n.Target != old.Target || old.ID == "":
		n.Target, err = s.checkTarget(ctx, n)
	case n.Enabled:
		err = s.checkThere(ctx, n)
	}
	if err != nil {
		return n, err
	}
	var test cron.Times
	if n.TestCron != "" {
		if test, err = cron.Check("test_cron", n.TestCron, n.Zone); err != nil {
			return n, err
		}
	}
	again := n.Enabled != old.Enabled || n.Zone != old.Zone
	switch {
	case !n.Enabled:
		n.Next = time.Time{}
	case again || n.Cron != old.Cron:
		n.Next = times.Next(now).UTC()
	}
	switch {
	case !n.Enabled || n.TestCron == "":
		n.NextTest = time.Time{}
	case again || n.TestCron != old.TestCron:
		n.NextTest = test.Next(now).UTC()
	}
	return n, nil
}

// checkTarget refuses what a schedule's owner may not cover, and what there is not.
func (s *Service) checkTarget(ctx context.Context, n Schedule) (Target, error) {
	admin, err := s.c.Admin(ctx, n.Owner)
	if err != nil {
		return n.Target, err
	}
	switch t := n.Target; t.Kind {
	case Mine:
		return Target{Kind: Mine}, nil
	case All, OfTemplate:
		if !admin {
			return t, fault.Field("target", "Only admins can schedule backups of other people's sandboxes. Use \"%s\" for all of yours.", Mine)
		}
		if t.Kind == OfTemplate && !s.c.Template(t.Template) {
			return t, fault.Field("template", "There is no template %.40q.", t.Template)
		}
		t.SandboxID = ""
		return t, nil
	case One:
		b, err := s.find(ctx, t.SandboxID)
		if err != nil {
			return t, err
		}
		if b.ID == "" || !admin && b.Owner != n.Owner {
			return t, fault.Field("sandbox", "There is no such sandbox.")
		}
		return Target{Kind: One, SandboxID: t.SandboxID}, nil
	default:
		return t, fault.Field("target", "The target is %s, %s, %s or %s.", One, Mine, OfTemplate, All)
	}
}

// checkThere refuses a schedule whose sandbox is deleted. Conflict.
func (s *Service) checkThere(ctx context.Context, one Schedule) error {
	if one.Target.Kind != One {
		return nil
	}
	b, err := s.find(ctx, one.Target.SandboxID)
	if err == nil && b.ID == "" {
		err = fault.New(fault.Conflict, "The sandbox of this schedule is deleted, so the schedule is paused. Have it back up another sandbox, or delete it.")
	}
	return err
}

// find gives the sandbox of that id, or one without an id if there is none.
func (s *Service) find(ctx context.Context, id string) (sandbox.Sandbox, error) {
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{})
	if i := slices.IndexFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == id }); i >= 0 {
		return boxes[i], err
	}
	return sandbox.Sandbox{}, err
}

// covers reports whether a schedule covers a sandbox. admin says whether its owner is one.
func (one Schedule) covers(b sandbox.Sandbox, admin bool) bool {
	if b.Pooled || b.State == sandbox.Deleting || !admin && b.Owner != one.Owner {
		return false
	}
	switch one.Target.Kind {
	case One:
		return b.ID == one.Target.SandboxID
	case Mine:
		return b.Owner == one.Owner
	case OfTemplate:
		return b.Spec.Template == one.Target.Template
	}
	return one.Target.Kind == All
}
