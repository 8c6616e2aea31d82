package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

// lookOrphans names the sandboxes and volumes on the engine that have this data folder's label, and no record in its database.
func lookOrphans(ctx context.Context, c *Config) (f finding) {
	id, err := sqlite.ReadInstance(filepath.Join(c.Data, sqlite.InstanceFile))
	if id == "" && err == nil {
		return ok("the data folder %s has not been used yet", c.Data)
	}
	known, knownErr := sqlite.SandboxIDs(ctx, databasePath(c))
	volumes, volumesErr := sqlite.VolumeIDs(ctx, databasePath(c))
	if err := errors.Join(err, knownErr, volumesErr); err != nil {
		return problem("Start sandboxd: it recovers what can be read.", "the records cannot be read: %v", err)
	}
	e, err := docker.Open(ctx, docker.Config{Instance: id})
	var found []sandbox.Instance
	var kept []string
	if err == nil {
		defer e.Close()
		found, err = e.List(ctx)
	}
	if err == nil {
		kept, err = e.VolumeIDs(ctx)
	}
	if err != nil {
		return problem("See the check of the engine.", "%s", fault.Message(err))
	}
	var names []string
	for _, i := range found {
		if !slices.Contains(known, i.ID) {
			names = append(names, i.Name+" ("+i.ID+")")
		}
	}
	if len(names) > 0 {
		return warn("Adopt or remove them: an admin is offered both on the list of sandboxes.",
			"the engine has sandboxes without a record: %s", strings.Join(names, ", "))
	}
	if kept = slices.DeleteFunc(kept, func(id string) bool { return slices.Contains(volumes, id) }); len(kept) > 0 {
		return warn("Look into them, and remove what is not needed: docker volume rm sandboxd-"+id+"-ID-volume-ro sandboxd-"+id+"-ID-volume",
			"the engine has volumes without a record: %s", strings.Join(kept, ", "))
	}
	return ok("all %d sandboxes on the engine have a record", len(found))
}
