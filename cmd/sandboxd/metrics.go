package main

import (
	"context"
	"path/filepath"
	"time"

	"sandboxd/internal/docker"
	"sandboxd/internal/host"
	"sandboxd/internal/metrics"
	"sandboxd/internal/metrics/cadvisor"
	"sandboxd/internal/sqlite"
)

// statsEvery is how often the engine is asked for statistics, each of which costs it some milliseconds.
const statsEvery = 10 * time.Second

// cadvisorEvery is how often cAdvisor is asked. It measures each second or more seldom, as its own flags say; what it has not
// measured anew counts once.
const cadvisorEvery = metrics.FineStep

// measures is all that is measured of sandboxes and of the host.
type measures struct {
	*metrics.Recorder
	*metrics.Sizer
}

func historyPath(c *Config) string { return filepath.Join(c.Data, "history.db") }

// newRecorder puts together what knows the use of sandboxes and of the host.
func (a *app) newRecorder(ctx context.Context) error {
	instance, err := a.db.Instance(ctx)
	if err != nil {
		return err
	}
	history := sqlite.OpenHistory(ctx, historyPath(a.config), a.log)
	a.closers = append(a.closers, history.Close)
	machine := host.New(a.config.Data)
	c := metrics.Config{Sandboxes: a.manager, Store: history, HostUsage: machine.Usage, HostNow: machine.Now, Log: a.log}
	if c.Source, c.Every, err = a.metricsSource(instance); err != nil {
		return err
	}
	a.recorder = metrics.New(c)
	a.sizer = metrics.NewSizer(a.sizes.Measure, a.sizes.Homes, a.log)
	return nil
}

// metricsSource gives the source of figures that is used, and how often to read it.
func (a *app) metricsSource(instance string) (metrics.Source, time.Duration, error) {
	beside, err := a.config.cadvisor(instance)
	if err != nil {
		return nil, 0, err
	}
	if beside != nil {
		a.log.Info("figures of sandboxes come from cAdvisor", "address", beside.Address())
		return beside, cadvisorEvery, nil
	}
	groups, why := docker.NewGroups(a.engine)
	if groups != nil {
		return groups, metrics.FineStep, nil
	}
	a.log.Info("figures of sandboxes come from the engine's statistics", "reason", why)
	return docker.NewStats(a.engine), statsEvery, nil
}

// cadvisor gives the cAdvisor that is to be asked for the containers of instance; nil for none.
func (c *Config) cadvisor(instance string) (*cadvisor.Source, error) {
	if c.CAdvisor == "" {
		return nil, nil
	}
	return cadvisor.New(c.CAdvisor, instance)
}
