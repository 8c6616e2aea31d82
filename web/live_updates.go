package web

import (
	"context"
	"slices"

	"sandboxd/internal/update"
	"sandboxd/views"
)

// followUpdates hands on what becomes of updates, until ctx ends.
func followUpdates(ctx context.Context, s *Server, hand func(news)) {
	follow(ctx, s.cfg.Updates.Subscribe, func(c *update.Change) { hand(news{update: c}) })
}

// concerns says whether a change may be about a sandbox. The zero value may be about any.
func concerns(c *update.Change, sandboxID string) bool {
	return c.Run.ID == "" || slices.ContainsFunc(c.Run.Items, func(i update.Item) bool { return i.SandboxID == sandboxID })
}

// liveUpdate keeps the page of the update of a template's sandboxes up to date.
type liveUpdate struct {
	*updateHandlers
	request *request
	name    string
	seen    string // print of what the page shows
}

func (s *updateHandlers) openLiveUpdate(_ context.Context, r *request) (livePage, error) {
	e, err := s.templates.entry(r.param("name"))
	if err == nil && !r.isAdmin() {
		err = errNotAdmin
	}
	return &liveUpdate{s, r, e.Name, r.query("seen")}, err
}

func (l *liveUpdate) beside(ctx context.Context, hand func(news)) {
	followUpdates(ctx, l.Server, hand)
}

func (l *liveUpdate) begin(ctx context.Context, out *parts) error { return l.tell(ctx, false, out) }

func (l *liveUpdate) take(n news) bool {
	switch {
	case n.update != nil:
		return n.update.Run.ID == "" || n.update.Run.Template == l.name
	case n.box != nil:
		return n.box.Sandbox.Spec.Template == l.name
	case n.image != nil:
		return n.image.Template == l.name
	}
	return false
}

func (l *liveUpdate) tell(ctx context.Context, _ bool, out *parts) error {
	part, err := l.part(ctx, l.request, l.name)
	if now := printOf(part); err == nil && now != l.seen {
		l.seen = now
		out.add("rolling-update", views.Replace, views.RollingUpdatePart(part))
	}
	return err
}
