package main

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/update"
)

// lastLinesLimit bounds the search for the end of a log of a sandbox whose update failed.
const lastLinesLimit = 5 * time.Second

// newUpdates puts together what puts sandboxes on newer images.
func newUpdates(ctx context.Context, a *app) (*update.Service, error) {
	return update.New(ctx, update.Config{
		Store: a.db.Updates(), Sandboxes: a.manager, Snapshots: a.snapshots, Images: a.images, Templates: a.catalog, Guests: access.FromHub(a.links),
		InUse: a.reaper.InUse, Unused: func(id string) bool { return len(a.tracker.Status(id).Because) == 0 },
		LastUse: lastUse(a.tracker), LastLines: lastLines(a), Log: a.log,
	})
}

// lastUse says when a sandbox was used last: of one that does not run, when it was put to rest.
func lastUse(t *idle.Tracker) func(s sandbox.Sandbox) time.Time {
	return func(s sandbox.Sandbox) time.Time {
		if s.State != sandbox.Running {
			return s.Changed
		}
		status := t.Status(s.ID)
		if len(status.Because) > 0 {
			return time.Now()
		}
		return status.Idle
	}
}

// lastLines gives the last lines that a service of a sandbox has written since then, "" for all services.
func lastLines(a *app) func(ctx context.Context, id, service string, since time.Time, most int) []string {
	return func(ctx context.Context, id, service string, since time.Time, most int) []string {
		ctx, cancel := context.WithTimeout(ctx, lastLinesLimit)
		defer cancel()
		q := logs.Query{Scope: logs.Only(id), Since: since, Limit: most}
		if service != "" {
			q.Services = []string{service}
		}
		found, err := a.logs.SearchApart(ctx, q)
		if err != nil {
			a.log.Warn("log of a sandbox whose update failed", "error", err)
		}
		var lines []string
		for _, l := range found.Lines {
			lines = append(lines, catalog.CleanLine(l.Text))
		}
		slices.Reverse(lines)
		return lines
	}
}
