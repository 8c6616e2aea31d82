package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/catalog"
	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/sqlite"
)

func newTemplateCmd(c *Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "template",
		Short: "List templates and build their images",
		Long: `A template is a folder with template.yaml, Dockerfile and README.md. The built-in ones come with sandboxd; your own
come from the folders named by --templates, one sub-folder each, and from the dashboard. sandboxd builds an image on first use;
build does it in advance, on this machine.

create, source, rebuild and builds ask a server from anywhere.`,
	}
	c.templateFlags(cmd.PersistentFlags())
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List templates with the state of their images", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withImages(cmd.Context(), c, func(ctx context.Context, cat *catalog.Catalog, images *catalog.Images) error {
				return listTemplates(ctx, cmd.OutOrStdout(), cat, images)
			})
		},
	}, &cobra.Command{
		Use: "build NAME", Short: "Build a template's image if it is missing or stale, showing the log", Args: cobra.ExactArgs(1),
		Example: "  sandboxd template build base\n  sandboxd template build mine --templates ~/templates",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withImages(cmd.Context(), c, func(ctx context.Context, cat *catalog.Catalog, images *catalog.Images) error {
				return buildTemplate(ctx, cmd.ErrOrStderr(), cat, images, args[0])
			})
		},
	}, newTemplateUpdateCmd())
	cmd.AddCommand(newRemoteTemplateCmds()...)
	return cmd
}

// withImages runs f with the templates and a builder of their images that lives as long as f.
func withImages(ctx context.Context, c *Config, f func(context.Context, *catalog.Catalog, *catalog.Images) error) (err error) {
	cat, err := openCatalog(c)
	if err != nil {
		return err
	}
	certs, _, err := hostCertificates(c)
	if err != nil {
		return err
	}
	engine, err := docker.Open(ctx, docker.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	instance, err := sqlite.ReadInstance(filepath.Join(c.Data, sqlite.InstanceFile))
	if err != nil {
		instance = "none" // of a data folder that no server has used: its templates have no roots
	}
	root := func(id string) string { return docker.RootImage(instance, id) }
	images := catalog.NewImages(cat, engine, catalog.ImageOptions{CA: certs, Root: root, Log: slog.New(slog.DiscardHandler)})
	under, end := context.WithCancel(ctx)
	g, under := errgroup.WithContext(under)
	g.Go(func() error { return images.Run(under) })
	g.Go(func() error { defer end(); return f(under, cat, images) })
	return g.Wait()
}

func listTemplates(ctx context.Context, out io.Writer, cat *catalog.Catalog, images *catalog.Images) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tIMAGE\tTITLE")
	for _, e := range cat.List() {
		if e.Problem != nil {
			fmt.Fprintf(w, "%s\tbroken\t%s:%d: %s\n", e.Name, e.Problem.File, e.Problem.Line, e.Problem.Message)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, images.Status(ctx, e.Name).State, e.Template.Title)
	}
	return w.Flush()
}

// buildTemplate shows each line of the build as it comes, with the step it belongs to.
func buildTemplate(ctx context.Context, out io.Writer, cat *catalog.Catalog, images *catalog.Images, name string) error {
	t, err := cat.Template(name)
	if err != nil {
		return err
	}
	ref, err := images.Ensure(ctx, t, func(e catalog.BuildEvent) {
		if e.Line != "" {
			fmt.Fprintf(out, "[%d/%d] %s\n", e.Step, e.Steps, e.Line)
		}
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s is ready as %s\n", name, ref); err != nil {
		return fault.Wrap(err, fault.Unavailable, "Writing the result: %v.", err)
	}
	return nil
}
