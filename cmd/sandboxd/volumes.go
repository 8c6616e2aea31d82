package main

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/docker"
	"sandboxd/internal/volume"
)

// newVolumes reads which volumes there are, and ends the programs that an earlier process has left to serve their files.
func newVolumes(ctx context.Context, a *app) (*volume.Service, error) {
	if err := a.engine.SweepVolumes(ctx); err != nil {
		return nil, err
	}
	a.sizes = docker.NewSizes(a.engine)
	return volume.Open(ctx, volume.Config{
		Store: a.db.Volumes(), Engine: a.engine, Guests: volumeGuests{guests{a.links}}, Template: hasTemplate(a.catalog), Sizes: a.sizes.Volumes,
		Measure: func() { a.sizer.Soon() }, Log: a.log,
	})
}

// volumeGuests is the hub in the words of volumes.
type volumeGuests struct{ guests }

// noWait is for a look that must not wait.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Connected implements volume.Guests.
func (g volumeGuests) Connected(id string) bool {
	_, err := g.hub.Session(noWait, id)
	return err == nil
}

// volumeAccess is the one way to the files of volumes.
func volumeAccess(a *app) *access.Control {
	links := access.FromHub(a.links)
	find := func(ctx context.Context, id string) (access.Guest, error) { return links(ctx, volume.LinkID(id)) }
	return access.New(a.volumes.Files(), find, a.volumes.Files())
}
