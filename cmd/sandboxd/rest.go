package main

import (
	"context"

	"sandboxd/internal/catalog"
	"sandboxd/internal/ide"
	"sandboxd/internal/idle"
	"sandboxd/internal/lastuse"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
)

// lifecycle is what changes sandboxes, what knows of their use, and what puts to rest those that have none.
type lifecycle struct {
	manager *sandbox.Manager
	tracker *idle.Tracker
	uses    *lastuse.Record
	holds   *idle.Holds
	ports   *visibility.Ports // of the sandboxes, that are open to others
	reaper  *idle.Reaper
	ide     *ide.Service
}

// newReaper puts together what goes by use. The Manager is there already, and asks the reaper for room.
func (a *app) newReaper() error {
	total, err := memFigure("MemTotal")
	if err != nil {
		return err
	}
	reserve, err := a.config.reserve(total)
	if err != nil {
		return err
	}
	a.tracker = idle.New()
	a.uses = lastuse.New(a.db.LastUses(), a.log)
	a.ports = visibility.New(a.db.Ports(), a.log)
	a.holds = idle.NewHolds(a.db.Holds(), a.tracker)
	a.reaper = idle.NewReaper(idle.Config{
		Tracker: a.tracker, Sandboxes: a.manager, Holds: a.holds, Usage: a.engine.Usage, Memory: a.memory,
		DropPooled: a.manager.DropPooled, Settle: a.config.Settle, Reserve: reserve, Log: a.log,
	})
	return nil
}

// room asks the reaper, which is made after the Manager.
func (a *app) room(ctx context.Context) error { return a.reaper.Room(ctx) }

// memory gives the host's available memory, total memory, and free swap for frozen sandboxes, in bytes.
func (a *app) memory() (available, total, swapFree int64, err error) {
	now, err := memInfo("MemAvailable", "MemTotal", "SwapFree")
	if err != nil {
		return 0, 0, 0, err
	}
	available, total, swapFree = now[0], now[1], now[2]
	if _, reclaims, _ := a.engine.FreezeSupport(); !reclaims {
		swapFree = 0
	}
	return available, total, swapFree, nil
}

// standbys are the templates that can be made now, for their pools.
func (a *app) standbys() []catalog.Template {
	var out []catalog.Template
	for _, e := range a.catalog.List() {
		if e.Problem == nil {
			out = append(out, e.Template)
		}
	}
	return out
}

// renewPools makes the pool of a template anew when its image has been built again, which changes no name, until ctx
// ends.
func (a *app) renewPools(ctx context.Context) error {
	builds := a.images.Subscribe()
	defer func() { builds.Close() }()
	building := map[string]bool{}
	for {
		select {
		case e, ok := <-builds.C:
			if !ok { // there were too many at once
				builds = a.images.Subscribe()
				continue
			}
			if e.Status.State == catalog.ImageBuilt && building[e.Template] {
				a.renewPool(ctx, e.Template)
			}
			building[e.Template] = e.Status.State == catalog.ImageBuilding
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *app) renewPool(ctx context.Context, template string) {
	if err := a.manager.RenewPool(ctx, template); err != nil && ctx.Err() == nil {
		a.log.Warn("the pool of a template is not made anew", "template", template, "error", err)
	}
}
