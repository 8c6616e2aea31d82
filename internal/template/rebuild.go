package template

import (
	"context"
	"strings"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// follow fetches a template and then begins to build its image.
func (s *Service) follow(name string, o catalog.Order) {
	began := now()
	err := s.Refetch(s.life, name)
	if err == nil {
		err = s.c.Build(name, o)
	}
	s.mu.Lock()
	delete(s.orders, name)
	s.mu.Unlock()
	if err != nil && s.life.Err() == nil {
		s.unbuilt(name, o, began, err)
	}
}

// unbuilt keeps on record a build that could not even be begun, and tells of it.
func (s *Service) unbuilt(name string, o catalog.Order, began time.Time, why error) {
	s.c.Log.Warn("template not rebuilt", "template", name, "error", why)
	src, _ := s.source(name)
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	b := Build{Template: name, Commit: src.Commit, Why: o.Why, By: o.By, State: Failed, Problem: text.Excerpt(fault.Message(why), maxMessage), Began: began, Ended: now()}
	id, err := s.c.Store.Begin(ctx, b)
	if b.ID = id; err == nil {
		err = s.c.Store.End(ctx, b)
	}
	if err != nil {
		s.c.Log.Warn("record of a build not kept", "template", name, "error", err)
	}
	s.tell(name)
	if s.c.Failed != nil {
		s.c.Failed(name, o.Why == catalog.WhySchedule, why)
	}
}

// Begun keeps that an image is being built. See catalog.Records.
func (s *Service) Begun(r catalog.Record) (id int64) {
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	src, _ := s.source(r.Template)
	id, err := s.c.Store.Begin(ctx, Build{Template: r.Template, Ref: r.Ref, Commit: src.Commit, Why: r.Order.Why, By: r.Order.By, State: Running, Began: r.Began.UTC()})
	if err != nil {
		s.c.Log.Warn("record of a build not kept", "template", r.Template, "error", err)
	}
	s.tell(r.Template)
	return id
}

// Ended keeps how that has ended.
func (s *Service) Ended(id int64, r catalog.Record) {
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	b := Build{ID: id, Template: r.Template, Ref: r.Ref, State: Done, Problem: text.Excerpt(r.Problem, maxMessage), Ended: r.Ended.UTC(), Log: strings.Join(r.Log, "\n")}
	switch {
	case r.CutOff:
		b.State, b.Problem = CutOff, ""
	case r.Cancelled:
		b.State = Cancelled
	case r.Problem != "":
		b.State = Failed
	}
	if err := s.c.Store.End(ctx, b); err != nil {
		s.c.Log.Warn("record of a build not kept", "template", r.Template, "error", err)
	}
	s.tell(r.Template)
	if b.State == Failed && r.Order.Why == catalog.WhySchedule && s.c.Failed != nil {
		s.c.Failed(r.Template, true, fault.New(fault.Unavailable, "%s", r.Problem))
	}
}

// Run rebuilds what is due until ctx ends, and returns when what it has begun has ended. What was due while sandboxd was not running is
// rebuilt once.
func (s *Service) Run(ctx context.Context) error {
	defer func() {
		s.mu.Lock() // nothing is begun from here on
		s.end()
		s.mu.Unlock()
		s.works.Wait()
	}()
	for {
		wait := s.due(ctx, time.Now())
		wait = min(wait, s.sweeper.sweep(ctx, time.Now()))
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// due begins what is due, and gives how long to wait then.
func (s *Service) due(ctx context.Context, at time.Time) time.Duration {
	wait := lookEvery
	s.mu.Lock()
	plans := make([]Plan, 0, len(s.plans))
	for _, p := range s.plans {
		plans = append(plans, p)
	}
	s.mu.Unlock()
	for _, p := range plans {
		if left := p.Next.Sub(at); left > 0 {
			wait = min(wait, left)
			continue
		}
		s.rebuildDue(ctx, p, at)
	}
	return wait
}

// rebuildDue begins one rebuild. Its next time is kept first: should sandboxd be killed in between, it is not begun again and again.
func (s *Service) rebuildDue(ctx context.Context, p Plan, at time.Time) {
	times, err := cron.Parse("cron", p.Cron, p.Zone)
	if now, ok := s.Plan(p.Template); !ok || now != p {
		return // it was changed meanwhile
	}
	if err == nil {
		p.Next = times.Next(at).UTC()
		ctx, cancel := context.WithTimeout(ctx, storeLimit)
		defer cancel()
		err = s.keepPlan(ctx, p)
	}
	o := catalog.Order{Pull: true, NoCache: p.NoCache, Why: catalog.WhySchedule}
	if err == nil {
		err = s.Rebuild(p.Template, o)
	}
	if fault.Is(err, fault.NotFound) { // a folder of the configuration is gone, and the template with it
		if err = s.dropPlan(ctx, p.Template); err == nil {
			err = fault.New(fault.NotFound, "The template %.64s is gone. Its schedule was removed.", p.Template)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.unbuilt(p.Template, o, now(), err)
	}
}
