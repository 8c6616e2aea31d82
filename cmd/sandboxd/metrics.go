package main

import (
	"context"
	"path/filepath"
	"time"

	"sandboxd/internal/docker"
	"sandboxd/internal/host"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sqlite"
)

// statsEvery is how often the engine is asked for statistics, each of which costs it some milliseconds.
const statsEvery = 10 * time.Second

func historyPath(c *Config) string { return filepath.Join(c.Data, "history.db") }

// newRecorder puts together what knows the use of sandboxes and of the host.
func (a *app) newRecorder(ctx context.Context) error {
	history, err := sqlite.OpenHistory(ctx, historyPath(a.config), a.log)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, history.Close)
	machine := host.New(a.config.Data)
	c := metrics.Config{Sandboxes: a.manager, Store: history, HostUsage: machine.Usage, HostNow: machine.Now, Log: a.log}
	c.Source, c.Every = a.metricsSource()
	a.recorder = metrics.New(c)
	return nil
}

// metricsSource gives the source of figures that is used, and how often to read it.
func (a *app) metricsSource() (metrics.Source, time.Duration) {
	groups, why := docker.NewGroups(a.engine)
	if groups != nil {
		return groups, metrics.FineStep
	}
	a.log.Info("figures of sandboxes come from the engine's statistics", "reason", why)
	return docker.NewStats(a.engine), statsEvery
}
