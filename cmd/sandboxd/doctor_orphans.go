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

// lookOrphans names the sandboxes on the engine that have this data folder's label, and no record in its database.
func lookOrphans(ctx context.Context, c *Config) (f finding) {
	id, err := sqlite.ReadInstance(filepath.Join(c.Data, sqlite.InstanceFile))
	if id == "" && err == nil {
		return ok("the data folder %s has not been used yet", c.Data)
	}
	known, knownErr := sqlite.SandboxIDs(ctx, databasePath(c))
	if err := errors.Join(err, knownErr); err != nil {
		return problem("Start sandboxd: it recovers what can be read.", "the records cannot be read: %v", err)
	}
	e, err := docker.Open(ctx, docker.Config{Instance: id})
	var found []sandbox.Instance
	if err == nil {
		defer e.Close()
		found, err = e.List(ctx)
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
	return ok("all %d sandboxes on the engine have a record", len(found))
}
