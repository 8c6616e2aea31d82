package main

import (
	"context"
	"path/filepath"

	"sandboxd/internal/activity"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/seal"
	"sandboxd/internal/template"
	"sandboxd/templates"
)

// ownFolder is the name in the data folder of the folder of the templates that are made in the dashboard.
const ownFolder = "own-templates"

// ownTemplates is that folder.
func ownTemplates(c *Config) string { return filepath.Join(c.Data, ownFolder) }

// openCatalog reads the built-in templates, the user's own folders, and those that are made in the dashboard, of which each takes the place
// of one of its name before it.
func openCatalog(c *Config) (*catalog.Catalog, error) {
	if err := templates.Unpack(templatePath(c)); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The built-in templates cannot be written to the data folder: %v.", err)
	}
	if err := template.Folder(ownTemplates(c)); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The folder of templates cannot be made in the data folder: %v.", err)
	}
	folders := append([]string{templatePath(c)}, c.Templates...)
	return catalog.Open(append(folders, ownTemplates(c))...)
}

// newTemplates puts together what makes templates and rebuilds images. caFile has the certificates that this host trusts.
func newTemplates(ctx context.Context, a *app, caFile string) (*template.Service, error) {
	return template.Open(ctx, template.Config{
		Folder: ownTemplates(a.config), Store: a.db.Templates(), Templates: a.catalog, Roots: a.engine, Git: &git.Client{CAFile: caFile}, Log: a.log,
		Seal:  func() (template.Sealer, error) { return seal.Open(keyFile(a.config)) },
		Build: func(name string, o catalog.Order) error { return a.images.Build(name, o) },
		Users: func(ctx context.Context, name string) ([]string, error) { return usersOf(ctx, a.manager, name) }, Failed: rebuildFailed(a),
	})
}

// usersOf gives the names of the sandboxes of a template, without those that are made in advance.
func usersOf(ctx context.Context, boxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
}, name string) (names []string, err error) {
	list, _, err := boxes.List(ctx, sandbox.Filter{})
	for _, b := range list {
		if b.Spec.Template == name && !b.Pooled {
			names = append(names, b.Name)
		}
	}
	return names, err
}

// rebuildFailed raises the alert about a template's image, which a build of it raises by itself, and records what nobody has asked for.
func rebuildFailed(a *app) func(name string, scheduled bool, why error) {
	return func(name string, scheduled bool, why error) {
		a.alerting.built(name, catalog.ImageStatus{State: catalog.ImageFailed, Problem: fault.Message(why)})
		if scheduled {
			e := activity.Caller{Via: activity.Itself}.Entry("template.build").Ended(why)
			e.Object = name
			a.activity.Add(e)
		}
	}
}

// lookGit looks whether templates can be fetched from repositories.
func lookGit(context.Context, *Config) finding {
	if err := git.Available(true); err != nil {
		return warn("apt-get install git openssh-client", "templates cannot be fetched from git repositories: %s", fault.Message(err))
	}
	return ok("git and ssh are there, for templates from repositories")
}
