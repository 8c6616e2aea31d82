package main

import (
	"context"
	"path/filepath"
	"time"

	"sandboxd/internal/logs"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/wire"
)

func logsPath(c *Config) string { return filepath.Join(c.Data, "logs.db") }

// newLogs puts together what collects and keeps the lines of all sandboxes.
func (a *app) newLogs(ctx context.Context) {
	store := sqlite.OpenLogs(ctx, logsPath(a.config), a.log)
	a.closers = append(a.closers, store.Close)
	a.logs = logs.New(logs.Config{Store: store, Limits: logs.DefaultLimits, Log: a.log})
	a.collector = logs.NewCollector(a.logs, a.manager, a.followLogs, a.log)
}

// followLogs gives the lines that a sandbox's guest tells of. See logs.Follow.
func (a *app) followLogs(ctx context.Context, id string, after time.Time, emit func([]logs.Line) error) error {
	session, err := a.links.Session(ctx, id)
	if err != nil {
		return err
	}
	return session.FollowLogs(ctx, after, func(told []wire.LogLine) error {
		lines := make([]logs.Line, 0, len(told))
		for _, l := range told {
			lines = append(lines, logs.Line{Time: l.Time, Service: l.Service, Text: string(l.Text)})
		}
		return emit(lines)
	})
}
