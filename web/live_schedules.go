package web

import (
	"context"

	"sandboxd/internal/fault"
	"sandboxd/internal/schedule"
	"sandboxd/views"
)

// liveSchedules keeps the list of schedules up to date, or the page of one.
type liveSchedules struct {
	*scheduleHandlers
	request *request
	id      string // of the one; "" for the list
	seen    string // print of what the page shows
}

func (s *scheduleHandlers) openLiveSchedules(_ context.Context, r *request) (livePage, error) {
	return &liveSchedules{s, r, "", r.query("seen")}, nil
}

func (s *scheduleHandlers) openLiveSchedule(ctx context.Context, r *request) (livePage, error) {
	one, err := s.schedule(ctx, r)
	return &liveSchedules{s, r, one.ID, r.query("seen")}, err
}

func (l *liveSchedules) beside(ctx context.Context, hand func(news)) {
	follow(ctx, l.cfg.Schedules.Subscribe, func(c *schedule.Change) { hand(news{schedule: c}) })
}

func (l *liveSchedules) begin(ctx context.Context, out *parts) error { return l.tell(ctx, false, out) }

func (l *liveSchedules) take(n news) bool {
	return n.schedule != nil && (l.id == "" || n.schedule.Schedule == "" || n.schedule.Schedule == l.id) || n.box != nil && n.box.Deleted
}

func (l *liveSchedules) tell(ctx context.Context, _ bool, out *parts) error {
	if l.id == "" {
		list, err := l.list(ctx, l.request)
		if now := printOf(list); err == nil && now != l.seen {
			l.seen = now
			out.add("schedules", views.Replace, views.SchedulesPart(list))
		}
		return err
	}
	one, err := l.cfg.Schedules.Schedule(ctx, l.id)
	if fault.Is(err, fault.NotFound) {
		if l.seen != "" {
			l.seen = ""
			out.add("schedule", views.Replace, views.ScheduleGone())
		}
		return nil
	}
	if err != nil {
		return err
	}
	v, runs, err := l.detail(ctx, l.request, one)
	if now := printOf(v, runs); err == nil && now != l.seen {
		l.seen = now
		out.add("schedule", views.Replace, views.SchedulePart(v, runs))
		out.title(one.Name)
	}
	return err
}
